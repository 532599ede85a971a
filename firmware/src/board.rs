//! Time and sleep: a tick interrupt, a clock and driver that counts its ticks, and a toolbox.

use core::{
    cell::Cell,
    pin::pin,
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};

use clockjack_time::{InterruptDriver, MonotonicClock as _, Resolution, Tick, TimerInstant};
use critical_section::Mutex;

use crate::arch;

include!(concat!(env!("OUT_DIR"), "/board.rs"));

/// The clock, and the driver of all timers: one tick per millisecond.
pub static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);

/// The interrupt of each tick calls this after it has counted the tick, with the number of the
/// tick.
static HOOK: Mutex<Cell<Option<fn(u64)>>> = Mutex::new(Cell::new(None));
/// Whether the ticks have been started.
static IS_TICKING: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));
/// Whether the next sleep has already been ended by a wake-up.
static IS_WOKEN: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));

/// Starts the ticks: the first one occurs after a millisecond.
pub fn start_ticks() {
    arch::start_ticks(CLOCKS_PER_MILLI);
    critical_section::with(|cs| IS_TICKING.borrow(cs).set(true));
}

/// The current tick.
#[must_use]
pub fn now() -> u64 {
    TICKS.now().ticks
}

/// Nanoseconds since the start of the ticks, with the precision of the timer.
#[must_use]
pub fn nanos() -> u64 {
    if !critical_section::with(|cs| IS_TICKING.borrow(cs).get()) {
        return 0;
    }
    loop {
        let tick = now();
        let clocks = u64::from(arch::clocks_in_tick(CLOCKS_PER_MILLI));
        if now() == tick {
            return tick * 1_000_000 + clocks * 1_000_000 / u64::from(CLOCKS_PER_MILLI);
        }
    }
}

/// The same as an instant: a reading of [`TICKS`], but finer. Deadlines are computed from it, so
/// that a delay is not too short by the elapsed part of the current tick.
#[must_use]
pub fn now_fine() -> TimerInstant {
    const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");
    TimerInstant::new(Tick::new(nanos()), NANO)
}

/// Whether the caller is an interrupt handler.
#[cfg(any(feature = "executor", feature = "scheduler"))]
#[must_use]
pub fn is_interrupt() -> bool {
    arch::is_interrupt()
}

/// Sets the function that the interrupt of each tick calls with the number of the tick.
pub fn on_tick(hook: fn(u64)) {
    critical_section::with(|cs| HOOK.borrow(cs).set(Some(hook)));
}

/// Called by the tick interrupt.
pub(crate) fn tick() {
    TICKS.notify_tick();
    if let Some(hook) = critical_section::with(|cs| HOOK.borrow(cs).get()) {
        hook(now());
    }
}

/// Sleeps until an interrupt or [`unpark`], whichever is first; returns immediately after an
/// earlier unpark.
pub fn park() {
    critical_section::with(|cs| {
        // Interrupts are disabled, so no handler can set the flag between this check and the sleep;
        // a pending interrupt ends the sleep.
        if !IS_WOKEN.borrow(cs).replace(false) {
            arch::wait_for_interrupt();
        }
    });
}

/// Ends the current sleep, or prevents the next one.
pub fn unpark() {
    critical_section::with(|cs| IS_WOKEN.borrow(cs).set(true));
}

/// Keeps the processor busy for this many ticks.
pub fn spin(ticks: u64) {
    let until = now() + ticks;
    while now() < until {
        core::hint::spin_loop();
    }
}

/// Runs a future to completion, and sleeps while it is pending. The future is polled again after
/// each interrupt, even if no waker was called: so a loop whose driver was stopped continues.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = waker();
    let mut cx = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(output) => return output,
            Poll::Pending => park(),
        }
    }
}

/// A waker that ends the sleep of the only thread.
#[must_use]
pub fn waker() -> Waker {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(|data| RawWaker::new(data, &TABLE), |_| unpark(), |_| unpark(), |_| {});
    // SAFETY: the waker has no data, so all functions of the table are correct for any number of
    // clones, in any context.
    unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &TABLE)) }
}

#[cfg(feature = "executor")]
mod toolbox {
    use clockjack_exec::Toolbox;
    use clockjack_time::{MonotonicClock, Tick, TickDriver, TimerInstant};

    /// The toolbox of an executor on this board.
    #[derive(Clone, Copy, Debug)]
    pub struct Board;

    impl Toolbox for Board {
        fn clock(&self) -> &dyn MonotonicClock {
            &super::TICKS
        }

        fn driver(&self) -> &dyn TickDriver {
            &super::TICKS
        }

        fn park(&self, _until: Option<Tick>) {
            super::park();
        }

        fn unpark(&self) {
            super::unpark();
        }

        fn current_worker(&self) -> Option<u16> {
            (!super::is_interrupt()).then_some(0)
        }

        fn now(&self) -> TimerInstant {
            super::now_fine()
        }
    }
}
#[cfg(feature = "executor")]
pub use toolbox::Board;
