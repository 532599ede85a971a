//! Simulated boards.

use alloc::{sync::Arc, task::Wake};
use core::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};

use clockjack_sched::{
    Cancellable, DiagnosticEvent, DispatcherId, EventKinds, RunnerLoop, SchedulerConfig,
    Subscription, Warning,
};
use clockjack_time::{
    ClockKind, DriverError, DriverStatus, InterruptDriver, MonotonicClock, Resolution, TickDriver,
    TickToken, TimerInstant,
};

pub(crate) const DEFAULT: DispatcherId = DispatcherId::DEFAULT;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Ticks of a millisecond in driver and scheduler.
pub(crate) const MILLIS: SchedulerConfig = {
    let mut config = SchedulerConfig::DEFAULT;
    config.resolution = Resolution::MILLI;
    config
};

pub(crate) fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

/// A waker that leaves a mark.
#[derive(Default)]
pub(crate) struct Mark(AtomicBool, AtomicU32);

impl Mark {
    /// Whether it is there; it is not any more then.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, SeqCst)
    }

    /// How often it was left.
    pub(crate) fn count(&self) -> u32 {
        self.1.load(SeqCst)
    }
}

impl Wake for Mark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.1.fetch_add(1, SeqCst);
        self.0.store(true, SeqCst);
    }
}

/// A loop over an interrupt driver with ticks of a millisecond, and its mark.
pub(crate) fn board(config: SchedulerConfig) -> (&'static InterruptDriver, RunnerLoop, Arc<Mark>) {
    let ticks = leak(InterruptDriver::new(Resolution::MILLI));
    let mark = Arc::new(Mark::default());
    let waker = Waker::from(Arc::clone(&mark));
    let runner = RunnerLoop::start(config, ticks, ticks, waker).expect("a fresh driver");
    (ticks, runner, mark)
}

pub(crate) fn interrupts(driver: &InterruptDriver, n: u64) {
    (0..n).for_each(|_| driver.notify_tick());
}

/// A one-shot that counts.
pub(crate) fn once(runner: &RunnerLoop, delay: Duration, count: &Arc<AtomicU32>) -> Cancellable {
    let count = Arc::clone(count);
    let job = runner.scheduler().schedule_once_fn(delay, DEFAULT, move |_| {
        count.fetch_add(1, SeqCst);
    });
    job.expect("there is room")
}

pub(crate) fn warnings(runner: &RunnerLoop) -> Subscription {
    runner.scheduler().diagnostics().subscribe(EventKinds::WARNING, 64).expect("the first one")
}

pub(crate) fn next_warning(warnings: &mut Subscription) -> Option<Warning> {
    match warnings.try_next()? {
        DiagnosticEvent::Warned(warning) => Some(warning),
        other => panic!("only warnings were wanted: {other}"),
    }
}

/// An interrupt driver whose interrupt comes at a chosen place: before or after the n-th call of
/// clock or driver.
pub(crate) struct Interrupted {
    inner: InterruptDriver,
    calls: AtomicU64,
    at: AtomicU64,
}

impl Interrupted {
    pub(crate) fn new() -> Self {
        let inner = InterruptDriver::new(Resolution::MILLI);
        Self { inner, calls: AtomicU64::new(0), at: AtomicU64::new(u64::MAX) }
    }

    /// Lets an interrupt come at the n-th place from now on.
    pub(crate) fn arm(&self, n: u64) {
        self.at.store(self.calls.load(SeqCst) + n, SeqCst);
    }

    /// Whether it has come.
    pub(crate) fn has_come(&self) -> bool {
        self.calls.load(SeqCst) > self.at.load(SeqCst)
    }

    fn place(&self) {
        if self.calls.fetch_add(1, SeqCst) == self.at.load(SeqCst) {
            self.inner.notify_tick();
        }
    }

    fn around<R>(&self, call: impl FnOnce(&InterruptDriver) -> R) -> R {
        self.place();
        let answer = call(&self.inner);
        self.place();
        answer
    }
}

impl MonotonicClock for Interrupted {
    fn now(&self) -> TimerInstant {
        self.around(InterruptDriver::now)
    }

    fn kind(&self) -> ClockKind {
        self.inner.kind()
    }

    fn resolution(&self) -> Resolution {
        self.inner.resolution()
    }
}

impl TickDriver for Interrupted {
    fn register(&self, wake: Waker) -> Result<(), DriverError> {
        self.inner.register(wake)
    }

    fn unregister(&self) {
        self.inner.unregister();
    }

    fn poll_tick(&self) -> Option<TickToken> {
        self.around(TickDriver::poll_tick)
    }

    fn current_status(&self) -> DriverStatus {
        self.around(TickDriver::current_status)
    }

    fn stop_and_flush(&self) -> DriverStatus {
        self.inner.stop_and_flush()
    }
}
