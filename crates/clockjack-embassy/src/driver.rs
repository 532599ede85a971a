//! Ticks by Embassy's alarm.
//!
//! # Protocol
//!
//! A tick *arrives* when somebody looks at the clock: whoever serves the driver, when its alarm has
//! woken it, or a poller. It moves the supply up to the clock and hands on what lay between. One at
//! a time does that, by a flag that nobody waits for: who finds it taken goes on without, because
//! the other has just read the same clock. So a task of a higher priority that interrupts one in
//! the middle of this does not hang.
//!
//! Who serves sets an alarm for the next tick while a waker is registered, and none else. A
//! registration and a stop ring the bell, so that a server that is asleep learns of them: first the
//! flag, then the bell; the server registers with the bell first and looks at the flag second.

use core::{
    future::poll_fn,
    task::{Context, Poll, Waker},
};

use clockjack_sync::{
    mutant,
    prim::atomic::{
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

/// Clock and tick driver in one, fed by Embassy's alarm for as long as a task
/// [serves](Self::serve) it.
///
/// An [`EmbassySystem`](crate::EmbassySystem) has one and serves it by itself. Alone it carries a
/// scheduler without actors: make it a `static` by a `StaticCell`, hand it to
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
    supply: ManualDriver,
    /// Somebody lets ticks arrive.
    is_arriving: AtomicBool,
    is_registered: AtomicBool,
    /// Who serves.
    bell: AtomicWaker,
}

impl AlarmDriver {
    /// A driver whose time begins now.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        Self {
            clock: EmbassyClock::new(resolution),
            supply: ManualDriver::new(resolution),
            is_arriving: AtomicBool::new(false),
            is_registered: AtomicBool::new(false),
            bell: AtomicWaker::new(),
        }
    }

    /// The clock by itself.
    #[must_use]
    pub fn clock(&self) -> EmbassyClock {
        self.clock
    }

    /// Lets ticks arrive, each at its time, until the driver is stopped. There is no alarm while
    /// nobody is registered.
    ///
    /// Dropping it before that is harmless: serving can go on later, and what has passed meanwhile
    /// arrives at once. It is for one task; of several the last one that began is woken.
    pub async fn serve(&self) {
        poll_fn(|cx| {
            if self.attend(cx).is_err() {
                return Poll::Ready(());
            }
            // Acquire: pairs with the release of `register`, which has rung the bell.
            if self.is_registered.load(Acquire) {
                let arrived = self.supply.now().tick();
                self.clock.wake_at(arrived.saturating_add(TickSpan::ONE), cx);
            }
            Poll::Pending
        })
        .await;
    }

    /// Is rung from now on, and lets the ticks arrive that are over.
    ///
    /// # Errors
    ///
    /// If the driver was stopped.
    pub(crate) fn attend(&self, cx: &Context<'_>) -> Result<(), DriverError> {
        self.bell.register(cx.waker());
        if self.supply.current_status() == DriverStatus::Suspended {
            return Err(DriverError::stopped());
        }
        self.arrive();
        Ok(())
    }

    /// Has a task woken at a tick.
    pub(crate) fn wake_at(&self, tick: Tick, cx: &mut Context<'_>) {
        self.clock.wake_at(tick, cx);
    }

    /// Wakes who serves.
    pub(crate) fn ring(&self) {
        self.bell.wake();
    }

    /// Lets the ticks arrive that the clock has counted.
    fn arrive(&self) {
        // Acquire: pairs with the release below; the supply is as the last one left it.
        if self.is_arriving.swap(true, Acquire) {
            return;
        }
        let _turn = Turn(&self.is_arriving);
        let (now, arrived) = (self.clock.now().ticks, self.supply.now().ticks);
        if let Some(span @ 1..) = now.checked_sub(arrived) {
            let early = u64::from(mutant!("embassy-tick-early"));
            self.supply.inject(TickSpan::new(span + early));
        }
    }
}

/// Ends the turn of who lets ticks arrive, also if a waker panics.
struct Turn<'d>(&'d AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Release: pairs with the swap of the next one.
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
        self.supply.register(wake)?;
        // Release: pairs with the look of who serves, which the bell makes look.
        self.is_registered.store(true, Release);
        if !mutant!("embassy-register-silent") {
            self.bell.wake();
        }
        Ok(())
    }

    fn unregister(&self) {
        // Relaxed: who still sees a registration wakes up once for nothing.
        self.is_registered.store(false, Relaxed);
        self.supply.unregister();
    }

    fn poll_tick(&self) -> Option<TickToken> {
        self.arrive();
        self.supply.poll_tick()
    }

    /// As the contract says. Ticks that nobody has looked for have not arrived, so a long sleep is
    /// not taken for a loop that cannot keep up.
    fn current_status(&self) -> DriverStatus {
        self.supply.current_status()
    }

    fn stop_and_flush(&self) -> DriverStatus {
        self.arrive();
        // Relaxed: as in `unregister`.
        self.is_registered.store(false, Relaxed);
        let flushed = self.supply.stop_and_flush();
        if !mutant!("embassy-stop-silent") {
            self.bell.wake();
        }
        flushed
    }
}
