//! Observability of a running Clockjack system: events, counters, histograms, a flight recorder and
//! exporters.
//!
//! ```
//! use clockjack_observe::{Counter, Histogram, Quantile, SingleWriter};
//!
//! // Metrics can be a `static`; they do not allocate.
//! static FIRED: Counter = Counter::new();
//! static LATENESS: Histogram<16, SingleWriter> = Histogram::new();
//! for n in 0..100 {
//!     FIRED.increment();
//!     LATENESS.record(n % 3);
//! }
//! // Readers, on any thread, at any time.
//! assert_eq!(FIRED.get(), 100);
//! assert_eq!(LATENESS.snapshot().quantile(Quantile::P99), Some(2));
//! ```
//!
//! # The model
//!
//! **Observation is never control.** Nothing in this crate changes what the observed code does:
//! no call waits, fails, reads a clock or calls back. The caller passes the time in nanoseconds
//! since the start of the system. Records that do not fit are dropped, oldest first, and counted.
//!
//! There are two ways to report, and most code uses both:
//!
//! * A **metric** that is always available: a [`Counter`] for events, a [`Histogram`] for
//!   durations or amounts. Each consists of a few `usize` cells. A cell has a
//!   *mode*: [`SingleWriter`] for one writer at a time (a load and a store), and [`Shared`] for
//!   many writers (an atomic read-modify-write). Any thread may read.
//! * A **record** of one [`Event`] with its time, in a ring that keeps the last few thousand: the
//!   flight recorder. A ring has one writer, so each worker has its own ring; readers merge rings
//!   by time. Rare events are always recorded, frequent ones only while a trace is on.
//!
//! Events are a closed set, defined in one table, because a sixteen-byte value is cheap enough to
//! be always on, and text is not.
//!
//! # Map
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | [`Event`], its kinds and fields, the sixteen-byte form, [`Record`] |
//! | [`counter`] | a number in one cell |
//! | [`backoff`] | how often a warning is repeated |
//! | [`histogram`] | [`Histogram`] (log-linear, as HdrHistogram), its [`Snapshot`], [`Quantile`] |
//! | [`mode`] | [`SingleWriter`] and [`Shared`] |
//! | `recorder` | the ring with its `Writer` and `Reader`, a seqlock; the rings of an executor |
//! | `timeline` | tracks, spans, counters and flows, built from records |
//! | `chrome`, `perfetto` | a timeline as Chrome JSON and as Perfetto protobuf |
//! | `bus` | publish/subscribe: a list of subscribers, and bounded queues that count losses |
//! | `samples`, `prometheus` | samples with unit and labels, and Prometheus' text format |
//!
//! # What is not supported
//!
//! * There is no registry of metrics or labels: the crates above know the names. The exporters
//!   write text or bytes and contain no server. Records of two rings are ordered only by time.
//! * There are no user-defined events.
//! * Events contain no text, and identify a task without its generation.
//! * There is no atomic snapshot of several cells; [`histogram`] says what is guaranteed instead.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `alloc` | `recorder`, `timeline`, `samples`, the exporters and `bus` |
//!
//! Without features the crate needs neither std nor an allocator. On targets without 64-bit atomics
//! it uses 32-bit words; on targets without compare-exchange, [`SingleWriter`] cells and the
//! recorder's `write` are still plain loads and stores.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod backoff;
#[cfg(feature = "alloc")]
pub mod bus;
#[cfg(feature = "alloc")]
pub mod chrome;
#[cfg_attr(loom, path = "construct/model.rs")]
#[cfg_attr(not(loom), path = "construct/native.rs")]
mod construct;
pub mod counter;
pub mod event;
pub mod histogram;
pub mod mode;
#[cfg(feature = "alloc")]
pub mod perfetto;
#[cfg(feature = "alloc")]
pub mod prometheus;
#[cfg(feature = "alloc")]
pub mod recorder;
#[cfg(feature = "alloc")]
pub mod samples;
#[cfg(feature = "alloc")]
pub mod timeline;

pub use counter::Counter;
pub use event::{Event, Record};
pub use histogram::{Histogram, Quantile, Snapshot};
pub use mode::{Shared, SingleWriter};
