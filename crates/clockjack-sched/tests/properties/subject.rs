//! A scheduler whose jobs do what a wish says, and write down how they were called.

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::sync::Mutex;

use clockjack_sched::{
    Cancellable, CatchUp, CloseReport, DispatcherId, FireContext, HandlerError, ManualRunner,
    Policy, PolicyRegistry, Scheduler, SchedulerConfig, SchedulerHost,
};
use clockjack_time::{
    ClockKind, ManualClock, MonotonicClock, Resolution, Tick, TickSpan, TimerInstant,
};

use crate::model::{Call, Deed, Kind, Wish};

const D: DispatcherId = DispatcherId::DEFAULT;

fn ticks(n: u64) -> Duration {
    Resolution::TEN_MILLIS.duration(TickSpan::new(n))
}

/// A host of one thread with several shards, which schedules in the shard that the test chooses.
struct ShardedHost {
    clock: Arc<ManualClock>,
    shard: Arc<AtomicUsize>,
}

impl SchedulerHost for ShardedHost {
    fn now(&self) -> TimerInstant {
        self.clock.now()
    }

    fn clock_kind(&self) -> ClockKind {
        ClockKind::Deterministic
    }

    fn name(&self) -> &'static str {
        "sharded"
    }

    fn shard(&self) -> usize {
        self.shard.load(Ordering::Relaxed)
    }

    fn wake_poller(&self, _shard: usize, _at: Tick) {}
}

#[derive(Clone)]
enum Drive {
    Runner(ManualRunner),
    Sharded { scheduler: Scheduler, clock: Arc<ManualClock>, shard: Arc<AtomicUsize> },
}

#[derive(Default)]
struct Book {
    /// `None` while a job is being scheduled, within which it may run.
    handles: Vec<Option<Cancellable>>,
    calls: Vec<Call>,
    cancels: Vec<(usize, bool)>,
}

#[derive(Clone)]
pub(crate) struct Subject {
    drive: Drive,
    book: Arc<Mutex<Book>>,
}

impl Subject {
    pub(crate) fn new(start: u64, shards: usize, is_folded: bool) -> Self {
        let catch_up = if is_folded { CatchUp::Folded } else { CatchUp::Individually };
        let config = SchedulerConfig {
            start: Tick::new(start),
            shards: u32::try_from(shards).expect("few"),
            policies: PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(catch_up)),
            // Folding after a jump of the clock is another matter.
            clock_jump: Duration::MAX,
            log_capacity: 1 << 16,
            ..SchedulerConfig::DEFAULT
        };
        let drive = if shards == 1 {
            Drive::Runner(ManualRunner::new(config).expect("it is not for production"))
        } else {
            let clock = Arc::new(ManualClock::starting_at(config.start, config.resolution));
            let shard = Arc::new(AtomicUsize::new(0));
            let host = ShardedHost { clock: Arc::clone(&clock), shard: Arc::clone(&shard) };
            let scheduler = Scheduler::new(config, host).expect("it is not for production");
            Drive::Sharded { scheduler, clock, shard }
        };
        Self { drive, book: Arc::default() }
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        match &self.drive {
            Drive::Runner(runner) => runner.scheduler(),
            Drive::Sharded { scheduler, .. } => scheduler,
        }
    }

    fn clock(&self) -> &ManualClock {
        match &self.drive {
            Drive::Runner(runner) => runner.clock(),
            Drive::Sharded { clock, .. } => clock,
        }
    }

    pub(crate) fn stall(&self, n: u64) {
        self.clock().advance(ticks(n));
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock().now().ticks
    }

    /// With one shard only.
    pub(crate) fn advance(&self, n: u64) {
        if let Drive::Runner(runner) = &self.drive {
            runner.advance(ticks(n));
        }
    }

    pub(crate) fn run(&self, shard: usize) {
        match &self.drive {
            Drive::Runner(runner) => drop(runner.run_due()),
            Drive::Sharded { scheduler, .. } => drop(scheduler.poll_shard(shard, 0, usize::MAX)),
        }
    }

    pub(crate) fn shutdown(&self) -> CloseReport {
        self.scheduler().shutdown()
    }

    pub(crate) fn schedule(&self, wish: Wish) {
        if let Drive::Sharded { shard, .. } = &self.drive {
            shard.store(wish.shard, Ordering::Relaxed);
        }
        let index = self.book(|book| {
            book.handles.push(None);
            book.handles.len() - 1
        });
        let subject = self.clone();
        let handler = move |fire: &FireContext| subject.call(index, wish, fire);
        let scheduler = self.scheduler();
        let delay = ticks(wish.delay);
        let accepted = match wish.kind {
            Kind::Once => scheduler.schedule_once_fn(delay, D, handler).ok(),
            Kind::Rate(period) => {
                scheduler.schedule_at_fixed_rate_fn(delay, ticks(period), D, handler).ok()
            }
            Kind::Delay(after) => {
                scheduler.schedule_with_fixed_delay_fn(delay, ticks(after), D, handler).ok()
            }
        };
        match accepted {
            Some(handle) => self.book(|book| book.handles[index] = Some(handle)),
            // A handler that the close has flushed.
            None => {
                assert!(self.scheduler().is_closed(), "there is room");
                self.book(|book| drop(book.handles.pop()));
            }
        }
    }

    pub(crate) fn cancel(&self, index: usize) {
        let Some(handle) = self.book(|book| book.handles[index].clone()) else { return };
        let won = handle.cancel();
        self.book(|book| book.cancels.push((index, won)));
    }

    pub(crate) fn handles(&self) -> Vec<Cancellable> {
        self.book(|book| book.handles.iter().flatten().cloned().collect())
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.book(|book| book.calls.clone())
    }

    pub(crate) fn cancels(&self) -> Vec<(usize, bool)> {
        self.book(|book| book.cancels.clone())
    }

    fn book<R>(&self, f: impl FnOnce(&mut Book) -> R) -> R {
        f(&mut self.book.lock().expect("no holder panics"))
    }

    fn call(&self, index: usize, wish: Wish, fire: &FireContext) -> Result<(), HandlerError> {
        let runs = fire.batch().runs.get();
        let call = (index, fire.due().get(), fire.now().ticks, runs);
        self.book(|book| book.calls.push(call));
        match wish.deed {
            Deed::Nothing => {}
            Deed::Take(n) => self.stall(n),
            Deed::Cancel(other) => {
                let n_jobs = self.book(|book| book.handles.len());
                self.cancel((index + other) % n_jobs);
            }
            Deed::Schedule(delay) => {
                self.schedule(Wish { delay, kind: Kind::Once, deed: Deed::Nothing, ..wish });
            }
            Deed::Fail => return Err(HandlerError::new("as it was asked to")),
        }
        Ok(())
    }
}
