//! A tick driver that Embassy's alarm feeds.
//!
//! # Protocol
//!
//! Roles: the *server* is the task that awaits [`serve`](AlarmDriver::serve) or drives an
//! [`EmbassySystem`](crate::EmbassySystem); a *poller* calls
//! [`poll_tick`](TickDriver::poll_tick).
//!
//! * A tick *arrives* when the server, woken by its alarm, or a poller reads the clock. That thread
//!   advances the tick count of the inner [`ManualDriver`] to the clock, which publishes the ticks
//!   in between. The flag `is_collecting` lets one thread at a time do this, and no thread waits
//!   for the flag: a thread that finds the flag set continues without collecting, because the
//!   thread that set it has just read the same clock. Therefore a task of a higher priority that
//!   interrupts a collector does not hang.
//! * The server sets an alarm for the next tick only while a waker is registered. `register` and
//!   `stop_and_flush` wake a sleeping server. They first change the flag and then wake; the server
//!   first registers its waker and then reads the flag. So either the server sees the change, or
//!   the wake-up reaches the registered waker.

use core::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use clockjack_sync::{
    primitive::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    waker::AtomicWaker,
};
use clockjack_time::{
    ClockKind, DriverError, DriverStatus, ManualDriver, MonotonicClock, Resolution, Tick,
    TickDriver, TickSpan, TickToken, TimerInstant,
};

use crate::EmbassyClock;

/// A clock and a tick driver in one, fed by Embassy's alarm while a task [serves](Self::serve) it.
///
/// An [`EmbassySystem`](crate::EmbassySystem) contains one and serves it. To drive a scheduler
/// without actors, make it a `static` with a `StaticCell`, pass it to
/// `clockjack_sched::HardwareHost` as clock and driver, and serve it in a task.
///
/// # Examples
///
/// ```
/// # use embassy_executor as _;
/// use clockjack_embassy::AlarmDriver;
/// use clockjack_time::{MonotonicClock, Resolution, TickDriver};
/// use core::task::Waker;
///
/// let driver = AlarmDriver::new(Resolution::MILLI);
/// driver.register(Waker::noop().clone())?;
/// let refused = driver.register(Waker::noop().clone()).expect_err("there is one");
/// assert!(refused.is_already_registered());
/// while driver.now().ticks < 3 {}
/// let token = driver.poll_tick().expect("time has passed");
/// assert!(token.up_to.get() >= 3);
/// # Ok::<(), clockjack_time::DriverError>(())
/// ```
#[derive(Debug)]
pub struct AlarmDriver {
    clock: EmbassyClock,
    ticks: ManualDriver,
    /// Set while a thread collects ticks.
    is_collecting: AtomicBool,
    is_registered: AtomicBool,
    /// Wakes the server.
    server_waker: AtomicWaker,
}

impl AlarmDriver {
    /// Creates a driver whose time begins now.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self {
            clock: EmbassyClock::new(resolution),
            ticks: ManualDriver::new(resolution),
            is_collecting: AtomicBool::new(false),
            is_registered: AtomicBool::new(false),
            server_waker: AtomicWaker::new(),
        }
    }

    /// The clock of this driver.
    #[must_use]
    pub fn clock(&self) -> EmbassyClock {
        self.clock
    }

    /// Lets ticks arrive, each at its time, until the driver is stopped. Sets no alarm while no
    /// waker is registered.
    ///
    /// This future may be dropped early: another call can continue, and the ticks that have passed
    /// in between arrive at once. Only one task should serve; if several do, only the one that
    /// registered last is woken.
    pub async fn serve(&self) {
        poll_fn(|cx| {
            if self.serve_once(cx).is_err() {
                return Poll::Ready(());
            }
            // Acquire: pairs with the release of `register`, which woke this task.
            if self.is_registered.load(Acquire) {
                let arrived = self.ticks.now().tick();
                self.clock.wake_at(arrived.saturating_add(TickSpan::ONE), cx);
            }
            Poll::Pending
        })
        .await;
    }

    /// Registers the waker of the server and lets the elapsed ticks arrive.
    ///
    /// # Errors
    ///
    /// If the driver was stopped.
    pub(crate) fn serve_once(&self, cx: &Context<'_>) -> Result<(), DriverError> {
        self.server_waker.register(cx.waker());
        if self.ticks.current_status() == DriverStatus::Suspended {
            return Err(DriverError::stopped());
        }
        self.collect_ticks();
        Ok(())
    }

    /// Wakes the task at the given tick.
    pub(crate) fn wake_at(&self, tick: Tick, cx: &mut Context<'_>) {
        self.clock.wake_at(tick, cx);
    }

    /// Wakes the server.
    pub(crate) fn wake_server(&self) {
        self.server_waker.wake();
    }

    /// Lets the ticks arrive that the clock has counted.
    fn collect_ticks(&self) {
        // Acquire: pairs with the release in `CollectGuard`: the previous collector is done.
        if self.is_collecting.swap(true, Acquire) {
            return;
        }
        let _guard = CollectGuard(&self.is_collecting);
        let (now, arrived) = (self.clock.now().ticks, self.ticks.now().ticks);
        if let Some(span @ 1..) = now.checked_sub(arrived) {
            self.ticks.inject(TickSpan::new(span));
        }
    }
}

/// Clears the flag of the collector, also if a waker panics.
struct CollectGuard<'d>(&'d AtomicBool);

impl Drop for CollectGuard<'_> {
    fn drop(&mut self) {
        // Release: pairs with the swap of the next collector.
        self.0.store(false, Release);
    }
}

impl MonotonicClock for AlarmDriver {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn kind(&self) -> ClockKind {
        self.clock.kind()
    }

    fn resolution(&self) -> Resolution {
        self.clock.resolution()
    }
}

impl TickDriver for AlarmDriver {
    fn register(&self, wake: Waker) -> Result<(), DriverError> {
        self.ticks.register(wake)?;
        // Release: pairs with the load of the server, which the wake-up below causes.
        self.is_registered.store(true, Release);
        self.server_waker.wake();
        Ok(())
    }

    fn unregister(&self) {
        // Relaxed: a server that still sees a registration wakes up once for nothing.
        self.is_registered.store(false, Relaxed);
        self.ticks.unregister();
    }

    fn poll_tick(&self) -> Option<TickToken> {
        self.collect_ticks();
        self.ticks.poll_tick()
    }

    /// The status, as the contract says. A tick that no thread has looked for has not arrived, so a
    /// long sleep does not count as backpressure.
    fn current_status(&self) -> DriverStatus {
        self.ticks.current_status()
    }

    fn stop_and_flush(&self) -> DriverStatus {
        self.collect_ticks();
        // Relaxed: as in `unregister`.
        self.is_registered.store(false, Relaxed);
        let flushed = self.ticks.stop_and_flush();
        self.server_waker.wake();
        flushed
    }
}
