//! Clockjack's dataflow graphs: what runs, in which order results appear, and nothing about
//! threads.
//!
//! A graph is *described* (in a file or in code), *compiled* to a plan, and *run*. The plan fixes
//! the order in which results are committed; lanes decide only how a component is called. So in
//! virtual time the commit log of a run is the same, byte for byte, for any number of workers.
//!
//! # Map
//!
//! | what | where |
//! |---|---|
//! | what flows: typed values | [`data`] |
//! | what computes: components, their ports and settings | [`component`], [`registry`] |
//! | components for files without code | [`components`] |
//! | what a graph is, before anything is checked | [`describe`] |
//! | everything that is wrong with it, at once | [`diagnostic`] |
//! | regions and their order | [`compile`] |
//! | a run: its options, its report, what it counts and tells | [`graph`], [`run`] |
//! | actors that serve a graph, and actors that own one | [`bridge`] |

// What `#[derive(Component)]` writes names this crate from outside, also in here.
extern crate self as clockjack_graph;

pub mod bridge;
pub mod compile;
pub mod component;
pub mod components;
pub mod data;
pub mod describe;
pub mod diagnostic;
#[doc(hidden)]
pub mod generated;
pub mod graph;
mod named;
mod nearest;
pub mod registry;
pub mod run;
#[doc(hidden)]
pub mod testing;

pub use bridge::{ActorCall, OnRefused, OwnedRun};
pub use clockjack_exec::Failure;
#[doc(inline)]
pub use clockjack_macros::Component;
pub use component::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Input, InputPort, Need, Output, OutputPort, PortDescriptor, Snapshot,
};
pub use data::{Blob, BufferPool, Data, DecodeError, Frame, PixelFormat};
pub use describe::{Edge, GraphBuilder, GraphFile, Lane, Limits, Loop, ReadError, Setup, Trigger};
pub use diagnostic::{Category, Code, Diagnostic, Diagnostics, Severity};
pub use graph::{FeedError, Graph, GraphRun, Stopper};
pub use registry::Registry;
pub use run::{
    Clock, CommitLog, Feed, FeedRefused, GraphContext, ComponentLog, Level, LoopIteration,
    MemoryObserver, Observation, Observer, Parallel, PublishError, RunError, RunOptions, RunReport,
    ShutdownPolicy, Stamp, StopReason, TaskRefused, TraceLog,
};
