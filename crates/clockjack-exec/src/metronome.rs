//! The metronome's protocol: how long the thread that watches for overdue shards may sleep.
#![doc = include_str!("metronome.md")]

use core::fmt;

use clockjack_sync::{
    mutant,
    pad::Padded,
    prim::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

/// The time that does not come: nothing is armed.
pub const NEVER: u64 = u64::MAX;

/// `sleeping_until` of a metronome that is awake, or claimed.
const AWAKE: u64 = 0;

const OFF: u32 = 0;
const ON: u32 = 1;
const ASKED: u32 = 2;

/// What the metronome finds out in one look at the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// When it looks again, at the earliest a grace from now; [`NEVER`] if nothing is armed.
    pub sleep_until: u64,
    /// How many shards should have been polled a grace ago.
    pub n_overdue: usize,
}

impl Plan {
    /// The same plan with a sleep of one grace at the most: after a claim, and while it watches.
    #[must_use]
    pub fn linger(self, now: u64, grace: u64) -> Self {
        Self { sleep_until: self.sleep_until.min(now.saturating_add(grace)), ..self }
    }
}

/// Plans the next sleep from the `next_wake` of each shard, `None` for one in which nothing is
/// armed.
///
/// A shard is overdue when a grace has passed since it wanted to be polled. Nobody is disturbed
/// sooner: its worker is probably about to poll.
///
/// # Examples
///
/// ```
/// use clockjack_exec::metronome::{NEVER, Plan, plan};
///
/// assert_eq!(plan(100, 10, [None, Some(150)]), Plan { sleep_until: 160, n_overdue: 0 });
/// assert_eq!(plan(100, 10, [Some(90), Some(150)]), Plan { sleep_until: 110, n_overdue: 1 });
/// assert_eq!(plan(100, 10, [None]), Plan { sleep_until: NEVER, n_overdue: 0 });
/// ```
#[must_use]
pub fn plan(now: u64, grace: u64, next_wakes: impl IntoIterator<Item = Option<u64>>) -> Plan {
    let mut plan = Plan { sleep_until: NEVER, n_overdue: 0 };
    for next_wake in next_wakes.into_iter().flatten() {
        let overdue_at = next_wake.saturating_add(grace);
        plan.n_overdue += usize::from(overdue_at <= now);
        plan.sleep_until = plan.sleep_until.min(overdue_at);
    }
    // No plan is for less than a grace (rule 5).
    plan.sleep_until = plan.sleep_until.max(now.saturating_add(grace));
    plan
}

/// What the metronome and those that need it share; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_exec::metronome::{Metronome, NEVER};
///
/// let metronome = Metronome::new(10, 50);
/// // The thread finds nothing armed, and sleeps.
/// assert_eq!(metronome.settle(NEVER, 110, || None), NEVER);
///
/// // A worker has armed a timer for 200, and unparks the thread; the next one need not.
/// assert!(metronome.note_arm(200));
/// assert!(!metronome.note_arm(150));
///
/// assert!(metronome.awake(), "it was claimed");
/// assert_eq!(metronome.settle(NEVER, 110, || Some(150)), 160);
/// ```
#[doc(hidden)]
pub struct Metronome {
    sleeping_until: Padded<AtomicU64>,
    watch: Padded<AtomicU32>,
    /// For how long it sleeps at the most while a worker is awake (rule 10).
    awake_max: AtomicU64,
    grace: u64,
    quiet_looks_max: u32,
}

impl Metronome {
    /// An awake metronome that lets a shard be late by `grace`, and stops watching after this many
    /// looks without a request in between.
    #[must_use]
    pub fn new(grace: u64, quiet_looks_max: u32) -> Self {
        Self {
            sleeping_until: Padded(AtomicU64::new(AWAKE)),
            watch: Padded(AtomicU32::new(OFF)),
            awake_max: AtomicU64::new(NEVER),
            grace,
            quiet_looks_max,
        }
    }

    /// How late a shard may be.
    #[must_use]
    pub const fn grace(&self) -> u64 {
        self.grace
    }

    /// To be called after a `next_wake` was lowered to `deadline`; if it says yes, the caller
    /// unparks the metronome (rule 1).
    #[inline]
    #[must_use]
    pub fn note_arm(&self, deadline: u64) -> bool {
        if !mutant!("metronome-no-fence") {
            // Pairs with the fence of `prepare`: either the metronome sees the deadline, or this
            // sees for how long it sleeps.
            fence(SeqCst);
        }
        self.claim_if_beyond(deadline.saturating_add(self.grace))
    }

    /// Sets for how long the metronome sleeps at the most while a worker is awake. It does so
    /// before it announces its sleep.
    pub fn set_awake_max(&self, awake_max: u64) {
        // Relaxed: whoever sees the announcement sees this, by the fences of `prepare` and
        // `note_awake`.
        self.awake_max.store(awake_max, Relaxed);
    }

    /// To be called by a worker at `now`, after it can be seen that it is awake; if it says yes,
    /// the caller unparks the metronome (rule 10).
    #[inline]
    #[must_use]
    pub fn note_awake(&self, now: u64) -> bool {
        if !mutant!("metronome-no-fence-awake") {
            // Pairs with the fence of `prepare`: either the metronome sees that a worker is awake,
            // or this sees for how long it sleeps.
            fence(SeqCst);
        }
        // Relaxed: see `set_awake_max`.
        self.claim_if_beyond(now.saturating_add(self.awake_max.load(Relaxed)))
    }

    /// Announces a sleep. After this the metronome reads every `next_wake` and
    /// [`watching`](Self::watching) again, and calls this again if it has to sleep for less.
    /// [`settle`](Self::settle) does that, and leaves a claim that came meanwhile.
    pub fn prepare(&self, until: u64) {
        // A sleep until the beginning of time is over; it must not look like being awake, for then
        // nobody could end it.
        let until = until.max(AWAKE + 1);
        // Acquire: pairs with the release of a claim, of which this may overwrite one: what that
        // armer did is seen from here on.
        self.sleeping_until.swap(until, Acquire);
        // Pairs with the fences of `note_arm` and `request_watch`.
        fence(SeqCst);
    }

    /// Announces a sleep until `sleep_until`, or less if the second look asks for it (rule 2).
    /// `soonest` is a grace from now; `next_wake` gives the earliest of all shards. The caller
    /// sleeps until what this returns, or until it is unparked.
    #[must_use]
    pub fn settle(
        &self,
        sleep_until: u64,
        soonest: u64,
        mut next_wake: impl FnMut() -> Option<u64>,
    ) -> u64 {
        let mut until = sleep_until.max(AWAKE + 1);
        self.prepare(until);
        loop {
            if mutant!("metronome-no-recheck") {
                return until;
            }
            let overdue_at = next_wake().map_or(NEVER, |wake| wake.saturating_add(self.grace));
            // As for every plan: not less than a grace.
            let wanted = if self.watching() { soonest } else { overdue_at.max(soonest) };
            if wanted >= until || !self.shorten(until, wanted) {
                return until;
            }
            until = wanted;
        }
    }

    /// To be called by the metronome when it wakes, for whatever reason. Says whether an armer or
    /// a requester has claimed it: then it lingers (rule 5).
    pub fn awake(&self) -> bool {
        // Acquire: pairs with the release of a claim; what the armer did is seen.
        self.sleeping_until.swap(AWAKE, Acquire) == AWAKE
    }

    /// To be called after work was made visible for which nobody is woken (rules 6 and 9); if it
    /// says yes, the caller unparks the metronome.
    #[inline]
    #[must_use]
    pub fn request_watch(&self) -> bool {
        // Relaxed: if this is an old value, then rule 9 makes the last look see the work.
        if self.watch.load(Relaxed) == ASKED {
            return false;
        }
        self.start_watch()
    }

    /// Whether the metronome has to look every grace.
    #[must_use]
    pub fn watching(&self) -> bool {
        // Relaxed: in `settle` it stands behind a fence; elsewhere only the metronome itself turns
        // the watch off, and one that it misses being turned on is found by `settle`.
        self.watch.load(Relaxed) != OFF
    }

    /// Begins a look of the metronome: how many looks in a row, this one included, had no request
    /// since the one before, of which there were `quiet_looks` (rule 7).
    #[must_use]
    pub fn count_look(&self, quiet_looks: u32) -> u32 {
        // Acquire: pairs with the release of `start_watch`; the work it was for is seen by this
        // look, and not only by the last.
        let asked = self.watch.compare_exchange(ASKED, ON, Acquire, Relaxed).is_ok();
        if asked { 0 } else { quiet_looks.saturating_add(1) }
    }

    /// Stops the watch if there were enough quiet looks, no request came meanwhile, and the last
    /// look, which `find` takes, finds nothing (rule 8). Says whether the watch is off.
    pub fn stop_watch_if_quiet(&self, quiet_looks: u32, find: impl FnOnce() -> bool) -> bool {
        if quiet_looks < self.quiet_looks_max {
            return false;
        }
        // An exchange, so that a request which is there already saves the trouble. Relaxed: rule 9
        // orders the last look behind this; on failure, the next look acquires the request.
        if self.watch.compare_exchange(ON, OFF, Relaxed, Relaxed).is_err() {
            return false;
        }
        // Pairs with the fence that a requester may execute by rule 9.
        fence(SeqCst);
        if mutant!("metronome-no-last-look") || !find() {
            return true;
        }
        // Relaxed: the metronome tells itself; it is awake, so there is nobody to unpark.
        self.watch.swap(ASKED, Relaxed);
        false
    }

    /// Announces a shorter sleep than before. If somebody has claimed the metronome meanwhile, that
    /// stands and this says no: a token comes, so the sleep is over before it begins, and no other
    /// needs to send one.
    fn shorten(&self, from: u64, to: u64) -> bool {
        if mutant!("metronome-overwrites-claim") {
            self.prepare(to);
            return true;
        }
        // Relaxed: nothing is published but by the fence, which pairs as that of `prepare`.
        let is_unclaimed = self.sleeping_until.compare_exchange(from, to, Relaxed, Relaxed).is_ok();
        fence(SeqCst);
        is_unclaimed
    }

    /// The part of a request that changes something.
    #[cold]
    fn start_watch(&self) -> bool {
        // Release: pairs with the acquire of `count_look`.
        if self.watch.swap(ASKED, Release) != OFF {
            return false;
        }
        if !mutant!("metronome-no-fence-watch") {
            // Pairs with the fence of `prepare`: either the metronome sees that it is to watch, or
            // this sees that it sleeps.
            fence(SeqCst);
        }
        self.claim_if_beyond(AWAKE)
    }

    /// Claims the metronome if it sleeps, or is about to, beyond this time.
    #[inline]
    fn claim_if_beyond(&self, time: u64) -> bool {
        // Relaxed: the fence of the caller orders it.
        let mut until = self.sleeping_until.load(Relaxed);
        while time < until {
            // Release: pairs with the acquire of `awake` and `prepare`. Relaxed on failure: as the
            // load.
            match self.sleeping_until.compare_exchange(until, AWAKE, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => until = now,
            }
        }
        false
    }
}

impl fmt::Debug for Metronome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metronome")
            // Relaxed: for people to read.
            .field("sleeping_until", &self.sleeping_until.load(Relaxed))
            .field("watching", &self.watching())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[track_caller]
    fn check(next_wakes: &[Option<u64>], sleep_until: u64, n_overdue: usize) {
        let expected = Plan { sleep_until, n_overdue };
        assert_eq!(plan(100, 10, next_wakes.iter().copied()), expected, "for {next_wakes:?}");
    }

    #[test]
    fn a_plan_is_for_the_earliest_shard_and_a_grace_at_least() {
        check(&[], NEVER, 0);
        check(&[None, None], NEVER, 0);
        check(&[Some(300), None, Some(200)], 210, 0);
        check(&[Some(101)], 111, 0);
        // Due, but a grace has not passed.
        check(&[Some(100)], 110, 0);
        check(&[Some(91)], 110, 0);
        check(&[Some(90)], 110, 1);
        check(&[Some(0), Some(90), Some(91), None], 110, 2);
        check(&[Some(NEVER - 1)], NEVER, 0);
    }

    #[test]
    fn lingering_shortens_a_plan_to_a_grace() {
        assert_eq!(plan(100, 10, [None]).linger(100, 10).sleep_until, 110);
        assert_eq!(plan(100, 10, [Some(90)]).linger(100, 10), plan(100, 10, [Some(90)]));
    }

    #[test]
    fn an_arm_unparks_a_sleep_once_and_only_if_it_is_too_long() {
        let metronome = Metronome::new(10, 3);
        assert!(!metronome.note_arm(0), "it is awake");
        assert_eq!(metronome.settle(500, 110, || None), 500);
        assert!(!metronome.note_arm(490));
        assert!(metronome.note_arm(489));
        assert!(!metronome.note_arm(0), "it is claimed");
        assert!(metronome.awake());
        assert_eq!(metronome.settle(500, 110, || Some(489)), 499);
        assert!(!metronome.awake(), "its time had come");
    }

    #[test]
    fn the_second_look_is_for_a_grace_at_least() {
        let metronome = Metronome::new(10, 3);
        assert_eq!(metronome.settle(500, 110, || Some(1)), 110);
        assert!(metronome.request_watch(), "it sleeps");
        assert!(metronome.awake());
        assert_eq!(metronome.settle(500, 110, || None), 110, "it watches");
    }

    #[test]
    fn a_watch_ends_after_quiet_looks_and_begins_with_one_unpark() {
        let metronome = Metronome::new(10, 3);
        assert_eq!(metronome.settle(NEVER, 110, || None), NEVER);
        assert!(metronome.request_watch());
        assert!(!metronome.request_watch(), "it is claimed");
        metronome.awake();
        let mut quiet = metronome.count_look(0);
        assert_eq!(quiet, 0);
        for looks in 1..=2 {
            quiet = metronome.count_look(quiet);
            assert_eq!(quiet, looks);
            assert!(!metronome.stop_watch_if_quiet(quiet, || false));
        }
        assert!(!metronome.request_watch(), "it looks anyway");
        quiet = metronome.count_look(quiet);
        assert_eq!(quiet, 0, "there was a request");
        for _ in 0..3 {
            assert!(metronome.watching());
            assert!(!metronome.stop_watch_if_quiet(quiet, || false));
            quiet = metronome.count_look(quiet);
        }
        assert!(!metronome.stop_watch_if_quiet(quiet, || true), "the last look found something");
        assert_eq!(metronome.count_look(quiet), 0);
        assert!(metronome.stop_watch_if_quiet(quiet, || false));
        assert!(!metronome.watching());
        assert_eq!(metronome.settle(NEVER, 110, || None), NEVER, "no wake-ups");
    }
}
