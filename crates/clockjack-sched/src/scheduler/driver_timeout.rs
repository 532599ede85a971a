//! Noticing that nobody takes turns.
//!
//! # Protocol
//!
//! Roles: the *driver*, who takes turns, and a *watcher*, which is somebody else: a thread of the
//! host that would run if the driver did not.
//!
//! 1. A shard *wants* a turn if it has something due. Its wheel stands still as long as nobody
//!    takes one, and moves with the first that somebody takes.
//! 2. A watcher that finds a shard wanting notes where its wheel stands, and when it saw that. A
//!    later look that finds the wheel in the same place, and the shard still wanting, tells of a
//!    timeout if the driver was given long enough in between. Two that look at the same time may
//!    tell it twice.
//! 3. It tells once for each place of the wheel, so once for each timeout, and calls the runner.
//!
//! *How soon*: within two spans of [`driver_timeout`](crate::SchedulerConfig::driver_timeout) after
//! the deadline, if the watcher comes back when it is told to. A shard whose guard is held by
//! another thread is looked at the next time.

use clockjack_sync::prim::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use clockjack_time::{Tick, TickSpan};

use super::{Scheduler, SchedulerShard};
use crate::Warning;

/// What watchers have seen of a shard. Relaxed all of it: what is decided by it is only told.
#[derive(Debug)]
pub(crate) struct StallDetector {
    /// The low bits of the tick at which the wheel stood, plus one.
    stopped_at: AtomicU32,
    /// The low bits of the tick at which it was first seen there.
    since: AtomicU32,
    is_reported: AtomicBool,
}

impl StallDetector {
    pub(super) fn new() -> Self {
        let never = || AtomicU32::new(0);
        // As if it was told: nothing has been seen.
        Self { stopped_at: never(), since: never(), is_reported: AtomicBool::new(true) }
    }

    /// A shard wants a turn now, and its wheel stands still. When to look again, and for how long
    /// that is so, if that is news.
    fn note(&self, stopped_at: Tick, now: Tick, timeout: TickSpan) -> (TickSpan, Option<TickSpan>) {
        let (place, at) = (low(stopped_at).wrapping_add(1), low(now));
        if self.stopped_at.load(Relaxed) != place {
            self.since.store(at, Relaxed);
            self.stopped_at.store(place, Relaxed);
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
    /// Looks whether turns are taken, for a thread of the host that is not the one that takes them;
    /// a driver that is silent is told as a [`Warning::DriverSilent`], once for each timeout, and
    /// its runner is called. Says when to look again; `None` if nothing is scheduled, or the
    /// scheduler is closed.
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
            let (look, silent) = check_shard(shard, now, timeout);
            next = look.into_iter().chain(next).min();
            if let Some(ticks) = silent {
                let silent_for = resolution.duration(ticks);
                inner.shared.warn(Warning::DriverSilent { silent_for });
                inner.shared.host.wake_poller(index);
            }
        }
        next
    }
}

/// When to look again, and for how long nobody came, if that is news.
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
    let wanted =
        if locked.table.n_due() > 0 { Some(stopped_at) } else { locked.wheel.next_deadline() };
    drop(guard);
    shard.flush();
    let Some(wanted) = wanted else { return (None, None) };
    if wanted > now {
        return (Some(wanted.saturating_add(timeout)), None);
    }
    let (rest, silent) = shard.stall_detector.note(stopped_at, now, timeout);
    (Some(now.saturating_add(rest)), silent)
}
