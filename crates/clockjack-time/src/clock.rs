//! Clocks: they return `now`.
//!
//! Nothing in this crate reads one. The host reads a clock and passes the time to wheels and
//! shards. [`ManualClock`] is the clock of tests and of virtual time.

use core::{fmt, time::Duration};

use clockjack_sync::primitive::{
    atomic::{AtomicBool, AtomicU32, Ordering},
    hint,
};

use crate::{
    MonotoneTicks,
    driver::MonotonicCount,
    instant::TimerInstant,
    tick::{Resolution, Tick, TickSpan, div_wide},
};

/// What makes a clock's time pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockKind {
    /// The caller: time passes only by a call. Any drift is an error.
    Deterministic,
    /// The operating system.
    RealtimeHost,
    /// A timer of the hardware.
    RealtimeHardware,
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deterministic => "deterministic",
            Self::RealtimeHost => "realtime-host",
            Self::RealtimeHardware => "realtime-hardware",
        })
    }
}

/// A clock that never goes back.
///
/// # For implementers
///
/// 1. `now` MUST NOT go back: not in one thread, and not between two threads if one reading happens
///    before the other.
/// 2. `now` MUST be a fresh reading. A value that another thread published earlier is too small,
///    and a deadline counted from it would be early.
/// 3. `now` MUST be rounded *down* to a tick: a tick counts only when it is over.
/// 4. `resolution` and `kind` MUST be the same for the life of the clock, and `now` MUST have that
///    resolution.
/// 5. The count MUST start at the start of the system and MUST NOT wrap; 64 bits of nanoseconds
///    last 584 years. A hardware counter that wraps must be extended.
/// 6. Time for which the machine was suspended MUST NOT pass, unless the documentation of the clock
///    says that it does.
/// 7. `now` MUST return in bounded time without waiting for another thread, and MUST be callable
///    from an interrupt if the host has any.
pub trait MonotonicClock {
    /// The current instant.
    fn now(&self) -> TimerInstant;

    /// What makes this clock's time pass.
    fn kind(&self) -> ClockKind;

    /// The length of its tick.
    fn resolution(&self) -> Resolution;
}

impl<C: MonotonicClock + ?Sized> MonotonicClock for &C {
    fn now(&self) -> TimerInstant {
        (**self).now()
    }

    fn kind(&self) -> ClockKind {
        (**self).kind()
    }

    fn resolution(&self) -> Resolution {
        (**self).resolution()
    }
}

/// A clock that does not move until it is advanced.
///
/// Any number of threads may share it. Readers never wait; threads that advance it exclude each
/// other by a spin lock, and therefore must not be interrupts. The part of an advance below a tick
/// is kept, so many small advances add up exactly.
///
/// # Examples
///
/// ```
/// use clockjack_time::{ManualClock, MonotonicClock, Resolution};
/// use core::time::Duration;
///
/// let clock = ManualClock::new(Resolution::MILLI);
/// for _ in 0..10 {
///     clock.advance(Duration::from_micros(250));
/// }
/// assert_eq!(clock.now().ticks, 2); // 2.5 ms
/// clock.advance(Duration::from_micros(500));
/// assert_eq!(clock.now().ticks, 3);
/// ```
#[derive(Debug)]
pub struct ManualClock {
    resolution: Resolution,
    ticks: MonotoneTicks,
    advance_lock: AdvanceLock,
    /// Nanoseconds since the last tick, less than a tick; belongs to the holder of the lock.
    remainder_ns: AtomicU32,
    saturated: AtomicBool,
}

impl ManualClock {
    const_unless_loom! {
        /// A clock at tick zero.
        pub fn new(resolution: Resolution) -> Self {
            Self::starting_at(Tick::ZERO, resolution)
        }
    }

    const_unless_loom! {
        /// A clock that starts at another tick, so that a test can reach the edges of a count.
        pub fn starting_at(start: Tick, resolution: Resolution) -> Self {
            Self {
                resolution,
                ticks: MonotoneTicks::new(start.get()),
                advance_lock: AdvanceLock::new(),
                remainder_ns: AtomicU32::new(0),
                saturated: AtomicBool::new(false),
            }
        }
    }

    /// Lets `by` pass, and returns the new time. At the end of the count the clock stops there and
    /// [`is_saturated`](Self::is_saturated) becomes true.
    pub fn advance(&self, by: Duration) -> TimerInstant {
        let _guard = self.advance_lock.lock();
        let nanos_per_tick = u64::from(self.resolution.nanos().get());
        // Relaxed: only the holder of the lock reads and writes it, and the lock orders that.
        let remainder_ns = u128::from(self.remainder_ns.load(Ordering::Relaxed));
        let (ticks, rest) = div_wide(by.as_nanos() + remainder_ns, nanos_per_tick);
        #[expect(clippy::cast_possible_truncation, reason = "less than a tick, which is a u32")]
        self.advance_locked(ticks.map(TickSpan::new), rest as u32)
    }

    /// Lets `by` ticks pass, and returns the new time; the part below a tick stays. At the end of
    /// the count as [`advance`](Self::advance).
    pub fn advance_ticks(&self, by: TickSpan) -> TimerInstant {
        let _guard = self.advance_lock.lock();
        // Relaxed: as in `advance`.
        self.advance_locked(Some(by), self.remainder_ns.load(Ordering::Relaxed))
    }

    /// Lets time pass until the start of tick `to`, and returns the new time. Does nothing if that
    /// is not later than now.
    pub fn advance_to(&self, to: Tick) -> TimerInstant {
        let _guard = self.advance_lock.lock();
        match to.checked_since(Tick::new(self.ticks.load())) {
            None | Some(TickSpan::ZERO) => self.now(),
            span => self.advance_locked(span, 0),
        }
    }

    /// Whether an advance would have passed the end of the count, and stopped there.
    pub fn is_saturated(&self) -> bool {
        // Relaxed: a statement about the past, which publishes nothing.
        self.saturated.load(Ordering::Relaxed)
    }

    /// For the holder of the lock; a span of `None` is more than a count can hold.
    fn advance_locked(&self, by: Option<TickSpan>, remainder_ns: u32) -> TimerInstant {
        let now = Tick::new(self.ticks.load());
        let sum = by.and_then(|span| now.checked_add(span));
        if sum.is_none() {
            // Relaxed: as in `is_saturated`.
            self.saturated.store(true, Ordering::Relaxed);
        }
        let (ticks, remainder_ns) = sum.map_or((Tick::MAX, 0), |tick| (tick, remainder_ns));
        // Relaxed: as in `advance`.
        self.remainder_ns.store(remainder_ns, Ordering::Relaxed);
        self.ticks.raise(ticks.get());
        TimerInstant::new(ticks, self.resolution)
    }
}

impl MonotonicClock for ManualClock {
    fn now(&self) -> TimerInstant {
        TimerInstant::new(Tick::new(self.ticks.load()), self.resolution)
    }

    fn kind(&self) -> ClockKind {
        ClockKind::Deterministic
    }

    fn resolution(&self) -> Resolution {
        self.resolution
    }
}

/// The spin lock of the threads that advance a clock. Not for interrupts.
#[derive(Debug)]
pub(crate) struct AdvanceLock(AtomicBool);

impl AdvanceLock {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// Waits for the lock; dropping the guard unlocks. The holder calls nothing that could wait or
    /// panic, so the wait is as long as a few divisions.
    pub(crate) fn lock(&self) -> AdvanceGuard<'_> {
        // Acquire pairs with the release of the guard's drop. Relaxed on failure: it only waits.
        while self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            hint::spin_loop();
        }
        AdvanceGuard(self)
    }
}

/// Unlocks when dropped.
#[derive(Debug)]
pub(crate) struct AdvanceGuard<'t>(&'t AdvanceLock);

impl Drop for AdvanceGuard<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire of the next holder.
        self.0.0.store(false, Ordering::Release);
    }
}
