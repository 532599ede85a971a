//! The driver for tests and for manual mode: the caller injects ticks.

use core::{num::NonZeroU32, task::Waker};

use crate::{
    MonotoneTicks, TargetTakenTicks,
    clock::{AdvanceLock, ClockKind, MonotonicClock},
    driver::{DriverError, DriverStatus, TickBuffer, TickDriver, TickToken},
    instant::TimerInstant,
    tick::{Resolution, Tick, TickSpan},
};

/// Clock and tick driver in one, advanced by [`inject`](Self::inject).
///
/// Any number of threads may inject; a spin lock orders them, so interrupts must not. The waker is
/// woken after the unlock.
///
/// # Examples
///
/// ```
/// use clockjack_time::{ManualDriver, Resolution, Tick, TickDriver, TickSpan};
///
/// let driver = ManualDriver::new(Resolution::MILLI);
/// driver.inject(TickSpan::new(5));
/// let token = driver.poll_tick().expect("five ticks have passed");
/// assert_eq!((token.up_to, token.catch_up), (Tick::new(5), 4));
/// assert_eq!(driver.poll_tick(), None);
/// ```
#[derive(Debug)]
pub struct ManualDriver {
    resolution: Resolution,
    advance_lock: AdvanceLock,
    buffer: TickBuffer<MonotoneTicks, TargetTakenTicks>,
}

impl ManualDriver {
    const_unless_loom! {
        /// A driver at tick zero, with the capacity of
        /// [`InterruptDriver::DEFAULT_CAPACITY`](crate::InterruptDriver::DEFAULT_CAPACITY).
        pub fn new(resolution: Resolution) -> Self {
            Self::starting_at(Tick::ZERO, resolution, crate::InterruptDriver::DEFAULT_CAPACITY)
        }
    }

    const_unless_loom! {
        /// A driver that starts at another tick, so that a test can reach the edges of a count.
        pub fn starting_at(start: Tick, resolution: Resolution, capacity: NonZeroU32) -> Self {
            Self {
                resolution,
                advance_lock: AdvanceLock::new(),
                buffer: TickBuffer::new(
                    MonotoneTicks::new(start.get()),
                    TargetTakenTicks::new(start.get()),
                    capacity.get(),
                ),
            }
        }
    }

    /// Lets `ticks` arrive at once; the count saturates. Returns the new time.
    pub fn inject(&self, ticks: TickSpan) -> TimerInstant {
        let guard = self.advance_lock.lock();
        let wake = self.buffer.add(ticks.get());
        // The waker is user code: it may inject as well.
        drop(guard);
        if wake {
            self.buffer.wake();
        }
        self.now()
    }
}

delegate_to_buffer!(ManualDriver, ClockKind::Deterministic);
