//! Memory: a scheduler of fixed capacity allocates nothing once it is made, and says so when it is
//! full.
//!
//! Counted per thread, so that concurrent tests do not interfere.
#![cfg(not(loom))]

extern crate alloc;

use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};

use clockjack_sched::{
    Cancellable, CatchUp, DispatcherId, FireContext, HandlerError, JobId, JobSpec, JobTable,
    LogKind, LogRecord, ManualRunner, Policy, PolicyRegistry, RunnerLoop, ScheduleErrorKind,
    SchedulerConfig, SchedulerTask, Task, TimerPriority,
};
use clockjack_testing::{Random, allocation::Counting};
use clockjack_time::{
    ClockKind, GrowingWheel, InterruptDriver, ManualClock, MonotonicClock, Resolution, WheelConfig,
};

#[global_allocator]
static COUNTING: Counting = Counting::new();

const DEFAULT: DispatcherId = DispatcherId::DEFAULT;
/// How many jobs the schedulers of this file have room for.
const N: usize = 200;

const FIXED: SchedulerConfig = {
    let mut config = SchedulerConfig::SMALL;
    config.quota = 10 * N;
    config.capacity = N;
    config.overflow_capacity = N;
    config
};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn manual(config: SchedulerConfig) -> ManualRunner {
    ManualRunner::new(config).expect("not in production")
}

/// Does `f`, without warming up.
#[track_caller]
fn allocates_nothing<R>(f: impl FnOnce() -> R) -> R {
    let before = COUNTING.allocations();
    let result = f();
    assert_eq!(COUNTING.allocations() - before, 0, "allocations");
    result
}

/// A delay on any level of the wheel, or beyond.
fn delay(random: &mut Random) -> Duration {
    let bits = 1 + random.below(22);
    ms(10 * random.below(1 << bits))
}

#[test]
fn the_counter_counts() {
    let before = COUNTING.allocations();
    drop(Box::new(1));
    assert_eq!(COUNTING.allocations() - before, 1);
}

#[test]
fn one_shots_are_scheduled_run_and_cancelled_without_an_allocation() {
    static RAN: AtomicU32 = AtomicU32::new(0);
    let manual = manual(FIXED);
    let mut random = Random::new(1);
    let mut jobs: Vec<Cancellable> = Vec::with_capacity(N);
    let mut cancelled = 0;
    allocates_nothing(|| {
        for _ in 0..200 {
            for _ in 0..N {
                let job = manual.scheduler().schedule_once_fn(delay(&mut random), DEFAULT, |_| {
                    RAN.fetch_add(1, SeqCst);
                });
                jobs.push(job.expect("there is room"));
            }
            for job in jobs.drain(..) {
                cancelled += u32::from(random.below(2) == 0 && job.cancel());
            }
            manual.advance(Duration::from_secs(3_600 * 24));
        }
    });
    assert_eq!(RAN.load(SeqCst) + cancelled, 200 * 200);
    assert!(cancelled > 10_000, "{cancelled}");
}

#[test]
fn periodic_jobs_run_catch_up_and_end_without_an_allocation() {
    for catch_up in [CatchUp::Individually, CatchUp::Folded] {
        let policies = PolicyRegistry::new().set_default(Policy::DEFAULT.catch_up(catch_up));
        let manual = manual(SchedulerConfig { policies, ..FIXED });
        let mut jobs: Vec<Cancellable> = Vec::with_capacity(N);
        allocates_nothing(|| {
            for n in 0..N as u64 {
                let (first, period) = (ms(10 * (n % 17)), ms(10 + 10 * (n % 13)));
                let scheduler = manual.scheduler();
                let job = if n % 2 == 0 {
                    let job = scheduler.schedule_at_fixed_rate_fn(first, period, DEFAULT, |_| ());
                    job.expect("there is room")
                } else {
                    let job =
                        scheduler.schedule_with_fixed_delay_fn(first, period, DEFAULT, |_| ());
                    job.expect("there is room")
                };
                jobs.push(job);
            }
            manual.advance(Duration::from_secs(5));
            // A stall, and everybody is late.
            manual.clock().advance(Duration::from_secs(5));
            manual.run_due();
            for job in jobs.drain(..) {
                assert!(job.cancel());
            }
            manual.advance(Duration::from_secs(1));
        });
        assert_eq!(manual.scheduler().metrics().active_total, 0);
    }
}

#[test]
fn jobs_that_are_cancelled_by_their_handler_or_their_backlog_allocate_nothing() {
    static HANDLE: std::sync::Mutex<Option<Cancellable>> = std::sync::Mutex::new(None);
    let limited = Policy::DEFAULT.backlog_limit(3);
    let policies = PolicyRegistry::new().set_default(limited);
    let manual = manual(SchedulerConfig { policies, ..FIXED });
    allocates_nothing(|| {
        for _ in 0..10 {
            let cancel_itself = |_: &FireContext| {
                let handle = HANDLE.lock().expect("no panic").take();
                assert!(handle.is_some_and(|job| job.cancel()));
            };
            let scheduler = manual.scheduler();
            let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), DEFAULT, cancel_itself);
            *HANDLE.lock().expect("no panic") = Some(job.expect("there is room"));
            manual.advance(ms(20));
            for _ in 0..N {
                let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), DEFAULT, |_| ());
                drop(job.expect("there is room"));
            }
            // So long that all are cancelled for it.
            manual.clock().advance(ms(1_000));
            manual.run_due();
        }
    });
    let metrics = manual.scheduler().metrics();
    assert_eq!((metrics.active_total, metrics.cancelled_total), (0, 10 * (N as u64 + 1)));
}

/// A task that counts how it ends.
struct CountingTask(&'static AtomicU32);

impl SchedulerTask for CountingTask {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(())
    }

    fn cancelled(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn tasks_that_are_told_of_their_cancel_and_those_given_up_for_room_allocate_nothing() {
    static CANCELLED: AtomicU32 = AtomicU32::new(0);
    let manual = manual(FIXED);
    let n = u32::try_from(N).expect("small");
    let schedule = |class| {
        let job = JobSpec::once(ms(500)).policy(Policy::DEFAULT.priority(class));
        manual.scheduler().schedule(job, DEFAULT, Task::new(CountingTask(&CANCELLED)))
    };
    allocates_nothing(|| {
        for _ in 0..N {
            assert!(schedule(TimerPriority::Normal).expect("there is room").cancel());
        }
        manual.run_due();
        assert_eq!(CANCELLED.load(SeqCst), n);
        for _ in 0..N {
            drop(schedule(TimerPriority::Low).expect("there is room"));
        }
        // A scan is bounded, so that one that is less important may be missed.
        for _ in 0..N {
            drop(schedule(TimerPriority::High));
            manual.run_due();
        }
    });
    let dropped = manual.scheduler().metrics().dropped_total;
    assert!(dropped > 10, "{dropped} were given up");
    assert_eq!(u64::from(CANCELLED.load(SeqCst) - n), dropped);
}

#[test]
fn a_log_in_a_buffer_of_the_callers_allocates_nothing() {
    static BUFFER: std::sync::Mutex<[LogRecord; 16]> =
        std::sync::Mutex::new([LogRecord::EMPTY; 16]);
    // A board has a static for this.
    let buffer = Box::leak(Box::new(*BUFFER.lock().expect("no panic")));
    let manual = manual(FIXED);
    allocates_nothing(|| {
        manual.scheduler().diagnostics().enable_log_in(buffer);
        for _ in 0..100 {
            let job = manual.scheduler().schedule_once_fn(ms(10), DEFAULT, |_| ());
            drop(job.expect("there is room"));
            manual.advance(ms(10));
            let job = manual.scheduler().schedule_once_fn(ms(10), DEFAULT, |_| ());
            assert!(job.expect("there is room").cancel());
        }
    });
    let trace = manual.scheduler().diagnostics().trace();
    let kinds: Vec<_> = trace.records().iter().map(|record| record.kind).collect();
    assert_eq!(kinds.len(), 16);
    assert_eq!(
        kinds[12..],
        [LogKind::Schedule, LogKind::Fire, LogKind::Schedule, LogKind::Cancel,]
    );
}

#[test]
fn a_loop_over_an_interrupt_allocates_nothing() {
    static TICKS: InterruptDriver = InterruptDriver::new(Resolution::MILLI);
    static RAN: AtomicU32 = AtomicU32::new(0);
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..FIXED };
    let started = RunnerLoop::start(config, &TICKS, &TICKS, Waker::noop().clone());
    let mut runner = started.expect("a fresh driver");
    allocates_nothing(|| {
        let beat = runner.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(1), DEFAULT, |_| {
            RAN.fetch_add(1, SeqCst);
        });
        drop(beat.expect("there is room"));
        for burst in 0..1_000 {
            for _ in 0..burst % 70 {
                TICKS.notify_tick();
            }
            let once = runner.scheduler().schedule_once_fn(ms(burst), DEFAULT, |_| ());
            let once = once.expect("there is room");
            if burst % 2 == 0 {
                once.cancel();
            }
            runner.poll();
        }
    });
    assert!(RAN.load(SeqCst) > 30_000);
}

#[test]
fn at_the_capacity_the_closure_comes_back_and_nothing_else_happens() {
    let manual = manual(FIXED);
    let scheduler = manual.scheduler();
    let mut jobs = Vec::with_capacity(N + 100);
    let refused = loop {
        match scheduler.schedule_once_fn(ms(10), DEFAULT, |_| ()) {
            Ok(job) => jobs.push(job),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.kind(), ScheduleErrorKind::CapacityExceeded);
    assert_eq!(jobs.len(), N);
    let before = scheduler.metrics();
    let number = Box::new(7);
    let refused = scheduler.schedule_once_fn(ms(10), DEFAULT, move |_: &FireContext| {
        assert_eq!(*number, 7);
    });
    let refused = refused.expect_err("no room");
    assert_eq!(refused.kind(), ScheduleErrorKind::CapacityExceeded);
    let closure = refused.into_inner();
    assert_eq!(scheduler.metrics(), before, "no trace");
    assert!(jobs.pop().expect("many").cancel());
    let job = scheduler.schedule_once_fn(ms(10), DEFAULT, closure).expect("room was made");
    assert_eq!(manual.advance(ms(10)), N);
    assert!(job.is_completed());
}

#[test]
fn a_handle_that_is_kept_is_a_used_place_until_it_is_dropped() {
    let manual = manual(FIXED);
    let scheduler = manual.scheduler();
    let mut kept = Vec::new();
    let kind = loop {
        match scheduler.schedule_once_fn(ms(10), DEFAULT, |_| ()) {
            Ok(job) => kept.push(job),
            Err(refused) => break refused.kind(),
        }
        manual.advance(ms(10));
    };
    assert_eq!(kind, ScheduleErrorKind::CapacityExceeded);
    assert_eq!(scheduler.metrics().active_total, 0, "and no job lives");
    assert!(kept.len() >= N, "{}", kept.len());
    assert!(kept.iter().all(Cancellable::is_completed), "what they say stays true");
    kept.pop();
    drop(scheduler.schedule_once_fn(ms(10), DEFAULT, |_| ()).expect("a place was given back"));
    manual.advance(ms(10));
    drop(kept);
    for _ in 0..N {
        drop(scheduler.schedule_once_fn(ms(10), DEFAULT, |_| ()).expect("all are back"));
    }
}

#[test]
fn a_closure_that_is_too_large_for_its_job_is_one_allocation() {
    let manual = manual(FIXED);
    let large = [1_u64; 16];
    let before = COUNTING.allocations();
    let job = manual.scheduler().schedule_once_fn(ms(10), DEFAULT, move |_| {
        assert_eq!(large.iter().sum::<u64>(), 16);
    });
    assert!(job.is_ok());
    assert_eq!(COUNTING.allocations() - before, 1);
}

/// Periodic jobs that are cancelled while they are handed over, and one-shots that are cancelled
/// while they wait and run.
fn use_fixed(jobs: &mut JobTable<u64>, wheel: &mut GrowingWheel<JobId>) {
    let clock = ManualClock::new(Resolution::MILLI);
    let ms = Duration::from_millis;
    let mut ids = [None; JOBS];
    for (n, id) in ids.iter_mut().enumerate() {
        let once = JobSpec { notify_cancel: n.is_multiple_of(4), ..JobSpec::once(ms(1)) };
        let spec = if n.is_multiple_of(2) { once } else { JobSpec::fixed_delay(ms(1), ms(1)) };
        *id = jobs.schedule(wheel, clock.now(), spec, n as u64).ok();
    }
    for id in ids.iter().step_by(4).flatten() {
        assert!(jobs.cancel(wheel, *id));
    }
    clock.advance(ms(2));
    while jobs.advance(wheel, clock.now(), 10, |_| {}) {}
    for id in ids.iter().flatten() {
        jobs.cancel(wheel, *id);
        jobs.completed(wheel, *id, clock.now());
        jobs.release(*id);
    }
    while jobs.advance(wheel, clock.now(), 10, |_| {}) {}
    assert!(jobs.is_empty());
}

/// Jobs of a table of fixed size.
const JOBS: usize = 64;

#[test]
fn a_table_of_fixed_size_allocates_nothing_once_it_is_made() {
    let config = SchedulerConfig {
        resolution: Resolution::MILLI,
        quota: JOBS,
        capacity: JOBS,
        overflow_capacity: JOBS,
        is_fixed: true,
        ..SchedulerConfig::DEFAULT
    };
    let mut wheel = GrowingWheel::new(WheelConfig { capacity: JOBS, ..WheelConfig::DEFAULT });
    // The wheel is the caller's, and this one grows: another table's jobs make room in it.
    use_fixed(&mut JobTable::new(&config, 0, ClockKind::Deterministic), &mut wheel);
    let mut wheel_of_table = wheel;
    let mut jobs = JobTable::new(&config, 0, ClockKind::Deterministic);
    let before = COUNTING.allocations();
    use_fixed(&mut jobs, &mut wheel_of_table);
    assert_eq!(COUNTING.allocations() - before, 0, "allocations");
}
