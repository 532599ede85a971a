//! Clockjack's closed set of events, counters, histograms and the ring recorder.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg_attr(loom, path = "construct/model.rs")]
#[cfg_attr(not(loom), path = "construct/native.rs")]
mod construct;
pub mod counter;
pub mod dump;
pub mod event;
pub mod gauge;
pub mod histogram;
pub mod mode;
pub mod recorder;

pub use counter::Counter;
pub use event::{Event, Record};
pub use gauge::Gauge;
pub use histogram::{Histogram, Quantile, Snapshot};
pub use mode::{Shared, Sole};
