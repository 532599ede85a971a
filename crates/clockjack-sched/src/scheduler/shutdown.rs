//! The shutdown: the order in which remaining jobs are run or cancelled, and its time limit.

use core::time::Duration;

use clockjack_sync::primitive::atomic::{AtomicUsize, Ordering};
use clockjack_time::{Tick, TimerInstant};

use super::{Inner, Scheduler, SchedulerShared};
use crate::{
    CloseReport, CloseTask, HandlerError, TaskRunPriority, TaskRunReport, Warning,
    jobs::spec::tick_of,
};

/// What a close has done, for metrics and for later reports.
#[derive(Debug, Default)]
pub(crate) struct CloseStats {
    total: AtomicUsize,
    failures: AtomicUsize,
    micros: AtomicUsize,
    tasks_left: AtomicUsize,
}

impl CloseStats {
    pub(crate) fn report(&self) -> TaskRunReport {
        // Relaxed: statistics.
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed) as u64;
        let (total, failed) = (count(&self.total), count(&self.failures));
        let duration = Duration::from_micros(count(&self.micros));
        let left = count(&self.tasks_left);
        TaskRunReport { succeeded: total - failed.min(total), failed, left, duration }
    }
}

/// The time of a close: when it began, and how long its steps may begin user code.
struct CloseTime<'s> {
    shared: &'s SchedulerShared,
    begun: TimerInstant,
    /// `None` if there is no limit.
    timeout: Option<Duration>,
}

impl CloseTime<'_> {
    fn is_over(&self) -> bool {
        self.has_passed(1)
    }

    /// Whether this fraction of the time has passed.
    fn has_passed(&self, fraction: u32) -> bool {
        let passed = || self.shared.host.now().since(self.begun);
        self.timeout.is_some_and(|timeout| passed() >= timeout / fraction)
    }

    /// How many handlers may run between two readings of the clock.
    const fn budget(&self) -> usize {
        if self.timeout.is_some() { 1 } else { usize::MAX }
    }
}

impl Scheduler {
    /// Closes the scheduler on this thread. It stops the driver and runs due jobs; runs the close
    /// tasks in order; runs the one-shots that are marked to be run on close; and cancels all other
    /// jobs. No job is accepted from the first of these steps on, and nothing is put into
    /// mailboxes: [deliveries](crate::PendingDelivery) that are waiting or due are cancelled, and
    /// those that were sent count as executed.
    ///
    /// All runs that are due are executed, however many jobs have fallen behind: see
    /// [`shutdown_within`](Self::shutdown_within).
    ///
    /// Does not wait for handlers that other threads are running, so it may be called from a
    /// handler; the report counts these by their future outcome. A second call only reports.
    pub fn shutdown(&self) -> CloseReport {
        self.close(None)
    }

    /// As [`shutdown`](Self::shutdown), but begins no more handlers and close tasks once `timeout`
    /// has passed. Runs that are due get at most half of that time, so that jobs that have fallen
    /// behind leave the other half to close tasks and marked one-shots. Close tasks of the priority
    /// [`SystemCritical`](TaskRunPriority::SystemCritical) run in any case.
    ///
    /// What did not run is cancelled, and the report counts it: as
    /// [`runs_left`](CloseReport::runs_left) and [`left`](TaskRunReport::left).
    pub fn shutdown_within(&self, timeout: Duration) -> CloseReport {
        self.close(Some(timeout))
    }

    fn close(&self, timeout: Option<Duration>) -> CloseReport {
        let inner = self.inner();
        // AcqRel: a second caller sees what the first has done so far.
        if inner.is_shutting_down.swap(true, Ordering::AcqRel) {
            return inner.report(inner.close_stats(), None);
        }
        inner.stop_sending();
        let driver = inner.shared.host.stop_driver();
        let begun = inner.shared.host.now();
        let time = CloseTime { shared: &inner.shared, begun, timeout };
        self.run_due_by(begun, time.budget(), &|| !time.has_passed(2));
        let due_by = time.has_passed(2).then(|| tick_of(begun, inner.shared.resolution));
        let tasks = inner.run_close_tasks(&time);
        inner.close(due_by);
        inner.run_listed_in(&time);
        inner.cancel_rest(&time);
        for index in 0..inner.shards.len() {
            // So that the pollers learn that nothing is left.
            inner.shared.host.wake_poller(index, Tick::ZERO);
        }
        inner.report(tasks, driver)
    }
}

impl Inner {
    /// From here on no delivery is sent: those that are due are cancelled.
    fn stop_sending(&self) {
        for shard in &self.shards {
            shard.with_guard(|locked| locked.table.stop_sending());
        }
    }

    /// Closes the shards: no job is accepted from here on, and marked jobs are listed to be run.
    /// If there was no time for all runs that were due by `due_by`, the rest is counted.
    fn close(&self, due_by: Option<Tick>) {
        for shard in &self.shards {
            let mut guard = shard.jobs.close(due_by, &self.shared.relax());
            let locked = guard.locked();
            locked.table.list_marked(&mut locked.wheel);
        }
    }

    /// Cancels all remaining jobs, and notifies them.
    fn cancel_rest(&self, time: &CloseTime<'_>) {
        for shard in &self.shards {
            let mut guard = shard.jobs.lock(&self.shared.relax());
            let locked = guard.locked();
            locked.table.cancel_rest(&mut locked.wheel);
        }
        self.run_listed_in(time);
        if time.is_over() {
            for shard in &self.shards {
                let mut guard = shard.jobs.lock(&self.shared.relax());
                guard.locked().table.cancel_due();
            }
        }
        self.run_listed();
    }

    /// Runs the due lists as long as there is time.
    fn run_listed_in(&self, time: &CloseTime<'_>) {
        for shard in &self.shards {
            self.run_listed_of(shard, time.budget(), &|| !time.is_over());
        }
        self.shared.wake_readers();
    }

    fn run_close_tasks(&self, time: &CloseTime<'_>) -> TaskRunReport {
        let begun = self.shared.host.now();
        let mut report = TaskRunReport::default();
        for task in self.tasks.close() {
            if task.priority() != TaskRunPriority::SystemCritical && time.is_over() {
                self.shared.discard(task);
                report.left += 1;
                continue;
            }
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
        stats.tasks_left.store(count(report.left), Ordering::Relaxed);
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
                report.runs_left += counts.runs_left;
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
            let mut guard = shard.jobs.close(None, &self.shared.relax());
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
