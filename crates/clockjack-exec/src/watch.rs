//! What the metronome does in one look; the thread that looks is the host's.
//!
//! The [protocol](crate::metronome) says when it sleeps and who ends its sleep. Here is what it
//! looks for: shards that nobody keeps, shards that are overdue because their worker is busy,
//! workers that have put something first and do not come to it, workers that are in one step for
//! long.

use alloc::{vec, vec::Vec};

use clockjack_time::Tick;

use crate::{engine::Engine, metronome, pid::Pid};

/// For how long the metronome waits for more, if nothing is under way but something was, before it
/// sleeps until it is called.
const CALM_NANOS: u64 = 100_000_000;

/// A worker that has been in one step for long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StuckWorker {
    /// The number of its seat.
    pub worker: usize,
    /// The process that it steps, if that is still alive.
    pub pid: Option<Pid>,
    /// For how long, at least.
    pub for_nanos: u64,
}

/// The memory of the metronome from one look to the next.
#[doc(hidden)]
#[derive(Debug)]
pub struct Watch {
    seats: Vec<Seen>,
    quiet_looks: u32,
    /// After which time in one step a worker is reported.
    report_after_nanos: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    turn: u32,
    step: Option<u32>,
    since_nanos: u64,
    is_reported: bool,
}

impl Watch {
    /// For an engine with this many seats.
    #[must_use]
    pub fn new(seats: usize, report_after_nanos: u64) -> Self {
        Self { seats: vec![Seen::default(); seats], quiet_looks: 0, report_after_nanos }
    }

    /// Looks once, and says until when to sleep; `None`: until unparked. `report` is told of stuck
    /// workers, each step once.
    #[must_use]
    pub fn look(&mut self, engine: &Engine, mut report: impl FnMut(StuckWorker)) -> Option<Tick> {
        let was_claimed = engine.metronome.awake();
        let nanos = engine.host().nanos();
        let now = engine.host().tick_of(nanos);
        self.quiet_looks = engine.metronome.count_look(self.quiet_looks);
        let report_ticks = engine.host().tick_of(self.report_after_nanos).get();
        engine.metronome.set_awake_max(report_ticks.saturating_add(2));
        adopt(engine);
        let is_active = self.look_at_seats(engine, nanos, &mut report);
        let grace = engine.metronome.grace();
        let mut plan = metronome::plan(now.get(), grace, wakes(engine));
        if plan.n_overdue > 0 {
            rescue(engine, now, grace);
        }
        let has_idle_work = || engine.seats.iter().any(|seat| seat.has_lifo());
        let is_quiet = engine.metronome.stop_watch_if_quiet(self.quiet_looks, has_idle_work);
        // Rule 10. When a step that is under way is due to be reported, at the latest.
        let report_at = self.report_at(engine, nanos).max(now.get().saturating_add(grace));
        if was_claimed || !is_quiet && engine.metronome.watching() {
            plan = plan.linger(now.get(), grace);
        } else if self.seats.iter().any(|seen| seen.step.is_some()) {
            plan.sleep_until = plan.sleep_until.min(report_at);
        } else if is_active {
            // Whoever was at work may be again in a moment: until then nobody has to call.
            let calm = engine.host().tick_of(CALM_NANOS).get().max(grace);
            plan.sleep_until = plan.sleep_until.min(report_at).min(now.get().saturating_add(calm));
        }
        let soonest = now.get().saturating_add(grace);
        let until = engine.metronome.settle(plan.sleep_until, soonest, || {
            let awake = engine.has_awake().then(|| report_at.saturating_sub(grace));
            wakes(engine).flatten().chain(awake).min()
        });
        (until != metronome::NEVER).then_some(Tick::new(until))
    }

    /// The tick in which the first of the steps under way has taken too long, or would have if it
    /// had just begun.
    fn report_at(&self, engine: &Engine, nanos: u64) -> u64 {
        let under_way = self.seats.iter().filter(|seen| seen.step.is_some() && !seen.is_reported);
        let since = under_way.map(|seen| seen.since_nanos).min().unwrap_or(nanos);
        let at = engine.host().tick_of(since.saturating_add(self.report_after_nanos));
        at.get().saturating_add(1)
    }

    /// Says whether anything was stepped since the last look, or is.
    fn look_at_seats(
        &mut self,
        engine: &Engine,
        nanos: u64,
        report: &mut impl FnMut(StuckWorker),
    ) -> bool {
        let mut is_active = false;
        for (worker, (seat, seen)) in engine.seats.iter().zip(&mut self.seats).enumerate() {
            let (turn, step) = (seat.turn(), seat.step_under_way());
            is_active |= turn != seen.turn || step.is_some();
            if step.is_none() || step != seen.step {
                *seen = Seen { turn, step, since_nanos: nanos, is_reported: false };
                continue;
            }
            let Some(step) = step else { continue };
            let for_nanos = nanos.saturating_sub(seen.since_nanos);
            if seat.has_lifo() {
                // Two looks in the same step are a grace apart.
                seat.mark_stuck(step);
                engine.wake_one();
            } else if seat.has_ring() {
                engine.wake_one();
            }
            if for_nanos >= self.report_after_nanos && !seen.is_reported {
                seen.is_reported = true;
                let pid = engine.pid_at(seat.current());
                report(StuckWorker { worker, pid, for_nanos });
            }
        }
        is_active
    }
}

fn wakes(engine: &Engine) -> impl Iterator<Item = Option<u64>> {
    engine.shards.wakes().map(|(_, _, wake)| wake.map(Tick::get))
}

/// Shards of workers that left go to the active worker that has the least garbage.
fn adopt(engine: &Engine) {
    if !engine.shards.has_orphans() {
        return;
    }
    let least = || {
        let active = (0..engine.seats.len()).filter(|seat| engine.seats[*seat].is_taken());
        active.min_by_key(|seat| engine.shards.garbage(*seat))
    };
    engine.shards.adopt(least, |seat, _shard| {
        engine.seats[seat].ask_poll();
        engine.wake_seat(seat);
    });
}

/// Somebody is to see to the shards that are overdue: their keeper, or who is free.
fn rescue(engine: &Engine, now: Tick, grace: u64) {
    for (_, keeper, wake) in engine.shards.wakes() {
        if wake.is_some_and(|wake| wake.get().saturating_add(grace) <= now.get()) {
            if let Some(keeper) = keeper {
                engine.seats[keeper].ask_poll();
                engine.wake_seat(keeper);
            }
            engine.wake_one();
        }
    }
}
