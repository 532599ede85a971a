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
//! | what a graph is, before anything is checked | [`describe`] |
//! | everything that is wrong with it, at once | [`diagnostic`] |
//! | regions and their order | [`compile`] |

extern crate alloc;

pub mod compile;
pub mod component;
pub mod data;
pub mod describe;
pub mod diagnostic;
pub mod graph;
mod named;
mod nearest;
pub mod registry;
pub mod run;

pub use clockjack_exec::Failure;
pub use component::{
    Binder, Component, Config, ConfigError, ConfigField, ConfigKind, Descriptor, Execute,
    ExecuteShared, Input, InputPort, Need, Output, OutputPort, PortDescriptor, Snapshot,
};
pub use data::{Data, DecodeError};
pub use diagnostic::{Category, Code, Diagnostic, Diagnostics, Severity};
pub use graph::{FeedError, Graph, GraphRun, Stopper};
pub use registry::Registry;
pub use run::{
    Clock, CommitLog, Feed, FeedRefused, GraphContext, LoopIteration, Parallel, PublishError,
    RunError, RunOptions, RunReport, Stamp, StopReason, TaskRefused, TraceLog,
};
