//! A scheduler in virtual time, and handlers that write down when they ran.

use alloc::sync::Arc;
use core::{ops::Deref, panic::AssertUnwindSafe, time::Duration};
use std::{panic::catch_unwind, sync::Mutex};

use clockjack_sched::{
    Cancellable, DiagnosticEvent, DispatcherId, EventKinds, FireContext, HandlerError,
    ManualRunner, Outcome, PanicPayload, SchedulerConfig, SchedulerTask, Subscription, Warning,
};
use clockjack_time::{MonotonicClock, Resolution};

pub(crate) const D: DispatcherId = DispatcherId::DEFAULT;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// A scheduler with a manual clock. Its jobs may own the runner, so it is closed at the end.
pub(crate) struct Bench(ManualRunner);

impl Bench {
    /// With ticks of 10 ms, as Pekko has by default.
    pub(crate) fn new() -> Self {
        Self::with(SchedulerConfig::DEFAULT)
    }

    /// With ticks of 1 ms.
    pub(crate) fn fine() -> Self {
        Self::with(SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT })
    }

    pub(crate) fn with(config: SchedulerConfig) -> Self {
        Self(ManualRunner::with_catch_unwind(config, guard).expect("it is not for production"))
    }

    pub(crate) fn runner(&self) -> ManualRunner {
        self.0.clone()
    }

    /// Milliseconds since the start.
    pub(crate) fn now(&self) -> u64 {
        now(&self.0)
    }

    pub(crate) fn warnings(&self) -> Subscription {
        let diagnostics = self.0.scheduler().diagnostics();
        diagnostics.subscribe(EventKinds::WARNING, 64).expect("it is the first")
    }

    /// A job that records its runs, each of which takes `body`.
    pub(crate) fn every(
        &self,
        mode: Mode,
        initial: Duration,
        period: Duration,
        body: Duration,
    ) -> Job {
        let (runs, runner) = (Runs::default(), self.runner());
        let noted = runs.clone();
        let handle = mode.schedule(self, initial, period, move |_| {
            noted.note(&runner);
            runner.clock().advance(body);
        });
        Job { handle, runs }
    }

    /// A one-shot that records its run.
    pub(crate) fn once(&self, delay: Duration) -> Job {
        let (runs, runner) = (Runs::default(), self.runner());
        let noted = runs.clone();
        let handle = self.scheduler().schedule_once_fn(delay, D, move |_| noted.note(&runner));
        Job { handle: handle.expect("there is room"), runs }
    }
}

impl Deref for Bench {
    type Target = ManualRunner;

    fn deref(&self) -> &ManualRunner {
        &self.0
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.0.scheduler().shutdown();
    }
}

pub(crate) struct Job {
    pub(crate) handle: Cancellable,
    pub(crate) runs: Runs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    FixedRate,
    FixedDelay,
}

impl Mode {
    pub(crate) fn schedule<R: Outcome>(
        self,
        bench: &ManualRunner,
        initial: Duration,
        period: Duration,
        f: impl FnMut(&FireContext) -> R + Send + 'static,
    ) -> Cancellable {
        let scheduler = bench.scheduler();
        let accepted = match self {
            Self::FixedRate => {
                scheduler.schedule_at_fixed_rate_fn(initial, period, D, f).map_err(|e| e.kind())
            }
            Self::FixedDelay => {
                scheduler.schedule_with_fixed_delay_fn(initial, period, D, f).map_err(|e| e.kind())
            }
        };
        accepted.expect("it can be")
    }

    pub(crate) fn schedule_task(
        self,
        bench: &ManualRunner,
        initial: Duration,
        period: Duration,
        task: Notified,
    ) -> Cancellable {
        let scheduler = bench.scheduler();
        let accepted = match self {
            Self::FixedRate => scheduler.schedule_at_fixed_rate_task(initial, period, D, task),
            Self::FixedDelay => scheduler.schedule_with_fixed_delay_task(initial, period, D, task),
        };
        accepted.expect("it can be")
    }
}

/// When a handler ran, in milliseconds since the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs(Arc<Mutex<Vec<u64>>>);

impl Runs {
    pub(crate) fn note(&self, runner: &ManualRunner) {
        self.0.lock().expect("no holder panics").push(now(runner));
    }

    pub(crate) fn times(&self) -> Vec<u64> {
        self.0.lock().expect("no holder panics").clone()
    }

    pub(crate) fn n(&self) -> usize {
        self.times().len()
    }
}

/// A task that records when it ran, and when it was notified of its cancel.
pub(crate) struct Notified {
    pub(crate) runner: ManualRunner,
    pub(crate) runs: Runs,
    pub(crate) cancels: Runs,
}

impl Notified {
    pub(crate) fn new(bench: &Bench) -> (Self, Runs, Runs) {
        let (runs, cancels) = (Runs::default(), Runs::default());
        let runner = bench.runner();
        (Self { runner, runs: runs.clone(), cancels: cancels.clone() }, runs, cancels)
    }
}

impl SchedulerTask for Notified {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        self.runs.note(&self.runner);
        Ok(())
    }

    fn cancelled(&mut self) {
        self.cancels.note(&self.runner);
    }
}

/// The warnings that have come.
pub(crate) fn warned(subscription: &mut Subscription) -> Vec<Warning> {
    let events = core::iter::from_fn(|| subscription.try_next());
    let warnings = events.map(|event| match event {
        DiagnosticEvent::Warned(warning) => warning,
        other => panic!("only warnings were asked for: {other}"),
    });
    warnings.collect()
}

fn now(runner: &ManualRunner) -> u64 {
    let now = runner.clock().now();
    now.ticks * u64::from(now.resolution_ns) / 1_000_000
}

fn guard(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
}
