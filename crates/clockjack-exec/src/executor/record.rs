//! Records events, and switches tracing on and off.
//!
//! The toolbox has the rings; an executor whose toolbox has none records nothing.

use clockjack_observe::event::{Event, TaskId, TaskOutcome};
use clockjack_sync::primitive::atomic::Ordering::{Relaxed, Release};

use crate::{
    executor::ExecutorShared,
    exit::ExitReason,
    task::{Header, TaskRef},
};

impl ExecutorShared {
    /// Records an event that happens now, in the ring of this worker, or in that of all threads
    /// that are no workers of this executor. For events that are rare enough to be recorded always.
    #[cold]
    pub fn record(&self, event: Event) {
        self.record_by(None, event);
    }

    /// As [`record`](Self::record), at a time that the caller has read.
    #[cold]
    pub(crate) fn record_at(&self, at_nanos: u64, event: Event) {
        self.record_by(Some(at_nanos), event);
    }

    fn record_by(&self, at_nanos: Option<u64>, event: Event) {
        let worker = self.worker_local().map(|local| local.index());
        self.toolbox().record(worker, at_nanos, event);
    }

    /// Whether events are recorded that are too frequent to be recorded always.
    #[inline]
    #[must_use]
    pub fn is_tracing(&self) -> bool {
        // Relaxed: a worker that must not miss a change reads it after its flags.
        self.is_tracing.load(Relaxed)
    }

    /// Switches tracing on or off. Workers follow before their next poll.
    pub fn set_tracing(&self, is_on: bool) {
        // Release, and before the flags: a worker that sees its flag sees this.
        self.is_tracing.store(is_on, Release);
        for (index, worker) in self.workers.iter().enumerate() {
            worker.request_poll();
            self.wake_worker(index);
        }
    }

    #[cold]
    pub(super) fn record_spawned(&self, task: &TaskRef) {
        self.record(Event::TaskSpawned { task: TaskId(task.pid().index()) });
    }

    #[cold]
    pub(super) fn record_finished(&self, header: &Header, reason: &ExitReason) {
        let outcome = match reason {
            ExitReason::Normal => TaskOutcome::Done,
            ExitReason::Failed(_) | ExitReason::Panicked(_) => TaskOutcome::Failed,
            ExitReason::Terminated => TaskOutcome::Terminated,
            ExitReason::Cancelled(_) => TaskOutcome::Cancelled,
        };
        self.record(Event::TaskFinished { task: TaskId(header.slot().index()), outcome });
    }
}
