//! Clockjack's interval, on a worker of its pool.
//!
//! The timers of the pool tick in milliseconds since the pool was created and report the tick at
//! which they were due, so lateness is measured from that instant by the clock that the pool itself
//! uses. Our interval skips deadlines that have already passed, whereas tokio's catches up on them
//! one after the other. A skipped deadline counts here as late as the one that replaced it:
//! otherwise a long delay would be one sample for us and many samples for the others.

use core::time::Duration;
use std::io;

use clockjack_exec::Commands;
use clockjack_rt::{OsClock, OsInstant, PoolConfig, WorkerPool};
use clockjack_time::{Resolution, Tick};

use super::subject::{PERIOD, Sleeper};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

/// Two workers, as in the suite `executor`.
const N_WORKERS: usize = 2;

/// The tick of the pool, which is the period.
const RESOLUTION: Resolution = Resolution::MILLI;

/// No task is left when the pool is stopped, so this deadline is never reached.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) const SLEEPER: Sleeper = Sleeper {
    facts: Facts {
        name: NAME,
        package: Some("clockjack-rt"),
        standing: Standing::Ours,
        note: "interval in a pool with two workers, measured from its tick",
    },
    run,
};

pub(crate) const NAME: &str = "clockjack";

fn run(n_ticks: u32) -> Result<Vec<Duration>, Failure> {
    let workers = Some(N_WORKERS);
    let config = PoolConfig { workers, resolution: RESOLUTION, ..PoolConfig::DEFAULT };
    let refused = |source| Failure::start(NAME, io::Error::other(source));
    let pool = WorkerPool::new(config, Commands::new()).map_err(refused)?;
    let ticked = pool.block_on(pool.spawn_future(tick(pool.clock(), n_ticks)));
    let report = pool.shutdown(STOP_DEADLINE);
    assert!(report.stragglers.is_empty(), "the only task has ended");
    Ok(ticked.expect("the task only ticks and is never cancelled"))
}

async fn tick(clock: OsClock, n_ticks: u32) -> Vec<Duration> {
    let mut late = Vec::with_capacity(n_ticks as usize);
    let mut next = clock.deadline_after(PERIOD);
    let mut interval = clockjack_rt::interval(PERIOD);
    while late.len() < n_ticks as usize {
        let due = interval.tick().await.expect("the pool runs until this has ended").due;
        late.extend(late_by(&clock, next, due, OsInstant::now()));
        next = Tick::new(due.get() + 1);
    }
    late.truncate(n_ticks as usize);
    late
}

/// The lateness at `now` of all periods from `next` to `due`; the last one has just arrived. A
/// period is one tick.
fn late_by(
    clock: &OsClock,
    next: Tick,
    due: Tick,
    now: OsInstant,
) -> impl Iterator<Item = Duration> {
    let instant = clock.instant_of(due);
    assert!(next <= due, "{due:?} came after the one before {next:?}");
    assert!(instant <= now, "{due:?} came early: {instant:?} is after {now:?}");
    let ticks = (next.get()..=due.get()).map(Tick::new);
    ticks.map(move |tick| now.saturating_since(clock.instant_of(tick)))
}

#[cfg(test)]
mod tests {
    use super::{Duration, OsClock, OsInstant, PERIOD, RESOLUTION, Tick, late_by};

    fn check(next: u64, due: u64, now_us: u64, expected_us: &[u64]) {
        let clock = OsClock::anchored_at(OsInstant::from_nanos(0), RESOLUTION);
        let now = OsInstant::from_nanos(now_us * 1_000);
        let late: Vec<Duration> = late_by(&clock, Tick::new(next), Tick::new(due), now).collect();
        let expected: Vec<Duration> =
            expected_us.iter().map(|&us| Duration::from_micros(us)).collect();
        assert_eq!(late, expected, "{next}..={due} at {now_us} us");
    }

    #[test]
    fn a_period_that_was_left_out_counts_as_late_as_the_one_in_its_place() {
        check(5, 5, 5_040, &[40]);
        check(5, 5, 5_000, &[0]);
        check(5, 7, 7_040, &[2_040, 1_040, 40]);
    }

    #[test]
    #[should_panic(expected = "came early")]
    fn a_period_that_comes_early_is_refused() {
        check(5, 5, 4_999, &[]);
    }

    #[test]
    fn a_period_is_a_tick() {
        assert_eq!(Duration::from_nanos(u64::from(RESOLUTION.nanos().get())), PERIOD);
    }
}
