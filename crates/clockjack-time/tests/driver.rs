//! The driver contract, for both drivers of this crate and both widths of their mechanism.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    error::Error,
    num::NonZeroU32,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    task::Waker,
};

use clockjack_time::{
    ClockKind, DriverStatus, InterruptDriver, ManualDriver, MonotonicClock, Resolution, Tick,
    TickDriver, TickSpan, TickToken, driver::TickBuffer, taken_ticks_32::TakenTicks32,
    ticks_32::Ticks32,
};

#[derive(Default)]
struct Bell(AtomicU32);

impl Bell {
    fn rings(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn token(up_to: u64, catch_up: u32) -> Option<TickToken> {
    Some(TickToken { up_to: Tick::new(up_to), catch_up })
}

fn capacity(ticks: u32) -> NonZeroU32 {
    NonZeroU32::new(ticks).expect("not zero")
}

#[test]
fn a_token_says_up_to_which_tick_and_how_many_it_makes_up_for() {
    let driver = InterruptDriver::new(Resolution::MILLI);
    assert_eq!(
        (driver.kind(), driver.resolution()),
        (ClockKind::RealtimeHardware, Resolution::MILLI)
    );
    assert_eq!(driver.poll_tick(), None);
    driver.notify_tick();
    assert_eq!(driver.poll_tick(), token(1, 0));
    assert_eq!(driver.poll_tick(), None);
    (0..4).for_each(|_| driver.notify_tick());
    assert_eq!(driver.poll_tick(), token(5, 3));
    assert_eq!(driver.poll_tick(), None);
    assert_eq!(driver.now().ticks, 5);
}

#[test]
fn the_waker_rings_once_for_the_first_tick_that_is_in_no_token() {
    let (driver, bell) = (InterruptDriver::new(Resolution::MILLI), Arc::new(Bell::default()));
    driver.register(bell.clone().into()).expect("first registration");
    assert_eq!(bell.rings(), 0);
    // (notify or poll, rings afterwards)
    for (notify, rings) in
        [(true, 1), (true, 1), (false, 1), (true, 2), (true, 2), (false, 2), (true, 3)]
    {
        if notify {
            driver.notify_tick();
        } else {
            assert!(driver.poll_tick().is_some());
        }
        assert_eq!(bell.rings(), rings);
    }
}

#[test]
fn a_registration_that_finds_ticks_rings_at_once() {
    let (driver, bell) = (InterruptDriver::new(Resolution::MILLI), Arc::new(Bell::default()));
    driver.notify_tick();
    driver.register(bell.clone().into()).expect("first registration");
    assert_eq!(bell.rings(), 1);
}

#[test]
fn a_second_registration_is_refused_and_the_first_one_stays() {
    let driver = InterruptDriver::new(Resolution::MILLI);
    let (bell, other) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
    driver.register(bell.clone().into()).expect("first registration");
    let refused = driver.register(other.clone().into()).expect_err("a second one");
    assert!(refused.is_already_registered() && !refused.is_stopped() && !refused.is_busy());
    assert_eq!(refused.to_string(), "a waker is already registered with the tick driver");
    assert!((&refused as &dyn Error).source().is_none());
    driver.notify_tick();
    assert_eq!((bell.rings(), other.rings()), (1, 0));
    driver.unregister();
    driver.unregister();
    assert_eq!(Arc::strong_count(&bell), 1, "the waker is dropped when it is unregistered");
    driver.register(other.clone().into()).expect("the place is free again");
    assert_eq!(other.rings(), 1, "the tick is still in no token");
}

#[test]
fn a_dropped_driver_drops_its_waker() {
    let bell = Arc::new(Bell::default());
    let driver = InterruptDriver::new(Resolution::MILLI);
    driver.register(bell.clone().into()).expect("first registration");
    drop(driver);
    assert_eq!(Arc::strong_count(&bell), 1);
}

#[test]
fn above_three_quarters_of_the_capacity_the_driver_reports_backpressure() {
    let driver = InterruptDriver::with_capacity(Resolution::MILLI, capacity(8));
    for _ in 0..6 {
        driver.notify_tick();
        assert_eq!(driver.current_status(), DriverStatus::Ok);
    }
    driver.notify_tick();
    assert_eq!(driver.current_status(), DriverStatus::Backpressured { pending_ticks: 7 });
    // Far beyond the capacity nothing is lost.
    (0..100).for_each(|_| driver.notify_tick());
    assert_eq!(driver.current_status(), DriverStatus::Backpressured { pending_ticks: 107 });
    assert_eq!(driver.poll_tick(), token(107, 106));
    assert_eq!(driver.current_status(), DriverStatus::Ok);
}

#[test]
fn a_stop_accounts_for_every_tick_and_gives_no_token_afterwards() {
    let (driver, bell) = (InterruptDriver::new(Resolution::MILLI), Arc::new(Bell::default()));
    driver.register(bell.clone().into()).expect("first registration");
    (0..3).for_each(|_| driver.notify_tick());
    assert_eq!(driver.poll_tick(), token(3, 2));
    (0..2).for_each(|_| driver.notify_tick());
    let rings = bell.rings();
    assert_eq!(driver.stop_and_flush(), DriverStatus::Flushed { drained: 2, pending_ticks: 0 });
    assert_eq!(Arc::strong_count(&bell), 1, "the stop unregisters");
    assert_eq!(driver.current_status(), DriverStatus::Suspended);
    (0..4).for_each(|_| driver.notify_tick());
    assert_eq!(driver.poll_tick(), None);
    assert_eq!(bell.rings(), rings);
    assert_eq!(driver.stop_and_flush(), DriverStatus::Flushed { drained: 0, pending_ticks: 4 });
    assert_eq!(driver.now().ticks, 9, "the clock goes on");
    let refused = driver.register(bell.into()).expect_err("stopped");
    assert!(refused.is_stopped());
    assert_eq!(refused.to_string(), "the tick driver is stopped");
}

#[test]
fn injected_ticks_arrive_at_once_across_every_edge_of_the_count() {
    for edge in [1_u64 << 20, 1 << 31, 1 << 32, 1 << 36, 1 << 63] {
        let driver =
            ManualDriver::starting_at(Tick::new(edge - 2), Resolution::MICRO, capacity(64));
        assert_eq!(driver.kind(), ClockKind::Deterministic);
        assert_eq!(driver.inject(TickSpan::new(1)).ticks, edge - 1);
        assert_eq!(driver.poll_tick(), token(edge - 1, 0));
        driver.inject(TickSpan::new(5));
        assert_eq!(driver.poll_tick(), token(edge + 4, 4));
        driver.inject(TickSpan::ZERO);
        assert_eq!(driver.poll_tick(), None);
        // A jump of the width of `TakenTicks32` is an ordinary jump on this host.
        driver.inject(TickSpan::new(1 << 31));
        assert_eq!(driver.poll_tick(), token(edge + 4 + (1 << 31), (1 << 31) - 1));
    }
}

#[test]
fn at_the_end_of_the_count_no_tick_comes_any_more() {
    let driver =
        ManualDriver::starting_at(Tick::new(u64::MAX - 1), Resolution::MICRO, capacity(64));
    let bell = Arc::new(Bell::default());
    driver.register(bell.clone().into()).expect("first registration");
    assert_eq!(driver.inject(TickSpan::MAX).ticks, u64::MAX);
    assert_eq!(driver.poll_tick(), token(u64::MAX, 0));
    driver.inject(TickSpan::MAX);
    assert_eq!(driver.poll_tick(), None);
    assert_eq!(bell.rings(), 1);
}

#[test]
fn catch_up_saturates() {
    let driver = ManualDriver::new(Resolution::MICRO);
    driver.inject(TickSpan::new(1 << 40));
    assert_eq!(driver.poll_tick(), token(1 << 40, u32::MAX));
}

/// A waker that calls every function of the driver.
struct Meddler {
    driver: &'static ManualDriver,
    injected: AtomicBool,
}

impl Wake for Meddler {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        while self.driver.poll_tick().is_some() {}
        if !self.injected.swap(true, Ordering::Relaxed) {
            self.driver.inject(TickSpan::new(1));
            return;
        }
        self.driver.unregister();
        let busy = self.driver.register(Waker::noop().clone()).expect_err("this wake-up runs");
        assert!(busy.is_busy(), "{busy}");
    }
}

#[test]
fn a_waker_may_poll_inject_and_unregister_while_it_is_woken() {
    static DRIVER: ManualDriver = ManualDriver::new(Resolution::MILLI);
    let meddler = Arc::new(Meddler { driver: &DRIVER, injected: AtomicBool::new(false) });
    DRIVER.register(meddler.clone().into()).expect("first registration");
    DRIVER.inject(TickSpan::new(1));
    assert!(meddler.injected.load(Ordering::Relaxed));
    // The waker was left in the slot, because it was in use; the next registrar drops it.
    assert_eq!(Arc::strong_count(&meddler), 2);
    DRIVER.register(Waker::noop().clone()).expect("no notifier is inside");
    assert_eq!(Arc::strong_count(&meddler), 1);
}

#[test]
fn a_waker_that_panics_leaves_the_driver_usable() {
    struct Faulty;
    impl Wake for Faulty {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            panic!("faulty waker");
        }
    }
    let driver = InterruptDriver::new(Resolution::MILLI);
    let faulty = Arc::new(Faulty);
    driver.register(faulty.clone().into()).expect("first registration");
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| driver.notify_tick()));
    assert!(caught.is_err());
    driver.unregister();
    assert_eq!(Arc::strong_count(&faulty), 1, "no notifier counts as inside");
    assert_eq!(driver.poll_tick(), token(1, 0), "the tick was counted before");
}

/// Unparks the loop's thread.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// A source, a loop that really sleeps when there are no ticks, and a stop from a third thread: the
/// loop sees every tick, in order, and the counts agree.
#[test]
fn a_sleeping_loop_gets_every_tick_under_real_threads() {
    const TICKS: u64 = 20_000;
    let start = (1_u64 << 32) - TICKS / 2;
    let buffer = TickBuffer::new(Ticks32::new(start), TakenTicks32::new(start), 64);
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            buffer.register(Arc::new(Unpark(std::thread::current())).into()).expect("first");
            let mut last = start;
            while last < start + TICKS {
                while let Some(token) = buffer.poll() {
                    assert!(token.up_to.get() > last);
                    assert_eq!(u64::from(token.catch_up), token.up_to.get() - last - 1);
                    last = token.up_to.get();
                    taken.fetch_add(1 + u64::from(token.catch_up), Ordering::Relaxed);
                }
                if last < start + TICKS {
                    std::thread::park();
                }
            }
        });
        for _ in 0..TICKS {
            buffer.add_and_wake(1);
        }
        sleeper.join().expect("no panic");
    });
    assert_eq!(taken.load(Ordering::Relaxed), TICKS);
    assert_eq!(buffer.stop(), DriverStatus::Flushed { drained: 0, pending_ticks: 0 });
}

#[test]
fn a_stop_in_the_middle_of_everything_balances_the_books() {
    const TICKS: u64 = 5_000;
    for _ in 0..20 {
        let driver = InterruptDriver::new(Resolution::MICRO);
        let (taken, drained) = std::thread::scope(|scope| {
            scope.spawn(|| (0..TICKS).for_each(|_| driver.notify_tick()));
            let poller = scope.spawn(|| {
                let mut taken = 0;
                while driver.current_status() != DriverStatus::Suspended {
                    if let Some(token) = driver.poll_tick() {
                        taken += 1 + u64::from(token.catch_up);
                    }
                }
                taken
            });
            while driver.now().ticks < TICKS / 2 {
                core::hint::spin_loop();
            }
            let DriverStatus::Flushed { drained, .. } = driver.stop_and_flush() else {
                panic!("not flushed");
            };
            (poller.join().expect("no panic"), drained)
        });
        let DriverStatus::Flushed { drained: 0, pending_ticks } = driver.stop_and_flush() else {
            panic!("flushed twice");
        };
        assert_eq!(taken + drained + pending_ticks, TICKS);
    }
}
