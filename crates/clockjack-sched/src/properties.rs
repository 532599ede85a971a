//! Properties that every run of a scheduler has, for your own property tests and fuzzers.
//!
//! A [`JobOracle`] knows when each job must run next, and finds the first run that violates a
//! [`Property`]. A [`SchedulerHarness`] is a scheduler in virtual time with such an oracle, which
//! can be driven directly or at random. Nothing here is random by itself: the caller passes a seed,
//! and the same seed gives the same runs.
//!
//! # Examples
//!
//! A fuzzer has bytes. They become steps, some of which are of its own making, and then everything
//! must hold:
//!
//! ```
//! use clockjack_sched::{JobSpec, SchedulerConfig, properties::SchedulerHarness};
//! use core::time::Duration;
//!
//! let harness = SchedulerHarness::new(SchedulerConfig::DEFAULT)?;
//! let ms = Duration::from_millis;
//! let beat = harness.schedule(JobSpec::fixed_rate(ms(30), ms(30)))?;
//! harness.advance(ms(100));
//! assert_eq!(harness.runs(beat), 3);
//!
//! for byte in *b"some input of a fuzzer" {
//!     let seed = u64::from(byte);
//!     match byte % 3 {
//!         0 => harness.stall(ms(seed)),
//!         1 => drop(harness.inject_random_cancel(seed)),
//!         _ => drop(harness.run_random(seed, 10)),
//!     }
//!     harness.assert_monotonic()?;
//! }
//! harness.advance(ms(100));
//! harness.assert_all()?;
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod error;
mod harness;
mod oracle;

pub use self::{
    error::{Property, PropertyError},
    harness::SchedulerHarness,
    oracle::{JobOracle, Run},
};
