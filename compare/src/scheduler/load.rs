//! The load: the delays, the order of cancels, and the tasks that schedule and cancel. The same for
//! every subject and every run.

use alloc::sync::Arc;
use core::time::Duration;
use std::time::Instant;

use super::subject::{Case, Subject, Timers};
use crate::receiver::Receiver;
use crate::rng::{Rng, permutation};

/// The seed of all loads. Another seed gives other delays and, within noise, equal figures.
const SEED: u64 = 42;

/// Timers that are cancelled: the shortest delay, which is longer than any pass, and the spread of
/// the delays.
const TIMEOUT_MIN: Duration = Duration::from_secs(30);
const TIMEOUT_SPREAD: Duration = Duration::from_secs(60);

/// Timers that fire: the shortest delay, in which a hundred thousand timers can be scheduled, and
/// the spread of the delays.
const FIRE_MIN: Duration = Duration::from_millis(100);
const FIRE_SPREAD: Duration = Duration::from_millis(50);

/// A task yields after this many calls. A task that runs for milliseconds would keep others
/// waiting, and the local queue of a tokio worker, which holds 256 tasks, would overflow
/// permanently.
const N_CALLS_A_TURN: usize = 64;

/// Delays and order of cancels for `n` timers.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) case: Case,
    pub(crate) n: u32,
    delays: Vec<Duration>,
    /// The indices of the timers in the order of the cancels.
    cancels: Vec<u32>,
}

impl Load {
    pub(crate) fn new(case: Case, n: u32) -> Self {
        let mut rng = Rng::new(SEED);
        let (min, spread) = match case {
            Case::ScheduleCancel => (TIMEOUT_MIN, TIMEOUT_SPREAD),
            Case::ScheduleFire => (FIRE_MIN, FIRE_SPREAD),
        };
        let spread_us = u32::try_from(spread.as_micros()).expect("the spread is at most a minute");
        let mut delay = || min + Duration::from_micros(u64::from(rng.below(spread_us + 1)));
        let delays = (0..n).map(|_| delay()).collect();
        Self { case, n, delays, cancels: permutation(&mut rng, n) }
    }
}

/// The keys of scheduled timers, in order.
pub(crate) type Keys<S> = Vec<Option<<<S as Subject>::Timers as Timers>::Key>>;

/// The result of scheduling.
pub(crate) struct Scheduled<S: Subject> {
    /// Empty if the case cancels nothing: the keys were dropped immediately.
    pub(crate) keys: Keys<S>,
    /// Wall time within the calls.
    pub(crate) in_calls: Duration,
    /// The due time of the last timer.
    pub(crate) last_due: Instant,
}

/// Schedules all timers of the load; `keys` is empty and has room for all keys that are kept.
pub(crate) async fn schedule_all<S: Subject>(
    timers: S::Timers,
    load: Arc<Load>,
    receiver: &'static Receiver,
    mut keys: Keys<S>,
) -> Scheduled<S> {
    let mut in_calls = Duration::ZERO;
    let mut last_due = Instant::now();
    for delays in load.delays.chunks(N_CALLS_A_TURN) {
        let begun = Instant::now();
        for &delay in delays {
            let key = timers.schedule(delay, receiver.shot());
            match load.case {
                Case::ScheduleCancel => keys.push(Some(key)),
                Case::ScheduleFire => drop(key),
            }
        }
        in_calls += begun.elapsed();
        let longest = delays.iter().max().copied().unwrap_or_default();
        last_due = last_due.max(begun + longest);
        S::yield_now().await;
    }
    Scheduled { keys, in_calls, last_due }
}

/// The result of cancelling.
pub(crate) struct Cancelled {
    /// Wall time within the calls.
    pub(crate) in_calls: Duration,
    /// When the last call returned.
    pub(crate) last: Instant,
}

/// Cancels all timers of the load.
pub(crate) async fn cancel_all<S: Subject>(
    timers: S::Timers,
    load: Arc<Load>,
    mut keys: Keys<S>,
) -> Cancelled {
    let mut in_calls = Duration::ZERO;
    let mut last = Instant::now();
    for cancels in load.cancels.chunks(N_CALLS_A_TURN) {
        let begun = Instant::now();
        for &index in cancels {
            let key = keys[index as usize].take().expect("each timer is cancelled once");
            timers.cancel(key);
        }
        last = Instant::now();
        in_calls += last - begun;
        S::yield_now().await;
    }
    Cancelled { in_calls, last }
}

#[cfg(test)]
mod tests {
    use super::{Case, FIRE_MIN, FIRE_SPREAD, Load, TIMEOUT_MIN, TIMEOUT_SPREAD};

    #[test]
    fn delays_are_spread_over_their_interval_and_the_same_each_time() {
        fn check(case: Case, min: core::time::Duration, spread: core::time::Duration) {
            let load = Load::new(case, 10_000);
            let (first, last) = (load.delays.iter().min(), load.delays.iter().max());
            let (first, last) = (first.expect("there are delays"), last.expect("there are delays"));
            assert!(*first >= min && *first < min + spread / 100, "{first:?}");
            assert!(*last <= min + spread && *last > min + spread * 99 / 100, "{last:?}");
            let again = Load::new(case, 10_000);
            assert_eq!((load.delays, load.cancels), (again.delays, again.cancels));
        }
        check(Case::ScheduleCancel, TIMEOUT_MIN, TIMEOUT_SPREAD);
        check(Case::ScheduleFire, FIRE_MIN, FIRE_SPREAD);
    }
}
