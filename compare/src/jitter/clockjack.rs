//! Clockjack's own interval, on a worker of its pool.
//!
//! Its timers tick in milliseconds since the pool was made, as tokio's do, and a deadline between
//! two ticks is put off to the later one. The interval is made at an arbitrary instant, so its due
//! times are the first ticks at or after a whole number of periods from there. Ticks are counted
//! from the instant just before the pool was made.

use core::time::Duration;
use std::io;
use std::time::Instant;

use clockjack_exec::Commands;
use clockjack_rt::{PoolConfig, WorkerPool};

use super::subject::{PERIOD, Role, Sleeper};
use crate::failure::Failure;

/// Two workers, as in the suite `executor`.
const N_WORKERS: usize = 2;

/// No task is left when the pool is stopped, so that this is never waited for.
const STOP_DEADLINE: Duration = Duration::from_secs(10);

pub(crate) const SLEEPER: Sleeper = Sleeper {
    name: NAME,
    package: Some("clockjack-rt"),
    role: Role::Ours,
    note: "interval in a pool with two workers, measured from its tick",
    run,
};

pub(crate) const NAME: &str = "clockjack";

fn run(n_ticks: u32) -> Result<Vec<Duration>, Failure> {
    let config = PoolConfig { workers: Some(N_WORKERS), ..PoolConfig::DEFAULT };
    let refused = |source| Failure::start(NAME, io::Error::other(source));
    let epoch = Instant::now();
    let pool = WorkerPool::new(config, Commands::new()).map_err(refused)?;
    let ticked = pool.block_on(pool.spawn(tick(epoch, n_ticks)));
    let report = pool.shutdown(STOP_DEADLINE);
    assert!(report.stragglers.is_empty(), "the only task has ended");
    Ok(ticked.expect("the task only ticks and nobody cancels it"))
}

async fn tick(epoch: Instant, n_ticks: u32) -> Vec<Duration> {
    let mut late = Vec::with_capacity(n_ticks as usize);
    let made = Instant::now();
    let mut interval = clockjack_rt::interval(PERIOD);
    interval.tick().await;
    // The first tick comes at once or after one period; either is a number of periods.
    let n_before = u32::from(made.elapsed() >= PERIOD / 2);
    for index in 1..=n_ticks {
        interval.tick().await;
        let now = Instant::now();
        let due = epoch + tick_at_or_after(made - epoch + PERIOD * (n_before + index));
        // Early only by the time between the epoch here and the pool's own.
        late.push(now.saturating_duration_since(due));
    }
    late
}

fn tick_at_or_after(since_epoch: Duration) -> Duration {
    let n_ticks = since_epoch.as_nanos().div_ceil(PERIOD.as_nanos());
    PERIOD * u32::try_from(n_ticks).expect("a run takes seconds")
}
