//! Handlers that take long, panic, and call the scheduler and the pool.

use core::{
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Poll, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, OnceLock, mpsc},
    time::Instant,
};

use clockjack_rt::{
    BLOCKING_DISPATCHER, BlockingConfig, PoolConfig, PoolSchedulerConfig, RuntimeConfig,
    TimerTopology, WorkerPool,
    exec::{Commands, Limits},
    sched::{
        Cancellable, DiagnosticEvent, DispatcherId, EventKinds, FireContext, HandlerError,
        PressureReason, ScheduleErrorKind, SchedulerConfig, SchedulerTask, Warning,
    },
};
use clockjack_testing::{InTime, keeps_deadline};

use crate::in_time::ShutdownInTime as _;
use crate::{ANY, LONG, eventually::eventually, ms, pool_of, pool_with};

fn single() -> PoolSchedulerConfig {
    PoolSchedulerConfig { topology: TimerTopology::Single, ..PoolSchedulerConfig::DEFAULT }
}

/// How long after its schedule a job of 5 ms runs, while another handler blocks until it has.
fn time_beside_one_that_blocks(pool: &WorkerPool) -> Duration {
    let scheduler = pool.scheduler();
    let (sender, receiver) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let block = move |_: &FireContext| {
        begin.send(()).unwrap();
        _ = held.recv_timeout(LONG);
    };
    let blocks = scheduler.schedule_once_fn(ms(1), ANY, block).unwrap();
    begun.recv().unwrap();
    let at = Instant::now();
    scheduler.schedule_once_fn(ms(5), ANY, move |_| sender.send(at.elapsed())).unwrap();
    let took = receiver.recv_timeout(LONG / 2).expect("it runs beside the one that blocks");
    drop(hold);
    eventually("the one that blocked is over", || blocks.is_completed());
    took
}

#[test]
fn a_handler_that_blocks_does_not_hold_up_others_of_its_shard() {
    let pool = pool_with(4, single());
    // The best of some: a loaded machine delays any of them.
    let took = (0..5).map(|_| time_beside_one_that_blocks(&pool)).min();
    assert!(took.unwrap() < ms(150), "the soonest ran only after {took:?}");
    assert!(pool.stats().source_takeovers >= 5);
}

#[test]
fn what_is_due_in_the_same_tick_as_a_handler_that_blocks_runs_beside_it() {
    let pool = pool_with(4, single());
    let (sender, receiver) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    let begin = Instant::now();
    let block = move |_: &FireContext| _ = held.recv_timeout(LONG);
    pool.scheduler().schedule_once_fn(ms(10), ANY, block).unwrap();
    for _ in 0..10 {
        let sender = sender.clone();
        pool.scheduler().schedule_once_fn(ms(10), ANY, move |_| sender.send(())).unwrap();
    }
    drop(sender);
    assert_eq!(receiver.iter().count(), 10);
    drop(hold);
    assert!(begin.elapsed() < LONG);
}

#[test]
fn two_handlers_that_block_leave_the_third_worker_for_the_rest() {
    let pool = pool_with(3, single());
    let holds: Vec<_> = (0..2)
        .map(|_| {
            let (hold, held) = mpsc::channel::<()>();
            let block = move |_: &FireContext| _ = held.recv_timeout(LONG);
            pool.scheduler().schedule_once_fn(ms(2), ANY, block).unwrap();
            hold
        })
        .collect();
    let (sender, receiver) = mpsc::channel();
    let beat =
        pool.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, move |_| sender.send(()));
    assert_eq!(receiver.iter().take(50).count(), 50);
    drop(holds);
    assert!(beat.unwrap().cancel());
}

#[test]
fn a_job_that_was_late_by_its_own_run_is_due_again_when_it_returns() {
    // The worker that took over sleeps for long when the handler returns.
    let pool = Arc::new(pool_with(3, single()));
    let (sender, receiver) = mpsc::channel();
    let (mut runs, weak) = (0, Arc::downgrade(&pool));
    let job = pool.scheduler().schedule_with_fixed_delay_fn(ms(1), ms(5), ANY, move |_| {
        runs += 1;
        if runs == 1 {
            let takeovers = || weak.upgrade().map_or(1, |pool| pool.stats().source_takeovers);
            eventually("another worker takes over", || takeovers() > 0);
            std::thread::sleep(ms(60));
        }
        sender.send(runs)
    });
    for run in 1..=3 {
        assert_eq!(receiver.recv_timeout(LONG), Ok(run));
    }
    assert!(job.unwrap().cancel());
}

#[test]
fn short_handlers_are_never_taken_over() {
    let pool = pool_of(1);
    let (sender, receiver) = mpsc::channel();
    let job =
        pool.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, move |_| sender.send(()));
    assert_eq!(receiver.iter().take(100).count(), 100);
    job.unwrap().cancel();
    assert_eq!(pool.stats().source_takeovers, 0);
}

struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Self);
    }
}

#[test]
fn a_panic_ends_its_job_and_is_told_once_and_nothing_else_ends() {
    let pool = pool_of(2);
    let scheduler = pool.scheduler();
    let mut warnings = scheduler.diagnostics().subscribe(EventKinds::WARNING, 64).unwrap();
    let (sender, receiver) = mpsc::channel();
    let beat = scheduler.schedule_at_fixed_rate_fn(ms(1), ms(2), ANY, move |_| sender.send(()));
    let plain =
        scheduler.schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, |_| -> () { panic!("plain") });
    let bomb = |_: &FireContext| -> () { std::panic::panic_any(Bomb) };
    let bomb = scheduler.schedule_at_fixed_rate_fn(ms(1), ms(1), ANY, bomb);
    assert_eq!(receiver.iter().take(20).count(), 20);
    let (plain, bomb) = (plain.unwrap(), bomb.unwrap());
    eventually("both have ended", || plain.is_completed() && bomb.is_completed());
    assert!(beat.unwrap().cancel());
    let failures = core::iter::from_fn(|| warnings.try_next()).filter_map(|event| match event {
        DiagnosticEvent::Warned(Warning::HandlerFailed { error, .. }) => Some(error),
        _ => None,
    });
    let mut texts: Vec<_> = failures.map(|error| error.to_string()).collect();
    texts.sort();
    assert_eq!(texts, ["panicked: a panic whose payload is not a text", "panicked: plain"]);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_handler_schedules_spawns_cancels_itself_and_resizes() {
    let pool = Arc::new(pool_of(2));
    let scheduler = pool.scheduler().clone();
    let (sender, receiver) = mpsc::channel();
    let own: Arc<OnceLock<Cancellable>> = Arc::default();
    let (known, weak) = (Arc::clone(&own), Arc::downgrade(&pool));
    let job = scheduler.clone().schedule_at_fixed_rate_fn(ms(5), ms(1), ANY, move |_| {
        let sender = sender.clone();
        let more = sender.clone();
        scheduler.schedule_once_fn(ms(0), ANY, move |_| more.send("once")).unwrap();
        drop(clockjack_rt::spawn_future(async move { sender.send("spawned").unwrap() }));
        weak.upgrade().unwrap().resize(3).unwrap();
        let own = known.wait();
        (own.cancel() && own.is_cancelled() && !own.cancel()).then_some(()).ok_or("not once")
    });
    own.set(job.unwrap()).unwrap();
    let mut said = [receiver.recv().unwrap(), receiver.recv().unwrap()];
    said.sort_unstable();
    assert_eq!(said, ["once", "spawned"]);
    assert_eq!(receiver.recv(), Err(mpsc::RecvError), "it was cancelled, and is gone");
    assert_eq!(pool.workers(), 3);
}

#[test]
fn a_handler_shuts_the_scheduler_down() {
    let pool = pool_of(2);
    let scheduler = pool.scheduler().clone();
    let (sender, receiver) = mpsc::channel();
    let waits = scheduler.schedule_once_fn(LONG, ANY, |_| ()).unwrap();
    let close = scheduler.clone();
    scheduler.schedule_once_fn(ms(2), ANY, move |_| sender.send(close.shutdown())).unwrap();
    let report = receiver.recv().unwrap();
    assert_eq!((report.accepted, report.executed, report.cancelled), (2, 1, 1));
    assert!(waits.is_cancelled() && scheduler.is_closed());
    let report = pool.shutdown_in_time(LONG).scheduler.unwrap();
    assert_eq!((report.executed, report.still_running), (1, 0));
}

#[test]
fn a_handler_shuts_the_pool_down() {
    for dispatcher in [ANY, BLOCKING_DISPATCHER] {
        let place: Arc<Mutex<Option<InTime<WorkerPool>>>> = Arc::default();
        let pool = pool_of(2);
        let scheduler = pool.scheduler().clone();
        let waits = scheduler.schedule_once_fn(LONG, ANY, |_| ()).unwrap();
        let (sender, receiver) = mpsc::channel();
        *place.lock().unwrap() = Some(pool);
        let taken = Arc::clone(&place);
        let end = move |_: &FireContext| {
            let pool = taken.lock().unwrap().take().unwrap();
            sender.send(pool.shutdown_in_time(ms(300)).scheduler.unwrap().cancelled)
        };
        scheduler.schedule_once_fn(ms(2), dispatcher, end).unwrap();
        assert_eq!(receiver.recv_timeout(LONG), Ok(1), "{dispatcher}");
        assert!(waits.is_cancelled());
    }
}

#[test]
fn a_blocking_dispatcher_runs_closures_off_the_workers() {
    let pool = pool_of(1);
    let (sender, receiver) = mpsc::channel();
    let (hold, held) = mpsc::channel::<()>();
    let name = || std::thread::current().name().unwrap_or_default().to_owned();
    let blocked = sender.clone();
    let block = move |_: &FireContext| {
        _ = held.recv_timeout(LONG);
        blocked.send(name())
    };
    let job = pool.scheduler().schedule_once_fn(ms(1), BLOCKING_DISPATCHER, block).unwrap();
    // The only worker is free meanwhile.
    pool.scheduler().schedule_once_fn(ms(3), ANY, move |_| sender.send(name())).unwrap();
    assert!(receiver.recv_timeout(LONG).unwrap().starts_with("cj-worker"));
    drop(hold);
    assert!(!receiver.recv_timeout(LONG).unwrap().starts_with("cj-worker"));
    eventually("it is over", || job.is_completed());
    let refused = pool.scheduler().schedule_once_fn(ms(1), DispatcherId(2), |_| ()).unwrap_err();
    assert_eq!(refused.kind(), ScheduleErrorKind::ReceiverGone);
}

#[test]
fn a_full_dispatcher_refuses_and_that_is_told_as_pressure() {
    let blocking = BlockingConfig { threads_max: 1, queue_max: 0, ..BlockingConfig::DEFAULT };
    let config = PoolConfig { workers: Some(2), blocking, ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let mut warnings = pool.scheduler().diagnostics().subscribe(EventKinds::WARNING, 8).unwrap();
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let block = move || {
        begin.send(()).unwrap();
        _ = held.recv_timeout(LONG);
    };
    drop(pool.spawn_blocking(block).unwrap());
    begun.recv().unwrap();
    let job = pool.scheduler().schedule_once_fn(ms(1), BLOCKING_DISPATCHER, |_| ()).unwrap();
    eventually("it was refused", || job.is_completed());
    drop(hold);
    let reported: Vec<_> = core::iter::from_fn(|| warnings.try_next()).collect();
    let engaged = Warning::BackpressureState { engaged: true, reason: PressureReason::Dispatcher };
    assert!(reported.contains(&DiagnosticEvent::Warned(engaged)), "{reported:?}");
    let failed = |event: &_| {
        matches!(event, DiagnosticEvent::Warned(Warning::HandlerFailed { error, .. })
            if error.text() == "its dispatcher did not run it")
    };
    assert!(reported.iter().any(failed), "{reported:?}");
}

#[test]
fn a_handler_that_blocks_its_worker_is_reported_and_the_jobs_go_on() {
    static N_REPORTS: AtomicUsize = AtomicUsize::new(0);
    let config = PoolConfig {
        workers: Some(1),
        stuck_after: ms(20),
        on_stuck: Some(|stuck| {
            assert_eq!((stuck.worker, stuck.pid), (0, None), "it polls no task");
            N_REPORTS.fetch_add(1, SeqCst);
        }),
        ..PoolConfig::DEFAULT
    };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let block = |_: &FireContext| {
        eventually("the handler is reported", || N_REPORTS.load(SeqCst) > 0);
    };
    pool.scheduler().schedule_once_fn(ms(1), ANY, block).unwrap();
    let (sender, receiver) = mpsc::channel();
    let job =
        pool.scheduler().schedule_at_fixed_rate_fn(ms(1), ms(5), ANY, move |_| sender.send(()));
    assert_eq!(receiver.iter().take(50).count(), 50);
    job.unwrap().cancel();
}

#[test]
fn a_task_that_a_handler_wakes_before_it_blocks_runs_on_another_worker() {
    let pool = pool_of(2);
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let (told, heard) = mpsc::channel();
    let register = Arc::clone(&waker);
    let mut polls = 0;
    let waits = core::future::poll_fn(move |cx| {
        polls += 1;
        *register.lock().unwrap() = Some(cx.waker().clone());
        if polls == 1 { Poll::Pending } else { Poll::Ready(()) }
    });
    drop(pool.spawn_future(async move {
        waits.await;
        told.send(()).unwrap();
    }));
    eventually("the task waits", || waker.lock().unwrap().is_some());
    let (sender, receiver) = mpsc::channel();
    let block = move |_: &FireContext| {
        // Into the LIFO slot of this worker.
        waker.lock().unwrap().take().unwrap().wake();
        sender.send(heard.recv_timeout(LONG))
    };
    pool.scheduler().schedule_once_fn(ms(1), ANY, block).unwrap();
    assert_eq!(receiver.recv_timeout(LONG), Ok(Ok(())));
}

struct CountsCancels(Arc<AtomicUsize>);
impl SchedulerTask for CountsCancels {
    fn run(&mut self, _fire: &FireContext) -> Result<(), HandlerError> {
        Ok(())
    }

    fn cancelled(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_pool_that_is_dropped_cancels_what_waits_and_tells_it() {
    let n_cancelled = Arc::new(AtomicUsize::new(0));
    let pool = pool_of(2);
    for _ in 0..10 {
        let task = CountsCancels(Arc::clone(&n_cancelled));
        pool.scheduler().schedule_at_fixed_rate_task(LONG, LONG, ANY, task).unwrap();
    }
    keeps_deadline(PoolConfig::DEFAULT.drop_timeout, || drop(pool));
    assert_eq!(n_cancelled.load(SeqCst), 10);
    assert_eq!(Arc::strong_count(&n_cancelled), 1, "all tasks are gone");
}

#[test]
fn a_job_runs_also_if_the_pool_has_no_room_for_a_timer() {
    let limits = Limits::DEFAULT.timers(8);
    let config = PoolConfig { workers: Some(1), limits, ..PoolConfig::DEFAULT };
    let pool = InTime::new(
        WorkerPool::new(config, Commands::new()).unwrap(),
        PoolConfig::DEFAULT.drop_timeout,
    );
    let arm = || {
        let mut timer = pool.handle().timer();
        timer.arm(LONG, Waker::noop().clone()).map(|()| timer)
    };
    let timers: Vec<_> = core::iter::from_fn(|| arm().ok()).collect();
    let full = pool.spawn_future(clockjack_rt::exec::sleep(LONG));
    assert!(pool.block_on(full).unwrap().unwrap_err().is_full());
    let (sender, receiver) = mpsc::channel();
    let begun = Instant::now();
    pool.scheduler().schedule_once_fn(ms(20), ANY, move |_| sender.send(begun.elapsed())).unwrap();
    assert!(receiver.recv_timeout(LONG).unwrap() >= ms(20));
    drop(timers);
}

#[test]
fn a_handler_that_does_not_end_is_left_behind_at_the_deadline() {
    let pool = pool_of(2);
    let (hold, held) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let block = move |_: &FireContext| {
        begin.send(()).unwrap();
        _ = held.recv_timeout(LONG);
    };
    let job = pool.scheduler().schedule_once_fn(ms(1), ANY, block).unwrap();
    begun.recv().unwrap();
    let report = pool.shutdown_in_time(ms(50));
    assert_eq!((report.stragglers.len(), report.workers_left), (0, 1));
    let closed = report.scheduler.unwrap();
    assert_eq!((closed.executed, closed.still_running), (1, 1));
    drop(hold);
    eventually("it ends all the same", || job.is_completed());
}

/// Three settings belong to the pool. Other values for them are refused and not ignored.
#[test]
fn a_pool_and_a_runtime_refuse_settings_that_they_would_ignore() {
    use clockjack_time::{Resolution, Tick};
    let default = SchedulerConfig::DEFAULT;
    for settings in [
        SchedulerConfig { resolution: Resolution::MILLI, ..default.clone() },
        SchedulerConfig { start: Tick::new(1), ..default.clone() },
        SchedulerConfig { shards: 2, ..default.clone() },
    ] {
        let builder = clockjack_rt::actor::ActorSystem::builder("t").scheduler(settings.clone());
        let refused = clockjack_rt::Runtime::start(builder).expect_err("it would be ignored");
        assert!(refused.to_string().contains("the host determines"), "{refused}");
        let scheduler = PoolSchedulerConfig { settings, ..PoolSchedulerConfig::DEFAULT };
        let config = PoolConfig { workers: Some(1), scheduler, ..PoolConfig::DEFAULT };
        let refused = WorkerPool::new(config, Commands::new()).expect_err("it would be ignored");
        assert!(refused.to_string().contains("the host determines"), "{refused}");
    }
}

/// A year has more than `i32::MAX` ticks of a millisecond.
#[test]
fn a_delay_of_a_year_is_accepted_on_a_default_runtime() {
    let rt =
        InTime::new(clockjack_rt::Runtime::new("t").unwrap(), RuntimeConfig::DEFAULT.drop_timeout);
    let year = Duration::from_secs(365 * 24 * 3600);
    let job = rt.system().scheduler().jobs().schedule_once_fn(year, ANY, |_| ()).unwrap();
    let soon = rt.system().scheduler().jobs().schedule_once_fn(ms(1), ANY, |_| ()).unwrap();
    eventually("the other job runs", || soon.is_completed());
    assert_eq!(job.state(), clockjack_rt::sched::JobState::Scheduled);
    assert!(job.cancel());
}
