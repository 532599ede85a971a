//! The end of a pool, and what is reported about it.

use core::{fmt, time::Duration};

use clockjack_exec::{Alive, Pid, State, engine::Engine};
use clockjack_sched::CloseReport;

use super::Inner;
use crate::{BlockingReport, OsInstant, host};

/// How long a process that was ended may take to be picked up, if it is not in the middle of a
/// step.
const FORCED_STOP_TIMEOUT: Duration = Duration::from_millis(200);

/// How often the count of the living is looked at if nobody tells of progress: what ends outside
/// the workers does not.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What became of a pool's processes when it was shut down.
#[derive(Clone, Debug, Default)]
pub struct ShutdownReport {
    /// How many ended by themselves once they were asked.
    pub completed: usize,
    /// Those that were still alive at the deadline, and were ended or left behind.
    pub stragglers: Vec<Straggler>,
    /// Workers that did not come back from a step, and were left behind with it.
    pub workers_left: usize,
    /// What became of blocking work.
    pub blocking: BlockingReport,
    /// What became of scheduled jobs; `None` if the scheduler was never asked for.
    pub scheduler: Option<CloseReport>,
}

impl ShutdownReport {
    /// Whether everything ended in time.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty() && self.workers_left == 0
    }
}

/// A process that did not end in time.
#[derive(Clone, Debug)]
pub struct Straggler {
    /// Which.
    pub pid: Pid,
    /// The name of its type.
    pub name: &'static str,
    /// What it did at the deadline. One that was running may never have noticed.
    pub state: State,
}

impl From<Alive> for Straggler {
    fn from(alive: Alive) -> Self {
        Self { pid: alive.pid, name: alive.name, state: alive.state }
    }
}

impl fmt::Display for Straggler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} was {}", self.pid, self.name, self.state)
    }
}

/// Stops a pool: asks, waits, ends, leaves.
pub(super) fn shutdown(inner: &Inner, deadline: Duration) -> ShutdownReport {
    let engine = &inner.engine;
    let mut report = ShutdownReport::default();
    let until = OsInstant::now().saturating_add(deadline);
    // Its handlers have all that the pool offers.
    let scheduler = inner.scheduler.get();
    report.scheduler = scheduler.map(|scheduler| scheduler.close(until));
    let before = engine.live_len();
    engine.stop();
    if host::is_worker_of(engine) {
        // This very thread would have to do what is waited for. Each worker ends what it has when
        // it leaves.
        engine.terminate_all(|alive| report.stragglers.push(alive.into()));
        engine.close_timers();
        inner.request_exit_all();
        engine.close();
        stop_late_tasks(engine);
        report.blocking = inner.blocking.shutdown(Duration::ZERO);
        return report;
    }
    wait_until_empty(inner, until);
    // What is found earlier was made by who looked before the stop: it is not late.
    let is_late = OsInstant::now() >= until;
    let mut n_found = 0_usize;
    engine.terminate_all(|alive| {
        n_found += 1;
        if is_late {
            report.stragglers.push(alive.into());
        }
    });
    report.completed = before.saturating_sub(report.stragglers.len());
    if n_found > 0 {
        wait_until_empty(inner, OsInstant::now().saturating_add(FORCED_STOP_TIMEOUT));
    }
    engine.close_timers();
    // What is left of the time is theirs: without a process they have no reason to stay, but a
    // loaded machine may let them wait.
    let soonest = OsInstant::now().saturating_add(FORCED_STOP_TIMEOUT);
    report.workers_left = inner.join_all(until.max(soonest));
    engine.close();
    stop_late_tasks(engine);
    let rest = until.saturating_since(OsInstant::now());
    report.blocking = inner.blocking.shutdown(rest.max(FORCED_STOP_TIMEOUT));
    let last = scheduler.zip(report.scheduler.take());
    report.scheduler = last.map(|(scheduler, first)| scheduler.report_again(first));
    report
}

/// Ends what was made by who had looked before the stop, was published behind the look that ended
/// the others, had a turn all the same, and waits: nobody else would ever wake it. And once more
/// closes the timers, of which a thread that the system had stopped may have held some.
fn stop_late_tasks(engine: &Engine) {
    engine.terminate_all(|_| {});
    engine.close_timers();
}

/// Waits until nothing is alive, or the time is over.
fn wait_until_empty(inner: &Inner, until: OsInstant) {
    while inner.engine.live_len() > 0 {
        let now = OsInstant::now();
        if now >= until {
            return;
        }
        let next_check = now.saturating_add(POLL_INTERVAL).min(until);
        inner.threads.shutdown_parker.park(Some(next_check));
    }
}
