//! tokio's interval, on a worker of its multi-threaded runtime.
//!
//! Its timers tick in milliseconds since the runtime was created, and a deadline between two ticks
//! is rounded up to the later one. So the interval is aligned to the instant just before the
//! runtime was created: the remaining rounding error is the time from there until the runtime reads
//! its clock.

use core::time::Duration;
use std::time::Instant;

use tokio::runtime::Builder;
use tokio::time::interval_at;

use super::subject::{PERIOD, Sleeper};
use crate::failure::Failure;
use crate::report::{Facts, Standing};

/// Two workers, as in the suite `executor`.
const N_WORKERS: usize = 2;

/// Periods between the start and the first due time, for the start of the runtime.
const N_LEAD: u32 = 20;

pub(crate) const TIME_ONLY: Sleeper = Sleeper {
    facts: Facts {
        name: NAME,
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "interval in multi_thread without I/O, aligned to its tick",
    },
    run: |n_ticks| run(n_ticks, Builder::enable_time),
};

pub(crate) const WITH_IO: Sleeper = Sleeper {
    facts: Facts {
        name: "tokio-io",
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "the same with I/O, whose poll waits in whole milliseconds",
    },
    run: |n_ticks| run(n_ticks, Builder::enable_all),
};

pub(crate) const NAME: &str = "tokio";

fn run(n_ticks: u32, enable: fn(&mut Builder) -> &mut Builder) -> Result<Vec<Duration>, Failure> {
    let refused = |source| Failure::start(NAME, source);
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(N_WORKERS);
    enable(&mut builder);
    let epoch = Instant::now();
    let runtime = builder.build().map_err(refused)?;
    let task = async move {
        let mut late = Vec::with_capacity(n_ticks as usize);
        let mut interval = interval_at((epoch + PERIOD * N_LEAD).into(), PERIOD);
        for _ in 0..n_ticks {
            let due = interval.tick().await.into_std();
            late.push(due.elapsed());
        }
        late
    };
    let ticked = runtime.block_on(runtime.spawn(task));
    Ok(ticked.expect("the task only ticks and is never cancelled"))
}
