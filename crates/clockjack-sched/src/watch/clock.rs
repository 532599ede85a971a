//! A clock that goes by another one while its own stands still.
//!
//! # Roles and state
//!
//! Any thread, and any interrupt, reads. The one *steersman*, which belongs to a watch, changes by
//! what time goes. That is a mode with a few numbers, each mode in a place of its own; the *epoch*
//! counts changes, and its remainder by three is the mode:
//!
//! ```text
//!               the clock stood still            it has run for long          the reference has
//!               for too long                     enough again                 reached the cap
//!   0 Following ─────────────────► 1 Fallen back ─────────────► 2 Returning ──────────────► 0 ..
//!
//!   0   max(clock + offset, floor)
//!   1   max(clock + offset, from + what the reference has passed since)
//!   2   as 1, but at most `cap`
//! ```
//!
//! # Rules
//!
//! 1. The steersman fences, writes the numbers of the next mode, and then the epoch with release. A
//!    reader loads the epoch with acquire, reads numbers and clocks, fences, and loads the epoch
//!    again: if it has changed, it reads anew. The numbers that it read stay as they are for two
//!    more changes.
//! 2. *Never early.* `clock + offset` never is: ticks are lost or late, not early. The reference
//!    continues `from` a reading of the clock, and counts `since` the end of the tick of its own in
//!    which it was read just after that, rounded up: so less passes by it than has passed. On the
//!    return the clock gets the ticks that it has lost: as many as it lacked at the look at which
//!    it lacked the fewest, less one, because its next tick may come at once. At another look some
//!    may have been held back, and will come. (A driver that holds ticks back at every look of a
//!    return and lets them come afterwards cannot be told from one that has lost them.)
//! 3. *Never back.* 0 to 1: the reference has passed where the clock stands, and the clock still
//!    counts if it is ahead. 1 to 2: the cap lies as far ahead as a silence is long, which is more
//!    than any reader sees before the change, unless the steersman is held up between two
//!    statements for so long. 2 to 0: the floor is the cap.
//! 4. Ticks that were held back and come at once after a silence count for nothing while the
//!    reference is ahead. So the return waits until the clock has run for as long as it must stand
//!    to be left.
//!
//! Why it cannot hang: a reader repeats only if the steersman has changed the mode meanwhile, which
//! it does at most twice in the time of a silence. An interrupt that reads on the steersman's core
//! sees no change at all. The steersman has no loop.

use core::{fmt, time::Duration};

use clockjack_sync::{
    const_unless_loom, mutant,
    prim::atomic::{AtomicBool, AtomicU32, Ordering, fence},
};
use clockjack_time::{ClockKind, MonotonicClock, Resolution, Tick, TickSpan, TimerInstant};

const FOLLOWING: u32 = 0;
const FALLEN_BACK: u32 = 1;
const RETURNING: u32 = 2;
const MODES: u32 = 3;
/// Where the epoch begins anew, which must not change the mode.
const EPOCHS: u32 = MODES << 30;

/// A clock that goes on by a reference while it stands still, and never back or early for that. A
/// [`DriverWatch`](crate::DriverWatch) decides when; without one it is the clock itself.
///
/// # Examples
///
/// ```
/// use clockjack_sched::{Fallback, FallbackClock, RunnerLoop, SchedulerConfig};
/// use clockjack_time::{InterruptDriver, ManualClock, MonotonicClock, Resolution};
/// use core::{task::Waker, time::Duration};
///
/// static TICKS: InterruptDriver = InterruptDriver::new(Resolution::TEN_MILLIS);
/// // On a board: a counter that runs by itself.
/// static COUNTER: ManualClock = ManualClock::new(Resolution::MILLI);
/// static CLOCK: FallbackClock = FallbackClock::new(&TICKS, &COUNTER);
///
/// let waker = Waker::noop().clone();
/// let mut runner = RunnerLoop::start(SchedulerConfig::DEFAULT, &CLOCK, &TICKS, waker)?;
/// runner.watch(Fallback::UseReference(&CLOCK))?;
///
/// COUNTER.advance(Duration::from_millis(1_500)); // And no tick has come.
/// runner.poll();
/// assert_eq!(CLOCK.now().ticks, 149); // Rounded such that it is never early.
/// # Ok::<(), clockjack_sched::LoopError>(())
/// ```
pub struct FallbackClock {
    clock: &'static (dyn MonotonicClock + Sync),
    reference: &'static (dyn MonotonicClock + Sync),
    epoch: AtomicU32,
    is_steered: AtomicBool,
    offset: [Halves; MODES as usize],
    floor: Halves,
    from: [Halves; MODES as usize],
    since: [Halves; MODES as usize],
    cap: Halves,
}

/// A number in two halves, for targets without wide atomics. The epoch says whether they belong
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
        // Relaxed, twice: the epoch and its fences order them (rule 1).
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

impl FallbackClock {
    const_unless_loom! {
        /// The time of `clock`, or of `reference` while that stands still. Its tick and kind are
        /// those of `clock`.
        #[must_use]
        pub const fn new(
            clock: &'static (dyn MonotonicClock + Sync),
            reference: &'static (dyn MonotonicClock + Sync),
        ) -> Self {
            Self {
                clock,
                reference,
                epoch: AtomicU32::new(FOLLOWING),
                is_steered: AtomicBool::new(false),
                offset: [Halves::new(), Halves::new(), Halves::new()],
                floor: Halves::new(),
                from: [Halves::new(), Halves::new(), Halves::new()],
                since: [Halves::new(), Halves::new(), Halves::new()],
                cap: Halves::new(),
            }
        }
    }

    /// By what it goes while it stands still.
    pub(super) const fn reference(&self) -> &'static (dyn MonotonicClock + Sync) {
        self.reference
    }

    /// The reference in ticks of the clock, rounded down.
    fn reference_tick(&self) -> u64 {
        self.reference.now().elapsed_tick(self.clock.resolution()).get()
    }

    fn read(&self, mode: u32) -> u64 {
        let place = mode as usize;
        let own = self.clock.now().ticks.saturating_add(self.offset[place].load());
        if mode == FOLLOWING {
            return own.max(self.floor.load());
        }
        let passed = self.reference_tick().saturating_sub(self.since[place].load());
        let other = self.from[place].load().saturating_add(passed);
        let both = own.max(other);
        if mode == RETURNING { both.min(self.cap.load()) } else { both }
    }
}

impl MonotonicClock for FallbackClock {
    fn now(&self) -> TimerInstant {
        loop {
            // Acquire: pairs with the release of the steersman (rule 1).
            let epoch = self.epoch.load(Ordering::Acquire);
            let tick = self.read(epoch % MODES);
            // Pairs with the fence of the steersman: numbers of a later epoch show that epoch.
            fence(Ordering::Acquire);
            // Relaxed: ordered by the fence.
            if self.epoch.load(Ordering::Relaxed) == epoch {
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

impl fmt::Debug for FallbackClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackClock").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// The one who changes by what a clock goes.
pub(super) struct Steering {
    clock: &'static FallbackClock,
    /// What is longer is a pause; a tick of the reference included.
    silence: Duration,
    epoch: u32,
    /// What the clock itself said at the last look.
    own: u64,
    /// When that changed, by the reference; read after it.
    moved_at: TimerInstant,
    /// While fallen back: since when the clock has run without a pause.
    runs_since: Option<TimerInstant>,
    /// Since then: how many ticks the clock has lacked at the least.
    slack: u64,
    offset: u64,
    floor: u64,
    from: u64,
    since: u64,
    cap: u64,
}

impl Steering {
    /// `None` if the clock has another.
    pub(super) fn new(clock: &'static FallbackClock, silence: Duration) -> Option<Self> {
        // Acquire: pairs with the release of the one before, whose numbers are continued.
        if clock.is_steered.swap(true, Ordering::Acquire) {
            return None;
        }
        // Relaxed: nobody else writes it now.
        let epoch = clock.epoch.load(Ordering::Relaxed);
        let place = (epoch % MODES) as usize;
        Some(Self {
            clock,
            silence,
            epoch,
            own: clock.clock.now().ticks,
            moved_at: clock.reference.now(),
            runs_since: None,
            slack: u64::MAX,
            offset: clock.offset[place].load(),
            floor: clock.floor.load(),
            from: clock.from[place].load(),
            since: clock.since[place].load(),
            cap: clock.cap.load(),
        })
    }

    fn mode(&self) -> u32 {
        self.epoch % MODES
    }

    pub(super) fn is_fallen_back(&self) -> bool {
        self.mode() != FOLLOWING
    }

    /// Looks at both clocks, and changes what has to be.
    pub(super) fn look(&mut self) {
        // In this order, for rule 2.
        let own = self.clock.clock.now().ticks;
        let now = self.clock.reference.now();
        let is_pause = now.since(self.moved_at) > self.silence;
        let has_moved = own != self.own;
        match self.mode() {
            FOLLOWING if is_pause && !has_moved => self.fall_back(),
            FALLEN_BACK => {
                if is_pause {
                    self.runs_since = None;
                    self.slack = u64::MAX;
                }
                if has_moved {
                    let since = *self.runs_since.get_or_insert(now);
                    self.measure();
                    if now.since(since) >= self.silence || mutant!("fallback-return-at-once") {
                        self.begin_return();
                    }
                }
            }
            RETURNING => {
                self.measure();
                return self.end_return(own);
            }
            _ => {}
        }
        if has_moved {
            self.own = own;
            self.moved_at = now;
        }
    }

    fn fall_back(&mut self) {
        self.from = self.own.saturating_add(self.offset).max(self.floor);
        // A clock rounds down: when it was read, its next tick had not come.
        let read_by = self.moved_at + Duration::from_nanos(1);
        let read_by = if mutant!("fallback-reading-not-rounded") { self.moved_at } else { read_by };
        let since = read_by.deadline_tick(self.clock.resolution());
        self.since = since.map_or(u64::MAX, Tick::get);
        self.runs_since = None;
        self.slack = u64::MAX;
        self.change();
    }

    /// How many ticks the clock lacks: what it has lost, and what is held back at the moment.
    fn measure(&mut self) {
        let seen = self.clock.read(FALLEN_BACK);
        // After that, so that a tick that comes between the two is not lacking.
        let own = self.clock.clock.now().ticks;
        self.slack = self.slack.min(seen.saturating_sub(own));
    }

    fn begin_return(&mut self) {
        let seen = self.clock.read(FALLEN_BACK);
        let ahead = self.clock.resolution().ticks_ceil(self.silence);
        self.cap = seen.saturating_add(ahead.map_or(u64::MAX, TickSpan::get));
        self.change();
    }

    fn end_return(&mut self, own: u64) {
        // Without the cap: the numbers of that mode are still there.
        let seen = self.clock.read(FALLEN_BACK);
        if seen < self.cap {
            return;
        }
        self.floor = self.cap;
        let lost = if mutant!("fallback-return-early") {
            seen.saturating_sub(own)
        } else {
            self.slack.saturating_sub(1)
        };
        self.offset = self.offset.max(lost);
        // The clock says this from now on, and not since it has moved.
        self.own = own;
        self.moved_at = self.clock.reference.now();
        self.change();
    }

    /// Rule 1.
    fn change(&mut self) {
        let epoch = (self.epoch + 1) % EPOCHS;
        let place = (epoch % MODES) as usize;
        // Pairs with the fence of a reader: who sees a number below sees the epoch before it.
        fence(Ordering::Release);
        self.clock.offset[place].store(self.offset);
        self.clock.from[place].store(self.from);
        self.clock.since[place].store(self.since);
        match epoch % MODES {
            FOLLOWING => self.clock.floor.store(self.floor),
            RETURNING => self.clock.cap.store(self.cap),
            _ => {}
        }
        // Release: pairs with the acquire of a reader.
        self.clock.epoch.store(epoch, Ordering::Release);
        self.epoch = epoch;
    }
}

impl Drop for Steering {
    fn drop(&mut self) {
        // Release: pairs with the acquire of the next.
        self.clock.is_steered.store(false, Ordering::Release);
    }
}
