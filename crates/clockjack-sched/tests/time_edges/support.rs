//! Schedulers at chosen times: with the manual runner, and with a host whose clock is finer than a
//! tick and which writes down whom it calls.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

use clockjack_sched::{
    DispatcherId, FireContext, ManualRunner, Scheduler, SchedulerConfig, SchedulerHost,
};
use clockjack_time::{
    ClockKind, ManualClock, MonotonicClock, Resolution, Tick, TickSpan, TimerInstant,
};

pub(crate) const D: DispatcherId = DispatcherId::DEFAULT;

/// A scheduler whose time begins at this tick, with ticks of 10 ms.
pub(crate) fn starting_at(start: u64) -> ManualRunner {
    let config = SchedulerConfig { start: Tick::new(start), ..SchedulerConfig::DEFAULT };
    ManualRunner::new(config).expect("it is not for production")
}

/// So many ticks of 10 ms.
pub(crate) fn ticks(n: u64) -> core::time::Duration {
    Resolution::TEN_MILLIS.duration(TickSpan::new(n))
}

/// The contexts of handlers: due, now, runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingTask(Arc<Mutex<Vec<(u64, u64, u32)>>>);

impl CountingTask {
    /// A handler that records its context.
    pub(crate) fn handler(&self) -> impl FnMut(&FireContext) + Send + use<> {
        let told = self.clone();
        move |fire| {
            let runs = fire.batch().runs.get();
            let fire = (fire.due().get(), fire.now().ticks, runs);
            told.0.lock().expect("no holder panics").push(fire);
        }
    }

    pub(crate) fn all(&self) -> Vec<(u64, u64, u32)> {
        self.0.lock().expect("no holder panics").clone()
    }

    /// When runs were due, each of which was one, and on time.
    pub(crate) fn on_time(&self) -> Vec<u64> {
        let on_time = |(due, now, runs)| {
            assert_eq!((due, runs), (now, 1), "on time, and alone");
            due
        };
        self.all().into_iter().map(on_time).collect()
    }
}

/// A scheduler with ticks of 10 ms on a clock of another resolution.
pub(crate) struct Fine {
    pub(crate) scheduler: Scheduler,
    pub(crate) clock: Arc<ManualClock>,
    calls: Arc<AtomicUsize>,
}

struct FineHost {
    kind: ClockKind,
    clock: Arc<ManualClock>,
    calls: Arc<AtomicUsize>,
}

impl Fine {
    pub(crate) fn new(start: u64, resolution: Resolution) -> Self {
        Self::of_kind(ClockKind::Deterministic, start, resolution)
    }

    /// One that takes its clock for one of this kind.
    pub(crate) fn of_kind(kind: ClockKind, start: u64, resolution: Resolution) -> Self {
        let clock = Arc::new(ManualClock::starting_at(Tick::new(start), resolution));
        let config = SchedulerConfig {
            start: clock.now().elapsed_tick(Resolution::TEN_MILLIS),
            ..SchedulerConfig::DEFAULT
        };
        let calls = Arc::new(AtomicUsize::new(0));
        let host = FineHost { kind, clock: Arc::clone(&clock), calls: Arc::clone(&calls) };
        let scheduler = Scheduler::new(config, host).expect("it is not for production");
        Self { scheduler, clock, calls }
    }

    /// Whether the poller was woken since the last call.
    pub(crate) fn was_called(&self) -> bool {
        self.calls.swap(0, Ordering::Relaxed) > 0
    }

    pub(crate) fn turn(&self) -> clockjack_sched::PollResult {
        self.scheduler.poll_shard(0, 0, usize::MAX)
    }
}

impl SchedulerHost for FineHost {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        self.kind
    }

    fn name(&self) -> &'static str {
        "fine"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}
