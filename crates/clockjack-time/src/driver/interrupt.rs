//! The driver for bare metal: a periodic interrupt counts, and the count is the clock.

use core::{num::NonZeroU32, task::Waker};

use crate::{
    MonotoneTicks, TargetTakenTicks,
    clock::{ClockKind, MonotonicClock},
    driver::{DriverError, DriverStatus, TickBuffer, TickDriver, TickToken},
    instant::TimerInstant,
    tick::{Resolution, Tick},
};

/// Clock and tick driver in one, fed by a periodic interrupt.
///
/// Call `notify_tick` in the handler of a timer interrupt. It takes no lock, allocates nothing
/// and has no loop: one store, a fence, a load, and, for the first tick after the loop has
/// caught up, the wake-up of the registered waker. On targets without compare-exchange the wake-up
/// goes through `critical-section`, twice, for one addition each.
///
/// # Never early, by which clock
///
/// This clock shows the beginning of a tick until the next tick arrives. Deadlines are counted from
/// its readings and compared with them, so by this clock no timer is early. By a finer clock of the
/// same board a delay that was counted from here may be short by the elapsed part of the tick, less
/// than one tick. The timers of an executor add one tick for that; a scheduler takes a finer
/// reading where the board has one: `Toolbox::now`, or `HardwareHost::with_fine_clock`. On a board
/// that has none, add a tick to a delay that must never be short.
///
/// # Examples
///
/// A board: the driver is a static, the interrupt handler notifies it, the loop polls it and
/// sleeps when there is nothing to do.
///
/// ```
/// use clockjack_time::{
///     DriverStatus, InterruptDriver, MonotonicClock, Resolution, Tick, TickDriver,
/// };
/// use core::task::Waker;
///
/// static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);
///
/// struct Board;
/// impl Board {
///     fn clock(&self) -> &dyn MonotonicClock {
///         &TICKS
///     }
///     fn driver(&self) -> &dyn TickDriver {
///         &TICKS
///     }
/// }
///
/// /// The SysTick handler.
/// fn sys_tick() {
///     TICKS.notify_tick();
/// }
///
/// let board = Board;
/// // A real board passes a waker that ends its `wfi`.
/// board.driver().register(Waker::noop().clone())?;
///
/// // Three interrupts come while the loop is busy.
/// sys_tick();
/// sys_tick();
/// sys_tick();
///
/// let token = board.driver().poll_tick().expect("time has passed");
/// assert_eq!((token.up_to, token.catch_up), (Tick::new(3), 2));
/// assert_eq!(board.driver().poll_tick(), None); // Now the loop may sleep.
/// assert_eq!(board.clock().now().ticks, 3);
///
/// sys_tick();
/// let flushed = board.driver().stop_and_flush();
/// assert_eq!(flushed, DriverStatus::Flushed { drained: 1, pending_ticks: 0 });
/// # Ok::<(), clockjack_time::DriverError>(())
/// ```
#[derive(Debug)]
pub struct InterruptDriver {
    resolution: Resolution,
    buffer: TickBuffer<MonotoneTicks, TargetTakenTicks>,
}

impl InterruptDriver {
    /// The default capacity: more than three quarters of it are reported as backpressure. See
    /// [`with_capacity`](Self::with_capacity).
    pub const DEFAULT_CAPACITY: NonZeroU32 = NonZeroU32::new(64).expect("not zero");

    const_unless_loom! {
        /// A driver at tick zero, whose interrupt comes once in `resolution`.
        pub fn new(resolution: Resolution) -> Self {
            Self::with_capacity(resolution, Self::DEFAULT_CAPACITY)
        }
    }

    const_unless_loom! {
        /// As [`new`](Self::new), with a capacity that fits the host: the frequency times the
        /// longest time for which the loop may not poll. It bounds nothing, because nothing is
        /// stored: when more than three quarters of it wait, the status is
        /// [`Backpressured`](DriverStatus::Backpressured).
        pub fn with_capacity(resolution: Resolution, capacity: NonZeroU32) -> Self {
            let (arrived, taken) = (MonotoneTicks::new(0), TargetTakenTicks::new(0));
            let buffer = TickBuffer::new(arrived, taken, capacity.get());
            Self { resolution, buffer }
        }
    }

    /// Counts one tick and wakes the loop if this is the first tick that the loop has not taken.
    /// After [`stop_and_flush`](TickDriver::stop_and_flush) the clock continues, and no waker is
    /// woken.
    ///
    /// Calls must not overlap: it is for one interrupt, which does not interrupt itself. Of two
    /// concurrent calls one may be lost, and with it rule 1 of the clock. Targets without 64-bit
    /// atomics have no cheaper way to count, and an interrupt must not wait for a lock.
    #[inline]
    pub fn notify_tick(&self) {
        self.buffer.add_and_wake(1);
    }
}

delegate_to_buffer!(InterruptDriver, ClockKind::RealtimeHardware);
