//! The shutdown: the order in which remaining jobs are run or cancelled.

use core::time::Duration;

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering};
use clockjack_time::Tick;

use super::{Inner, Scheduler};
use crate::{CloseReport, CloseTask, HandlerError, TaskRunReport, Warning};

/// The counters of the close tasks, for metrics.
#[derive(Debug, Default)]
pub(crate) struct CloseStats {
    total: AtomicUsize,
    failures: AtomicUsize,
    micros: AtomicUsize,
}

impl CloseStats {
    pub(crate) fn report(&self) -> TaskRunReport {
        // Relaxed: statistics.
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
        let (total, failed) = (count(&self.total), count(&self.failures));
        let duration = Duration::from_micros(count(&self.micros));
        TaskRunReport { succeeded: total - failed.min(total), failed, duration }
    }
}

impl Scheduler {
    /// Closes the scheduler on this thread. It stops the driver and runs due jobs; runs the close
    /// tasks in order; runs the one-shots that are marked to be run on close; and cancels all other
    /// jobs. No job is accepted from the first of these steps on.
    ///
    /// Does not wait for handlers that other threads are running, so it may be called from a
    /// handler; the report counts these by their future outcome. A second call only reports.
    pub fn shutdown(&self) -> CloseReport {
        let inner = self.inner();
        // AcqRel: a second caller sees what the first has done so far.
        if inner.is_shutting_down.swap(true, Ordering::AcqRel) {
            return inner.report(inner.close_stats(), None);
        }
        let driver = inner.shared.host.stop_driver();
        self.run_due();
        let tasks = inner.run_close_tasks();
        inner.close();
        inner.run_listed();
        inner.cancel_rest();
        for index in 0..inner.shards.len() {
            // So that the pollers learn that nothing is left.
            inner.shared.host.wake_poller(index, Tick::ZERO);
        }
        inner.report(tasks, driver)
    }
}

impl Inner {
    /// Closes the shards: no job is accepted from here on, and marked jobs are listed to be run.
    fn close(&self) {
        for shard in &self.shards {
            let mut guard = shard.jobs.close(&self.shared.relax());
            let locked = guard.locked();
            locked.table.list_marked(&mut locked.wheel);
        }
    }

    /// Cancels all remaining jobs, and notifies them.
    fn cancel_rest(&self) {
        for shard in &self.shards {
            let mut guard = shard.jobs.lock(&self.shared.relax());
            let locked = guard.locked();
            locked.table.cancel_rest(&mut locked.wheel);
        }
        self.run_listed();
    }

    fn run_close_tasks(&self) -> TaskRunReport {
        let begun = self.shared.host.now();
        let mut report = TaskRunReport::default();
        for task in self.tasks.close() {
            match self.run_close_task(task) {
                Ok(()) => report.succeeded += 1,
                Err((number, error)) => {
                    report.failed += 1;
                    self.shared.warn(Warning::TaskRunFailed { task: number, error });
                }
            }
        }
        report.duration = self.shared.host.now().since(begun);
        let stats = &self.close_stats;
        let count = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        // Relaxed: statistics.
        stats.total.store(count(report.succeeded + report.failed), Ordering::Relaxed);
        stats.failures.store(count(report.failed), Ordering::Relaxed);
        let micros = u64::try_from(report.duration.as_micros()).unwrap_or(u64::MAX);
        stats.micros.store(count(micros), Ordering::Relaxed);
        report
    }

    fn run_close_task(&self, task: CloseTask) -> Result<(), (u64, HandlerError)> {
        let number = task.number();
        let mut task = Some(task);
        let run = &mut || task.take().map_or(Ok(()), CloseTask::run);
        self.shared.call(run).map_err(|error| (number, error))
    }

    /// The outcome of all jobs. Exact when all shards are closed.
    fn report(
        &self,
        close_tasks: TaskRunReport,
        driver: Option<clockjack_time::DriverStatus>,
    ) -> CloseReport {
        let mut report = CloseReport { close_tasks, driver, ..CloseReport::default() };
        for shard in &self.shards {
            shard.with_guard(|locked| {
                let (executing, cancelled) = locked.table.running();
                let counts = locked.table.counts();
                report.accepted += counts.accepted;
                report.executed += counts.executed + executing;
                report.cancelled += counts.cancelled + cancelled;
                report.run_on_close += counts.run_on_close;
                report.still_running += executing + cancelled;
            });
        }
        report
    }

    pub(crate) fn close_stats(&self) -> TaskRunReport {
        self.close_stats.report()
    }
}

impl Drop for Inner {
    /// No thread can poll any more. Cancels all remaining jobs, which handles can observe, and
    /// drops their payloads under the host's `catch_unwind`. Close tasks and marked jobs do not
    /// run: that needs a shutdown.
    fn drop(&mut self) {
        for shard in &self.shards {
            let mut guard = shard.jobs.close(&self.shared.relax());
            let locked = guard.locked();
            locked.table.cancel_rest(&mut locked.wheel);
            locked.table.cancel_due();
        }
        self.run_listed();
        for task in self.tasks.close() {
            self.shared.discard(task);
        }
        self.shared.bus().close();
        self.shared.wake_readers();
    }
}
