//! Observability of a running Clockjack system: events, counters, gauges, histograms, a flight
//! recorder, text dumps and exporters.
//!
//! ```
//! use clockjack_observe::dump::{self, Chart, Line, Unit};
//! use clockjack_observe::event::{Event, ShardId, SlotId};
//! use clockjack_observe::recorder::{Recorder, Ring};
//! use clockjack_observe::{Counter, Histogram, SingleWriter};
//!
//! // Everything can be a `static`; nothing allocates.
//! static FIRED: Counter<SingleWriter> = Counter::new();
//! static LATENESS: Histogram<16, SingleWriter> = Histogram::new();
//! static FLIGHT: Recorder<64> = Recorder::new();
//!
//! // The one writer: a worker, an interrupt handler, a simulation.
//! let mut writer = FLIGHT.writer().expect("nobody else writes");
//! for n in 0..100_u32 {
//!     let timer = SlotId::new(ShardId(0), n);
//!     let late_ticks = u64::from(n % 3);
//!     FIRED.increment();
//!     LATENESS.record(late_ticks);
//!     writer.write(u64::from(n) * 1_000_000, Event::TimerFired { timer, late_ticks });
//! }
//!
//! // Readers, on any thread, at any time.
//! let mut text = String::new();
//! let lateness = LATENESS.snapshot();
//! dump::write_metrics(
//!     &mut text,
//!     &[
//!         Line::counter("clockjack_timers_fired_total", FIRED.get()),
//!         Line::histogram("clockjack_timer_lateness_ticks", Unit::Ticks, lateness.summary()),
//!     ],
//! )?;
//! dump::write_histogram(&mut text, &lateness, Chart { unit: Unit::Ticks, ..Chart::DEFAULT })?;
//! dump::write_records(&mut text, FLIGHT.tail(5))?;
//! assert!(text.contains(" timer=0/99 late_ticks=0"));
//! assert_eq!(FLIGHT.dropped(), 100 - 63, "the ring keeps one record less than it has slots");
//! # Ok::<(), core::fmt::Error>(())
//! ```
//!
//! # The model
//!
//! **Observation is never control.** Nothing in this crate changes what the observed code does:
//! no call waits, fails, allocates, reads a clock or calls back. The caller passes the time in
//! nanoseconds since the start of the system. Records that do not fit are dropped, oldest first,
//! and counted.
//!
//! There are two ways to report, and most code uses both:
//!
//! * A **metric** that is always available: a [`Counter`] for events, a [`Gauge`] for levels, a
//!   [`Histogram`] for durations or amounts. Each consists of a few `usize` cells. A cell has a
//!   *mode*: [`SingleWriter`] for one writer at a time (a load and a store), and [`Shared`] for
//!   many writers (an atomic read-modify-write). Any thread may read.
//! * A **record** of one [`Event`] with its time, in a ring that keeps the last few thousand: the
//!   flight recorder. A ring has one writer, so each worker has its own ring; readers merge rings
//!   by time.
//!
//! Events are a closed set, defined in one table, because a sixteen-byte value is cheap enough to
//! be always on, and text is not.
//!
//! # Map
//!
//! | module | contents |
//! |---|---|
//! | [`event`] | [`Event`], its kinds, families and fields, the sixteen-byte form, [`Record`] |
//! | [`counter`], [`gauge`] | one-cell numbers |
//! | [`histogram`] | [`Histogram`] (log-linear, as HdrHistogram), its [`Snapshot`], [`Quantile`] |
//! | [`mode`] | [`SingleWriter`] and [`Shared`] |
//! | [`recorder`] | the ring with its `Writer` and `Reader`, a seqlock-like protocol |
//! | [`dump`] | aligned tables and bar charts through `core::fmt::Write` |
//! | `timeline` | tracks, spans, counters and flows, built from records |
//! | `chrome`, `perfetto` | a timeline as Chrome JSON and as Perfetto protobuf |
//! | `bus` | publish/subscribe: a list of subscribers, and bounded queues that count losses |
//! | `samples`, `prometheus` | samples with unit and labels, and Prometheus' text format |
//!
//! # What is not supported
//!
//! * There is no registry of metrics or labels: the crates above know the names. The exporters
//!   write text or bytes and contain no server. Records of two rings are ordered only by time.
//! * There are no user-defined events, except [`Event::Mark`] with a code and a value.
//! * Events contain no text, and identify a slot without its generation, which would not fit.
//! * There is no atomic snapshot of several cells; [`histogram`] says what is guaranteed instead.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `alloc` | `recorder::HeapRecorder`, a ring whose size is chosen at run time; `timeline`, |
//! |  | `samples` and the exporters; `bus` |
//!
//! Without features the crate needs neither std nor an allocator. On targets without 64-bit atomics
//! it uses 32-bit words; on targets without compare-exchange, [`SingleWriter`] cells and the
//! recorder's `write` are still plain loads and stores.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

#[cfg(feature = "alloc")]
pub mod bus;
#[cfg(feature = "alloc")]
pub mod chrome;
#[cfg_attr(loom, path = "construct/model.rs")]
#[cfg_attr(not(loom), path = "construct/native.rs")]
mod construct;
pub mod counter;
pub mod dump;
pub mod event;
pub mod gauge;
pub mod histogram;
pub mod mode;
#[cfg(feature = "alloc")]
pub mod perfetto;
#[cfg(feature = "alloc")]
pub mod prometheus;
pub mod recorder;
#[cfg(feature = "alloc")]
pub mod samples;
#[cfg(feature = "alloc")]
pub mod timeline;

pub use counter::Counter;
pub use event::{Event, Record};
pub use gauge::Gauge;
pub use histogram::{Histogram, Quantile, Snapshot};
pub use mode::{Shared, SingleWriter};
