//! The supply of ticks: arrival against poll, stop, registration and their opposites.
//!
//! Run with both twins of count and gate; the narrow ones start where both their halves carry.

use alloc::task::Wake;
use core::task::Waker;

use clockjack_sync::prim::atomic::{AtomicU32, Ordering};
use clockjack_time::{
    DriverStatus,
    driver::{Gate, Supply, TickCount},
    gate_narrow::NarrowGate,
    gate_wide::WideGate,
    ticks_narrow::NarrowTicks,
    ticks_wide::WideTicks,
};
use loom::{
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Just below the edges of the 31-bit gate and of the 32-bit low half of the count.
const START: u64 = (1 << 32) - 1;
const CAPACITY: u32 = 4;

trait Twin: 'static {
    type Count: TickCount + Send + 'static;
    type Gate: Gate + Send + 'static;

    fn supply() -> Arc<Supply<Self::Count, Self::Gate>>;
}

struct Wide;
struct Narrow;

impl Twin for Wide {
    type Count = WideTicks;
    type Gate = WideGate;

    fn supply() -> Arc<Supply<WideTicks, WideGate>> {
        Arc::new(Supply::new(WideTicks::new(START), WideGate::new(START), CAPACITY))
    }
}

impl Twin for Narrow {
    type Count = NarrowTicks;
    type Gate = NarrowGate;

    fn supply() -> Arc<Supply<NarrowTicks, NarrowGate>> {
        Arc::new(Supply::new(NarrowTicks::new(START), NarrowGate::new(START), CAPACITY))
    }
}

/// Counts wake-ups.
struct Bell(AtomicU32);

impl Bell {
    fn new() -> alloc::sync::Arc<Self> {
        alloc::sync::Arc::new(Self(AtomicU32::new(0)))
    }

    fn rings(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: alloc::sync::Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &alloc::sync::Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn flushed(status: DriverStatus) -> (u64, u64) {
    match status {
        DriverStatus::Flushed { drained, pending_ticks } => (drained, pending_ticks),
        other => panic!("not flushed but {other:?}"),
    }
}

/// Takes tokens until there is none, and gives the ticks that they stand for.
fn poll_all<C: TickCount, G: Gate>(supply: &Supply<C, G>, last: &mut u64) -> u64 {
    let mut ticks = 0;
    while let Some(token) = supply.poll() {
        assert!(token.up_to.get() > *last, "tokens rise");
        assert!(token.up_to.get() <= supply.count(), "a token lies beyond the clock");
        *last = token.up_to.get();
        ticks += 1 + u64::from(token.catch_up);
    }
    ticks
}

/// Two ticks arrive, on a thread of their own.
fn two_ticks<C: TickCount + 'static, G: Gate + 'static>(
    supply: &Arc<Supply<C, G>>,
) -> JoinHandle<()> {
    let supply = supply.clone();
    thread::spawn(move || {
        supply.arrive(1);
        supply.arrive(1);
    })
}

fn notify_against_stop<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let source = two_ticks(&supply);
        let (drained, pending) = flushed(supply.stop());
        assert_eq!(supply.poll(), None, "a token after the stop");
        assert!(drained + pending <= 2);
        source.join().expect("no panic");
        let (again, late) = flushed(supply.stop());
        assert_eq!((again, drained + late), (0, 2), "a tick vanished or was counted twice");
        assert_eq!(supply.poll(), None, "a token after the stop");
        assert_eq!(supply.count(), START + 2, "the clock goes on");
        assert_eq!(supply.status(), DriverStatus::Suspended);
    });
}

fn notify_against_poll_and_stop<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let source = two_ticks(&supply);
        let poller = {
            let supply = supply.clone();
            thread::spawn(move || supply.poll().map_or(0, |token| 1 + u64::from(token.catch_up)))
        };
        let (drained, _) = flushed(supply.stop());
        let taken = poller.join().expect("no panic");
        source.join().expect("no panic");
        let (again, late) = flushed(supply.stop());
        assert_eq!((again, taken + drained + late), (0, 2), "a tick vanished or came twice");
    });
}

fn two_polls_share_the_ticks<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        supply.arrive(2);
        let other = {
            let supply = supply.clone();
            thread::spawn(move || poll_all(&supply, &mut START.clone()))
        };
        let here = poll_all(&supply, &mut START.clone());
        assert_eq!(here + other.join().expect("no panic"), 2, "a tick vanished or came twice");
    });
}

/// A loop that polls until `None` and then sleeps: whatever is left has rung the bell since.
fn no_wake_up_is_lost_between_poll_and_notify<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let bell = Bell::new();
        supply.register(Waker::from(bell.clone())).expect("first registration");
        let source = two_ticks(&supply);
        let (mut last, heard) = (START, bell.rings());
        let mut ticks = poll_all(&supply, &mut last);
        source.join().expect("no panic");
        if supply.count() > last {
            assert!(bell.rings() > heard, "the loop sleeps over a tick");
        }
        ticks += poll_all(&supply, &mut last);
        assert_eq!((ticks, last), (2, START + 2));
        assert!(bell.rings() <= 2);
        supply.unregister();
    });
}

/// After a token, the wake-ups heard so far are used up: the loop polls once more and sleeps.
fn no_wake_up_is_lost_after_a_token<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let bell = Bell::new();
        supply.register(Waker::from(bell.clone())).expect("first registration");
        supply.arrive(1);
        assert_eq!(bell.rings(), 1);
        let source = {
            let supply = supply.clone();
            thread::spawn(move || supply.arrive(1))
        };
        let mut last = START;
        poll_all(&supply, &mut last);
        source.join().expect("no panic");
        if supply.count() > last {
            assert_eq!(bell.rings(), 2, "the loop sleeps over a tick");
        }
        supply.unregister();
    });
}

fn no_wake_up_is_lost_between_register_and_notify<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let bell = Bell::new();
        let source = {
            let supply = supply.clone();
            thread::spawn(move || supply.arrive(1))
        };
        supply.register(Waker::from(bell.clone())).expect("first registration");
        let refused = supply.register(Waker::from(bell.clone()));
        assert!(refused.expect_err("a second one").is_already_registered());
        source.join().expect("no panic");
        assert!(bell.rings() > 0, "registered, and a tick came, and nobody rang");
        supply.unregister();
        assert_eq!(alloc::sync::Arc::strong_count(&bell), 1, "the waker was not dropped");
    });
}

/// The waker is never dropped or replaced under a notifier, and is gone when all is over.
fn unregister_against_notify<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let (bell, next) = (Bell::new(), Bell::new());
        supply.register(Waker::from(bell.clone())).expect("first registration");
        let source = {
            let supply = supply.clone();
            thread::spawn(move || supply.arrive(1))
        };
        supply.unregister();
        let renewed = supply.register(Waker::from(next.clone()));
        source.join().expect("no panic");
        match renewed {
            Ok(()) => {
                assert_eq!(alloc::sync::Arc::strong_count(&bell), 1);
                assert!(next.rings() + bell.rings() > 0, "a tick came and nobody rang");
            }
            Err(refused) => assert!(refused.is_busy(), "{refused}"),
        }
        supply.unregister();
        assert_eq!(alloc::sync::Arc::strong_count(&bell), 1, "the waker was not dropped");
        assert_eq!(alloc::sync::Arc::strong_count(&next), 1, "the waker was not dropped");
    });
}

fn register_against_stop<T: Twin>() {
    loom::model(|| {
        let supply = T::supply();
        let bell = Bell::new();
        let stopper = {
            let supply = supply.clone();
            thread::spawn(move || flushed(supply.stop()))
        };
        if let Err(refused) = supply.register(Waker::from(bell.clone())) {
            assert!(refused.is_stopped(), "{refused}");
        }
        assert_eq!(stopper.join().expect("no panic"), (0, 0));
        assert_eq!(alloc::sync::Arc::strong_count(&bell), 1, "a waker outlived the stop");
        let late = supply.register(Waker::from(bell.clone()));
        assert!(late.expect_err("stopped").is_stopped());
    });
}

macro_rules! for_each_twin {
    ($($module:ident: $twin:ident),*) => {$(
        mod $module {
            use super::$twin;

            #[test]
            fn notify_against_stop() {
                super::notify_against_stop::<$twin>();
            }
            #[test]
            fn notify_against_poll_and_stop() {
                super::notify_against_poll_and_stop::<$twin>();
            }
            #[test]
            fn two_polls_share_the_ticks() {
                super::two_polls_share_the_ticks::<$twin>();
            }
            #[test]
            fn no_wake_up_is_lost_between_poll_and_notify() {
                super::no_wake_up_is_lost_between_poll_and_notify::<$twin>();
            }
            #[test]
            fn no_wake_up_is_lost_after_a_token() {
                super::no_wake_up_is_lost_after_a_token::<$twin>();
            }
            #[test]
            fn no_wake_up_is_lost_between_register_and_notify() {
                super::no_wake_up_is_lost_between_register_and_notify::<$twin>();
            }
            #[test]
            fn unregister_against_notify() {
                super::unregister_against_notify::<$twin>();
            }
            #[test]
            fn register_against_stop() {
                super::register_against_stop::<$twin>();
            }
        }
    )*};
}

for_each_twin!(wide: Wide, narrow: Narrow);
