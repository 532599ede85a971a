//! A second store of timed work that workers poll, next to the executor's own timers: the jobs of
//! a scheduler. [`shards`](super::shards) has the protocol by which one worker at a time polls a
//! shard of it.

use core::time::Duration;

use clockjack_time::{Resolution, Tick};

use crate::executor::ExecutorShared;

/// For how long a worker polls a shard of the source before another worker may take the shard
/// over. Work that is short finishes before that, so that it stays in order.
const TAKEOVER_AFTER: Duration = Duration::from_millis(4);

/// Timed work that the workers of an executor poll. Its shard number `i` goes with shard `i` of the
/// executor's timers: the same worker must poll both, and others take over both.
///
/// # For implementers
///
/// 1. When a shard has to be polled earlier than the last poll of it has said, the source MUST make
///    that visible to `poll` first, and then call [`ExecutorShared::request_source_poll`].
/// 2. `poll` may be called for one shard by several workers at a time, if one of the calls takes
///    long.
/// 3. `poll` may call user code. If it panics, the shard is polled again.
#[doc(hidden)]
pub trait TimerSource: Send + Sync {
    /// Runs what is due in a shard, on the thread of this worker: a bounded amount of work.
    fn poll(&self, shard: u32, worker: usize) -> SourcePoll;
}

/// The result of polling a shard of a [`TimerSource`].
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourcePoll {
    /// Whether there is more to do at once.
    pub is_more: bool,
    /// When to poll the shard again, if there is no more to do.
    pub next_wake: Option<Tick>,
}

impl SourcePoll {
    pub(crate) fn next(self) -> Option<Tick> {
        if self.is_more { Some(Tick::ZERO) } else { self.next_wake }
    }
}

impl ExecutorShared {
    /// Makes a worker poll a shard of the source at this tick at the latest; [`Tick::ZERO`] means
    /// at once. From any thread.
    ///
    /// # Panics
    /// If no worker has ever had this shard.
    pub fn request_source_poll(&self, shard: u32, at: Tick) {
        if let Some(earlier) = self.shards.request_source(shard, at) {
            self.notify_source(earlier);
        }
    }
}

/// How many ticks a worker polls a shard of the source before another may take the shard over.
pub(crate) fn takeover_ticks(resolution: Resolution) -> u64 {
    let nanos_per_tick = u128::from(resolution.nanos().get());
    u64::try_from(TAKEOVER_AFTER.as_nanos().div_ceil(nanos_per_tick)).unwrap_or(u64::MAX)
}
