//! What drivers with one task or thread have in common: a turn of every shard, and which shard a
//! thread registers in.

use clockjack_sched::Scheduler;
use clockjack_time::Tick;

use super::{POLL_BUDGET, watchdog::DriverWatchdog};

thread_local! {
    static THREAD_MARKER: u8 = const { 0 };
}

/// A number that this thread keeps as long as it lives, for the choice of a shard.
pub(crate) fn thread_shard_hint() -> usize {
    // What thread-locals are lies apart by more than a line, so the low bits say nothing.
    THREAD_MARKER.try_with(|marker| (core::ptr::from_ref(marker).addr() >> 6) % 1021).unwrap_or(0)
}

/// What a turn of every shard has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollAllResult {
    /// There is more to do at once.
    More,
    /// Nothing is due before this.
    Until(Option<Tick>),
    /// The scheduler was closed, and nothing is left to do.
    Closed,
}

/// Takes a turn of every shard.
pub(crate) fn poll_all(scheduler: &Scheduler, watchdog: &DriverWatchdog) -> PollAllResult {
    watchdog.begin_poll();
    let (mut is_more, mut is_closed, mut next) = (false, true, None);
    for shard in 0..scheduler.shards() {
        let turn = scheduler.turn(shard, 0, POLL_BUDGET);
        is_more |= turn.is_more;
        is_closed &= turn.is_over;
        next = turn.next_wake.into_iter().chain(next).min();
    }
    watchdog.end_poll();
    match next {
        _ if is_more => PollAllResult::More,
        _ if is_closed => PollAllResult::Closed,
        next => PollAllResult::Until(next),
    }
}
