//! A period without drift, a sleep, a timer that is cancelled, a task that is.
//!
//! `cargo run -p clockjack-rt --example pool_timers`
#![expect(clippy::print_stdout, reason = "an example that prints its result")]

use core::{error::Error, task::Waker, time::Duration};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{Commands, TimerError},
    interval, sleep,
};

const PERIOD: Duration = Duration::from_millis(10);
const HOUR: Duration = Duration::from_secs(3600);

/// Each due time is a multiple of the period behind the first, however late the last one was told.
async fn beat() -> Result<u64, TimerError> {
    let mut every = interval(PERIOD);
    let first = every.due();
    let mut periods = 0;
    while periods < 5 {
        let tick = every.tick().await?;
        periods = (tick.due.get() - first.get()) / 10 + 1;
        println!("period {periods}, {} left out", tick.missed);
    }
    Ok(periods)
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    assert!(pool.block_on(pool.spawn_future(beat()))?? >= 5);

    // Never early: at least five milliseconds of the pool's own clock.
    let clock = pool.clock();
    let begun = clock.nanos_now();
    pool.block_on(async { sleep(Duration::from_millis(5)).await })?;
    let slept = Duration::from_nanos(clock.nanos_now() - begun);
    println!("slept {slept:?}");
    assert!(slept >= Duration::from_millis(5));

    // One cancel wins; after that the waker is never called.
    let mut timer = pool.handle().timer();
    timer.arm(HOUR, Waker::noop().clone())?;
    assert!(timer.cancel() && !timer.cancel());

    // A task that sleeps is dropped where it waits, and its timer with it.
    let nap = pool.spawn_future(sleep(HOUR));
    nap.cancel();
    let exit = pool.block_on(nap).err().ok_or("an hour has passed")?;
    println!("{exit}");
    assert!(exit.is_cancelled());
    assert!(pool.shutdown(Duration::from_secs(10)).is_clean());
    Ok(())
}
