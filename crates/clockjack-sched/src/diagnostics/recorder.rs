//! Passes events to the flight recorder of the host.

use core::fmt;

use clockjack_observe::event::{Event, SchedulerWarning, ShardId};
use clockjack_sync::primitive::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{EventSink, ExecutionBatch, JobNumber, Warning};

/// The flight recorder of the host, if it has one.
pub(crate) struct EventRecorder {
    sink: Option<EventSink>,
    is_tracing: AtomicBool,
}

impl EventRecorder {
    pub(crate) fn new(sink: Option<EventSink>) -> Self {
        Self { sink, is_tracing: AtomicBool::new(false) }
    }

    pub(crate) fn set_tracing(&self, is_on: bool) {
        // Relaxed: a trace may begin or end one run later.
        self.is_tracing.store(is_on, Relaxed);
    }

    #[inline]
    pub(crate) fn is_tracing(&self) -> bool {
        // Relaxed: as above.
        self.is_tracing.load(Relaxed)
    }

    /// A job was handed over, while a trace is on.
    #[cold]
    pub(crate) fn fired(&self, job: JobNumber, batch: ExecutionBatch) {
        if let Some(sink) = &self.sink {
            let (shard, runs) = (shard_id(job.shard), batch.runs.get());
            sink(Event::JobFired { shard, job: job.number, runs });
        }
    }

    #[cold]
    pub(crate) fn warn(&self, warning: &Warning) {
        if let (Some(sink), Some(event)) = (&self.sink, event_of(warning)) {
            sink(event);
        }
    }
}

fn shard_id(shard: u32) -> ShardId {
    ShardId(u16::try_from(shard).unwrap_or(u16::MAX))
}

fn event_of(warning: &Warning) -> Option<Event> {
    let nanos = |time: core::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let (warning, value) = match warning {
        Warning::BurstFire { job, missed, .. }
        | Warning::BacklogExceeded { job, backlog: missed, .. } => {
            let (shard, job) = (shard_id(job.shard), job.number);
            return Some(Event::JobLate { shard, job, missed: *missed });
        }
        Warning::DriftExceeded { observed, .. } => {
            (SchedulerWarning::DriftExceeded, nanos(*observed))
        }
        Warning::DriverCatchUpExceeded { ticks, .. } => {
            (SchedulerWarning::DriverCatchUpExceeded, *ticks)
        }
        Warning::DriverSilent { silent_for } => {
            (SchedulerWarning::DriverSilent, nanos(*silent_for))
        }
        Warning::QuotaReached { limit, .. } => (SchedulerWarning::QuotaReached, *limit as u64),
        Warning::BackpressureState { engaged, .. } => {
            (SchedulerWarning::BackpressureState, u64::from(*engaged))
        }
        Warning::OverflowNearCapacity { len, .. } => {
            (SchedulerWarning::OverflowNearCapacity, *len as u64)
        }
        Warning::DroppedLowPriority { job, .. } => {
            (SchedulerWarning::DroppedLowPriority, job.number)
        }
        Warning::HandlerFailed { job, .. } => (SchedulerWarning::HandlerFailed, job.number),
        Warning::TaskRunFailed { task, .. } => (SchedulerWarning::TaskRunFailed, *task),
        // Concerns one subscription, which gets the warning itself.
        Warning::DiagnosticsDropped { .. } => return None,
        Warning::ClockJump { by } => (SchedulerWarning::ClockJump, nanos(*by)),
    };
    Some(Event::SchedulerWarned { warning, value })
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder")
            .field("is_recording", &self.sink.is_some())
            .field("is_tracing", &self.is_tracing())
            .finish_non_exhaustive()
    }
}
