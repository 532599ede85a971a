//! Users that misbehave, and turns that cross: drops and wakers that panic, handlers that take
//! their caller along, turns inside of turns, interrupts.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst},
    task::Context,
    time::Duration,
};
use std::{panic::catch_unwind, sync::Mutex};

use clockjack_sched::{
    Affinity, Class, DispatcherId, EventKinds, FireContext, HandlerError, ManualRunner, Policy,
    PolicyRegistry, ScheduleErrorKind, Scheduler, SchedulerConfig, SchedulerHost, SchedulerTask,
    Subscription,
    model::{held, while_leased},
};
use clockjack_time::{ClockKind, Resolution, Tick, TimerInstant};

const ANY: DispatcherId = DispatcherId::DEFAULT;
const LOW: DispatcherId = DispatcherId(1);
const HIGH: DispatcherId = DispatcherId(2);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn guard(call: &mut dyn FnMut()) -> Result<(), HandlerError> {
    catch_unwind(AssertUnwindSafe(call)).map_err(|_| HandlerError::panic("caught"))
}

/// A host with ticks of a millisecond, which counts how often its runner is called.
#[derive(Clone, Default)]
struct Host {
    now: Arc<AtomicU64>,
    calls: Arc<AtomicU32>,
    is_interrupt: Arc<AtomicBool>,
}

impl Host {
    fn scheduler(&self, config: SchedulerConfig) -> Scheduler {
        let class =
            |dispatcher, class| (Affinity::Dispatcher(dispatcher), Policy::DEFAULT.priority(class));
        let (low, high) = (class(LOW, Class::Low), class(HIGH, Class::High));
        let policies = PolicyRegistry::new().set(low.0, low.1).set(high.0, high.1);
        let config = SchedulerConfig { resolution: Resolution::MILLI, policies, ..config };
        Scheduler::new(config, self.clone()).expect("a sound configuration")
    }

    /// How often the runner was called since this was asked last.
    fn calls(&self) -> u32 {
        self.calls.swap(0, SeqCst)
    }
}

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.now.load(SeqCst)), Resolution::MILLI)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "unruly"
    }

    fn call_runner(&self, _shard: usize) {
        self.calls.fetch_add(1, SeqCst);
    }

    fn can_wait(&self) -> bool {
        !self.is_interrupt.load(SeqCst)
    }

    fn guarded(&self, call: &mut dyn FnMut()) -> Result<(), HandlerError> {
        guard(call)
    }

    fn has_dispatcher(&self, _dispatcher: DispatcherId) -> bool {
        true
    }
}

/// Panics when it is dropped, after it has counted that.
struct Bomb(Arc<AtomicU32>);

impl SchedulerTask for Bomb {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        panic!("by its drop");
    }
}

#[test]
fn an_interrupt_is_refused_and_does_not_wait_for_what_it_has_interrupted() {
    let host = Host::default();
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    host.is_interrupt.store(true, SeqCst);
    let (taken, refused) = while_leased(&scheduler, || {
        let once = || scheduler.schedule_once_fn(ms(5), ANY, |_| ());
        let taken = (0..100).map_while(|_| once().ok()).count();
        (taken, once().expect_err("the places are used up").kind())
    });
    assert!((8..100).contains(&taken), "{taken} places");
    assert_eq!(refused, ScheduleErrorKind::CapacityExceeded);
    host.now.store(5, SeqCst);
    assert_eq!(scheduler.turn(0, 0, 1_000).ran, taken);
    assert!(scheduler.schedule_once_fn(ms(5), ANY, |_| ()).is_ok());
}
