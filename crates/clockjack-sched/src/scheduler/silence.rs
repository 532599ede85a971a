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
//!    silence if the driver was given long enough in between. Two that look at the same time may
//!    tell it twice.
//! 3. It tells once for each place of the wheel, so once for each silence, and calls the runner.
//!
//! *How soon*: within two spans of [`driver_silence`](crate::SchedulerConfig::driver_silence) after
//! the deadline, if the watcher comes back when it is told to. A shard whose lease is held by
//! another thread is looked at the next time.

use clockjack_sync::prim::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use clockjack_time::{Tick, TickSpan};

use super::{Scheduler, Station};
use crate::Warning;

/// What watchers have seen of a shard. Relaxed all of it: what is decided by it is only told.
#[derive(Debug)]
pub(crate) struct Silence {
    /// The low bits of the tick at which the wheel stood, plus one.
    stands_at: AtomicU32,
    /// The low bits of the tick at which it was first seen there.
    since: AtomicU32,
    is_told: AtomicBool,
}

impl Silence {
    pub(super) fn new() -> Self {
        let never = || AtomicU32::new(0);
        // As if it was told: nothing has been seen.
        Self { stands_at: never(), since: never(), is_told: AtomicBool::new(true) }
    }

    /// A shard wants a turn now, and its wheel stands still. When to look again, and for how long
    /// that is so, if that is news.
    fn note(&self, stands_at: Tick, now: Tick, silence: TickSpan) -> (TickSpan, Option<TickSpan>) {
        let (place, at) = (low(stands_at).wrapping_add(1), low(now));
        if self.stands_at.load(Relaxed) != place {
            self.since.store(at, Relaxed);
            self.stands_at.store(place, Relaxed);
            self.is_told.store(false, Relaxed);
            return (silence, None);
        }
        if self.is_told.load(Relaxed) {
            return (silence, None);
        }
        let passed = u64::from(at.wrapping_sub(self.since.load(Relaxed)));
        if passed < silence.get() {
            return (TickSpan::new(silence.get() - passed), None);
        }
        self.is_told.store(true, Relaxed);
        (silence, Some(TickSpan::new(passed)))
    }
}

fn low(tick: Tick) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is compared")]
    let low = tick.get() as u32;
    low
}

impl Scheduler {
    /// Looks whether turns are taken, for a thread of the host that is not the one that takes them;
    /// a driver that is silent is told as a [`Warning::DriverSilent`], once for each silence, and
    /// its runner is called. Says when to look again; `None` if nothing is scheduled, or the
    /// scheduler is closed.
    pub fn check_driver(&self) -> Option<Tick> {
        let inner = self.inner();
        if self.is_closed() {
            return None;
        }
        let resolution = inner.common.resolution;
        let silence = resolution.ticks_ceil(inner.driver_silence);
        let silence = silence.unwrap_or(TickSpan::new(u64::MAX)).max(TickSpan::ONE);
        let now = self.now().elapsed_tick(resolution);
        let mut next: Option<Tick> = None;
        for (index, station) in inner.stations.iter().enumerate() {
            let (look, silent) = look_at(station, now, silence);
            next = look.into_iter().chain(next).min();
            if let Some(ticks) = silent {
                let silent_for = resolution.duration(ticks);
                inner.common.warn(Warning::DriverSilent { silent_for });
                inner.common.host.call_runner(index);
            }
        }
        next
    }
}

/// When to look again, and for how long nobody came, if that is news.
fn look_at(station: &Station, now: Tick, silence: TickSpan) -> (Option<Tick>, Option<TickSpan>) {
    let Some(mut lease) = station.jobs.lease() else {
        return (Some(now.saturating_add(silence)), None);
    };
    let core = lease.core();
    let stands_at = core.wheel.elapsed();
    let wanted = if core.table.n_due() > 0 { Some(stands_at) } else { core.wheel.next_deadline() };
    drop(lease);
    station.settle();
    let Some(wanted) = wanted else { return (None, None) };
    if wanted > now {
        return (Some(wanted.saturating_add(silence)), None);
    }
    let (rest, silent) = station.silence.note(stands_at, now, silence);
    (Some(now.saturating_add(rest)), silent)
}
