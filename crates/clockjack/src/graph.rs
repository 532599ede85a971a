//! Dataflow graphs: components with typed ports, described in a file or in code, compiled to a
//! plan, and executed so that the number of threads does not change the result.
//!
//! ```
//! # #[cfg(feature = "testkit")] {
//! use clockjack::graph::{
//!     Clock, Component, Execute, Failure, GraphContext, GraphFile, Input, Output, Registry,
//!     RunOptions,
//! };
//! use clockjack::testkit::ManualTime;
//!
//! /// Multiplies. The derive generates the ports, the settings and the schema for graph files.
//! #[derive(Component, Default)]
//! #[component(type = "gain")]
//! struct Gain {
//!     #[input]
//!     x: Input<f64>,
//!     #[output]
//!     y: Output<f64>,
//!     #[config(default = 1.0)]
//!     k: f64,
//! }
//!
//! impl Execute for Gain {
//!     fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
//!         if let Some(x) = cx.update(self.x).copied() {
//!             cx.publish(self.y, self.k * x)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let text = "
//! schema_version: 1
//! graph: { name: twice }
//! lanes:
//!   main: { type: fixed_rate, period_ms: 10 }
//! components:
//!   - { id: ramp, type: input, execution: { lane: main }, boundary: { role: input } }
//!   - id: twice
//!     type: gain
//!     event_sources: [{ type: message, input: x }]
//!     trigger_policy: { type: any_input }
//!     execution: { lane: main }
//!     config: { k: 2.0 }
//!   - id: out
//!     type: output
//!     event_sources: [{ type: message, input: in }]
//!     trigger_policy: { type: any_input }
//!     execution: { lane: main }
//!     boundary: { role: output }
//! edges:
//!   - { id: raw, kind: immediate, from: ramp.out, to: twice.x }
//!   - { id: doubled, kind: immediate, from: twice.y, to: out.in }
//! ";
//! let registry = Registry::standard().register::<Gain>();
//! let graph = GraphFile::parse("twice.yaml", text)?.compile(&registry)?;
//! let time = ManualTime::start(); // one second of the graph takes no real time
//! let run = graph.start(time.system(), RunOptions::steps(100).clock(Clock::Virtual))?;
//! let report = time.block_on(run)?;
//! assert_eq!(report.component("out").map(|out| out.executions), Some(100));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate `clockjack-graph` documents graphs completely. One difference: the code that the
//! derive generates uses the path `::clockjack::graph` for `Component` and so on. If a program
//! renames this crate, set the path: `#[component(type = "gain", crate = ::jack::graph)]`.

#[doc(hidden)]
pub use clockjack_graph::generated;
#[doc(no_inline)]
pub use clockjack_graph::{
    ActorCall, Binder, Blob, BufferPool, Clock, CommitLog, ComponentLog, Config, ConfigError,
    ConfigField, ConfigKind, ContextError, DataError, Descriptor, Diagnostic, Diagnostics, Edge,
    Execute, ExecuteShared, Failure, Feed, FeedError, FeedRefused, Frame, Graph, GraphBuilder,
    GraphContext, GraphFile, GraphRun, Input, InputPort, Lane, LogLevel, Loop, LoopIteration,
    MemoryObserver, Need, Observation, Observer, OnRefused, Output, OutputPort, OwnedRun, Parallel,
    PixelFormat, Plan, PortDescriptor, PublishError, ReadError, Registry, RunError, RunOptions,
    RunReport, RunStopReason, Setup, ShutdownPolicy, Snapshot, Stamp, Stopper, TraceLog, Trigger,
};
#[doc(no_inline)]
pub use clockjack_graph::{component, components, data, describe, diagnostic, run};
#[doc(no_inline)]
pub use clockjack_graph::{component::Component, data::Data};
// The derives next to the traits of these names: their code refers to this module.
#[doc(inline)]
pub use clockjack_macros::{FacadeComponent as Component, FacadeData as Data};
