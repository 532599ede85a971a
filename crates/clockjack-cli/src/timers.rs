//! `clockjack timers`: a wheel full of timers, and virtual time that passes step by step.
//!
//! Time is a [`ManualClock`], so the run depends on the [`Plan`] alone. A stopwatch measures
//! real time, but only while the wheel works: numbers are drawn before, fires are checked after,
//! a chunk at a time. What it shows is therefore the wheel's own cost and that of a loop around it.

mod check;
mod report;
mod tally;

use core::time::Duration;
use std::time::Instant;

use clockjack_time::{
    GrowingWheel, ManualClock, MonotonicClock as _, Resolution, Tick, TickSpan, TimerId,
    WheelConfig,
};

pub(crate) use self::check::{Fire, Violation};
use self::{
    check::Checker,
    report::{Report, Timing},
    tally::Tally,
};
use crate::{
    failure::Failure,
    progress::Progress,
    rng::{Choice, Rng, shuffle},
};

/// Operations between two readings of the stopwatch: their results fit into the second-level cache,
/// and the cost of the readings is negligible in comparison.
const CHUNK: usize = 8192;
/// Steps between two looks at the stopwatch, for times in which nothing fires.
const STEPS_PER_CHUNK: u64 = 1 << 20;

/// What is to be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many timers.
    pub(crate) count: u32,
    /// Deadlines are spread evenly from 1 to this many milliseconds.
    pub(crate) horizon_ms: u32,
    /// How many of a hundred are cancelled before time passes.
    pub(crate) cancel_percent: u8,
    /// By how much time moves at once.
    pub(crate) step_ms: u32,
    /// Decides deadlines, and who is cancelled in which order.
    pub(crate) seed: u64,
}

impl Plan {
    /// A million timers in a minute, in steps of a tick.
    pub(crate) const DEFAULT: Self =
        Self { count: 1_000_000, horizon_ms: 60_000, cancel_percent: 10, step_ms: 1, seed: 1 };
    /// With the books of the checks two to three gigabytes, the more the more are cancelled.
    pub(crate) const COUNT_MAX: u32 = 50_000_000;
    /// A week: 600 times the wheel's range, and seconds of empty steps.
    pub(crate) const HORIZON_MS_MAX: u32 = 7 * 24 * 3_600_000;
    /// All of them.
    pub(crate) const CANCEL_PERCENT_MAX: u8 = 100;

    /// How many timers are cancelled, rounded down.
    fn n_cancels(&self) -> u32 {
        let n_cancels = u64::from(self.count) * u64::from(self.cancel_percent) / 100;
        u32::try_from(n_cancels).expect("at most a hundred percent of a u32")
    }

    /// How many timers are to fire.
    fn n_fires(&self) -> u32 {
        self.count - self.n_cancels()
    }
}

/// Runs a plan, checking everything that fires.
pub(crate) fn simulate(plan: Plan, progress: Progress<'_>) -> Result<Report, Failure> {
    let started = Instant::now();
    let mut rng = Rng::new(plan.seed);
    let deadlines: Vec<u32> = (0..plan.count).map(|_| 1 + rng.below(plan.horizon_ms)).collect();
    let capacity = plan.count as usize;
    let config = WheelConfig { capacity, overflow_capacity: capacity, ..WheelConfig::DEFAULT };
    let mut simulation = Simulation {
        plan,
        wheel: GrowingWheel::new(config),
        clock: ManualClock::new(Resolution::MILLI),
        checker: Checker::new(deadlines, plan.step_ms),
        tally: Tally::new(),
        timing: Timing::default(),
        n_steps: 0,
        progress,
    };
    let doomed = simulation.arm(&mut rng)?;
    simulation.cancel(&doomed)?;
    simulation.fire()?;
    simulation.finish(&doomed, started)
}

/// A timer that will be cancelled.
#[derive(Clone, Copy, Debug)]
struct Doomed {
    number: u32,
    id: TimerId,
}

struct Simulation<'w> {
    plan: Plan,
    /// The value of a timer is its number: how many were registered before it.
    wheel: GrowingWheel<u32>,
    clock: ManualClock,
    checker: Checker,
    tally: Tally,
    timing: Timing,
    n_steps: u64,
    progress: Progress<'w>,
}

impl Simulation<'_> {
    /// Arms all timers. Gives those that are to be cancelled, in random order.
    fn arm(&mut self, rng: &mut Rng) -> Result<Vec<Doomed>, Failure> {
        let Plan { count, .. } = self.plan;
        let mut choice = Choice { wanted: self.plan.n_cancels(), left: count };
        let mut doomed = Vec::with_capacity(choice.wanted as usize);
        let mut ids: Vec<TimerId> = Vec::with_capacity(CHUNK);
        let mut number = 0_u32;
        for deadlines in self.checker.deadlines().chunks(CHUNK) {
            self.progress.show("arming", u64::from(number), u64::from(count));
            let first = number;
            let started = Instant::now();
            for &deadline in deadlines {
                let inserted = self.wheel.insert(Tick::new(u64::from(deadline)), number);
                ids.push(inserted.map_err(|_| Failure::refused(number, self.wheel.capacity()))?);
                number += 1;
            }
            self.timing.arm += started.elapsed();
            let chosen = (first..).zip(ids.drain(..)).filter(|_| choice.takes_next(rng));
            doomed.extend(chosen.map(|(number, id)| Doomed { number, id }));
        }
        shuffle(rng, &mut doomed);
        Ok(doomed)
    }

    fn cancel(&mut self, doomed: &[Doomed]) -> Result<(), Failure> {
        let mut values: Vec<Option<u32>> = Vec::with_capacity(CHUNK);
        for chunk in doomed.chunks(CHUNK) {
            let done = u64::from(self.checker.n_cancelled());
            self.progress.show("cancelling", done, doomed.len() as u64);
            let started = Instant::now();
            values.extend(chunk.iter().map(|timer| self.wheel.cancel(timer.id)));
            self.timing.cancel += started.elapsed();
            for (timer, value) in chunk.iter().zip(values.drain(..)) {
                self.checker.cancelled(timer.number, value)?;
            }
        }
        Ok(())
    }

    /// Lets time pass until the last deadline.
    fn fire(&mut self) -> Result<(), Failure> {
        let mut fires = Vec::with_capacity(2 * CHUNK);
        let mut is_step_done = true;
        loop {
            let (fired, n_fires) = (self.checker.n_fired(), self.plan.n_fires());
            self.progress.show("firing", u64::from(fired), u64::from(n_fires));
            let started = Instant::now();
            let is_over = self.fire_chunk(&mut fires, &mut is_step_done);
            self.timing.fire += started.elapsed();
            for fire in fires.drain(..) {
                self.checker.fired(fire)?;
                self.tally.fired(fire);
            }
            if is_over {
                return Ok(());
            }
        }
    }

    /// Lets time pass for a while; true when it is over. `is_step_done` says whether the wheel has
    /// reached the clock's time: a step with many timers is more than one chunk.
    fn fire_chunk(&mut self, fires: &mut Vec<Fire>, is_step_done: &mut bool) -> bool {
        let step = TickSpan::new(u64::from(self.plan.step_ms));
        let end = Tick::new(u64::from(self.plan.horizon_ms));
        for _ in 0..STEPS_PER_CHUNK {
            if *is_step_done {
                if self.clock.now().tick() >= end {
                    return true;
                }
                self.clock.advance_ticks(step);
                self.n_steps += 1;
            }
            let mut due = self.wheel.advance(self.clock.now().tick(), CHUNK);
            fires.extend(due.by_ref().map(|timer| Fire {
                number: timer.value,
                deadline: timer.deadline,
                now: timer.now,
            }));
            *is_step_done = !due.more();
            if fires.len() >= CHUNK {
                break;
            }
        }
        false
    }

    fn finish(mut self, doomed: &[Doomed], started: Instant) -> Result<Report, Failure> {
        for timer in doomed {
            self.checker.cancelled_again(timer.number, self.wheel.cancel(timer.id))?;
        }
        self.checker.finish(self.wheel.len())?;
        // The line goes before the time is taken, and before anything is printed.
        drop(self.progress);
        self.timing.total = started.elapsed();
        Ok(Report {
            plan: self.plan,
            armed: self.plan.count,
            cancelled: self.checker.n_cancelled(),
            fired: self.checker.n_fired(),
            virtual_time: Duration::from_millis(self.clock.now().ticks),
            n_steps: self.n_steps,
            tally: self.tally.finish(),
            timing: self.timing,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn simulated(plan: Plan) -> Report {
        simulate(plan, Progress::silent()).expect("every check holds")
    }

    const SMALL: Plan = Plan { count: 20_000, horizon_ms: 3_000, ..Plan::DEFAULT };

    #[test]
    fn the_plan_decides_how_many_are_cancelled_exactly() {
        for (cancel_percent, cancelled) in [(0, 0), (1, 200), (33, 6_600), (100, 20_000)] {
            let report = simulated(Plan { cancel_percent, ..SMALL });
            assert_eq!(report.cancelled, cancelled);
            assert_eq!(report.fired, 20_000 - cancelled);
        }
    }

    #[test]
    fn the_order_of_firing_does_not_depend_on_the_steps_of_time() {
        let order = |step_ms| simulated(Plan { step_ms, ..SMALL }).tally.order;
        assert_eq!(order(1), order(7));
        assert_eq!(order(1), order(10_000), "one step beyond everything, in several chunks");
    }

    #[test]
    fn the_order_of_firing_is_that_of_a_sorted_list() {
        for horizon_ms in [1, 100, 3_000, 5_000_000] {
            let plan = Plan { horizon_ms, cancel_percent: 0, step_ms: 50, ..SMALL };
            let mut rng = Rng::new(plan.seed);
            let mut timers: Vec<(u64, u32)> =
                (0..plan.count).map(|n| (u64::from(1 + rng.below(horizon_ms)), n)).collect();
            timers.sort_unstable();
            let mut expected = Tally::new();
            for (deadline, number) in timers {
                let now = Tick::new(deadline.next_multiple_of(50));
                expected.fired(Fire { number, deadline: Tick::new(deadline), now });
            }
            let (found, expected) = (simulated(plan).tally, expected.finish());
            assert_eq!(found.order, expected.order, "horizon {horizon_ms}");
            assert_eq!(found.batch, expected.batch, "horizon {horizon_ms}");
            assert_eq!(found.late_ticks, expected.late_ticks, "horizon {horizon_ms}");
        }
    }

    #[test]
    fn lateness_is_below_the_step_and_reaches_its_end() {
        for step_ms in [1, 2, 7, 100] {
            let lateness = simulated(Plan { step_ms, ..SMALL }).tally.late_ticks;
            assert_eq!(lateness.min(), Some(0));
            assert_eq!(lateness.max(), Some(u64::from(step_ms) - 1));
        }
    }

    #[test]
    fn time_stands_at_the_first_step_that_is_not_before_the_horizon() {
        let report = simulated(Plan { step_ms: 7, ..SMALL });
        assert_eq!(report.virtual_time, Duration::from_millis(3_003));
        assert_eq!(report.n_steps, 429);
        assert_eq!(simulated(Plan { step_ms: u32::MAX, ..SMALL }).n_steps, 1);
    }

    #[test]
    fn timers_beyond_the_range_of_the_wheel_keep_the_same_laws() {
        let range = u32::try_from(GrowingWheel::<u32>::RANGE).expect("2^20");
        let report = simulated(Plan { horizon_ms: 3 * range, step_ms: 50, ..SMALL });
        assert_eq!(report.fired, 18_000);
    }

    #[test]
    fn no_timer_at_all_is_a_run_too() {
        let report = simulated(Plan { count: 0, ..SMALL });
        assert_eq!((report.armed, report.fired, report.cancelled), (0, 0, 0));
        assert!(report.tally.late_ticks.is_empty());
    }
}
