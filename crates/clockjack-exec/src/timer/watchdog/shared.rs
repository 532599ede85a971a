//! The watchdog's protocol: how long its thread may sleep, and who wakes it.
#![doc = include_str!("shared.md")]

use core::fmt;

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
};

/// The sleep has no end: nothing is armed.
pub const NEVER: u64 = u64::MAX;

/// `sleeping_until` of a watchdog that is awake, or claimed.
const AWAKE: u64 = 0;

const OFF: u32 = 0;
const ON: u32 = 1;
const REQUESTED: u32 = 2;

/// What the watchdog finds in one check of the shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// When it checks again, at the earliest one tolerance from now; [`NEVER`] if nothing is armed.
    pub sleep_until: u64,
    /// How many shards are late by more than the tolerance.
    pub n_overdue: usize,
}

impl Plan {
    /// The same plan with a sleep of at most one tolerance: after a claim, and in polling mode.
    #[must_use]
    pub fn cap_to_tolerance(self, now: u64, tolerance: u64) -> Self {
        Self { sleep_until: self.sleep_until.min(now.saturating_add(tolerance)), ..self }
    }
}

/// Plans the next sleep from the `next_wake` of each shard, `None` for one in which nothing is
/// armed.
///
/// A shard is overdue when the tolerance has passed since it was due. Nobody is woken sooner: its
/// worker is probably about to poll it.
///
/// # Examples
///
/// ```
/// use clockjack_exec::watchdog::shared::{NEVER, Plan, plan};
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

/// What the watchdog shares with the threads that notify it; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_exec::watchdog::shared::{NEVER, WatchdogShared};
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
    /// For how long the watchdog sleeps at most while a worker is awake (rule 10).
    awake_max: AtomicU64,
    tolerance: u64,
    quiet_polls_max: u32,
}

impl WatchdogShared {
    /// An awake watchdog that lets a shard be late by `tolerance`, and leaves polling mode after
    /// this many checks without a request in between.
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

    /// To be called after a `next_wake` was lowered to `deadline`; if it returns true, the caller
    /// unparks the watchdog (rule 1).
    #[inline]
    #[must_use]
    pub fn notify_armed(&self, deadline: u64) -> bool {
        // Pairs with the fence of `announce_sleep`: either the watchdog sees the deadline, or
        // this thread sees for how long the watchdog sleeps.
        fence(SeqCst);
        self.claim_if_beyond(deadline.saturating_add(self.tolerance))
    }

    /// Sets for how long the watchdog sleeps at most while a worker is awake. The watchdog calls
    /// this before it announces its sleep.
    pub fn set_awake_max(&self, awake_max: u64) {
        // Relaxed: a thread that sees the announcement sees this, by the fences of `announce_sleep`
        // and `notify_awake`.
        self.awake_max.store(awake_max, Relaxed);
    }

    /// To be called by a worker at `now`, after other threads can see that it is awake; if it
    /// returns true, the caller unparks the watchdog (rule 10).
    #[inline]
    #[must_use]
    pub fn notify_awake(&self, now: u64) -> bool {
        // Pairs with the fence of `announce_sleep`: either the watchdog sees that a worker is
        // awake, or this worker sees for how long the watchdog sleeps.
        fence(SeqCst);
        // Relaxed: see `set_awake_max`.
        self.claim_if_beyond(now.saturating_add(self.awake_max.load(Relaxed)))
    }

    /// Announces a sleep. After this the watchdog reads every `next_wake` and
    /// [`is_polling`](Self::is_polling) again, and announces a shorter sleep if necessary.
    /// [`prepare_sleep`](Self::prepare_sleep) does that, and respects a claim that came in the
    /// meantime.
    pub fn announce_sleep(&self, until: u64) {
        // A sleep until time 0 is over at once, but must not look like being awake: then nobody
        // could end it.
        let until = until.max(AWAKE + 1);
        // Acquire: pairs with the release of a claim, which this may overwrite: from here on the
        // watchdog sees what the claiming thread did.
        self.sleeping_until.swap(until, Acquire);
        // Pairs with the fences of `notify_armed` and `request_polling`.
        fence(SeqCst);
    }

    /// Announces a sleep until `sleep_until`, or less if the second check finds something earlier
    /// (rule 2). `soonest` is one tolerance from now; `next_wake` returns the earliest of all
    /// shards. The caller sleeps until the returned time, or until it is unparked.
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
            let overdue_at = next_wake().map_or(NEVER, |wake| wake.saturating_add(self.tolerance));
            // As for every plan: not less than a tolerance.
            let wanted = if self.is_polling() { soonest } else { overdue_at.max(soonest) };
            if wanted >= until || !self.shorten_sleep(until, wanted) {
                return until;
            }
            until = wanted;
        }
    }

    /// To be called by the watchdog when it wakes, for whatever reason. Returns whether another
    /// thread has claimed it: then its next sleep is short (rule 5).
    pub fn mark_awake(&self) -> bool {
        // Acquire: pairs with the release of a claim, so that the watchdog sees what the claiming
        // thread did.
        self.sleeping_until.swap(AWAKE, Acquire) == AWAKE
    }

    /// To be called after work was made visible for which nobody is woken (rules 6 and 9); if it
    /// returns true, the caller unparks the watchdog.
    #[inline]
    #[must_use]
    pub fn request_polling(&self) -> bool {
        // Relaxed: if this is an old value, then by rule 9 the last check sees the work.
        if self.polling.load(Relaxed) == REQUESTED {
            return false;
        }
        self.start_polling()
    }

    /// Whether the watchdog is in polling mode: it has to check once per tolerance.
    #[must_use]
    pub fn is_polling(&self) -> bool {
        // Relaxed: in `prepare_sleep` a fence precedes it; elsewhere only the watchdog itself turns
        // polling off, and `prepare_sleep` finds a request that this load misses.
        self.polling.load(Relaxed) != OFF
    }

    /// Begins a check: returns how many checks in a row, this one included, had no request since
    /// the one before. `quiet_polls` is the number before this check (rule 7).
    #[must_use]
    pub fn begin_poll(&self, quiet_polls: u32) -> u32 {
        // Acquire: pairs with the release of `start_polling`, so that this check, and not only the
        // last one, sees the work that was requested.
        let asked = self.polling.compare_exchange(REQUESTED, ON, Acquire, Relaxed).is_ok();
        if asked { 0 } else { quiet_polls.saturating_add(1) }
    }

    /// Leaves polling mode if there were enough quiet checks, no request came in the meantime, and
    /// the last check, `find`, finds nothing (rule 8). Returns whether polling is off.
    pub fn stop_polling_if_quiet(&self, quiet_polls: u32, find: impl FnOnce() -> bool) -> bool {
        if quiet_polls < self.quiet_polls_max {
            return false;
        }
        // An exchange, so that a request that is there already keeps polling on. Relaxed: rule 9
        // orders the last check after this; on failure, the next check acquires the request.
        if self.polling.compare_exchange(ON, OFF, Relaxed, Relaxed).is_err() {
            return false;
        }
        // Pairs with the fence that a requester may execute by rule 9.
        fence(SeqCst);
        if !find() {
            return true;
        }
        // Relaxed: the watchdog requests polling from itself; it is awake, so nobody has to be
        // unparked.
        self.polling.swap(REQUESTED, Relaxed);
        false
    }

    /// Announces a shorter sleep than before. If another thread has claimed the watchdog in the
    /// meantime, the claim stays and this returns false: an unpark token arrives, so the sleep ends
    /// at once, and no other thread needs to send one.
    fn shorten_sleep(&self, from: u64, to: u64) -> bool {
        // Relaxed: only the fence publishes, and it pairs like that of `announce_sleep`.
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
        // Pairs with the fence of `announce_sleep`: either the watchdog sees that it has to
        // poll, or this thread sees that it sleeps.
        fence(SeqCst);
        self.claim_if_beyond(AWAKE)
    }

    /// Claims the watchdog if it sleeps, or is about to sleep, beyond this time.
    #[inline]
    fn claim_if_beyond(&self, time: u64) -> bool {
        // Relaxed: the fence of the caller orders it.
        let mut until = self.sleeping_until.load(Relaxed);
        while time < until {
            // Release: pairs with the acquire of `mark_awake` and `announce_sleep`. Relaxed on
            // failure: as the load.
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
        // Due, but the tolerance has not passed.
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
        assert_eq!(watchdog.prepare_sleep(500, 110, || None), 110, "it polls");
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
        assert!(!watchdog.request_polling(), "it polls anyway");
        quiet = watchdog.begin_poll(quiet);
        assert_eq!(quiet, 0, "there was a request");
        for _ in 0..3 {
            assert!(watchdog.is_polling());
            assert!(!watchdog.stop_polling_if_quiet(quiet, || false));
            quiet = watchdog.begin_poll(quiet);
        }
        assert!(!watchdog.stop_polling_if_quiet(quiet, || true), "the last check found something");
        assert_eq!(watchdog.begin_poll(quiet), 0);
        assert!(watchdog.stop_polling_if_quiet(quiet, || false));
        assert!(!watchdog.is_polling());
        assert_eq!(watchdog.prepare_sleep(NEVER, 110, || None), NEVER, "no wake-ups");
    }
}
