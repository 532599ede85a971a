//! Remote operations while another thread holds the guard, one step at a time on one thread.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/counting_task.rs"]
mod counting_task;
#[path = "support/host.rs"]
mod host;

use alloc::sync::Arc;
use core::{
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    time::Duration,
};
use std::{sync::Mutex, thread};

use clockjack_sched::{
    Affinity, Cancellable, DiagnosticEvent, DispatchedRun, DispatcherId, EventKinds, FireContext,
    HandlerError, JobState, Policy, PolicyRegistry, ScheduleErrorKind, Scheduler, SchedulerConfig,
    SchedulerTask, TimerPriority, Warning,
    model::{held, while_locked},
};
use clockjack_time::{Resolution, Tick};
use counting_task::CountingTask;
use host::Host;

const D: DispatcherId = DispatcherId::DEFAULT;

const fn ticks(n: u64) -> Duration {
    Duration::from_millis(n)
}

struct World {
    scheduler: Scheduler,
    host: Host,
    /// What was handed to dispatchers.
    works: Arc<Mutex<Vec<DispatchedRun>>>,
    order: Arc<Mutex<Vec<u32>>>,
}

impl World {
    fn new() -> Self {
        Self::with(SchedulerConfig::DEFAULT)
    }

    fn with(config: SchedulerConfig) -> Self {
        let works = Arc::default();
        let host =
            Host { has_dispatchers: true, works: Some(Arc::clone(&works)), ..Host::default() };
        let config = SchedulerConfig { resolution: Resolution::MILLI, ..config };
        let scheduler = Scheduler::new(config, host.clone()).expect("a sound configuration");
        Self { scheduler, host, works, order: Arc::default() }
    }

    /// Polls at a tick, and returns when the poller wakes.
    fn turn_at(&self, tick: u64) -> Option<Tick> {
        self.host.now.store(tick, SeqCst);
        self.scheduler.poll_shard(0, 0, usize::MAX).next_wake
    }

    fn once(&self, delay: u64, name: u32) -> Cancellable {
        let order = self.order.clone();
        let run = move |_: &_| order.lock().expect("no panic").push(name);
        self.scheduler.schedule_once_fn(ticks(delay), D, run).expect("open, and there is room")
    }

    fn order(&self) -> Vec<u32> {
        self.order.lock().expect("no panic").clone()
    }

    /// How often the poller was woken since the last call.
    fn calls(&self) -> u32 {
        self.host.calls.swap(0, SeqCst)
    }
}

#[test]
fn jobs_that_were_posted_run_in_the_order_of_their_posts() {
    let world = World::new();
    drop(world.once(5, 0));
    while_locked(&world.scheduler, || {
        for name in 1..=20 {
            drop(world.once(5, name));
        }
    });
    drop(world.once(5, 21));
    world.turn_at(5);
    assert_eq!(world.order(), (0..=21).collect::<Vec<_>>());
    assert_eq!(held(&world.scheduler).slots, 0);
}

#[test]
fn a_posted_job_that_is_cancelled_before_it_is_taken_up_calls_the_runner() {
    let world = World::new();
    drop(world.once(50, 0));
    assert_eq!(world.turn_at(0), Some(Tick::new(50)));
    world.calls();
    let token = Arc::new(());
    let inside = token.clone();
    while_locked(&world.scheduler, || {
        let run = move |_: &_| drop(inside);
        let job = world.scheduler.schedule_once_fn(ticks(100), D, run).expect("open");
        assert_eq!(world.calls(), 0, "the runner wakes before it is due");
        assert!(job.cancel() && job.is_cancelled() && !job.cancel());
        assert_eq!(world.calls(), 1, "what it was to deliver is to be dropped");
    });
    world.turn_at(1);
    assert_eq!(Arc::strong_count(&token), 1);
    let metrics = world.scheduler.metrics();
    assert_eq!((metrics.accepted_total, metrics.cancelled_total), (2, 1));
}

#[test]
fn a_runner_that_sleeps_for_very_long_is_called_for_whatever_comes_before() {
    const FAR: u64 = 1 << 30;
    for sixteenth in 0..16 {
        let world = World::new();
        drop(world.once(FAR, 0));
        let wake = world.turn_at(0).expect("something is scheduled").get();
        let now = FAR / 16 * sixteenth + 7;
        if now + 1 >= wake {
            continue;
        }
        world.host.now.store(now, SeqCst);
        world.calls();
        drop(world.once(1, 1));
        assert_eq!(world.calls(), 1, "at {now} it sleeps until {wake}");
    }
}

#[test]
fn a_posted_job_that_finds_no_quota_leaves_no_trace() {
    let world = World::with(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    let job = world.once(5, 0);
    let before = held(&world.scheduler);
    let refused = while_locked(&world.scheduler, || {
        world.scheduler.schedule_once_fn(ticks(5), D, |_| ()).expect_err("one is all there may be")
    });
    assert_eq!(refused.kind(), ScheduleErrorKind::QuotaExceeded);
    assert_eq!(held(&world.scheduler), before);
    assert_eq!(world.scheduler.metrics().accepted_total, 1);
    assert!(job.cancel());
    drop(job);
    let after = held(&world.scheduler);
    assert_eq!((after.slots, after.permits), (0, 0));
    while_locked(&world.scheduler, || drop(world.once(5, 1)));
    world.turn_at(9);
    assert_eq!(world.order(), [1]);
    let after = held(&world.scheduler);
    assert_eq!((after.slots, after.permits), (0, 0));
}

#[test]
fn handles_that_are_dropped_during_a_lease_give_their_slots_back() {
    let world = World::new();
    let jobs: Vec<_> = (0..50).map(|name| world.once(5, name)).collect();
    let second = jobs.clone();
    world.turn_at(5);
    assert!(jobs.iter().all(|job| job.state() == JobState::Completed));
    assert_eq!(held(&world.scheduler).slots, 50, "a handle keeps its slot");
    while_locked(&world.scheduler, || drop(jobs));
    assert_eq!(held(&world.scheduler).slots, 50);
    while_locked(&world.scheduler, || drop(second));
    assert_eq!(held(&world.scheduler).slots, 0);
}

#[test]
fn a_posted_job_that_finds_no_quota_is_told_as_any_other() {
    let world = World::with(SchedulerConfig { quota: 1, ..SchedulerConfig::DEFAULT });
    let mut events = world.scheduler.diagnostics().subscribe(EventKinds::WARNING, 8).expect("room");
    let _job = world.once(5, 0);
    while_locked(&world.scheduler, || {
        world.scheduler.schedule_once_fn(ticks(5), D, |_| ()).expect_err("one is all there may be")
    });
    let told = events.try_next().expect("the first refusal is told");
    let limit = 1;
    let reached = Warning::QuotaReached { limit, adaptive: false };
    assert!(matches!(told, DiagnosticEvent::Warned(warning) if warning == reached));
}

#[test]
fn a_shard_without_jobs_keeps_no_credit_from_others() {
    const QUOTA: usize = 64;
    let config = SchedulerConfig { quota: QUOTA, shards: 2, ..SchedulerConfig::DEFAULT };
    let world = World::with(config);
    drop(world.once(5, 0));
    world.turn_at(5);
    assert_eq!(world.order(), [0]);
    world.host.shard.store(1, SeqCst);
    let jobs: Vec<_> = (0..QUOTA).map(|_| world.once(5, 1)).collect();
    assert_eq!(jobs.len(), QUOTA);
}

#[test]
fn a_post_spends_credits_that_its_shard_has_before_it_is_refused() {
    // One more than a shard takes at once.
    let config = SchedulerConfig { quota: 65, shards: 2, ..SchedulerConfig::DEFAULT };
    let world = World::with(config);
    drop(world.once(5, 0));
    world.host.shard.store(1, SeqCst);
    drop(world.once(5, 1));
    world.host.shard.store(0, SeqCst);
    thread::scope(|scope| {
        let poster = while_locked(&world.scheduler, || {
            let poster = scope.spawn(|| world.once(5, 2));
            while world.host.waits.load(SeqCst) == 0 && !poster.is_finished() {
                thread::yield_now();
            }
            poster
        });
        poster.join().expect("two of 65 live");
    });
    world.turn_at(5);
    assert_eq!(world.order(), [0, 2]);
}

/// Shuts its scheduler down while it runs, if it has one.
struct Closing {
    scheduler: Option<Scheduler>,
    told: CountingTask,
}

impl SchedulerTask for Closing {
    fn run(&mut self, fire: &FireContext) -> Result<(), HandlerError> {
        if let Some(scheduler) = &self.scheduler {
            scheduler.shutdown();
        }
        self.told.run(fire)
    }

    fn cancelled(&mut self) {
        self.told.cancelled();
    }
}

#[test]
fn a_periodic_task_on_another_dispatcher_is_told_of_a_close_before_it_runs_or_while_it_does() {
    for runs in [0, 1] {
        let world = World::new();
        let told = CountingTask::default();
        let scheduler = (runs == 1).then(|| world.scheduler.clone());
        let task = Closing { scheduler, told: told.clone() };
        let CountingTask { ran, told } = told;
        let schedule = Scheduler::schedule_at_fixed_rate_task;
        let job = schedule(&world.scheduler, ticks(5), ticks(5), DispatcherId(1), task);
        let job = job.expect("open");
        world.turn_at(5);
        if runs == 0 {
            let report = world.scheduler.shutdown();
            assert_eq!((report.accepted, report.cancelled, report.still_running), (1, 1, 1));
            assert!(job.is_cancelled());
        }
        let work = world.works.lock().expect("no panic").pop().expect("it was handed over");
        work.run();
        assert!(job.is_cancelled());
        assert_eq!((ran.load(SeqCst), told.load(SeqCst)), (runs, 1), "nobody takes a turn now");
        assert_eq!(Arc::strong_count(&told), 1, "the task was dropped");
        let metrics = world.scheduler.metrics();
        assert_eq!((metrics.accepted_total, metrics.cancelled_total), (1, 1));
    }
}

#[test]
fn a_task_that_goes_for_one_of_a_higher_class_calls_the_runner_to_be_told() {
    let low = Policy::DEFAULT.priority(TimerPriority::Low);
    let policies = PolicyRegistry::new().set(Affinity::Dispatcher(DispatcherId(1)), low);
    let config = SchedulerConfig { capacity: 1, policies, ..SchedulerConfig::DEFAULT };
    let world = World::with(config);
    let task = CountingTask::default();
    let CountingTask { ran, told } = task.clone();
    let schedule = Scheduler::schedule_once_task;
    let job = schedule(&world.scheduler, ticks(50), DispatcherId(1), task).expect("open");
    world.turn_at(0);
    world.calls();
    drop(world.once(90, 0));
    assert!(job.is_cancelled(), "there is room for one");
    assert_eq!(world.calls(), 1, "it wants to be told, and the runner sleeps");
    world.turn_at(1);
    assert_eq!((ran.load(SeqCst), told.load(SeqCst)), (0, 1));
}

#[test]
fn slots_that_were_put_in_stock_among_many_jobs_keep_no_room() {
    let world = World::new();
    let jobs: Vec<_> = (0..1_000).map(|name| world.once(5, name)).collect();
    while_locked(&world.scheduler, || (0..20).for_each(|name| drop(world.once(5, name))));
    assert!(held(&world.scheduler).room >= 1_020);
    world.turn_at(5);
    drop(jobs);
    world.turn_at(6);
    assert!(held(&world.scheduler).room >= 1_000, "kept for a while, in case that it is needed");
    world.turn_at(6 + 2_000);
    let left = held(&world.scheduler);
    assert_eq!(left.slots, 0);
    assert!(left.room <= 64 + 128, "room for {} slots is left", left.room);
    while_locked(&world.scheduler, || (0..20).for_each(|name| drop(world.once(5, name))));
    world.turn_at(11 + 2_000);
    assert_eq!(world.order().len(), 1_040);
}

#[test]
fn a_close_runs_nothing_that_others_make_due_while_it_flushes() {
    const RUNS_MAX: u32 = 1_000;
    let world = World::new();
    let (runs, depth) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    for _ in 0..2 {
        let (scheduler, host) = (world.scheduler.clone(), world.host.clone());
        let (runs, depth) = (runs.clone(), depth.clone());
        let run = move |_: &FireContext| {
            let is_outer = depth.fetch_add(1, SeqCst) == 0;
            if runs.fetch_add(1, SeqCst) < RUNS_MAX && is_outer {
                // Another poller, for which each run takes longer than its period.
                host.now.fetch_add(5, SeqCst);
                scheduler.poll_shard(0, 1, 1);
            }
            depth.fetch_sub(1, SeqCst);
        };
        let rate = world.scheduler.schedule_at_fixed_rate_fn(ticks(1), ticks(1), D, run);
        drop(rate.expect("open"));
    }
    world.host.now.store(1, SeqCst);
    let report = world.scheduler.shutdown();
    assert_eq!((report.accepted, report.executed, report.cancelled), (2, 0, 2));
    let ran = runs.load(SeqCst);
    assert!(ran < 10, "{ran} runs, of two jobs that were due once");
}
