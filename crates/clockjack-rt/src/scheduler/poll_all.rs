//! What drivers with one task or thread have in common: polling every shard, and choosing the
//! shard in which a thread registers jobs.

use clockjack_sched::Scheduler;
use clockjack_time::Tick;

use super::{POLL_BUDGET, watchdog::DriverWatchdog};

thread_local! {
    static THREAD_MARKER: u8 = const { 0 };
}

/// A number that is constant for this thread, for the choice of a shard.
pub(crate) fn thread_shard_hint() -> usize {
    // Thread-locals of different threads are more than a cache line apart, so the low bits of the
    // address carry no information.
    THREAD_MARKER.try_with(|marker| (core::ptr::from_ref(marker).addr() >> 6) % 1021).unwrap_or(0)
}

/// The result of polling every shard once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PollAllResult {
    /// More work is ready now.
    More,
    /// Nothing is due before this tick.
    Until(Option<Tick>),
    /// The scheduler is shut down, and no work is left.
    Closed,
}

/// Polls every shard once.
pub(crate) fn poll_all(scheduler: &Scheduler, watchdog: &DriverWatchdog) -> PollAllResult {
    watchdog.begin_poll();
    let (mut is_more, mut is_closed, mut next) = (false, true, None);
    for shard in 0..scheduler.shards() {
        let turn = scheduler.poll_shard(shard, 0, POLL_BUDGET);
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
