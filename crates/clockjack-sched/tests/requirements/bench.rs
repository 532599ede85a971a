//! What the tests of promises share: virtual time, a diary of what ran, and a host of their own.

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::{
    panic::AssertUnwindSafe,
    sync::atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    time::Duration,
};
use std::{
    panic::catch_unwind,
    sync::{Mutex, MutexGuard, PoisonError},
};

use clockjack_sched::{
    DiagnosticEvent, DispatchedRun, DispatcherId, EventKinds, FireContext, ManualRunner,
    PanicPayload, Scheduler, SchedulerConfig, SchedulerHost, SchedulerMetrics, Subscription,
    Warning,
};
use clockjack_time::{ClockKind, ManualClock, MonotonicClock as _, Resolution, TimerInstant};

/// The dispatcher that every host has.
pub(crate) const HERE: DispatcherId = DispatcherId::DEFAULT;
/// One that only [`Host`] has, besides number 2.
pub(crate) const ELSEWHERE: DispatcherId = DispatcherId(1);

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A scheduler in virtual time, with ticks of 10 ms unless `config` says otherwise.
pub(crate) fn manual(config: SchedulerConfig) -> ManualRunner {
    ManualRunner::with_catch_unwind(config, guard).expect("not for production, and with shards")
}

pub(crate) fn plain() -> ManualRunner {
    manual(SchedulerConfig::DEFAULT)
}

/// Catches a panic, as a host with unwinding does.
pub(crate) fn guard(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What ran: the name of the job, the tick of its context, and how many runs it represents.
pub(crate) type Entry = (&'static str, u64, u32);

/// What ran, in order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<Entry>>>);

impl Diary {
    pub(crate) fn note(&self, name: &'static str, fire: &FireContext) {
        let tick = fire.now().elapsed_tick(Resolution::TEN_MILLIS).get();
        lock(&self.0).push((name, tick, fire.batch().runs.get()));
    }

    /// A handler that records when it runs.
    pub(crate) fn writer(
        &self,
        name: &'static str,
    ) -> impl FnMut(&FireContext) + Send + 'static + use<> {
        let diary = self.clone();
        move |fire| diary.note(name, fire)
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        lock(&self.0).clone()
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        lock(&self.0).iter().map(|entry| entry.0).collect()
    }

    pub(crate) fn ticks(&self) -> Vec<u64> {
        lock(&self.0).iter().map(|entry| entry.1).collect()
    }

    pub(crate) fn runs(&self) -> Vec<u32> {
        lock(&self.0).iter().map(|entry| entry.2).collect()
    }
}

/// Listens to warnings.
pub(crate) fn listen(scheduler: &Scheduler) -> Subscription {
    listen_to(scheduler, EventKinds::WARNING)
}

pub(crate) fn listen_to(scheduler: &Scheduler, kinds: EventKinds) -> Subscription {
    scheduler.diagnostics().subscribe(kinds, 256).expect("the first subscriptions find room")
}

pub(crate) fn events(stream: &mut Subscription) -> Vec<DiagnosticEvent> {
    core::iter::from_fn(|| stream.try_next()).collect()
}

pub(crate) fn warnings(stream: &mut Subscription) -> Vec<Warning> {
    let warned = |event| match event {
        DiagnosticEvent::Warned(warning) => Some(warning),
        _ => None,
    };
    events(stream).into_iter().filter_map(warned).collect()
}

/// All that can be seen of a scheduler: a refused request must not change it.
pub(crate) fn picture(scheduler: &Scheduler) -> (SchedulerMetrics, String) {
    (scheduler.metrics(), format!("{:?}", scheduler.diagnostics().dump()))
}

/// A host whose clock is moved by hand, though it says what it likes of it.
#[derive(Clone)]
pub(crate) struct Host(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) clock: ManualClock,
    kind: ClockKind,
    /// The shard that registers next.
    pub(crate) shard: AtomicUsize,
    /// How often the poller was woken.
    calls: AtomicUsize,
    pub(crate) refuses: AtomicBool,
    work: Mutex<Vec<DispatchedRun>>,
    pub(crate) stopped: AtomicUsize,
}

impl Host {
    pub(crate) fn new(kind: ClockKind, resolution: Resolution) -> Self {
        Self(Arc::new(Parts {
            clock: ManualClock::new(resolution),
            kind,
            shard: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            refuses: AtomicBool::new(false),
            work: Mutex::new(Vec::new()),
            stopped: AtomicUsize::new(0),
        }))
    }

    pub(crate) fn scheduler(&self, config: SchedulerConfig) -> Scheduler {
        Scheduler::new(config, self.clone()).expect("not for production, and with shards")
    }

    /// What was dispatched since the last time.
    pub(crate) fn take_work(&self) -> Vec<DispatchedRun> {
        core::mem::take(&mut *lock(&self.0.work))
    }

    pub(crate) fn take_calls(&self) -> usize {
        self.0.calls.swap(0, SeqCst)
    }
}

impl core::ops::Deref for Host {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        self.0.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        self.0.kind
    }

    fn name(&self) -> &'static str {
        "bench"
    }

    fn shard(&self) -> usize {
        self.0.shard.load(Relaxed)
    }

    fn wake_poller(&self, _shard: usize) {
        self.0.calls.fetch_add(1, SeqCst);
    }

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        guard(call)
    }

    fn has_dispatcher(&self, dispatcher: DispatcherId) -> bool {
        dispatcher <= DispatcherId(2)
    }

    fn dispatch(
        &self,
        _dispatcher: DispatcherId,
        work: DispatchedRun,
    ) -> Result<(), DispatchedRun> {
        if self.0.refuses.load(SeqCst) {
            return Err(work);
        }
        lock(&self.0.work).push(work);
        Ok(())
    }

    fn stop_driver(&self) -> Option<clockjack_time::DriverStatus> {
        self.0.stopped.fetch_add(1, SeqCst);
        Some(clockjack_time::DriverStatus::Suspended)
    }
}
