//! One run of one subject under one load, newly started. The suite repeats runs, rotates subjects
//! and takes medians.
//!
//! The waiting thread reads the clocks, because a case is over with its last timer and not with a
//! task. Sending two tasks to the workers costs the same for all subjects and, with a hundred
//! thousand timers, less than a nanosecond per timer. The first pass of each run is not measured;
//! it warms up the runtime.

use alloc::sync::Arc;
use core::time::Duration;
use std::thread;

use super::load::{self, Load};
use super::subject::{Case, Subject};
use crate::entry::Run;
use crate::failure::Failure;
use crate::measure::{Begun, Mode, Spent};
use crate::receiver::{Ends, Receiver};

/// The pause between scheduling and cancelling. A subject that arms a timer in a task has run that
/// task by then; otherwise it would be spared the work.
const SETTLING: Duration = Duration::from_millis(50);

/// The time limit of a pass after its last due time. After it, timers count as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figure {
    /// CPU time of all threads per timer.
    pub(crate) cpu_ns: f64,
    /// Wall time per call that schedules.
    pub(crate) schedule_ns: f64,
    /// Wall time per call that cancels, if there are any.
    pub(crate) cancel_ns: Option<f64>,
    /// How long after the last due time a pass was over.
    pub(crate) behind_us: f64,
    /// Allocations per timer; zero in a timed run.
    pub(crate) n_allocs: f64,
}

/// The sums over passes.
#[derive(Clone, Copy, Debug, Default)]
struct Course {
    spent: Spent,
    scheduling: Duration,
    cancelling: Duration,
    behind: Duration,
}

/// Starts a subject, runs it through one case and stops it.
///
/// # Errors
///
/// If it cannot be started, or lost a timer.
pub(crate) fn run<S: Subject>(run: &Run<Load>) -> Result<Figure, Failure> {
    let subject = S::start()?;
    one_pass(&subject, run, Mode::Timed)?;
    let mut total = Course::default();
    for _ in 0..run.n_passes {
        let course = one_pass(&subject, run, run.mode)?;
        total.spent += course.spent;
        total.scheduling += course.scheduling;
        total.cancelling += course.cancelling;
        total.behind += course.behind;
    }
    subject.stop();
    let n_ops = f64::from(run.load.n) * f64::from(run.n_passes);
    let cost = total.spent.per(n_ops);
    let nanos = |duration: Duration| duration.as_nanos() as f64 / n_ops;
    Ok(Figure {
        cpu_ns: cost.cpu_ns,
        schedule_ns: nanos(total.scheduling),
        cancel_ns: (run.load.case == Case::ScheduleCancel).then(|| nanos(total.cancelling)),
        behind_us: total.behind.as_secs_f64() * 1e6 / f64::from(run.n_passes),
        n_allocs: cost.n_allocs,
    })
}

fn one_pass<S: Subject>(subject: &S, run: &Run<Load>, mode: Mode) -> Result<Course, Failure> {
    let Load { case, n, .. } = *run.load;
    let load = || Arc::clone(&run.load);
    let receiver = Receiver::leaked(n);
    // The vector of keys belongs to the user and is not part of the cost.
    let keys = Vec::with_capacity(if case == Case::ScheduleCancel { n as usize } else { 0 });
    let begun = Begun::new(mode, run.watch);
    let scheduled =
        subject.block_on(load::schedule_all::<S>(subject.timers(), load(), receiver, keys));
    let (cancelling, due) = match case {
        Case::ScheduleCancel => {
            thread::sleep(SETTLING);
            let cancel = load::cancel_all::<S>(subject.timers(), load(), scheduled.keys);
            let cancelled = subject.block_on(cancel);
            (cancelled.in_calls, cancelled.last)
        }
        Case::ScheduleFire => (Duration::ZERO, scheduled.last_due),
    };
    let ends = receiver.wait(due + PATIENCE);
    let behind = due.elapsed();
    let spent = begun.end();
    let (fired, dropped) = match case {
        Case::ScheduleCancel => (0, n),
        Case::ScheduleFire => (n, 0),
    };
    ends.check(S::FACTS.name, Ends { fired, dropped })?;
    Ok(Course { spent, scheduling: scheduled.in_calls, cancelling, behind })
}
