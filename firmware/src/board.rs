//! Time and sleep: a tick interrupt, a clock and driver in one that it feeds, and a toolbox.

use core::{
    cell::Cell,
    pin::pin,
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};

use clockjack_time::{InterruptDriver, MonotonicClock as _, Resolution, Tick, TimerInstant};
use critical_section::Mutex;

use crate::arch;

include!(concat!(env!("OUT_DIR"), "/board.rs"));

/// The clock, and the driver of everything that waits: one tick a millisecond.
pub static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);

/// Called by the interrupt of each tick, after it was counted, with its number.
static HOOK: Mutex<Cell<Option<fn(u64)>>> = Mutex::new(Cell::new(None));
/// The ticks have been started.
static IS_TICKING: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));
/// Somebody has ended the sleep that is to begin.
static IS_WOKEN: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));

/// Starts the ticks: the first is a millisecond away.
pub fn start_ticks() {
    arch::start_ticks(CLOCKS_PER_MILLI);
    critical_section::with(|cs| IS_TICKING.borrow(cs).set(true));
}

/// Which tick it is.
#[must_use]
pub fn now() -> u64 {
    TICKS.now().ticks
}

/// Nanoseconds since the ticks were started, as finely as the timer counts.
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

/// The same as an instant: a reading of [`TICKS`], but finer. Delays are counted from it, so that
/// none is short by the part of a tick that is over.
#[must_use]
pub fn now_fine() -> TimerInstant {
    const NANO: Resolution = Resolution::from_nanos(1).expect("not zero");
    TimerInstant::new(Tick::new(nanos()), NANO)
}

/// Whether the caller is an interrupt.
#[cfg(any(feature = "executor", feature = "scheduler"))]
#[must_use]
pub fn is_interrupt() -> bool {
    arch::is_interrupt()
}

/// Calls this in the interrupt of each tick from now on, with its number.
pub fn on_tick(hook: fn(u64)) {
    critical_section::with(|cs| HOOK.borrow(cs).set(Some(hook)));
}

/// What the interrupt does.
pub(crate) fn tick() {
    TICKS.notify_tick();
    if let Some(hook) = critical_section::with(|cs| HOOK.borrow(cs).get()) {
        hook(now());
    }
}

/// Sleeps until an interrupt or [`unpark`], whichever was first; an earlier unpark counts.
pub fn park() {
    critical_section::with(|cs| {
        // Interrupts are held off, so none comes between the look and the sleep, which ends by one
        // that waits.
        if !IS_WOKEN.borrow(cs).replace(false) {
            arch::wait_for_interrupt();
        }
    });
}

/// Ends a sleep, or the next one.
pub fn unpark() {
    critical_section::with(|cs| IS_WOKEN.borrow(cs).set(true));
}

/// Keeps the processor busy for so many ticks.
pub fn spin(ticks: u64) {
    let until = now() + ticks;
    while now() < until {
        core::hint::spin_loop();
    }
}

/// Runs a future to its end, and sleeps where it waits. It is asked again after each interrupt,
/// also if that has woken nobody: so a loop whose driver was stopped goes on.
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

/// A waker that ends the sleep of the one thread that there is.
#[must_use]
pub fn waker() -> Waker {
    const TABLE: RawWakerVTable =
        RawWakerVTable::new(|data| RawWaker::new(data, &TABLE), |_| unpark(), |_| unpark(), |_| {});
    // SAFETY: there is no data, so that all functions of the table are right for any number of
    // copies, in any context.
    unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &TABLE)) }
}

#[cfg(feature = "executor")]
mod toolbox {
    use clockjack_exec::Toolbox;
    use clockjack_time::{MonotonicClock, Tick, TickDriver, TimerInstant};

    /// What an executor on this board needs.
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
