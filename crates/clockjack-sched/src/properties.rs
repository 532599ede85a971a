//! Properties that every run of a scheduler has, for your own property tests and fuzzers.
//!
//! [`monotonic`], [`cancelled_never_ran`] and [`fixed_rate_grid`] check a log of any origin. A
//! [`SchedulerHarness`] is a scheduler in virtual time that can be driven directly or at random,
//! and checked by these and by what it knows of its jobs. Nothing here is random by itself: the
//! caller passes a seed, and the same seed gives the same log.
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
//! assert!(harness.runs(beat).is_some());
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```

mod error;
mod harness;
mod random;
mod rate;

use alloc::collections::BTreeMap;

use clockjack_time::Tick;

pub use self::{
    error::PropertyError,
    harness::{RandomSteps, SchedulerHarness},
    rate::{FixedRate, fixed_rate_grid},
};
use crate::{JobNumber, LogKind, LogRecord};

/// The last records of one shard.
#[derive(Default)]
struct Last {
    record: Option<LogRecord>,
    /// The last run that was not behind another of its job.
    fire: Option<LogRecord>,
    /// The last first run of a job.
    first: Option<LogRecord>,
}

/// Checks the order of a log: in each shard time never goes back; nothing runs before its deadline;
/// runs come in the order of their deadlines, and first runs of one deadline in the order in which
/// their jobs were accepted.
///
/// A job at a fixed rate that is behind runs its missed runs one by one between those of others, so
/// those are not held to the order of deadlines. What ran at the close may have run early: pass
/// the tick of the close, if there was one.
///
/// # Errors
///
/// The first violation, with its records.
pub fn monotonic<'r>(
    records: impl IntoIterator<Item = &'r LogRecord>,
    closed_at: Option<Tick>,
) -> Result<(), PropertyError> {
    let mut shards = BTreeMap::<u32, Last>::new();
    let mut ran = BTreeMap::<JobNumber, LogRecord>::new();
    for record in records {
        let last = shards.entry(record.job.shard).or_default();
        if let Some(before) = last.record.replace(*record)
            && record.at < before.at
        {
            return Err(PropertyError::TimeWentBack { before, after: *record });
        }
        if record.kind != LogKind::Fire || closed_at.is_some_and(|closed_at| record.at >= closed_at)
        {
            continue;
        }
        if record.at < record.deadline {
            return Err(PropertyError::FiredEarly { fire: *record });
        }
        let earlier = ran.insert(record.job, *record);
        let is_behind = earlier.is_some_and(|earlier| record.deadline <= earlier.at);
        if is_behind {
            continue;
        }
        if let Some(before) = last.fire.replace(*record)
            && record.deadline < before.deadline
        {
            return Err(PropertyError::OutOfOrder { before, after: *record });
        }
        if earlier.is_none()
            && let Some(before) = last.first.replace(*record)
            && record.deadline == before.deadline
            && record.job < before.job
        {
            return Err(PropertyError::OutOfOrder { before, after: *record });
        }
    }
    Ok(())
}

/// Checks the cancels of a log: a job is cancelled at most once, and does not run
/// afterwards.
///
/// # Errors
///
/// The first violation, with its records.
pub fn cancelled_never_ran<'r>(
    records: impl IntoIterator<Item = &'r LogRecord>,
) -> Result<(), PropertyError> {
    let mut cancels = BTreeMap::<JobNumber, LogRecord>::new();
    for record in records {
        let cancel = cancels.get(&record.job).copied();
        match (record.kind, cancel) {
            (LogKind::Fire, Some(cancel)) => {
                return Err(PropertyError::RanAfterCancel { cancel, fire: *record });
            }
            (LogKind::Cancel, Some(first)) => {
                return Err(PropertyError::CancelledTwice { first, second: *record });
            }
            (LogKind::Cancel, None) => drop(cancels.insert(record.job, *record)),
            _ => {}
        }
    }
    Ok(())
}
