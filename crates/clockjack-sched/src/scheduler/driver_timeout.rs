//! Detects that no thread polls a shard that has due jobs.
//!
//! # Protocol
//!
//! Roles: the *driver* is the thread that polls the shards; a *watcher* is another thread of the
//! host, which runs also if the driver does not.
//!
//! 1. A shard is *overdue* if it has a due job. Its wheel stays at the same tick as long as no
//!    thread polls the shard, and advances with the next poll.
//! 2. A watcher that finds a shard overdue records the tick of the wheel and the current time. A
//!    later check that finds the wheel at the same tick, and the shard still overdue, reports a
//!    timeout if the driver had long enough in between. Two concurrent watchers may report it
//!    twice.
//! 3. A watcher reports once per tick of the wheel, so once per timeout, and wakes the poller.
//!
//! *How soon*: within two spans of [`driver_timeout`](crate::SchedulerConfig::driver_timeout) after
//! the deadline, if the watcher checks again when it should. A shard whose guard another thread
//! holds is skipped until the next check.

use clockjack_sync::primitive::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use clockjack_time::{Tick, TickSpan};

use super::{Scheduler, SchedulerShard};
use crate::Warning;

/// What watchers have seen of a shard. All accesses are relaxed, because they decide only about
/// warnings.
#[derive(Debug)]
pub(crate) struct StallDetector {
    /// The low bits of the tick of the wheel, plus one.
    stopped_at: AtomicU32,
    /// The low bits of the tick at which a watcher first saw the wheel there.
    since: AtomicU32,
    is_reported: AtomicBool,
}

impl StallDetector {
    pub(super) fn new() -> Self {
        let never = || AtomicU32::new(0);
        // As if it had been reported: nothing has been seen yet.
        Self { stopped_at: never(), since: never(), is_reported: AtomicBool::new(true) }
    }

    /// Records that a shard is overdue and its wheel is at `stopped_at`. Returns after which time
    /// to check again, and how long the shard has been overdue if that must be reported.
    fn check(
        &self,
        stopped_at: Tick,
        now: Tick,
        timeout: TickSpan,
    ) -> (TickSpan, Option<TickSpan>) {
        let (position, at) = (low(stopped_at).wrapping_add(1), low(now));
        if self.stopped_at.load(Relaxed) != position {
            self.since.store(at, Relaxed);
            self.stopped_at.store(position, Relaxed);
            self.is_reported.store(false, Relaxed);
            return (timeout, None);
        }
        if self.is_reported.load(Relaxed) {
            return (timeout, None);
        }
        let passed = u64::from(at.wrapping_sub(self.since.load(Relaxed)));
        if passed < timeout.get() {
            return (TickSpan::new(timeout.get() - passed), None);
        }
        self.is_reported.store(true, Relaxed);
        (timeout, Some(TickSpan::new(passed)))
    }
}

fn low(tick: Tick) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is compared")]
    let low = tick.get() as u32;
    low
}

impl Scheduler {
    /// Checks whether the shards are polled. Call this from a thread of the host other than the
    /// polling one. A driver that does not poll in time is reported as a [`Warning::DriverSilent`],
    /// once per timeout, and the poller is woken. Returns when to check again; `None` if nothing is
    /// scheduled or the scheduler is closed.
    pub fn check_driver(&self) -> Option<Tick> {
        let inner = self.inner();
        if self.is_closed() {
            return None;
        }
        let resolution = inner.shared.resolution;
        let timeout = resolution.ticks_ceil(inner.driver_timeout);
        let timeout = timeout.unwrap_or(TickSpan::new(u64::MAX)).max(TickSpan::ONE);
        let now = self.now().elapsed_tick(resolution);
        let mut next: Option<Tick> = None;
        for (index, shard) in inner.shards.iter().enumerate() {
            let (next_check, overdue_for) = check_shard(shard, now, timeout);
            next = next_check.into_iter().chain(next).min();
            if let Some(ticks) = overdue_for {
                let silent_for = resolution.duration(ticks);
                inner.shared.warn(Warning::DriverSilent { silent_for });
                inner.shared.host.wake_poller(index, Tick::ZERO);
            }
        }
        next
    }
}

/// When to check again, and how long the shard has been overdue if that must be reported.
fn check_shard(
    shard: &SchedulerShard,
    now: Tick,
    timeout: TickSpan,
) -> (Option<Tick>, Option<TickSpan>) {
    let Some(mut guard) = shard.jobs.try_lock() else {
        return (Some(now.saturating_add(timeout)), None);
    };
    let locked = guard.locked();
    let stopped_at = locked.wheel.elapsed();
    let next_due =
        if locked.table.n_due() > 0 { Some(stopped_at) } else { locked.wheel.next_deadline() };
    drop(guard);
    shard.flush();
    let Some(next_due) = next_due else { return (None, None) };
    if next_due > now {
        return (Some(next_due.saturating_add(timeout)), None);
    }
    let (rest, overdue_for) = shard.stall_detector.check(stopped_at, now, timeout);
    (Some(now.saturating_add(rest)), overdue_for)
}
