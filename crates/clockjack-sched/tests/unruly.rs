//! Misbehaving users and nested polls: drops and wakers that panic, handlers that unwind
//! into their caller, polls inside of polls, interrupts.
#![cfg(not(loom))]

extern crate alloc;

#[path = "support/host.rs"]
mod host;

use alloc::{sync::Arc, task::Wake};
use core::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicU32, Ordering::SeqCst},
    task::Context,
    time::Duration,
};
use std::{panic::catch_unwind, sync::Mutex};

use clockjack_sched::{
    Affinity, DispatcherId, EventKinds, FireContext, HandlerError, ManualRunner, Policy,
    PolicyRegistry, ScheduleErrorKind, Scheduler, SchedulerConfig, SchedulerTask, Subscription,
    TaskRunPriority, TimerPriority,
    model::{held, while_locked},
};
use clockjack_time::{Resolution, Tick};
use host::{Host, guard};

const ANY: DispatcherId = DispatcherId::DEFAULT;
const LOW: DispatcherId = DispatcherId(1);
const HIGH: DispatcherId = DispatcherId(2);

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A host that catches panics, and a scheduler on it with a dispatcher for each class.
fn scheduler(config: SchedulerConfig) -> (Scheduler, Host) {
    let host = Host { is_guarding: true, has_dispatchers: true, ..Host::default() };
    let class =
        |dispatcher, class| (Affinity::Dispatcher(dispatcher), Policy::DEFAULT.priority(class));
    let (low, high) = (class(LOW, TimerPriority::Low), class(HIGH, TimerPriority::High));
    let policies = PolicyRegistry::new().set(low.0, low.1).set(high.0, high.1);
    let config = SchedulerConfig { resolution: Resolution::MILLI, policies, ..config };
    (Scheduler::new(config, host.clone()).expect("a sound configuration"), host)
}

/// How often the poller was woken since the last call.
fn calls(host: &Host) -> u32 {
    host.calls.swap(0, SeqCst)
}

/// Panics when it is dropped, after it has counted that.
struct Bomb(Arc<AtomicU32>);

impl SchedulerTask for Bomb {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(())
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
        panic!("by its drop");
    }
}

#[test]
fn a_task_that_panics_when_it_is_dropped_is_caught_wherever_it_ends() {
    let manual = ManualRunner::with_catch_unwind(SchedulerConfig::DEFAULT, guard).unwrap();
    let dropped = Arc::new(AtomicU32::new(0));
    let scheduler = manual.scheduler();
    let bomb = || Bomb(Arc::clone(&dropped));
    let task = |delay| scheduler.schedule_once_task(ms(delay), ANY, bomb()).unwrap();
    assert!(task(10).cancel());
    drop(task(20));
    manual.advance(ms(50));
    assert_eq!(dropped.load(SeqCst), 2, "one was told, the other ran");
    for _ in 0..3 {
        drop(task(100));
    }
    let report = scheduler.shutdown();
    assert_eq!((report.accepted, report.executed, report.cancelled), (5, 1, 4));
    assert_eq!(dropped.load(SeqCst), 5);
}

/// A waker that panics.
struct Alarm;

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        panic!("by its waker");
    }
}

/// A reader of everything that is waiting, with a waker that panics.
fn listen(scheduler: &Scheduler) -> Subscription {
    let mut stream = scheduler.diagnostics().subscribe(EventKinds::ALL, 64).unwrap();
    wait(&mut stream);
    stream
}

fn wait(stream: &mut Subscription) {
    let waker = Arc::new(Alarm).into();
    while stream.poll_next(&mut Context::from_waker(&waker)).is_ready() {}
}

#[test]
fn a_waker_that_panics_keeps_no_call_from_the_runner() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    let mut stream = listen(&scheduler);
    let once = || drop(scheduler.schedule_once_fn(ms(5), ANY, |_| ()).unwrap());
    assert!(catch_unwind(AssertUnwindSafe(once)).is_err(), "the waker was woken");
    assert_eq!(calls(&host), 1, "the runner knows of no job");
    assert_eq!(held(&scheduler).slots, 1, "a job, and no handle");
    drop(stream);
    let dropped = Arc::new(AtomicU32::new(0));
    let job = scheduler.schedule_once_task(ms(9), ANY, Bomb(Arc::clone(&dropped))).unwrap();
    scheduler.poll_shard(0, 0, 64);
    calls(&host);
    stream = listen(&scheduler);
    assert!(catch_unwind(AssertUnwindSafe(|| job.cancel())).is_err(), "the waker was woken");
    assert_eq!(calls(&host), 1, "it wants to be told");
    drop(stream);
    host.now.store(5, SeqCst);
    assert_eq!(scheduler.poll_shard(0, 0, 64).ran, 1);
    assert_eq!(dropped.load(SeqCst), 1);
}

#[test]
fn a_waker_that_panics_does_not_end_a_shutdown_in_the_middle() {
    for is_dropped in [false, true] {
        let manual = ManualRunner::with_catch_unwind(SchedulerConfig::DEFAULT, guard).unwrap();
        let scheduler = manual.scheduler();
        let due = scheduler.schedule_once_fn(ms(10), ANY, |_| ()).unwrap();
        let waits = scheduler.schedule_once_fn(ms(50), ANY, |_| ()).unwrap();
        let mut streams = [listen(scheduler), listen(scheduler)];
        manual.clock().advance(ms(10));
        if is_dropped {
            drop(manual);
            assert!(due.is_cancelled());
        } else {
            let report = scheduler.shutdown();
            assert_eq!((report.accepted, report.executed, report.cancelled), (2, 1, 1));
            assert!(due.is_completed());
        }
        assert!(waits.is_cancelled());
        assert!(streams.iter_mut().all(|stream| stream.try_next().is_some()));
    }
}

#[test]
fn a_handler_that_takes_its_caller_along_does_not_keep_others_from_running_at_once() {
    let manual = ManualRunner::new(SchedulerConfig::DEFAULT).unwrap();
    let scheduler = manual.scheduler();
    let fails = |_: &FireContext| -> () { panic!("by its handler") };
    let failed = catch_unwind(AssertUnwindSafe(|| {
        drop(scheduler.schedule_once_fn(Duration::ZERO, ANY, fails));
    }));
    assert!(failed.is_err());
    let job = scheduler.schedule_once_fn(Duration::ZERO, ANY, |_| ()).unwrap();
    assert!(job.is_completed(), "nobody takes a turn, so it runs at once");
}

#[test]
fn a_run_that_another_turn_made_due_is_not_told_an_earlier_time() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    let (inner, clock) = (scheduler.clone(), Arc::clone(&host.now));
    let slow = move |_: &FireContext| {
        clock.store(7, SeqCst);
        assert_eq!(inner.poll_shard(0, 1, 1).ran, 1);
    };
    drop(scheduler.schedule_once_fn(ms(1), ANY, slow).unwrap());
    let fires: Arc<Mutex<Vec<FireContext>>> = Arc::default();
    for _ in 0..2 {
        let fires = Arc::clone(&fires);
        let note = move |fire: &FireContext| fires.lock().unwrap().push(*fire);
        drop(scheduler.schedule_once_fn(ms(5), ANY, note).unwrap());
    }
    host.now.store(1, SeqCst);
    assert_eq!(scheduler.poll_shard(0, 0, 64).ran, 2);
    for fire in &*fires.lock().unwrap() {
        assert_eq!(
            (fire.due(), fire.now().tick(), fire.late()),
            (Tick::new(5), Tick::new(7), ms(2))
        );
    }
    assert_eq!(fires.lock().unwrap().len(), 2);
}

#[test]
fn a_job_that_goes_for_a_posted_one_calls_the_runner_whoever_takes_the_post_up() {
    for taker in 0..6 {
        let config = SchedulerConfig { capacity: 2, ..SchedulerConfig::DEFAULT };
        let (scheduler, host) = scheduler(config);
        let token = Arc::new(());
        let held = Arc::clone(&token);
        let low = scheduler.schedule_once_fn(ms(50), LOW, move |_| drop(held)).unwrap();
        let other = scheduler.schedule_once_fn(ms(50), HIGH, |_| ()).unwrap();
        scheduler.poll_shard(0, 0, 64);
        calls(&host);
        while_locked(&scheduler, || drop(scheduler.schedule_once_fn(ms(90), HIGH, |_| ())));
        assert_eq!(calls(&host), 0, "the runner wakes before it is due");
        match taker {
            0 => assert!(other.cancel()),
            1 => assert_eq!(scheduler.metrics().dropped_total, 1),
            2 => assert!(scheduler.schedule_once_fn(ms(90), LOW, |_| ()).is_err()),
            3 => assert_eq!(scheduler.diagnostics().trace().records(), []),
            4 => scheduler.diagnostics().enable_log(4),
            _ => scheduler.diagnostics().set_driver_jitter(ms(1)),
        }
        assert!(low.is_cancelled());
        assert_eq!(calls(&host), 1, "by taker {taker}");
        scheduler.poll_shard(0, 0, 64);
        assert_eq!(Arc::strong_count(&token), 1);
        drop(scheduler.metrics());
        assert_eq!(calls(&host), 0, "nothing is left to be called for");
    }
}

/// A waker that counts.
struct Count(AtomicU32);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_reader_of_the_stream_hears_of_a_post_whoever_takes_it_up() {
    for taker in 0..7 {
        let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
        let mut stream = scheduler.diagnostics().subscribe(EventKinds::SCHEDULE, 8).unwrap();
        let first = scheduler.schedule_once_fn(ms(50), ANY, |_| ()).unwrap();
        let other = first.clone();
        scheduler.poll_shard(0, 0, 64);
        assert!(stream.try_next().is_some());
        let woken = Arc::new(Count(AtomicU32::new(0)));
        let waker = Arc::clone(&woken).into();
        assert!(stream.poll_next(&mut Context::from_waker(&waker)).is_pending());
        calls(&host);
        let posted = while_locked(&scheduler, || scheduler.schedule_once_fn(ms(90), ANY, |_| ()));
        assert!(posted.is_ok() && woken.0.load(SeqCst) == 0, "nobody has taken it up");
        match taker {
            0 => drop(scheduler.metrics()),
            1 => drop(scheduler.diagnostics().dump()),
            2 => drop(scheduler.diagnostics().trace()),
            3 => scheduler.diagnostics().enable_log(4),
            4 => assert!(other.cancel()),
            5 => _ = scheduler.check_driver(),
            _ => _ = scheduler.diagnostics().last_fire_batch(),
        }
        assert_eq!(woken.0.load(SeqCst), 1, "by taker {taker}");
        assert!(stream.try_next().is_some());
        drop(first);
    }
}

#[test]
fn a_reader_of_the_stream_hears_of_a_post_that_the_drop_of_a_handle_takes_up() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    let mut stream = scheduler.diagnostics().subscribe(EventKinds::SCHEDULE, 8).unwrap();
    let over = scheduler.schedule_once_fn(ms(1), ANY, |_| ()).unwrap();
    drop(scheduler.schedule_once_fn(ms(50), ANY, |_| ()).unwrap());
    host.now.store(1, SeqCst);
    assert_eq!(scheduler.poll_shard(0, 0, 64).ran, 1);
    while stream.try_next().is_some() {}
    let woken = Arc::new(Count(AtomicU32::new(0)));
    let waker = Arc::clone(&woken).into();
    assert!(stream.poll_next(&mut Context::from_waker(&waker)).is_pending());
    while_locked(&scheduler, || drop(scheduler.schedule_once_fn(ms(90), ANY, |_| ())));
    assert_eq!(woken.0.load(SeqCst), 0, "nobody has taken it up");
    drop(over);
    assert_eq!(woken.0.load(SeqCst), 1);
}

#[test]
fn an_interrupt_is_refused_and_does_not_wait_for_what_it_has_interrupted() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    host.is_interrupt.store(true, SeqCst);
    let (taken, refused) = while_locked(&scheduler, || {
        let once = || scheduler.schedule_once_fn(ms(5), ANY, |_| ());
        let taken = (0..100).map_while(|_| once().ok()).count();
        (taken, once().expect_err("the places are used up").kind())
    });
    assert!((8..100).contains(&taken), "{taken} places");
    assert_eq!(refused, ScheduleErrorKind::CapacityExceeded);
    host.now.store(5, SeqCst);
    assert_eq!(scheduler.poll_shard(0, 0, 1_000).ran, taken);
    assert!(scheduler.schedule_once_fn(ms(5), ANY, |_| ()).is_ok());
}

#[test]
fn an_interrupt_can_neither_register_nor_cancel_a_close_task() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    let task = scheduler.register_on_close(|| Ok(()), TaskRunPriority::User).unwrap();
    host.is_interrupt.store(true, SeqCst);
    let register = || scheduler.register_on_close(|| Ok(()), TaskRunPriority::User);
    assert_eq!(register().unwrap_err().kind(), ScheduleErrorKind::CannotWait);
    assert!(!scheduler.cancel_on_close(task));
    host.is_interrupt.store(false, SeqCst);
    assert!(scheduler.cancel_on_close(task));
    assert!(register().is_ok());
    assert_eq!(scheduler.shutdown().close_tasks.succeeded, 1);
}

#[test]
fn no_job_is_given_up_for_one_that_cannot_be_taken_all_the_same() {
    const FAR: Duration = Duration::from_secs(1 << 12);
    let config = SchedulerConfig { capacity: 3, overflow_capacity: 1, ..SchedulerConfig::DEFAULT };
    let (scheduler, host) = scheduler(config);
    let inner = scheduler.clone();
    let tried = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&tried);
    // While it runs, its place is kept.
    let repeats = move |_: &FireContext| {
        let refused = inner.schedule_once_fn(FAR, HIGH, |_| ()).expect_err("the overflow is full");
        assert_eq!(refused.kind(), ScheduleErrorKind::CapacityExceeded);
        count.fetch_add(1, SeqCst);
    };
    drop(scheduler.schedule_with_fixed_delay_fn(ms(1), ms(1), ANY, repeats).unwrap());
    let far = scheduler.schedule_once_fn(FAR, HIGH, |_| ()).unwrap();
    let low = scheduler.schedule_once_fn(ms(50), LOW, |_| ()).unwrap();
    host.now.store(1, SeqCst);
    assert_eq!(scheduler.poll_shard(0, 0, 64).ran, 1);
    assert_eq!(tried.load(SeqCst), 1);
    assert!(!low.is_cancelled() && !far.is_cancelled(), "one was given up for nothing");
    assert_eq!(scheduler.metrics().dropped_total, 0);
}

#[test]
fn places_that_nobody_has_are_not_counted() {
    let (scheduler, host) = scheduler(SchedulerConfig::DEFAULT);
    assert_eq!(scheduler.metrics().slots_total, 0);
    let job = scheduler.schedule_once_fn(ms(1), ANY, |_| ()).unwrap();
    assert_eq!(scheduler.metrics().slots_total, 1);
    host.now.store(1, SeqCst);
    scheduler.poll_shard(0, 0, 64);
    assert_eq!(scheduler.metrics().slots_total, 1, "by its handle");
    drop(job);
    assert_eq!(scheduler.metrics().slots_total, 0);
}
