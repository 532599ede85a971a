//! Faults on a pool: each ends what it is in and nothing else, and no worker is lost.
//!
//! Nothing waits in order to pass; a bound is reached only by a fault.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    cell::RefCell,
    future::{pending, poll_fn},
    panic::AssertUnwindSafe,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    panic::{catch_unwind, resume_unwind},
    sync::{Arc, Barrier, Mutex, mpsc},
    task::Wake,
    thread,
};

use clockjack_rt::{
    BlockingConfig, BlockingReport, PoolConfig, ShutdownReport, WorkerPool,
    exec::{
        Command, CommandId, Commands, Event, Events, Failure, Limits, Payload, Payloads, Pid,
        Process, StepOutput, Tag, builtin::SleepFor,
    },
};
use clockjack_testing::{InTime, caller_asserts_deadline, keeps_deadline};
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);

fn pool_of(config: PoolConfig, commands: Commands) -> InTime<WorkerPool> {
    let drop_timeout = config.drop_timeout;
    let pool = WorkerPool::new(config, commands).expect("a pool of a few threads starts");
    InTime::new(pool, drop_timeout)
}

fn pool(workers: usize) -> InTime<WorkerPool> {
    pool_of(PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT }, Commands::new())
}

/// The only worker is still there, and everything has ended.
#[track_caller]
fn assert_well(pool: &WorkerPool) {
    let still = pool.spawn_future(async { 42 });
    eventually("the pool still runs things", || still.is_finished());
    assert_eq!(pool.block_on(still).unwrap(), 42);
    eventually("all has ended", || {
        let stats = pool.stats();
        stats.spawned == stats.finished
    });
}

/// Panics when it is dropped, unless that would abort.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        assert!(thread::panicking(), "a bomb");
    }
}

struct Ask;

impl Command for Ask {
    const ID: CommandId = CommandId(300);
    type Reply = Bomb;
}

/// Panics at one place of its life, or holds something that does.
struct Faulty {
    place: &'static str,
    has_asked: bool,
    bomb: Option<Bomb>,
}

impl Faulty {
    fn at(&self, place: &str) {
        assert_ne!(self.place, place, "a fault");
    }
}

impl Process for Faulty {
    type Message = Bomb;

    fn init(&mut self, _: Pid, _: &str, _: Payloads) -> Result<(), Failure> {
        self.at("init");
        if self.place == "drop" {
            self.bomb = Some(Bomb);
        }
        Ok(())
    }

    fn step(&mut self, _: &mut Events<'_, Bomb>, out: &mut StepOutput) -> Result<(), Failure> {
        self.at("step");
        match self.place {
            "result" => out.done(Payload::new(Bomb)),
            "thrown" => std::panic::panic_any(Bomb),
            "handler" | "answer" if !self.has_asked => {
                self.has_asked = true;
                out.yield_command(Tag(1), Ask);
            }
            // The answer, or the message, is not taken.
            _ => out.done(Payload::unit()),
        }
        Ok(())
    }

    fn close(&mut self) {
        self.at("close");
    }
}

#[test]
fn no_panic_of_a_process_takes_the_worker_with_it() {
    for place in ["init", "step", "close", "drop", "result", "thrown", "handler", "answer", "mail"]
    {
        let is_handler = place == "handler";
        let commands = Commands::new().handle(move |Ask, done| {
            assert!(!is_handler, "a fault");
            done.complete(Ok(Bomb));
        });
        let pool = pool_of(PoolConfig { workers: Some(1), ..PoolConfig::DEFAULT }, commands);
        for _ in 0..3 {
            let submitted = pool.submit(Faulty { place, has_asked: false, bomb: None });
            match submitted {
                Ok(it) => {
                    assert_ne!(place, "init");
                    if place == "mail" {
                        // It may have ended; then the bomb is ours.
                        it.tell(Bomb)
                            .map_err(|refused| core::mem::forget(refused.into_inner()))
                            .ok();
                    }
                    eventually("it has ended", || it.is_finished());
                }
                Err(refused) => assert!(place == "init" && refused.is_refused()),
            }
            assert_well(&pool);
        }
        assert_eq!(pool.workers(), 1);
        assert!(pool.shutdown_in_time(LONG).is_clean(), "{place}");
    }
}

/// A waker that panics.
struct Alarm;

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        panic!("do not wake me");
    }
}

/// Pending with a bomb.
struct Doomed(Bomb);

impl Future for Doomed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}

#[test]
fn no_panic_of_a_future_its_output_or_a_foreign_waker_takes_the_worker_with_it() {
    let pool = pool(1);
    assert!(
        pool.block_on(pool.spawn_future(async { panic!("a fault") })).map(|(): ()| ()).is_err()
    );
    assert_well(&pool);
    // The worker drops the output, because nobody waits for it any more.
    let (go, gone) = mpsc::channel();
    let unwanted = pool.spawn_future(async move {
        gone.recv_timeout(LONG).unwrap();
        Bomb
    });
    drop(unwanted);
    go.send(()).unwrap();
    assert_well(&pool);
    let doomed = pool.spawn_future(Doomed(Bomb));
    doomed.abort();
    assert!(pool.block_on(doomed).unwrap_err().is_terminated());
    assert_well(&pool);

    let waker = Waker::from(Arc::new(Alarm));
    let (go, gone) = mpsc::channel();
    let mut join = pool.spawn_future(async move { gone.recv_timeout(LONG).unwrap() });
    assert!(Pin::new(&mut join).poll(&mut Context::from_waker(&waker)).is_pending());
    go.send(5).unwrap();
    assert_well(&pool);
    assert_eq!(pool.block_on(join).unwrap(), 5);
    let mut timer = pool.handle().timer();
    timer.arm(Duration::from_millis(1), waker).unwrap();
    eventually("it has fired", || !timer.is_armed());
    assert_well(&pool);
    eventually("both wakers are counted, and the two drops", || pool.stats().drop_panics == 4);
}

/// A waker that fails when the last of it goes, without a report.
struct Grudge;

impl Wake for Grudge {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Grudge {
    fn drop(&mut self) {
        if !thread::panicking() {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

#[test]
fn a_waker_whose_drop_panics_hits_nobody_who_only_touched_the_same_timers() {
    const EACH: usize = 20_000;
    let pool = pool(2);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    // All in one shard, so that some find it held, and leave what they cancel to
                    // who holds it.
                    let mut timer = pool.handle().timer();
                    // Refused where too many are left: that is as good here.
                    _ = timer.arm(LONG, Waker::from(Arc::new(Grudge)));
                    timer.cancel();
                    // Its own waker may fail here.
                    drop(catch_unwind(AssertUnwindSafe(|| drop(timer))));
                }
            });
        }
    });
    assert_well(&pool);
}

#[test]
fn block_on_on_a_worker_panics_with_a_reason_and_ends_that_future_only() {
    let pool = Arc::new(pool(1));
    let theirs = Arc::clone(&pool);
    let exit =
        pool.block_on(pool.spawn_future(async move { theirs.block_on(async {}) })).unwrap_err();
    assert!(exit.panic_message().unwrap().contains("block_on was called on a worker"));
    assert_well(&pool);
}

#[test]
fn a_block_on_inside_of_another_takes_no_wake_from_it() {
    let (sender, receiver) = mpsc::channel();
    // Not scoped: if it fails it never ends.
    thread::spawn(move || {
        let pool = pool(1);
        let mut polls = 0;
        pool.block_on(poll_fn(|cx| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            // Woken before the inner call, which sleeps once.
            cx.waker().wake_by_ref();
            pool.block_on(clockjack_rt::yield_now());
            Poll::Pending
        }));
        sender.send(polls).unwrap();
    });
    assert_eq!(receiver.recv_timeout(LONG), Ok(2));
}

/// Waits for a future at the end of its thread.
struct WaitsAtEnd(Arc<WorkerPool>, mpsc::Sender<u32>);

impl Drop for WaitsAtEnd {
    fn drop(&mut self) {
        self.1.send(self.0.block_on(async { 42 })).unwrap();
    }
}

thread_local! {
    static AT_END: RefCell<Option<WaitsAtEnd>> = const { RefCell::new(None) };
}

#[test]
fn what_a_thread_drops_at_its_very_end_may_still_wait_for_a_future() {
    // The thread may be the last that drops it, where on Windows no thread can start that would
    // measure the time.
    let pool = Arc::new(pool(1).into_inner());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| {
            // Before the thread waits for the first time, and so dropped behind all that is the
            // pool's.
            AT_END.set(Some(WaitsAtEnd(Arc::clone(&pool), sender)));
            pool.block_on(async {});
        });
    });
    assert_eq!(receiver.recv_timeout(LONG), Ok(42));
}

#[test]
fn a_pool_that_is_shut_down_or_resized_at_once_leaves_no_worker_behind() {
    for _ in 0..100 {
        let pool = pool(2);
        pool.resize(3).unwrap();
        pool.resize(1).unwrap();
        assert!(pool.shutdown_in_time(LONG).is_clean());
    }
}

#[test]
fn after_the_shutdown_everything_is_refused_and_comes_back() {
    let pool = pool(1);
    let handle = pool.handle();
    assert!(pool.shutdown_in_time(LONG).is_clean());
    let refused = handle.submit(Faulty { place: "", has_asked: false, bomb: None }).unwrap_err();
    assert!(refused.is_stopped());
    assert!(refused.into_inner().is_some());
    let mut join = handle.spawn_future(async {});
    match Pin::new(&mut join).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Err(exit)) => assert!(exit.is_refused()),
        other => panic!("not refused but {other:?}"),
    }
    let armed = handle.timer().arm(Duration::ZERO, Waker::noop().clone());
    assert!(armed.unwrap_err().is_closed());
}

#[test]
fn a_process_too_many_is_refused_until_one_ends() {
    let limits = Limits::DEFAULT.processes(1);
    let config = PoolConfig { workers: Some(1), limits, ..PoolConfig::DEFAULT };
    let pool = pool_of(config, Commands::new());
    let first = pool.spawn_future(pending::<()>());
    let refused = pool.submit(Faulty { place: "", has_asked: false, bomb: None }).unwrap_err();
    assert!(refused.is_full());
    assert!(pool.block_on(pool.spawn_future(async {})).unwrap_err().is_refused());
    first.abort();
    assert!(pool.block_on(first).unwrap_err().is_terminated());
    eventually("there is room again", || pool.block_on(pool.spawn_future(async {})).is_ok());
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn a_pool_dropped_by_one_of_its_futures_ends_everything_and_leaves_no_thread() {
    for workers in [1, 3] {
        let drops = Arc::new(AtomicUsize::new(0));
        // Goes with the engine, which goes with the last thread.
        let engine = Arc::new(());
        let held = Arc::clone(&engine);
        let commands = Commands::new().handle(move |Ask, done| {
            let _ = &held;
            drop(done);
        });
        let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
        let pool = pool_of(config, commands);
        let handle = pool.handle();
        let waiting: Vec<_> = (0..10)
            .map(|n| {
                let counted = Counted(Arc::clone(&drops));
                pool.spawn_future(async move {
                    let _counted = counted;
                    if n % 2 == 0 {
                        clockjack_rt::sleep(LONG).await.unwrap();
                    }
                    pending::<()>().await;
                })
            })
            .collect();
        let slot = Arc::new(Mutex::new(Some(pool)));
        let theirs = Arc::clone(&slot);
        let counted = Counted(Arc::clone(&drops));
        let dropper = handle.spawn_future(async move {
            let _counted = counted;
            clockjack_rt::yield_now().await;
            drop(theirs.lock().unwrap().take());
        });
        eventually("all futures are gone", || drops.load(SeqCst) == 11);
        eventually("all have ended", || {
            let stats = handle.stats();
            stats.spawned == stats.finished
        });
        assert!(dropper.is_finished() && waiting.iter().all(|join| join.is_finished()));
        drop((dropper, waiting, handle));
        eventually("the threads have left", || Arc::strong_count(&engine) == 1);
    }
}

/// Shuts a pool down at the end of a thread. The test measures how long that takes: on Windows, the
/// thread that measures a deadline could not start here.
struct ShutsDownAtEnd(Option<WorkerPool>, mpsc::Sender<ShutdownReport>);

impl Drop for ShutsDownAtEnd {
    fn drop(&mut self) {
        let (pool, timeout) = (self.0.take().expect("it is dropped once"), LONG * 60);
        self.1.send(caller_asserts_deadline(|| pool.shutdown(timeout))).unwrap();
    }
}

thread_local! {
    static POOL_OF_THREAD: RefCell<Option<ShutsDownAtEnd>> = const { RefCell::new(None) };
}

#[test]
fn a_pool_that_goes_with_the_thread_of_its_own_worker_does_not_wait_for_that() {
    let pool = pool(2);
    let (handle, (sender, receiver)) = (pool.handle(), mpsc::channel());
    let place = Arc::new(Mutex::new(Some(ShutsDownAtEnd(Some(pool.into_inner()), sender))));
    // Each holds one of the workers, so that one of the two is on the second.
    let both_are_held = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let (place, both_are_held) = (Arc::clone(&place), Arc::clone(&both_are_held));
        drop(handle.spawn_future(async move {
            both_are_held.wait();
            if thread::current().name().is_some_and(|name| name.ends_with("-1")) {
                let end = place.lock().unwrap().take().unwrap();
                end.0.as_ref().unwrap().resize(1).unwrap();
                POOL_OF_THREAD.set(Some(end));
            }
        }));
    }
    let report = receiver.recv_timeout(LONG).expect("it does not take the whole time");
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn a_pool_shut_down_by_its_own_blocking_work_does_not_wait_for_that() {
    let pool = pool(1);
    let ((give, given), (sender, receiver)) =
        (mpsc::channel::<InTime<WorkerPool>>(), mpsc::channel());
    let work = move || {
        let pool = given.recv().unwrap();
        sender.send(pool.shutdown_in_time(LONG * 60)).unwrap();
    };
    drop(pool.spawn_blocking(work).unwrap());
    give.send(pool).unwrap();
    let report = receiver.recv_timeout(LONG).expect("it does not take the whole time");
    assert!(!report.is_clean(), "the closure is still running");
    assert!(report.stragglers.is_empty() && report.workers_left == 0);
    assert_eq!((report.blocking.finished, report.blocking.abandoned), (0, 1));
}

#[test]
fn a_pool_shut_down_on_its_worker_drops_blocking_work_that_has_not_begun() {
    let blocking = BlockingConfig { threads_max: 1, ..BlockingConfig::DEFAULT };
    let config = PoolConfig { workers: Some(1), blocking, ..PoolConfig::DEFAULT };
    let pool = pool_of(config, Commands::new());
    let (_end, ends) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let wait = move || {
        begin.send(()).unwrap();
        _ = ends.recv();
    };
    drop(pool.spawn_blocking(wait).unwrap());
    begun.recv_timeout(LONG).unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Counted(Arc::clone(&drops));
    let never = pool.spawn_blocking(move || counted.0.load(SeqCst)).unwrap();
    let (give, given) = mpsc::channel::<InTime<WorkerPool>>();
    let (sender, receiver) = mpsc::channel();
    drop(pool.spawn_future(async move {
        let pool = given.recv().unwrap();
        sender.send(pool.shutdown_in_time(LONG).blocking).unwrap();
    }));
    give.send(pool).unwrap();
    let report = receiver.recv_timeout(LONG).unwrap();
    assert_eq!(report, BlockingReport { finished: 0, abandoned: 1, dropped: 1 });
    assert_eq!(drops.load(SeqCst), 1);
    assert!(
        pool_of(PoolConfig::DEFAULT, Commands::new()).block_on(never).unwrap_err().is_cancelled()
    );
}

/// Cleans up for a moment when it is asked to stop.
struct Tidy(Arc<AtomicUsize>);

impl Process for Tidy {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Cancel { .. } => {
                    out.yield_command(Tag(1), SleepFor(Duration::from_millis(5)))
                }
                Event::YieldComplete { result, .. } => {
                    result?;
                    self.0.fetch_add(1, SeqCst);
                    out.done(Payload::unit());
                    return Ok(());
                }
                _ => {}
            }
        }
        out.idle();
        Ok(())
    }
}

#[test]
fn a_pool_dropped_on_the_worker_of_another_waits_for_its_processes() {
    let (outer, inner) = (pool(1), pool(1));
    let tidied = Arc::new(AtomicUsize::new(0));
    drop(inner.submit(Tidy(Arc::clone(&tidied))).unwrap());
    let report =
        outer.block_on(outer.spawn_future(async move { inner.shutdown_in_time(LONG) })).unwrap();
    assert!(report.is_clean());
    assert_eq!((report.completed, tidied.load(SeqCst)), (1, 1));
    assert_well(&outer);
}

#[test]
fn whatever_is_started_beside_a_shutdown_ends_or_is_refused() {
    for _ in 0..50 {
        let pool = pool(2);
        let handle = pool.handle();
        let (sender, receiver) = mpsc::channel();
        let starter = thread::spawn(move || {
            let mut joins = Vec::new();
            loop {
                let join = handle.spawn_future(pending::<()>());
                let is_refused = join.pid().is_none();
                joins.push(join);
                if joins.len() == 10 {
                    sender.send(()).unwrap();
                }
                if is_refused {
                    return (handle, joins);
                }
            }
        });
        receiver.recv_timeout(LONG).unwrap();
        keeps_deadline(PoolConfig::DEFAULT.drop_timeout, || drop(pool));
        let (handle, joins) = starter.join().unwrap();
        eventually("all have ended", || joins.iter().all(|join| join.is_finished()));
        eventually("all are counted", || {
            let stats = handle.stats();
            stats.spawned == stats.finished
        });
    }
}
