//! The tick buffer: arrival against poll, stop, register and unregister.
//!
//! Run with both widths of count and taken ticks; the 32-bit ones start where both their halves
//! carry.

use alloc::task::Wake;
use core::task::Waker;

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering};
use clockjack_time::{
    DriverStatus,
    driver::{MonotonicCount, TakenTicks, TickBuffer},
    taken_ticks_32::TakenTicks32,
    taken_ticks_64::TakenTicks64,
    ticks_32::Ticks32,
    ticks_64::Ticks64,
};
use loom::{
    sync::Arc,
    thread::{self, JoinHandle},
};

/// Just below the edges of the 31-bit taken ticks and of the 32-bit low half of the count.
const START: u64 = (1 << 32) - 1;
const CAPACITY: u32 = 4;

trait Twin: 'static {
    type Count: MonotonicCount + Send + 'static;
    type TakenTicks: TakenTicks + Send + 'static;

    fn buffer() -> Arc<TickBuffer<Self::Count, Self::TakenTicks>>;
}

struct Bits64;
struct Bits32;

impl Twin for Bits64 {
    type Count = Ticks64;
    type TakenTicks = TakenTicks64;

    fn buffer() -> Arc<TickBuffer<Ticks64, TakenTicks64>> {
        Arc::new(TickBuffer::new(Ticks64::new(START), TakenTicks64::new(START), CAPACITY))
    }
}

impl Twin for Bits32 {
    type Count = Ticks32;
    type TakenTicks = TakenTicks32;

    fn buffer() -> Arc<TickBuffer<Ticks32, TakenTicks32>> {
        Arc::new(TickBuffer::new(Ticks32::new(START), TakenTicks32::new(START), CAPACITY))
    }
}

/// Counts wake-ups.
struct WakeCounter(AtomicU32);

impl WakeCounter {
    fn new() -> alloc::sync::Arc<Self> {
        alloc::sync::Arc::new(Self(AtomicU32::new(0)))
    }

    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for WakeCounter {
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

/// Takes tokens until there is none, and returns the ticks that they cover.
fn poll_all<C: MonotonicCount, G: TakenTicks>(buffer: &TickBuffer<C, G>, last: &mut u64) -> u64 {
    let mut ticks = 0;
    while let Some(token) = buffer.poll() {
        assert!(token.up_to.get() > *last, "tokens rise");
        assert!(token.up_to.get() <= buffer.count(), "a token lies beyond the clock");
        *last = token.up_to.get();
        ticks += 1 + u64::from(token.catch_up);
    }
    ticks
}

/// Two ticks arrive, on a separate thread.
fn two_ticks<C: MonotonicCount + 'static, G: TakenTicks + 'static>(
    buffer: &Arc<TickBuffer<C, G>>,
) -> JoinHandle<()> {
    let buffer = buffer.clone();
    thread::spawn(move || {
        buffer.add_and_wake(1);
        buffer.add_and_wake(1);
    })
}

fn notify_against_stop<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let source = two_ticks(&buffer);
        let (drained, pending) = flushed(buffer.stop());
        assert_eq!(buffer.poll(), None, "a token after the stop");
        assert!(drained + pending <= 2);
        source.join().expect("no panic");
        let (again, late) = flushed(buffer.stop());
        assert_eq!((again, drained + late), (0, 2), "a tick vanished or was counted twice");
        assert_eq!(buffer.poll(), None, "a token after the stop");
        assert_eq!(buffer.count(), START + 2, "the clock goes on");
        assert_eq!(buffer.status(), DriverStatus::Suspended);
    });
}

fn notify_against_poll_and_stop<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let source = two_ticks(&buffer);
        let poller = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.poll().map_or(0, |token| 1 + u64::from(token.catch_up)))
        };
        let (drained, _) = flushed(buffer.stop());
        let taken = poller.join().expect("no panic");
        source.join().expect("no panic");
        let (again, late) = flushed(buffer.stop());
        assert_eq!((again, taken + drained + late), (0, 2), "a tick vanished or came twice");
    });
}

fn two_polls_share_the_ticks<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        buffer.add_and_wake(2);
        let other = {
            let buffer = buffer.clone();
            thread::spawn(move || poll_all(&buffer, &mut START.clone()))
        };
        let here = poll_all(&buffer, &mut START.clone());
        assert_eq!(here + other.join().expect("no panic"), 2, "a tick vanished or came twice");
    });
}

/// A loop that polls until `None` and then sleeps: if a tick is left, the waker was called after
/// that poll.
fn no_wake_up_is_lost_between_poll_and_notify<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let wakes = WakeCounter::new();
        buffer.register(Waker::from(wakes.clone())).expect("first registration");
        let source = two_ticks(&buffer);
        let (mut last, heard) = (START, wakes.count());
        let mut ticks = poll_all(&buffer, &mut last);
        source.join().expect("no panic");
        if buffer.count() > last {
            assert!(wakes.count() > heard, "the loop sleeps over a tick");
        }
        ticks += poll_all(&buffer, &mut last);
        assert_eq!((ticks, last), (2, START + 2));
        assert!(wakes.count() <= 2);
        buffer.unregister();
    });
}

/// After a token, the earlier wake-ups are used up: the loop polls once more and sleeps.
fn no_wake_up_is_lost_after_a_token<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let wakes = WakeCounter::new();
        buffer.register(Waker::from(wakes.clone())).expect("first registration");
        buffer.add_and_wake(1);
        assert_eq!(wakes.count(), 1);
        let source = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.add_and_wake(1))
        };
        let mut last = START;
        poll_all(&buffer, &mut last);
        source.join().expect("no panic");
        if buffer.count() > last {
            assert_eq!(wakes.count(), 2, "the loop sleeps over a tick");
        }
        buffer.unregister();
    });
}

fn no_wake_up_is_lost_between_register_and_notify<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let wakes = WakeCounter::new();
        let source = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.add_and_wake(1))
        };
        buffer.register(Waker::from(wakes.clone())).expect("first registration");
        let refused = buffer.register(Waker::from(wakes.clone()));
        assert!(refused.expect_err("a second one").is_already_registered());
        source.join().expect("no panic");
        assert!(wakes.count() > 0, "registered, and a tick arrived, but no wake-up");
        buffer.unregister();
        assert_eq!(alloc::sync::Arc::strong_count(&wakes), 1, "the waker was not dropped");
    });
}

/// The waker is never dropped or replaced while a notifier uses it, and is dropped in the end.
fn unregister_against_notify<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let (wakes, next) = (WakeCounter::new(), WakeCounter::new());
        buffer.register(Waker::from(wakes.clone())).expect("first registration");
        let source = {
            let buffer = buffer.clone();
            thread::spawn(move || buffer.add_and_wake(1))
        };
        buffer.unregister();
        let renewed = buffer.register(Waker::from(next.clone()));
        source.join().expect("no panic");
        match renewed {
            Ok(()) => {
                assert_eq!(alloc::sync::Arc::strong_count(&wakes), 1);
                assert!(next.count() + wakes.count() > 0, "a tick arrived, but no wake-up");
            }
            Err(refused) => assert!(refused.is_busy(), "{refused}"),
        }
        buffer.unregister();
        assert_eq!(alloc::sync::Arc::strong_count(&wakes), 1, "the waker was not dropped");
        assert_eq!(alloc::sync::Arc::strong_count(&next), 1, "the waker was not dropped");
    });
}

fn register_against_stop<T: Twin>() {
    loom::model(|| {
        let buffer = T::buffer();
        let wakes = WakeCounter::new();
        let stopper = {
            let buffer = buffer.clone();
            thread::spawn(move || flushed(buffer.stop()))
        };
        if let Err(refused) = buffer.register(Waker::from(wakes.clone())) {
            assert!(refused.is_stopped(), "{refused}");
        }
        assert_eq!(stopper.join().expect("no panic"), (0, 0));
        assert_eq!(alloc::sync::Arc::strong_count(&wakes), 1, "a waker outlived the stop");
        let late = buffer.register(Waker::from(wakes.clone()));
        assert!(late.expect_err("stopped").is_stopped());
    });
}

macro_rules! for_each_width {
    ($($module:ident: $width:ident),*) => {$(
        mod $module {
            use super::$width;

            #[test]
            fn notify_against_stop() {
                super::notify_against_stop::<$width>();
            }
            #[test]
            fn notify_against_poll_and_stop() {
                super::notify_against_poll_and_stop::<$width>();
            }
            #[test]
            fn two_polls_share_the_ticks() {
                super::two_polls_share_the_ticks::<$width>();
            }
            #[test]
            fn no_wake_up_is_lost_between_poll_and_notify() {
                super::no_wake_up_is_lost_between_poll_and_notify::<$width>();
            }
            #[test]
            fn no_wake_up_is_lost_after_a_token() {
                super::no_wake_up_is_lost_after_a_token::<$width>();
            }
            #[test]
            fn no_wake_up_is_lost_between_register_and_notify() {
                super::no_wake_up_is_lost_between_register_and_notify::<$width>();
            }
            #[test]
            fn unregister_against_notify() {
                super::unregister_against_notify::<$width>();
            }
            #[test]
            fn register_against_stop() {
                super::register_against_stop::<$width>();
            }
        }
    )*};
}

for_each_width!(bits_64: Bits64, bits_32: Bits32);
