//! Observers see a run after it has ended: its trace, metrics, health events, faults and result.
//!
//! An observer cannot affect the run. Its errors are only counted. After a panic it is not called
//! again, and the rest is counted as dropped. Both counts are in the metrics of the report,
//! `runtime.observer.failure_count` and `runtime.observer.dropped_event_count`; observers do not
//! see these two.

use core::{
    fmt,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU64, Ordering},
};
use std::{
    collections::VecDeque,
    panic::catch_unwind,
    sync::{Arc, Mutex, PoisonError, TryLockError},
};

use clockjack_exec::Failure;

use super::{
    health::HealthEvent,
    metrics::{Metric, MetricKind},
    report::{Fault, RunReport, RunStopReason},
    sinks::TraceLog,
    trace::TraceRecord,
};

/// How many observations a [`MemoryObserver`] keeps by default.
pub(crate) const MEMORY_CAPACITY: usize = 256;

/// Something about a run that has ended.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// A record of the trace, if the run has one. Trace records come first, the oldest before the
    /// others.
    Trace(&'a TraceRecord),
    /// A metric of the runtime.
    Metric(&'a Metric),
    /// A metric of a component.
    UserMetric(&'a Metric),
    /// A health event.
    Health(&'a HealthEvent),
    /// A fault. The one that has ended the run comes last.
    Error(&'a Fault),
    /// The result of the run. It is the last observation.
    Result(&'a RunReport),
}

/// Sees a run after it has ended.
///
/// It is called on a worker of the system before the run is reported as ended, so it must return
/// soon.
pub trait Observer: Send + 'static {
    /// Handles one observation.
    ///
    /// # Errors
    ///
    /// A failure is counted. Further observations follow nevertheless.
    fn observe(&mut self, seen: Observation<'_>) -> Result<(), Failure>;

    /// How many observations it could not keep.
    fn n_dropped(&self) -> u64 {
        0
    }
}

/// An observer in the options of a run. Clones are the same observer.
#[derive(Clone)]
pub(crate) struct SharedObserver(Arc<Mutex<Box<dyn Observer>>>);

impl SharedObserver {
    pub(crate) fn new(observer: impl Observer) -> Self {
        Self(Arc::new(Mutex::new(Box::new(observer))))
    }
}

impl fmt::Debug for SharedObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedObserver")
    }
}

/// Shows a run to all observers, and adds the two observer counts to its metrics.
pub(crate) fn notify(
    observers: &[SharedObserver],
    report: &mut RunReport,
    fault: Option<&Fault>,
    trace: Option<&TraceLog>,
) {
    if observers.is_empty() {
        return;
    }
    let records = trace.map(TraceLog::records).unwrap_or_default();
    let all = || {
        let report = &*report;
        records
            .iter()
            .map(Observation::Trace)
            .chain(report.metrics.list.iter().map(Observation::Metric))
            .chain(report.metrics.user.iter().map(Observation::UserMetric))
            .chain(report.health.iter().map(Observation::Health))
            .chain(report.faults.iter().chain(fault).map(Observation::Error))
            .chain([Observation::Result(report)])
    };
    let (mut n_failed, mut n_dropped) = (0_u64, 0_u64);
    for SharedObserver(observer) in observers {
        // An observer that panicked in another run is called again in this one.
        let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut has_panicked = false;
        for seen in all() {
            if has_panicked {
                n_dropped += 1;
                continue;
            }
            match catch_unwind(AssertUnwindSafe(|| observer.observe(seen))) {
                Ok(Ok(())) => {}
                Ok(Err(_)) => n_failed += 1,
                Err(_) => {
                    n_failed += 1;
                    has_panicked = true;
                }
            }
        }
        let lost = catch_unwind(AssertUnwindSafe(|| observer.n_dropped()));
        n_dropped += lost.unwrap_or(0);
    }
    for (name, n) in [
        ("runtime.observer.failure_count", n_failed),
        ("runtime.observer.dropped_event_count", n_dropped),
    ] {
        #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
        let value = n as f64;
        // An existing entry was counted before the observers were called.
        match report.metrics.list.iter_mut().find(|one| one.name == name) {
            Some(counted) => counted.value += value,
            None => {
                let kind = MetricKind::Counter;
                let name = name.into();
                report.metrics.list.push(Metric { name, kind, label: None, value });
            }
        }
    }
}

/// What a [`MemoryObserver`] has kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Observed {
    /// A record of the trace.
    Trace(TraceRecord),
    /// A metric of the runtime.
    Metric(Metric),
    /// A metric of a component.
    UserMetric(Metric),
    /// A health event.
    Health(HealthEvent),
    /// A fault.
    Error(Fault),
    /// Why the run ended, after how many epochs.
    Result(RunStopReason, u64),
}

/// Keeps the newest observations. Clones are the same observer.
///
/// It never blocks: an observation that comes while another thread reads is dropped and counted.
#[derive(Clone)]
pub struct MemoryObserver {
    kept: Arc<Mutex<VecDeque<Observed>>>,
    capacity: usize,
    n_dropped: Arc<AtomicU64>,
}

impl MemoryObserver {
    /// An observer that keeps 256 observations.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(MEMORY_CAPACITY)
    }

    /// An observer that keeps `capacity` observations.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        let (kept, n_dropped) = (Arc::default(), Arc::default());
        Self { kept, capacity, n_dropped }
    }

    /// Calls `read` with all observations, the oldest first.
    pub fn with<R>(&self, read: impl FnOnce(&VecDeque<Observed>) -> R) -> R {
        read(&self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes all observations, the oldest first.
    #[must_use]
    pub fn take(&self) -> Vec<Observed> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    fn count_dropped(&self) {
        // Relaxed: a count that publishes no other data.
        self.n_dropped.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for MemoryObserver {
    fn default() -> Self {
        Self::new()
    }
}

impl Observer for MemoryObserver {
    fn observe(&mut self, seen: Observation<'_>) -> Result<(), Failure> {
        let mut kept = match self.kept.try_lock() {
            Ok(kept) => kept,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.count_dropped();
                return Ok(());
            }
        };
        if kept.len() >= self.capacity {
            kept.pop_front();
            self.count_dropped();
        }
        if self.capacity > 0 {
            kept.push_back(match seen {
                Observation::Trace(one) => Observed::Trace(*one),
                Observation::Metric(one) => Observed::Metric(one.clone()),
                Observation::UserMetric(one) => Observed::UserMetric(one.clone()),
                Observation::Health(one) => Observed::Health(one.clone()),
                Observation::Error(one) => Observed::Error(one.clone()),
                Observation::Result(one) => Observed::Result(one.stop, one.epochs),
            });
        }
        Ok(())
    }

    fn n_dropped(&self) -> u64 {
        // Relaxed: as above.
        self.n_dropped.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for MemoryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryObserver")
            .field("capacity", &self.capacity)
            .field("n_dropped", &Observer::n_dropped(self))
            .finish_non_exhaustive()
    }
}
