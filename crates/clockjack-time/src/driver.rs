//! Tick drivers: they make time pass for a scheduler.
//!
//! A driver does not deliver ticks; the loop polls it: [`poll_tick`](TickDriver::poll_tick) returns
//! *up to which tick* time has come. The absolute count is the queue, so nothing can overflow or be
//! dropped; a loop that polls late gets one token for all ticks that it missed. A driver adds the
//! wake-up, and a stop that accounts for every tick.
//!
//! The files: `driver/tick_buffer.rs` is the protocol between arrival, poll and stop,
//! `driver/waker_slot.rs` the one between registration and wake-up; [`InterruptDriver`] and
//! [`ManualDriver`] use both.

/// Implements the clock and the driver for a type with the fields `buffer` and `resolution`.
macro_rules! delegate_to_buffer {
    ($driver:ty, $kind:expr) => {
        impl MonotonicClock for $driver {
            #[inline]
            fn now(&self) -> TimerInstant {
                TimerInstant::new(Tick::new(self.buffer.count()), self.resolution)
            }

            fn kind(&self) -> ClockKind {
                $kind
            }

            fn resolution(&self) -> Resolution {
                self.resolution
            }
        }

        impl TickDriver for $driver {
            fn register(&self, wake: Waker) -> Result<(), DriverError> {
                self.buffer.register(wake)
            }

            fn unregister(&self) {
                self.buffer.unregister();
            }

            fn poll_tick(&self) -> Option<TickToken> {
                self.buffer.poll()
            }

            fn current_status(&self) -> DriverStatus {
                self.buffer.status()
            }

            fn stop_and_flush(&self) -> DriverStatus {
                self.buffer.stop()
            }
        }
    };
}

mod interrupt;
mod manual;
mod tick_buffer;
mod waker_slot;

use core::{fmt, task::Waker};

pub use interrupt::InterruptDriver;
pub use manual::ManualDriver;

#[doc(hidden)]
pub use tick_buffer::{MonotonicCount, TakenTicks, TickBuffer};

use crate::tick::Tick;

/// Time has come up to this tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TickToken {
    /// Every tick up to and including this one has arrived: advance to here.
    pub up_to: Tick,
    /// How many ticks beyond the first this token covers; zero for a loop that is on time.
    /// Saturates.
    pub catch_up: u32,
}

/// The status of a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DriverStatus {
    /// Few ticks wait.
    Ok,
    /// More than three quarters of the capacity wait: the loop does not keep up. No tick is lost.
    Backpressured {
        /// Ticks that have arrived and were in no token yet.
        pending_ticks: u64,
    },
    /// Stopped: there will be no more tokens.
    Suspended,
    /// The result of [`stop_and_flush`](TickDriver::stop_and_flush).
    Flushed {
        /// Ticks that had arrived before the stop and were in no token: they will be in none. A
        /// caller that wants their timers to fire advances to the clock's time.
        drained: u64,
        /// Ticks that have arrived since the stop: counted by the clock, refused as tokens.
        pending_ticks: u64,
    },
}

/// Provides a scheduler with ticks.
///
/// # For the loop
///
/// Register a waker; then poll until `None` before every sleep. `None` promises a wake-up when the
/// next tick arrives. A wake-up without a tick is possible and harmless.
///
/// # For implementers
///
/// 1. A tick MUST come from an absolute monotonic count, and `up_to` MUST be that count, rounded
///    down. Tokens MUST rise, and MUST NOT lie beyond the clock.
/// 2. No tick may be lost: the sum of `1 + catch_up` over all tokens, and the `drained` of the
///    stop, MUST equal the ticks that arrived before the stop. Where a token cannot say how many
///    ticks it covers, `up_to` is still exact.
/// 3. The waker MUST be woken when the first tick arrives that is in no token, and at registration
///    if there is one already. It MAY be woken more often.
/// 4. A second registration MUST be refused; so MUST one after the stop.
/// 5. After `stop_and_flush` has returned, no token may be returned. It MUST account for every tick
///    that arrived before; ticks that arrive later MUST show in `pending_ticks` of a later call.
/// 6. No method may wait for another thread or for an interrupt. Methods that interrupts call MUST
///    NOT allocate, and MUST NOT drop a waker.
pub trait TickDriver: Sync {
    /// Registers the waker that is woken when a tick arrives.
    ///
    /// # Errors
    ///
    /// * [`is_already_registered`](DriverError::is_already_registered): there is another one;
    ///   unregister it first.
    /// * [`is_busy`](DriverError::is_busy): a wake-up of the former registration still runs;
    ///   transient.
    /// * [`is_stopped`](DriverError::is_stopped): no tick will come; permanent.
    fn register(&self, wake: Waker) -> Result<(), DriverError>;

    /// Removes the registration. Does nothing if there is none. A wake-up that has begun may still
    /// finish after this returns.
    fn unregister(&self);

    /// The time since the last token, if any tick has arrived.
    fn poll_tick(&self) -> Option<TickToken>;

    /// The status: `Ok`, `Backpressured` or `Suspended`.
    fn current_status(&self) -> DriverStatus;

    /// Stops the driver permanently and unregisters; returns [`DriverStatus::Flushed`]. A later
    /// call reports that nothing was drained, and how many ticks have arrived since the stop.
    fn stop_and_flush(&self) -> DriverStatus;
}

/// Why a driver refused a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverError(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    AlreadyRegistered,
    Busy,
    Stopped,
}

impl DriverError {
    const ALREADY_REGISTERED: Self = Self(Kind::AlreadyRegistered);
    const BUSY: Self = Self(Kind::Busy);
    const STOPPED: Self = Self(Kind::Stopped);

    /// For drivers outside this crate: refuses a second registration.
    #[must_use]
    pub const fn already_registered() -> Self {
        Self::ALREADY_REGISTERED
    }

    /// For drivers outside this crate: refuses while the former registration is still in use.
    #[must_use]
    pub const fn busy() -> Self {
        Self::BUSY
    }

    /// For drivers outside this crate: refuses after the stop.
    #[must_use]
    pub const fn stopped() -> Self {
        Self::STOPPED
    }

    /// Another waker is registered. Permanent until it is unregistered.
    #[must_use]
    pub const fn is_already_registered(&self) -> bool {
        matches!(self.0, Kind::AlreadyRegistered)
    }

    /// A wake-up of the former registration has not finished yet. Transient: try again later.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        matches!(self.0, Kind::Busy)
    }

    /// The driver was stopped. Permanent: build another one.
    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        matches!(self.0, Kind::Stopped)
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::AlreadyRegistered => "a waker is already registered with the tick driver",
            Kind::Busy => "the tick driver still wakes the waker registered before",
            Kind::Stopped => "the tick driver is stopped",
        })
    }
}

impl core::error::Error for DriverError {}
