//! `clockjack demo timers`: a timer wheel, while virtual time advances step by step.
//!
//! The stopwatch runs only while the wheel works: deadlines are drawn before, and every timer that
//! fired is checked afterwards.

use core::{fmt, time::Duration};
use std::time::Instant;

use clockjack_sched::{
    BatchMode, ExecutionBatch, Repeat,
    properties::{JobOracle, Run},
};
use clockjack_time::{GrowingWheel, Resolution, Tick, TimerId, WheelConfig};

use super::Checked;
use crate::{
    failure::Failure,
    rng::{Choice, Rng},
};

/// What is simulated, in ticks of a millisecond. One timer in ten is cancelled before time starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) count: u32,
    /// Deadlines are spread evenly from 1 to this tick.
    pub(crate) horizon: u32,
    /// How far time advances at once.
    pub(crate) step: u32,
    pub(crate) seed: u64,
}

impl Plan {
    /// A million timers in a minute.
    pub(crate) const DEFAULT: Self = Self { count: 1_000_000, horizon: 60_000, step: 10, seed: 1 };
    /// About two gigabytes, most of it for the checks.
    pub(crate) const COUNT_MAX: u32 = 10_000_000;
}

/// The counts of a run in which every check held.
#[derive(Debug)]
pub(crate) struct Report {
    plan: Plan,
    n_cancelled: usize,
    n_fired: usize,
    virtual_ms: u64,
    /// The wall time of arming, cancelling and firing.
    wall: [Duration; 3],
    checked: Checked,
}

/// A timer that fired.
struct Fire {
    number: u32,
    due: Tick,
    now: Tick,
}

/// Runs the demo.
pub(crate) fn run(plan: Plan) -> Result<Report, Failure> {
    let mut rng = Rng::new(plan.seed);
    let deadlines: Vec<Tick> =
        (0..plan.count).map(|_| Tick::new(u64::from(1 + rng.below(plan.horizon)))).collect();
    let mut choice = Choice { wanted: plan.count / 10, left: plan.count };
    let is_cancelled: Vec<bool> = deadlines.iter().map(|_| choice.takes_next(&mut rng)).collect();
    let capacity = deadlines.len();
    let config = WheelConfig { capacity, overflow_capacity: capacity, ..WheelConfig::DEFAULT };
    let mut wheel = GrowingWheel::<u32>::new(config);

    let started = Instant::now();
    let ids: Option<Vec<TimerId>> =
        (0..).zip(&deadlines).map(|(number, due)| wheel.insert(*due, number).ok()).collect();
    let armed = started.elapsed();
    let ids = ids.ok_or_else(|| Failure::check("the wheel has refused a timer"))?;
    let doomed: Vec<TimerId> =
        ids.iter().zip(&is_cancelled).filter(|(_, is)| **is).map(|(id, _)| *id).collect();
    let started = Instant::now();
    let values: Vec<Option<u32>> = doomed.iter().map(|id| wheel.cancel(*id)).collect();
    let cancelled = started.elapsed();
    let started = Instant::now();
    let (fires, virtual_ms) = fire_all(&mut wheel, plan);
    let fired = started.elapsed();

    let mut checked = Checked::new(JobOracle::new(Resolution::MILLI));
    for due in &deadlines {
        let number = checked.oracle.offer(Repeat::Once, *due);
        checked.oracle.accept(number);
    }
    let numbers = (0_u32..).zip(&is_cancelled).filter(|(_, is)| **is).map(|(number, _)| number);
    for (number, value) in numbers.zip(values) {
        checked.oracle.cancel(number as usize, value == Some(number))?;
    }
    check_fires(&mut checked, &fires, plan.step)?;
    let is_refused = doomed.iter().all(|id| wheel.cancel(*id).is_none());
    if checked.oracle.n_live() > 0 || !wheel.is_empty() || !is_refused {
        return Err(Failure::check("a timer is left in the wheel"));
    }
    Ok(Report {
        plan,
        n_cancelled: doomed.len(),
        n_fired: fires.len(),
        virtual_ms,
        wall: [armed, cancelled, fired],
        checked,
    })
}

/// Advances time until the last deadline. Returns the timers that fired, and the time.
fn fire_all(wheel: &mut GrowingWheel<u32>, plan: Plan) -> (Vec<Fire>, u64) {
    let mut fires = Vec::with_capacity(wheel.len());
    let mut now = 0;
    while now < u64::from(plan.horizon) {
        now += u64::from(plan.step);
        let due = wheel.advance(Tick::new(now), usize::MAX);
        fires.extend(due.map(|timer| Fire {
            number: timer.value,
            due: timer.deadline,
            now: timer.now,
        }));
    }
    (fires, now)
}

fn check_fires(checked: &mut Checked, fires: &[Fire], step: u32) -> Result<(), Failure> {
    let batch = ExecutionBatch::single(BatchMode::OneShot);
    for fire in fires {
        // What was due by the last step has fired in it.
        checked.settled(fire.now.get().saturating_sub(u64::from(step)))?;
        checked.run(fire.number as usize, Run { due: fire.due, now: fire.now, batch })?;
    }
    Ok(())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { count, step, seed, .. } = self.plan;
        writeln!(f, "{count} timers in {} ms of virtual time, seed {seed}\n", self.virtual_ms)?;
        let rows = [("armed", count as usize), ("cancelled", self.n_cancelled)];
        let rows = rows.into_iter().chain([("fired", self.n_fired)]);
        for ((name, n), wall) in rows.zip(self.wall) {
            let each = wall.as_secs_f64() * 1e9 / f64::max(n as f64, 1.0);
            let ms = wall.as_secs_f64() * 1e3;
            writeln!(f, "{name:<10} {n:>9}   {ms:>9.1} ms   {each:>7.1} ns each")?;
        }
        let late = self.checked.late_max;
        writeln!(f, "lateness   none early, at most {late} ms late: time advances by {step} ms")?;
        writeln!(f, "order      {:#018x}, the same on every machine", self.checked.order)?;
        writeln!(f, "checked    against a sorted list: equal{}", crate::slow_build_note())
    }
}

#[cfg(test)]
mod tests {
    use clockjack_sched::properties::Property;

    use super::*;
    use crate::rng::mix;

    const SMALL: Plan = Plan { count: 20_000, horizon: 3_000, step: 1, seed: 1 };

    #[track_caller]
    fn passed(plan: Plan) -> Report {
        run(plan).expect("every check holds")
    }

    #[test]
    fn the_order_of_firing_is_that_of_a_sorted_list() {
        for horizon in [1, 100, 3_000, 5_000_000] {
            let plan = Plan { horizon, step: 50, ..SMALL };
            let mut rng = Rng::new(plan.seed);
            let deadlines: Vec<u64> =
                (0..plan.count).map(|_| u64::from(1 + rng.below(horizon))).collect();
            let mut choice = Choice { wanted: plan.count / 10, left: plan.count };
            let mut timers: Vec<(u64, u64)> = deadlines.into_iter().zip(0..).collect();
            timers.retain(|_| !choice.takes_next(&mut rng));
            timers.sort_unstable();
            let digest = |order, (due, number)| mix(order ^ due).wrapping_add(number);
            let expected = timers.into_iter().fold(0, digest);
            assert_eq!(passed(plan).checked.order, expected, "horizon {horizon}");
        }
    }

    #[test]
    fn the_order_does_not_depend_on_the_steps_of_time_and_lateness_is_below_a_step() {
        let order = passed(SMALL).checked.order;
        for step in [2, 7, 100, 10_000] {
            let report = passed(Plan { step, ..SMALL });
            assert_eq!(report.checked.order, order);
            assert!(report.checked.late_max < u64::from(step));
            assert!(report.checked.late_max > 0);
        }
        assert_eq!(passed(SMALL).checked.late_max, 0);
    }

    #[test]
    fn no_timer_at_all_is_a_run_too() {
        let report = passed(Plan { count: 0, ..SMALL });
        assert_eq!((report.n_fired, report.n_cancelled), (0, 0));
    }

    #[test]
    fn a_wrong_fire_is_reported() {
        // Timer 0 is due at tick 5, and time advances by 4.
        let fire = |now| Fire { number: 0, due: Tick::new(5), now: Tick::new(now) };
        let found = |fires: &[Fire]| {
            let mut checked = Checked::new(JobOracle::new(Resolution::MILLI));
            let number = checked.oracle.offer(Repeat::Once, Tick::new(5));
            checked.oracle.accept(number);
            let failure = check_fires(&mut checked, fires, 4).err();
            failure.and_then(|failure| failure.property())
        };
        assert_eq!(found(&[fire(8)]), None);
        assert_eq!(found(&[fire(4)]), Some(Property::NeverEarly));
        assert_eq!(found(&[fire(12)]), Some(Property::NothingLost));
        assert_eq!(found(&[fire(8), fire(8)]), Some(Property::RunsOnce));
    }
}
