//! A run that a dispatcher other than the default one executes.

use alloc::boxed::Box;
use core::fmt;

use clockjack_sync::Arc;
use clockjack_time::Tick;

use super::{
    JobPayload, SchedulerShard,
    poll::{execute, finish_completion},
};
use crate::{
    BatchMode, HandlerError, JobState,
    jobs::{
        spec::late_by,
        table::{CompletedRun, Run},
    },
};

/// One run of a handler, for the dispatcher that executes it.
///
/// Dropping it without running it completes the run all the same: a periodic job continues, and a
/// one-shot counts as failed.
pub struct DispatchedRun {
    shard: Arc<SchedulerShard>,
    /// `None` once the run was executed or completed.
    run: Option<Box<Run<JobPayload>>>,
}

impl DispatchedRun {
    pub(super) fn new(shard: Arc<SchedulerShard>, run: Run<JobPayload>) -> Self {
        Self { shard, run: Some(Box::new(run)) }
    }

    /// Runs the handler. The scheduler's host catches its panics.
    ///
    /// If the job was cancelled before this call, by a canceller or by the close, then the handler
    /// does not run and the drop completes the run. Only periodic jobs can be cancelled at this
    /// point, and a cancel after the check below finds the job executing.
    pub fn run(mut self) {
        let is_cancelled =
            |run: &mut Box<Run<JobPayload>>| self.shard.jobs.state(run.slot) == JobState::Cancelled;
        if let Some(mut run) = self.run.take_if(|run| !is_cancelled(run)) {
            let shared = &*self.shard.shared;
            let now = shared.host.now();
            run.late = late_by(now, run.due, shared.resolution);
            let done = execute(shared, *run, now);
            self.complete(done);
        }
    }

    fn complete(&self, done: CompletedRun<JobPayload>) {
        let shared = &*self.shard.shared;
        let mut guard = self.shard.jobs.lock(&shared.relax());
        let to_drop = guard.complete(done);
        drop(guard);
        // Wake the poller in any case: the job may be due again, or earlier than the poller wakes.
        finish_completion(&self.shard, to_drop, Some(Tick::ZERO));
        // Last, as everywhere: a waker may panic, and the poller must be woken nevertheless.
        shared.bus().wake_readers();
    }
}

impl Drop for DispatchedRun {
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            let Run { slot, batch, payload, .. } = *run;
            let outcome = match batch.mode {
                BatchMode::OneShot => Err(HandlerError::new("its dispatcher did not run it")),
                BatchMode::FixedRate | BatchMode::FixedDelay => Ok(()),
            };
            let at = self.shard.shared.host.now();
            self.complete(CompletedRun { slot, payload, batch, outcome, at });
        }
    }
}

impl fmt::Debug for DispatchedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DispatchedRun").finish_non_exhaustive()
    }
}
