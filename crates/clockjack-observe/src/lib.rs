//! What a running Clockjack system says about itself: events, counters, histograms, a flight
//! recorder, a text dump of them, and exporters.
//!
//! ```
//! use clockjack_observe::dump::{self, Chart, Line, Unit};
//! use clockjack_observe::event::{Event, ShardId, SlotId};
//! use clockjack_observe::recorder::{Recorder, Ring};
//! use clockjack_observe::{Counter, Histogram, Sole};
//!
//! // All of it can stand in a `static`; nothing allocates.
//! static FIRED: Counter<Sole> = Counter::new();
//! static LATENESS: Histogram<16, Sole> = Histogram::new();
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
//! // Any reader, on any thread, at any time.
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
//! assert_eq!(FLIGHT.dropped(), 100 - 63, "the ring keeps one less than it has slots");
//! # Ok::<(), core::fmt::Error>(())
//! ```
//!
//! # The model
//!
//! **Observation is never control.** Nothing in this crate can change what the observed code does:
//! no call waits, fails, allocates, reads a clock or calls back. Time is handed in, in nanoseconds
//! since the system's start. What does not fit is dropped, oldest first, and counted.
//!
//! There are two ways to report, and most places use both:
//!
//! * A **number** that is always there: a [`Counter`] for what happened, a [`Gauge`] for what is, a
//!   [`Histogram`] for how long or how much. Each is a few `usize` cells. A cell has a *mode*:
//!   [`Sole`] for one writer at a time, a load and a store, and [`Shared`] for many, an atomic
//!   read-modify-write. Readers may be anywhere.
//! * A **record** of one [`Event`] with its time, in a ring that keeps the last few thousand: the
//!   flight recorder. One ring has one writer, so each worker has its own; readers merge by time.
//!
//! Events are a closed set in a table of their own, because a number in sixteen bytes is cheap
//! enough to be always on, and text is not.
//!
//! # Map
//!
//! | module | what it holds |
//! |---|---|
//! | [`event`] | [`Event`], its kinds, families and fields, the sixteen-byte form, [`Record`] |
//! | [`counter`], [`gauge`] | one-cell numbers |
//! | [`histogram`] | [`Histogram`], its [`Snapshot`], [`Quantile`] |
//! | [`mode`] | [`Sole`] and [`Shared`] |
//! | [`recorder`] | the ring with its `Writer` and `Reader`, and why it is right |
//! | [`dump`] | aligned tables and bar charts through `core::fmt::Write` |
//! | `timeline` | tracks, spans, counters and flows, made from records of any kind |
//! | `chrome`, `perfetto` | a timeline as Chrome's JSON and as Perfetto's protobuf |
//! | `samples`, `prometheus` | readings with unit and labels, and their text for Prometheus |
//!
//! # What is not here
//!
//! * No registry of metrics or labels: those belong to the crates above, which know the names. The
//!   exporters write text or bytes and serve nobody. No order between the rings of two writers
//!   except by time.
//! * No event of the user's own, beside [`Event::Mark`] with a code and a value.
//! * No text in events, and no identity beyond a slot: a generation would not fit.
//! * No snapshot of several cells at one instant, see [`histogram`] for what is promised instead.
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `alloc` | `recorder::HeapRecorder`, a ring whose size is chosen at run time; `timeline`, |
//! |  | `samples` and the exporters |
//!
//! Without features the crate needs neither std nor an allocator. On targets without 64-bit atomics
//! it works with 32-bit words; on those without compare-exchange, [`Sole`] cells and the recorder's
//! `write` still are plain loads and stores.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;

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
pub use mode::{Shared, Sole};
