//! A clock that fails over to a reference while its own clock does not advance. Its state is a
//! seqlock with one writer.
//!
//! Seqlocks come from Linux; Boehm ("Can seqlocks get along with programming language memory
//! models?", 2012) explains the orderings.
//!
//! # Roles and state
//!
//! Any thread, and any interrupt, reads. The one *writer*, which belongs to a watch, changes the
//! source of the time. The state is a mode with a few numbers, stored separately per mode. The
//! *version* counts changes, and the version modulo three is the mode:
//!
//! ```text
//!               the clock did not                it has run for               the reference has
//!               advance for too long             long enough again            reached upper_bound
//!   0 Following ─────────────────► 1 Failed over ─────────────► 2 Failing back ──────────► 0 ..
//!
//!   0   max(clock + offset, lower_bound)
//!   1   max(clock + offset, from + what the reference has advanced since)
//!   2   as 1, but at most `upper_bound`
//! ```
//!
//! # Rules
//!
//! 1. The writer issues a fence, writes the numbers of the next mode, and then stores the version
//!    with release. A reader loads the version with acquire, reads numbers and clocks, issues a
//!    fence, and loads the version again. If the version has changed, it reads again. The numbers
//!    of a mode stay unchanged for two more changes.
//! 2. *Never early.* `clock + offset` is never early: ticks are lost or late, not early. The
//!    reference continues `from` a reading of the clock, and counts `since` the end of its own tick
//!    in which it was read just after that, rounded up. So it advances by less than the elapsed
//!    time. On the failback the clock gets the ticks that it has lost: as many as it lacked at the
//!    update at which it lacked the fewest, less one, because its next tick may come at once. At
//!    another update some ticks may have been held back, and will come. (A driver that holds ticks
//!    back at every update of a failback and delivers them afterwards cannot be told from one that
//!    has lost them.)
//! 3. *Never back.* 0 to 1: the reference continues where the clock is, and the clock still counts
//!    if it is ahead. 1 to 2: the upper bound is one timeout ahead, which is more than any reader
//!    sees before the change, unless the writer is delayed between two statements for so long.
//!    2 to 0: the lower bound is the former upper bound.
//! 4. Ticks that were held back and come at once after a timeout have no effect while the reference
//!    is ahead. So the failback waits until the clock has run for as long as it must stop to cause
//!    a failover.
//!
//! *Why it cannot hang*: a reader repeats only if the writer has changed the mode meanwhile, which
//! happens at most twice per timeout. An interrupt that reads on the writer's core sees no change
//! at all. The writer has no loop.

use core::{fmt, time::Duration};

use clockjack_sync::{
    const_unless_loom,
    primitive::atomic::{AtomicBool, AtomicU32, Ordering, fence},
};
use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TickSpan, TimerInstant};

const FOLLOWING: u32 = 0;
const FAILED_OVER: u32 = 1;
const FAILING_BACK: u32 = 2;
const MODES: u32 = 3;
/// Where the version wraps around, which must not change the mode.
const VERSIONS: u32 = MODES << 30;

/// A clock that follows a reference while its own clock does not advance, and never goes back or is
/// early. A [`DriverWatch`](crate::DriverWatch) decides when; without one it is its own clock.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Failover, FailoverClock, RunnerLoop, SchedulerConfig};
/// use clockjack_time::{InterruptDriver, ManualClock, MonotonicClock, Resolution};
/// use core::{task::Waker, time::Duration};
///
/// static TICKS: InterruptDriver = InterruptDriver::new(Resolution::TEN_MILLIS);
/// // On a board: a counter that runs by itself.
/// static COUNTER: ManualClock = ManualClock::new(Resolution::MILLI);
/// static CLOCK: FailoverClock = FailoverClock::new(&TICKS, &COUNTER);
///
/// let waker = Waker::noop().clone();
/// let mut runner = RunnerLoop::start(SchedulerConfig::DEFAULT, &CLOCK, &TICKS, waker)?;
/// runner.watch(Failover::UseReference(&CLOCK))?;
///
/// COUNTER.advance(Duration::from_millis(1_500)); // And no tick has come.
/// runner.poll();
/// assert_eq!(CLOCK.now().ticks, 149); // Rounded such that it is never early.
/// # Ok::<(), clockjack_sched::LoopError>(())
/// ```
pub struct FailoverClock {
    clock: &'static (dyn MonotonicClock + Sync),
    reference: &'static (dyn MonotonicClock + Sync),
    version: AtomicU32,
    has_writer: AtomicBool,
    offset: [Halves; MODES as usize],
    lower_bound: Halves,
    from: [Halves; MODES as usize],
    since: [Halves; MODES as usize],
    upper_bound: Halves,
}

/// A number in two halves, for targets without wide atomics. The version says whether they belong
/// together.
struct Halves {
    high: AtomicU32,
    low: AtomicU32,
}

impl Halves {
    const_unless_loom! {
        const fn new() -> Self {
            Self { high: AtomicU32::new(0), low: AtomicU32::new(0) }
        }
    }

    fn load(&self) -> u64 {
        // Relaxed, twice: the version and its fences order them (rule 1).
        let (high, low) = (self.high.load(Ordering::Relaxed), self.low.load(Ordering::Relaxed));
        u64::from(high) << 32 | u64::from(low)
    }

    fn store(&self, number: u64) {
        #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
        let (high, low) = ((number >> 32) as u32, number as u32);
        // Relaxed, twice: as in `load`.
        self.high.store(high, Ordering::Relaxed);
        self.low.store(low, Ordering::Relaxed);
    }
}

impl FailoverClock {
    const_unless_loom! {
        /// Creates a clock with the time of `clock`, or of `reference` while `clock` does not
        /// advance. Its resolution and kind are those of `clock`.
        #[must_use]
        pub const fn new(
            clock: &'static (dyn MonotonicClock + Sync),
            reference: &'static (dyn MonotonicClock + Sync),
        ) -> Self {
            Self {
                clock,
                reference,
                version: AtomicU32::new(FOLLOWING),
                has_writer: AtomicBool::new(false),
                offset: [Halves::new(), Halves::new(), Halves::new()],
                lower_bound: Halves::new(),
                from: [Halves::new(), Halves::new(), Halves::new()],
                since: [Halves::new(), Halves::new(), Halves::new()],
                upper_bound: Halves::new(),
            }
        }
    }

    /// The clock that it follows while its own clock does not advance.
    pub(super) const fn reference(&self) -> &'static (dyn MonotonicClock + Sync) {
        self.reference
    }

    /// The reference in ticks of the clock, rounded down.
    fn reference_tick(&self) -> u64 {
        self.reference.now().elapsed_tick(self.clock.resolution()).get()
    }

    fn read(&self, mode: u32) -> u64 {
        let index = mode as usize;
        let own = self.clock.now().ticks.saturating_add(self.offset[index].load());
        if mode == FOLLOWING {
            return own.max(self.lower_bound.load());
        }
        let passed = self.reference_tick().saturating_sub(self.since[index].load());
        let other = self.from[index].load().saturating_add(passed);
        let both = own.max(other);
        if mode == FAILING_BACK { both.min(self.upper_bound.load()) } else { both }
    }
}

impl MonotonicClock for FailoverClock {
    fn now(&self) -> TimerInstant {
        loop {
            // Acquire: pairs with the release of the writer (rule 1).
            let version = self.version.load(Ordering::Acquire);
            let tick = self.read(version % MODES);
            // Pairs with the fence of the writer: numbers of a later version show that version.
            fence(Ordering::Acquire);
            // Relaxed: ordered by the fence.
            if self.version.load(Ordering::Relaxed) == version {
                return TimerInstant::new(Tick::new(tick), self.clock.resolution());
            }
        }
    }

    fn kind(&self) -> ClockKind {
        self.clock.kind()
    }

    fn resolution(&self) -> Resolution {
        self.clock.resolution()
    }
}

impl fmt::Debug for FailoverClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailoverClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The writer of a failover clock.
pub(super) struct ClockWriter {
    clock: &'static FailoverClock,
    /// A longer time without a change is a pause. Includes a tick of the reference.
    timeout: Duration,
    version: u32,
    /// The reading of the clock itself at the last update.
    own: u64,
    /// When that reading changed, by the reference, which is read after it.
    moved_at: TimerInstant,
    /// While failed over: since when the clock has run without a pause.
    runs_since: Option<TimerInstant>,
    /// Since then: the fewest ticks that the clock has lacked.
    slack: u64,
    offset: u64,
    lower_bound: u64,
    from: u64,
    since: u64,
    upper_bound: u64,
}

impl ClockWriter {
    /// `None` if the clock has another writer.
    pub(super) fn new(clock: &'static FailoverClock, timeout: Duration) -> Option<Self> {
        // Acquire: pairs with the release of the previous writer, whose numbers this one continues.
        if clock.has_writer.swap(true, Ordering::Acquire) {
            return None;
        }
        // Relaxed: no other thread writes it now.
        let version = clock.version.load(Ordering::Relaxed);
        let index = (version % MODES) as usize;
        Some(Self {
            clock,
            timeout,
            version,
            own: clock.clock.now().ticks,
            moved_at: clock.reference.now(),
            runs_since: None,
            slack: u64::MAX,
            offset: clock.offset[index].load(),
            lower_bound: clock.lower_bound.load(),
            from: clock.from[index].load(),
            since: clock.since[index].load(),
            upper_bound: clock.upper_bound.load(),
        })
    }

    fn mode(&self) -> u32 {
        self.version % MODES
    }

    pub(super) fn is_failed_over(&self) -> bool {
        self.mode() != FOLLOWING
    }

    /// Reads both clocks, and changes the mode if necessary.
    pub(super) fn update(&mut self) {
        // In this order, for rule 2.
        let own = self.clock.clock.now().ticks;
        let now = self.clock.reference.now();
        let is_pause = now.since(self.moved_at) > self.timeout;
        let has_moved = own != self.own;
        match self.mode() {
            FOLLOWING if is_pause && !has_moved => self.fail_over(),
            FAILED_OVER => {
                if is_pause {
                    self.runs_since = None;
                    self.slack = u64::MAX;
                }
                if has_moved {
                    let since = *self.runs_since.get_or_insert(now);
                    self.measure();
                    if now.since(since) >= self.timeout {
                        self.begin_failback();
                    }
                }
            }
            FAILING_BACK => {
                self.measure();
                return self.finish_failback(own);
            }
            _ => {}
        }
        if has_moved {
            self.own = own;
            self.moved_at = now;
        }
    }

    fn fail_over(&mut self) {
        self.from = self.own.saturating_add(self.offset).max(self.lower_bound);
        // A clock rounds down: its next tick had not come when it was read.
        let read_by = self.moved_at + Duration::from_nanos(1);
        let since = (read_by).deadline_tick(self.clock.resolution());
        self.since = since.map_or(u64::MAX, Tick::get);
        self.runs_since = None;
        self.slack = u64::MAX;
        self.publish();
    }

    /// Measures how many ticks the clock lacks: lost ones, and those that are held back now.
    fn measure(&mut self) {
        let seen = self.clock.read(FAILED_OVER);
        // Read after that, so that a tick in between does not count as lacking.
        let own = self.clock.clock.now().ticks;
        self.slack = self.slack.min(seen.saturating_sub(own));
    }

    fn begin_failback(&mut self) {
        let seen = self.clock.read(FAILED_OVER);
        let ahead = self.clock.resolution().ticks_ceil(self.timeout);
        self.upper_bound = seen.saturating_add(ahead.map_or(u64::MAX, TickSpan::get));
        self.publish();
    }

    fn finish_failback(&mut self, own: u64) {
        // Without the upper bound: the numbers of that mode are still valid.
        let seen = self.clock.read(FAILED_OVER);
        if seen < self.upper_bound {
            return;
        }
        self.lower_bound = self.upper_bound;
        let lost = self.slack.saturating_sub(1);
        self.offset = self.offset.max(lost);
        // This reading counts as new from now on, not since the clock has last moved.
        self.own = own;
        self.moved_at = self.clock.reference.now();
        self.publish();
    }

    /// Rule 1.
    fn publish(&mut self) {
        let version = (self.version + 1) % VERSIONS;
        let index = (version % MODES) as usize;
        // Pairs with the fence of a reader: a reader that sees a number that is stored below also
        // sees the version that was stored before this fence, and reads again if it began earlier.
        fence(Ordering::Release);
        self.clock.offset[index].store(self.offset);
        self.clock.from[index].store(self.from);
        self.clock.since[index].store(self.since);
        match version % MODES {
            FOLLOWING => self.clock.lower_bound.store(self.lower_bound),
            FAILING_BACK => self.clock.upper_bound.store(self.upper_bound),
            _ => {}
        }
        // Release: pairs with the acquire of a reader.
        self.clock.version.store(version, Ordering::Release);
        self.version = version;
    }
}

impl Drop for ClockWriter {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next writer.
        self.clock.has_writer.store(false, Ordering::Release);
    }
}
