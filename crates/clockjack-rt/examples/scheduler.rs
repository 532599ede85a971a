//! Jobs on a pool: once, at a fixed rate, with a fixed delay, and what is left at the close.
#![expect(clippy::print_stdout, reason = "an example that prints what it does")]

use core::{error::Error, time::Duration};
use std::sync::mpsc;

use clockjack_rt::{
    BLOCKING_DISPATCHER, PoolConfig, WorkerPool,
    exec::Commands,
    sched::{DispatcherId, TaskRunPriority},
};

const ANY: DispatcherId = DispatcherId::DEFAULT;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let pool = WorkerPool::new(PoolConfig::DEFAULT, Commands::new())?;
    let (s, ms) = (pool.scheduler(), Duration::from_millis);
    let (sender, receiver) = mpsc::channel();

    let once = s.schedule_once_fn(ms(300), ANY, |_| println!("never"))?;
    assert!(once.cancel() && once.is_cancelled() && !once.cancel());

    let beat = sender.clone();
    s.schedule_at_fixed_rate_fn(Duration::ZERO, ms(25), ANY, move |fire| {
        println!("{:?} late, {} missed", fire.late(), fire.batch().missed_runs);
        beat.send("beat")
    })?;
    // Waits, so it runs where nobody else does; and it is cancelled with its guard.
    let poll = s.schedule_with_fixed_delay_fn(ms(10), ms(20), BLOCKING_DISPATCHER, move |_| {
        std::thread::sleep(ms(5));
        sender.send("poll")
    })?;
    let guard = poll.cancel_on_drop();
    s.schedule_once_fn(ms(10), ANY, |_| Err("ends the job, reported once"))?;
    s.schedule_once_fn(ms(3_600_000), ANY, |_| println!("at the close"))?.run_on_close();
    s.register_on_close(|| Ok(()), TaskRunPriority::User)?;

    pool.block_on(s.delays().delay(ms(60)))?;
    // However long a loaded machine takes to the first of each.
    assert!(
        receiver.iter().any(|said| said == "beat") && receiver.iter().any(|said| said == "poll")
    );
    drop(guard);

    let report = pool.shutdown(Duration::from_secs(10)).scheduler.expect("it was used");
    assert_eq!((report.accepted, report.executed + report.cancelled), (6, 6));
    assert_eq!((report.run_on_close, report.close_tasks.succeeded), (1, 1));
    Ok(())
}
