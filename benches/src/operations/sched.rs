//! Operations of `clockjack-sched`, on one thread with a clock that the operations advance.
//!
//! The clock is of the kind of a system clock, because the poll reads such a clock less often.
//! Every store has already contained as many jobs, so that the steady state is measured.

use core::{
    hint::black_box,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::sync::Arc;

use clockjack_sched::{Cancellable, DispatcherId, Scheduler, SchedulerConfig, SchedulerHost};
use clockjack_time::{ClockKind, Resolution, Tick, TimerInstant};

use crate::operation::{Operation, operation};

/// Iterations in a batch.
const N: u32 = 1000;
/// How many handlers one poll runs, as on a pool.
const POLL_BUDGET: usize = 64;
/// The delays are spread over so many milliseconds.
const SPREAD: u32 = 50;
const MILLI_NANOS: u64 = 1_000_000;

/// Every operation of the crate.
pub(crate) fn all() -> Vec<Operation> {
    vec![
        operation("sched/schedule_fire", N, || {
            let bench = Bench::start();
            bench.schedule_fire(N);
            move |n| bench.schedule_fire(n)
        }),
        operation("sched/schedule_cancel", N, || {
            let bench = Bench::start();
            let mut jobs = Vec::with_capacity(N as usize);
            bench.schedule_cancel(N, &mut jobs);
            move |n| bench.schedule_cancel(n, &mut jobs)
        }),
    ]
}

struct Bench {
    scheduler: Scheduler,
    nanos: Arc<AtomicU64>,
    fired: Arc<AtomicU64>,
}

impl Bench {
    fn start() -> Self {
        let nanos = Arc::new(AtomicU64::new(0));
        let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
        let scheduler = Scheduler::new(config, Host(Arc::clone(&nanos)));
        let scheduler = scheduler.expect("the default number of shards is valid");
        Self { scheduler, nanos, fired: Arc::default() }
    }

    /// Schedules a one-shot. Neighbours have different deadlines.
    fn schedule(&self, index: u32) -> Cancellable {
        let fired = Arc::clone(&self.fired);
        let delay = Duration::from_millis(u64::from(1 + index * 7 % SPREAD));
        let count = move |_: &_| _ = fired.fetch_add(1, Relaxed);
        let job = self.scheduler.schedule_once_fn(delay, DispatcherId::DEFAULT, count);
        job.expect("there is room")
    }

    fn schedule_fire(&self, n: u32) {
        let fired = self.fired.load(Relaxed);
        (0..n).for_each(|index| drop(self.schedule(index)));
        for _ in 0..SPREAD {
            self.nanos.fetch_add(MILLI_NANOS, Relaxed);
            while self.scheduler.poll_shard(0, 0, POLL_BUDGET).is_more {}
        }
        assert_eq!(self.fired.load(Relaxed) - fired, u64::from(n), "every job has fired");
    }

    fn schedule_cancel(&self, n: u32, jobs: &mut Vec<Cancellable>) {
        (0..n).for_each(|index| jobs.push(self.schedule(index)));
        jobs.drain(..).for_each(|job| {
            black_box(job.cancel());
        });
    }
}

struct Host(Arc<AtomicU64>);

impl SchedulerHost for Host {
    fn now(&self) -> TimerInstant {
        let nano = Resolution::from_nanos(1).expect("not zero");
        TimerInstant::new(Tick::new(self.0.load(Relaxed)), nano)
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::RealtimeHost
    }

    fn name(&self) -> &'static str {
        "counts"
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {}
}
