//! The report of a runtime's shutdown: one report for all parts of the runtime.

use core::fmt;

use clockjack_actor::{FailureInfo, TerminationReport};
use clockjack_sched::CloseReport;

use crate::{BlockingReport, ShutdownReport, Straggler, signals::StopSignal};

/// What happened to every part of a [`Runtime`](crate::Runtime) during its shutdown.
///
/// [`is_success`](Self::is_success) is what the exit code of a program says.
///
/// Its `Display` prints one line if the shutdown was clean, with the reason; otherwise it names
/// everything that was stopped by force, dropped or left behind, too.
///
/// # Examples
///
/// ```
/// use clockjack_rt::Runtime;
/// use std::{sync::mpsc, time::Duration};
///
/// let rt = Runtime::new("shop")?;
/// let (hold, held) = mpsc::channel::<()>();
/// let (begin, begun) = mpsc::channel();
/// let never_returns = move || {
///     begin.send(()).unwrap();
///     held.recv().unwrap_err();
/// };
/// drop(rt.spawn_blocking(never_returns));
/// begun.recv()?;
///
/// let report = rt.shutdown(Duration::from_millis(10));
/// assert!(!report.is_clean());
/// assert_eq!(report.blocking.abandoned, 1);
/// assert!(report.to_string().contains("blocking work: 1 closure still running"));
/// # drop(hold);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[must_use = "nothing else says what has failed and what was left behind"]
pub struct RuntimeReport {
    /// The actors and the phases of the coordinated shutdown.
    pub termination: TerminationReport,
    /// The jobs of the scheduler; `None` if [`is_final`](Self::is_final) is false, and of a system
    /// inside tokio.
    pub jobs: Option<CloseReport>,
    /// The tasks and threads of every executor: the pool of the runtime first, then the other
    /// dispatchers. Empty if [`is_final`](Self::is_final) is false, and for a system inside tokio.
    pub executors: Vec<ExecutorReport>,
    /// The blocking work of all executors.
    pub blocking: BlockingReport,
    /// Whether the shutdown was complete when it reported. False if a thread of the runtime itself
    /// shut the runtime down: such a thread cannot wait for itself.
    pub is_final: bool,
    /// The signal that has stopped the run ([`Runtime::run`](crate::Runtime::run)), if one has.
    pub signal: Option<StopSignal>,
    /// The failure that has stopped the run, if one has: that of the last top-level actor, or one
    /// that has reached the root. The shutdown after it may have been clean all the same.
    pub failure: Option<FailureInfo>,
}

/// What happened to the tasks and threads of one executor of a runtime during its shutdown.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExecutorReport {
    /// The name of the executor's threads.
    pub name: String,
    /// Tasks that stopped by themselves after they were asked to.
    pub completed: usize,
    /// Tasks that were still alive at the deadline, and were stopped by force or abandoned.
    pub stragglers: Vec<Straggler>,
    /// Threads that did not return from a step; they were abandoned.
    pub threads_left: usize,
}

impl RuntimeReport {
    /// Whether the shutdown is complete and every part of it is clean: all actors and tasks stopped
    /// in time, all shutdown tasks and close tasks succeeded, no handler of a job and no blocking
    /// work is still running, no due run of a job and no blocking work was dropped, and all threads
    /// returned. A run that a failure has ended may be clean; see [`is_success`](Self::is_success).
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.is_final
            && self.termination.is_clean()
            && self.jobs.as_ref().is_none_or(CloseReport::is_clean)
            && self.executors.iter().all(ExecutorReport::is_clean)
            && self.blocking.is_clean()
    }

    /// Whether no failure has ended the run and the shutdown is [clean](Self::is_clean). A signal
    /// is a success: the service manager that sends it expects the exit code 0.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use clockjack_rt::Runtime;
    /// use std::process::ExitCode;
    ///
    /// fn main() -> ExitCode {
    ///     let Ok(rt) = Runtime::new("shop") else { return ExitCode::FAILURE };
    ///     let report = rt.run();
    ///     if report.is_success() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    /// }
    /// ```
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.failure.is_none() && self.is_clean()
    }

    /// Adds the report of a pool, under the name of its threads.
    pub(crate) fn add_pool(&mut self, name: String, report: ShutdownReport) {
        let ShutdownReport { completed, stragglers, workers_left, blocking, scheduler } = report;
        self.jobs = self.jobs.or(scheduler);
        self.blocking.add(blocking);
        let threads_left = workers_left;
        self.executors.push(ExecutorReport { name, completed, stragglers, threads_left });
    }

    fn fmt_parts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_final {
            f.write_str("\n  not complete: a thread of the runtime shut the runtime down")?;
        }
        for path in &self.termination.stragglers {
            write!(f, "\n  actor {path} did not stop in time")?;
        }
        if let Some(phases) = self.termination.shutdown.as_ref().filter(|it| !it.is_clean()) {
            write!(f, "\n  {phases}")?;
        }
        if let Some(jobs) = self.jobs.as_ref().filter(|jobs| !jobs.is_clean()) {
            write!(f, "\n  scheduler {jobs}")?;
        }
        self.executors.iter().try_for_each(|executor| executor.fmt_parts(f))?;
        if !self.blocking.is_clean() {
            let BlockingReport { abandoned, dropped, .. } = self.blocking;
            let closures = if abandoned == 1 { "closure" } else { "closures" };
            write!(f, "\n  blocking work: {abandoned} {closures} still running")?;
            write!(f, ", {dropped} dropped before they started")?;
        }
        Ok(())
    }
}

impl fmt::Display for RuntimeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "runtime shut down ({})", self.termination.reason)?;
        f.write_str(match (&self.failure, self.is_clean()) {
            (None, true) => ": clean",
            (None, false) => ": not clean",
            (Some(_), true) => ": failed",
            (Some(_), false) => ": failed, not clean",
        })?;
        self.fmt_parts(f)
    }
}

impl ExecutorReport {
    /// Whether all tasks stopped in time and all threads returned.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.stragglers.is_empty() && self.threads_left == 0
    }

    fn fmt_parts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        for straggler in &self.stragglers {
            write!(f, "\n  {name}: task {straggler} at the deadline")?;
        }
        match self.threads_left {
            0 => Ok(()),
            1 => write!(f, "\n  {name}: 1 thread did not return and was abandoned"),
            n => write!(f, "\n  {name}: {n} threads did not return and were abandoned"),
        }
    }
}
