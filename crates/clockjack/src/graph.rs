//! Dataflow graphs: components behind typed ports, described in a file or in code, compiled to a
//! plan, and run so that the number of threads does not change what comes out.
//!
//! ```
//! # #[cfg(feature = "testkit")] {
//! use clockjack::graph::*;
//! use clockjack::testkit::ManualTime;
//!
//! /// Multiplies. The derive makes the ports, the settings and what files are checked against.
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
//! let time = ManualTime::start(); // one second of the graph takes no time at all
//! let run = graph.start(time.system(), RunOptions::steps(100).clock(Clock::Virtual))?;
//! let report = time.block_on(run)?;
//! assert_eq!(report.metrics.get("runtime.component.execution_count", "out"), Some(100.0));
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All of it is told in the crate `clockjack-graph`. The one difference: what the derive here
//! writes looks for `Component` and the others at `::clockjack::graph`. If a program knows this
//! crate by another name, it says so: `#[component(type = "gain", crate = ::jack::graph)]`.

#[doc(no_inline)]
pub use clockjack_graph::*;
// Beside the trait of this name, and before the derive that the line above would give.
#[doc(inline)]
pub use clockjack_macros::FacadeComponent as Component;
