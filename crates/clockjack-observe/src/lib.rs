//! Clockjack's closed set of events, counters, histograms and the ring recorder.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
