//! The shutdown of a pool, and its report.

use core::{fmt, time::Duration};

use clockjack_exec::{LiveTask, Pid, State, executor::ExecutorShared};
use clockjack_sched::CloseReport;

use super::Inner;
use crate::{BlockingReport, OsInstant, pool::host, scheduler::PoolScheduler};

/// How long after the deadline the shutdown waits for what it stops by force: processes between two
/// steps, workers, blocking threads, the tokio reactor. All parts of a runtime share this time.
const FORCED_STOP_TIMEOUT: Duration = Duration::from_millis(60);

/// How long it waits for each of them at least, if others have used that time up.
const FORCED_STOP_MIN: Duration = Duration::from_millis(10);

/// How long after the deadline it waits for nothing any more, however many parts there are: so a
/// shutdown returns within a tenth of a second after its deadline.
const FORCED_STOP_MAX: Duration = Duration::from_millis(90);

/// How often the number of live tasks is polled. Workers unpark the waiting thread when they make
/// progress; tasks that finish on other threads do not.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What happened to the processes of a pool during its shutdown.
#[derive(Clone, Debug, Default)]
pub struct ShutdownReport {
    /// Processes that stopped by themselves after they were asked to.
    pub completed: usize,
    /// Processes that were still alive at the deadline, and were stopped by force or abandoned.
    pub stragglers: Vec<Straggler>,
    /// Workers whose step did not return; they were abandoned. In a forked child, in which there
    /// are no workers, this is 1.
    pub workers_left: usize,
    /// What happened to blocking work.
    pub blocking: BlockingReport,
    /// What happened to scheduled jobs; `None` if the scheduler was never created.
    pub scheduler: Option<CloseReport>,
}

impl ShutdownReport {
    /// Whether everything stopped in time: no process was stopped by force, all workers returned,
    /// no job and no blocking work is still running, no due run and no blocking work was dropped,
    /// and all close tasks succeeded.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty()
            && self.workers_left == 0
            && self.blocking.is_clean()
            && self.scheduler.as_ref().is_none_or(CloseReport::is_clean)
    }
}

/// A process that did not stop in time.
#[derive(Clone, Debug)]
pub struct Straggler {
    /// The id of the process.
    pub pid: Pid,
    /// The name of its type.
    pub name: &'static str,
    /// Its state at the deadline. A running process may not have noticed the shutdown at all.
    pub state: State,
}

impl From<LiveTask> for Straggler {
    fn from(alive: LiveTask) -> Self {
        Self { pid: alive.pid, name: alive.type_name, state: alive.state }
    }
}

impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} was {}", self.pid, self.name, self.state)
    }
}

/// Until when a shutdown with this deadline waits for something that it has stopped by force.
pub(crate) fn forced_stop_until(deadline: OsInstant) -> OsInstant {
    forced_stop_until_at(OsInstant::now(), deadline)
}

fn forced_stop_until_at(now: OsInstant, deadline: OsInstant) -> OsInstant {
    let soonest = now.saturating_add(FORCED_STOP_MIN);
    let latest = deadline.saturating_add(FORCED_STOP_MAX);
    deadline.saturating_add(FORCED_STOP_TIMEOUT).max(soonest).min(latest)
}

/// Shuts a pool down: asks, waits, forces, abandons.
pub(super) fn shutdown(inner: &Inner, mut until: OsInstant) -> ShutdownReport {
    let executor = &inner.executor;
    let mut report = ShutdownReport::default();
    let is_worker = host::is_worker_of(executor);
    // First the scheduler: its handlers may still use everything that the pool offers.
    let scheduler = inner.scheduler.get();
    if let Some(scheduler) = scheduler {
        until = scheduler.close(is_worker, until);
    }
    let before = executor.live_len();
    executor.begin_shutdown();
    if is_worker {
        // This thread would wait for itself. Each worker stops the tasks that it has when it
        // leaves.
        executor.terminate_all(|alive| report.stragglers.push(alive.into()));
        executor.close_timers();
        inner.request_exit_all();
        executor.close_run_queue();
        stop_late_tasks(executor);
        report.blocking = inner.blocking.shutdown(Duration::ZERO);
        report.scheduler = scheduler.and_then(PoolScheduler::report);
        return report;
    }
    wait_until_empty(inner, until);
    // A task that is found before the deadline was started by a thread that had checked for the
    // stop before it was set: such a task is not a straggler.
    let is_late = OsInstant::now() >= until;
    let mut n_found = 0_usize;
    executor.terminate_all(|alive| {
        n_found += 1;
        if is_late {
            report.stragglers.push(alive.into());
        }
    });
    report.completed = before.saturating_sub(report.stragglers.len());
    if n_found > 0 {
        wait_until_empty(inner, forced_stop_until(until));
    }
    executor.close_timers();
    // Workers without a task have no reason to stay, but on a loaded machine they may be scheduled
    // late: give them the rest of the time. Those that sleep nevertheless are not counted.
    report.workers_left = inner.join_all(forced_stop_until(until));
    executor.close_run_queue();
    stop_late_tasks(executor);
    let rest = forced_stop_until(until).saturating_since(OsInstant::now());
    report.blocking = inner.blocking.shutdown(rest);
    // The workers have left, and so has everything that could use a socket.
    inner.reactor.stop(forced_stop_until(until));
    // Last, because handlers may have finished since the scheduler was shut down.
    report.scheduler = scheduler.and_then(PoolScheduler::report);
    report
}

/// Stops tasks that slipped past the first `terminate_all`: their starter had checked for the stop
/// before it was set and published the task after that pass, so the task could run and now waits,
/// and no other thread would ever wake it. Also closes the timers again, because a preempted thread
/// may have held some of them.
fn stop_late_tasks(executor: &ExecutorShared) {
    executor.terminate_all(|_| {});
    executor.close_timers();
}

/// Waits until no task is alive, or the deadline has passed.
fn wait_until_empty(inner: &Inner, until: OsInstant) {
    while inner.executor.live_len() > 0 {
        let now = OsInstant::now();
        if now >= until {
            return;
        }
        let next_check = now.saturating_add(POLL_INTERVAL).min(until);
        inner.threads.shutdown_parker.park(Some(next_check));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn many_waits_together_take_no_more_than_a_tenth_of_a_second() {
        let deadline = OsInstant::from_nanos(1_000_000_000);
        let after = |millis| deadline.saturating_add(Duration::from_millis(millis));
        let check = |now, expected| assert_eq!(forced_stop_until_at(now, deadline), expected);
        check(OsInstant::from_nanos(0), after(60));
        check(after(0), after(60));
        check(after(60), after(70));
        check(after(85), after(90));
        // Each of a thousand stuck threads uses up all the time that it gets.
        let mut now = deadline;
        for _ in 0..1000 {
            now = now.max(forced_stop_until_at(now, deadline));
        }
        assert_eq!(now, after(90));
    }
}
