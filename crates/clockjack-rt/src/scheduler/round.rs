//! What drivers with one task or thread have in common: a turn of every shard, and which shard a
//! thread registers in.

use clockjack_sched::Scheduler;
use clockjack_time::Tick;

use super::{TURN_BUDGET, watchdog::Watchdog};

thread_local! {
    static HERE: u8 = const { 0 };
}

/// A number that this thread keeps as long as it lives, for the choice of a shard.
pub(crate) fn of_thread() -> usize {
    // What thread-locals are lies apart by more than a line, so the low bits say nothing.
    HERE.try_with(|here| (core::ptr::from_ref(here).addr() >> 6) % 1021).unwrap_or(0)
}

/// What a turn of every shard has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// There is more to do at once.
    More,
    /// Nothing is due before this.
    Until(Option<Tick>),
    /// The scheduler was closed, and nothing is left to do.
    Over,
}

/// Takes a turn of every shard.
pub(crate) fn take(scheduler: &Scheduler, watchdog: &Watchdog) -> Round {
    watchdog.begin_turn();
    let (mut is_more, mut is_over, mut next) = (false, true, None);
    for shard in 0..scheduler.shards() {
        let turn = scheduler.turn(shard, 0, TURN_BUDGET);
        is_more |= turn.is_more;
        is_over &= turn.is_over;
        next = turn.next_wake.into_iter().chain(next).min();
    }
    watchdog.end_turn();
    match next {
        _ if is_more => Round::More,
        _ if is_over => Round::Over,
        next => Round::Until(next),
    }
}
