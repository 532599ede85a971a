//! The watchdog's protocol: how long the thread that watches for overdue shards may sleep.
#![doc = include_str!("shared.md")]

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

/// `sleeping_until` of a watchdog that is awake, or claimed.
const AWAKE: u64 = 0;

const OFF: u32 = 0;
const ON: u32 = 1;
const REQUESTED: u32 = 2;

/// What the watchdog finds out in one look at the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// When it looks again, at the earliest a tolerance from now; [`NEVER`] if nothing is armed.
    pub sleep_until: u64,
    /// How many shards should have been polled a tolerance ago.
    pub n_overdue: usize,
}

impl Plan {
    /// The same plan with a sleep of one tolerance at the most: after a claim, and while it watches.
    #[must_use]
    pub fn cap_to_tolerance(self, now: u64, tolerance: u64) -> Self {
        Self { sleep_until: self.sleep_until.min(now.saturating_add(tolerance)), ..self }
    }
}

/// Plans the next sleep from the `next_wake` of each shard, `None` for one in which nothing is
/// armed.
///
/// A shard is overdue when a tolerance has passed since it wanted to be polled. Nobody is disturbed
/// sooner: its worker is probably about to poll.
///
/// # Examples
///
/// ```
/// use clockjack_exec::watchdog::{NEVER, Plan, plan};
///
/// assert_eq!(plan(100, 10, [None, Some(150)]), Plan { sleep_until: 160, n_overdue: 0 });
/// assert_eq!(plan(100, 10, [Some(90), Some(150)]), Plan { sleep_until: 110, n_overdue: 1 });
/// assert_eq!(plan(100, 10, [None]), Plan { sleep_until: NEVER, n_overdue: 0 });
/// ```
#[must_use]
pub fn plan(now: u64, tolerance: u64, next_wakes: impl IntoIterator<Item = Option<u64>>) -> Plan {
    let mut plan = Plan { sleep_until: NEVER, n_overdue: 0 };
    for next_wake in next_wakes.into_iter().flatten() {
        let overdue_at = next_wake.saturating_add(tolerance);
        plan.n_overdue += usize::from(overdue_at <= now);
        plan.sleep_until = plan.sleep_until.min(overdue_at);
    }
    // No plan is for less than a tolerance (rule 5).
    plan.sleep_until = plan.sleep_until.max(now.saturating_add(tolerance));
    plan
}

/// What the watchdog and those that need it share; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_exec::watchdog::{WatchdogShared, NEVER};
///
/// let watchdog = WatchdogShared::new(10, 50);
/// // The thread finds nothing armed, and sleeps.
/// assert_eq!(watchdog.prepare_sleep(NEVER, 110, || None), NEVER);
///
/// // A worker has armed a timer for 200, and unparks the thread; the next one need not.
/// assert!(watchdog.notify_armed(200));
/// assert!(!watchdog.notify_armed(150));
///
/// assert!(watchdog.mark_awake(), "it was claimed");
/// assert_eq!(watchdog.prepare_sleep(NEVER, 110, || Some(150)), 160);
/// ```
#[doc(hidden)]
pub struct WatchdogShared {
    sleeping_until: Padded<AtomicU64>,
    polling: Padded<AtomicU32>,
    /// For how long it sleeps at the most while a worker is awake (rule 10).
    awake_max: AtomicU64,
    tolerance: u64,
    quiet_polls_max: u32,
}

impl WatchdogShared {
    /// An awake watchdog that lets a shard be late by `tolerance`, and stops is_polling after this many
    /// looks without a request in between.
    #[must_use]
    pub fn new(tolerance: u64, quiet_polls_max: u32) -> Self {
        Self {
            sleeping_until: Padded(AtomicU64::new(AWAKE)),
            polling: Padded(AtomicU32::new(OFF)),
            awake_max: AtomicU64::new(NEVER),
            tolerance,
            quiet_polls_max,
        }
    }

    /// How late a shard may be.
    #[must_use]
    pub const fn tolerance(&self) -> u64 {
        self.tolerance
    }

    /// To be called after a `next_wake` was lowered to `deadline`; if it says yes, the caller
    /// unparks the watchdog (rule 1).
    #[inline]
    #[must_use]
    pub fn notify_armed(&self, deadline: u64) -> bool {
        if !mutant!("metronome-no-fence") {
            // Pairs with the fence of `announce_sleep`: either the watchdog sees the deadline, or this
            // sees for how long it sleeps.
            fence(SeqCst);
        }
        self.claim_if_beyond(deadline.saturating_add(self.tolerance))
    }

    /// Sets for how long the watchdog sleeps at the most while a worker is awake. It does so
    /// before it announces its sleep.
    pub fn set_awake_max(&self, awake_max: u64) {
        // Relaxed: whoever sees the announcement sees this, by the fences of `announce_sleep` and
        // `notify_awake`.
        self.awake_max.store(awake_max, Relaxed);
    }

    /// To be called by a worker at `now`, after it can be seen that it is awake; if it says yes,
    /// the caller unparks the watchdog (rule 10).
    #[inline]
    #[must_use]
    pub fn notify_awake(&self, now: u64) -> bool {
        if !mutant!("metronome-no-fence-awake") {
            // Pairs with the fence of `announce_sleep`: either the watchdog sees that a worker is awake,
            // or this sees for how long it sleeps.
            fence(SeqCst);
        }
        // Relaxed: see `set_awake_max`.
        self.claim_if_beyond(now.saturating_add(self.awake_max.load(Relaxed)))
    }

    /// Announces a sleep. After this the watchdog reads every `next_wake` and
    /// [`is_polling`](Self::is_polling) again, and calls this again if it has to sleep for less.
    /// [`prepare_sleep`](Self::prepare_sleep) does that, and leaves a claim that came meanwhile.
    pub fn announce_sleep(&self, until: u64) {
        // A sleep until the beginning of time is over; it must not look like being awake, for then
        // nobody could end it.
        let until = until.max(AWAKE + 1);
        // Acquire: pairs with the release of a claim, of which this may overwrite one: what that
        // armer did is seen from here on.
        self.sleeping_until.swap(until, Acquire);
        // Pairs with the fences of `notify_armed` and `request_polling`.
        fence(SeqCst);
    }

    /// Announces a sleep until `sleep_until`, or less if the second look asks for it (rule 2).
    /// `soonest` is a tolerance from now; `next_wake` gives the earliest of all shards. The caller
    /// sleeps until what this returns, or until it is unparked.
    #[must_use]
    pub fn prepare_sleep(
        &self,
        sleep_until: u64,
        soonest: u64,
        mut next_wake: impl FnMut() -> Option<u64>,
    ) -> u64 {
        let mut until = sleep_until.max(AWAKE + 1);
        self.announce_sleep(until);
        loop {
            if mutant!("metronome-no-recheck") {
                return until;
            }
            let overdue_at = next_wake().map_or(NEVER, |wake| wake.saturating_add(self.tolerance));
            // As for every plan: not less than a tolerance.
            let wanted = if self.is_polling() { soonest } else { overdue_at.max(soonest) };
            if wanted >= until || !self.shorten_sleep(until, wanted) {
                return until;
            }
            until = wanted;
        }
    }

    /// To be called by the watchdog when it wakes, for whatever reason. Says whether an armer or
    /// a requester has claimed it: then it lingers (rule 5).
    pub fn mark_awake(&self) -> bool {
        // Acquire: pairs with the release of a claim; what the armer did is seen.
        self.sleeping_until.swap(AWAKE, Acquire) == AWAKE
    }

    /// To be called after work was made visible for which nobody is woken (rules 6 and 9); if it
    /// says yes, the caller unparks the watchdog.
    #[inline]
    #[must_use]
    pub fn request_polling(&self) -> bool {
        // Relaxed: if this is an old value, then rule 9 makes the last look see the work.
        if self.polling.load(Relaxed) == REQUESTED {
            return false;
        }
        self.start_polling()
    }

    /// Whether the watchdog has to look every tolerance.
    #[must_use]
    pub fn is_polling(&self) -> bool {
        // Relaxed: in `prepare_sleep` it stands behind a fence; elsewhere only the watchdog itself turns
        // the polling off, and one that it misses being turned on is found by `prepare_sleep`.
        self.polling.load(Relaxed) != OFF
    }

    /// Begins a look of the watchdog: how many looks in a row, this one included, had no request
    /// since the one before, of which there were `quiet_polls` (rule 7).
    #[must_use]
    pub fn begin_poll(&self, quiet_polls: u32) -> u32 {
        // Acquire: pairs with the release of `start_polling`; the work it was for is seen by this
        // look, and not only by the last.
        let asked = self.polling.compare_exchange(REQUESTED, ON, Acquire, Relaxed).is_ok();
        if asked { 0 } else { quiet_polls.saturating_add(1) }
    }

    /// Stops the polling if there were enough quiet looks, no request came meanwhile, and the last
    /// look, which `find` takes, finds nothing (rule 8). Says whether the polling is off.
    pub fn stop_polling_if_quiet(&self, quiet_polls: u32, find: impl FnOnce() -> bool) -> bool {
        if quiet_polls < self.quiet_polls_max {
            return false;
        }
        // An exchange, so that a request which is there already saves the trouble. Relaxed: rule 9
        // orders the last look behind this; on failure, the next look acquires the request.
        if self.polling.compare_exchange(ON, OFF, Relaxed, Relaxed).is_err() {
            return false;
        }
        // Pairs with the fence that a requester may execute by rule 9.
        fence(SeqCst);
        if mutant!("metronome-no-last-look") || !find() {
            return true;
        }
        // Relaxed: the watchdog tells itself; it is awake, so there is nobody to unpark.
        self.polling.swap(REQUESTED, Relaxed);
        false
    }

    /// Announces a shorter sleep than before. If somebody has claimed the watchdog meanwhile, that
    /// stands and this says no: a token comes, so the sleep is over before it begins, and no other
    /// needs to send one.
    fn shorten_sleep(&self, from: u64, to: u64) -> bool {
        if mutant!("metronome-overwrites-claim") {
            self.announce_sleep(to);
            return true;
        }
        // Relaxed: nothing is published but by the fence, which pairs as that of `announce_sleep`.
        let is_unclaimed = self.sleeping_until.compare_exchange(from, to, Relaxed, Relaxed).is_ok();
        fence(SeqCst);
        is_unclaimed
    }

    /// The part of a request that changes something.
    #[cold]
    fn start_polling(&self) -> bool {
        // Release: pairs with the acquire of `begin_poll`.
        if self.polling.swap(REQUESTED, Release) != OFF {
            return false;
        }
        if !mutant!("metronome-no-fence-watch") {
            // Pairs with the fence of `announce_sleep`: either the watchdog sees that it is to polling, or
            // this sees that it sleeps.
            fence(SeqCst);
        }
        self.claim_if_beyond(AWAKE)
    }

    /// Claims the watchdog if it sleeps, or is about to, beyond this time.
    #[inline]
    fn claim_if_beyond(&self, time: u64) -> bool {
        // Relaxed: the fence of the caller orders it.
        let mut until = self.sleeping_until.load(Relaxed);
        while time < until {
            // Release: pairs with the acquire of `awake` and `announce_sleep`. Relaxed on failure: as the
            // load.
            match self.sleeping_until.compare_exchange(until, AWAKE, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => until = now,
            }
        }
        false
    }
}

impl fmt::Debug for WatchdogShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchdogShared")
            // Relaxed: for people to read.
            .field("sleeping_until", &self.sleeping_until.load(Relaxed))
            .field("is_polling", &self.is_polling())
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
        // Due, but a tolerance has not passed.
        check(&[Some(100)], 110, 0);
        check(&[Some(91)], 110, 0);
        check(&[Some(90)], 110, 1);
        check(&[Some(0), Some(90), Some(91), None], 110, 2);
        check(&[Some(NEVER - 1)], NEVER, 0);
    }

    #[test]
    fn lingering_shortens_a_plan_to_a_grace() {
        assert_eq!(plan(100, 10, [None]).cap_to_tolerance(100, 10).sleep_until, 110);
        assert_eq!(plan(100, 10, [Some(90)]).cap_to_tolerance(100, 10), plan(100, 10, [Some(90)]));
    }

    #[test]
    fn an_arm_unparks_a_sleep_once_and_only_if_it_is_too_long() {
        let watchdog = WatchdogShared::new(10, 3);
        assert!(!watchdog.notify_armed(0), "it is awake");
        assert_eq!(watchdog.prepare_sleep(500, 110, || None), 500);
        assert!(!watchdog.notify_armed(490));
        assert!(watchdog.notify_armed(489));
        assert!(!watchdog.notify_armed(0), "it is claimed");
        assert!(watchdog.mark_awake());
        assert_eq!(watchdog.prepare_sleep(500, 110, || Some(489)), 499);
        assert!(!watchdog.mark_awake(), "its time had come");
    }

    #[test]
    fn the_second_look_is_for_a_grace_at_least() {
        let watchdog = WatchdogShared::new(10, 3);
        assert_eq!(watchdog.prepare_sleep(500, 110, || Some(1)), 110);
        assert!(watchdog.request_polling(), "it sleeps");
        assert!(watchdog.mark_awake());
        assert_eq!(watchdog.prepare_sleep(500, 110, || None), 110, "it watches");
    }

    #[test]
    fn a_watch_ends_after_quiet_looks_and_begins_with_one_unpark() {
        let watchdog = WatchdogShared::new(10, 3);
        assert_eq!(watchdog.prepare_sleep(NEVER, 110, || None), NEVER);
        assert!(watchdog.request_polling());
        assert!(!watchdog.request_polling(), "it is claimed");
        watchdog.mark_awake();
        let mut quiet = watchdog.begin_poll(0);
        assert_eq!(quiet, 0);
        for looks in 1..=2 {
            quiet = watchdog.begin_poll(quiet);
            assert_eq!(quiet, looks);
            assert!(!watchdog.stop_polling_if_quiet(quiet, || false));
        }
        assert!(!watchdog.request_polling(), "it looks anyway");
        quiet = watchdog.begin_poll(quiet);
        assert_eq!(quiet, 0, "there was a request");
        for _ in 0..3 {
            assert!(watchdog.is_polling());
            assert!(!watchdog.stop_polling_if_quiet(quiet, || false));
            quiet = watchdog.begin_poll(quiet);
        }
        assert!(!watchdog.stop_polling_if_quiet(quiet, || true), "the last look found something");
        assert_eq!(watchdog.begin_poll(quiet), 0);
        assert!(watchdog.stop_polling_if_quiet(quiet, || false));
        assert!(!watchdog.is_polling());
        assert_eq!(watchdog.prepare_sleep(NEVER, 110, || None), NEVER, "no wake-ups");
    }
}
