//! What the pool promises to processes where threads are the subject: who takes whose work, who
//! waits for whom, and that nothing is lost between them.
//!
//! Nothing waits in order to pass; a bound is reached only by a fault.
#![cfg(not(loom))]

#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;

use core::{
    sync::atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Relaxed, SeqCst},
    },
    task::{Poll, Waker},
    time::Duration,
};
use std::{
    sync::{Arc, Condvar, Mutex, mpsc},
    task::Wake,
};

use clockjack_rt::{
    Blocking, PoolConfig, WorkerPool,
    exec::{
        Command, CommandId, Commands, Completer, Event, Events, Failure, Payload, Payloads,
        Process, SHUTDOWN, StepOutput, Tag,
        builtin::{Exec, SleepFor, Spawn},
    },
    spawn_future, yield_now,
};
use clockjack_testing::InTime;
use eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);

fn pool_with(workers: usize, commands: Commands) -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(workers), ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, commands).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

fn pool(workers: usize) -> InTime<WorkerPool> {
    pool_with(workers, Commands::new())
}

/// Who sees an end may be a moment before its count.
fn all_ended(pool: &WorkerPool) {
    eventually("all have ended", || {
        let stats = pool.stats();
        stats.spawned == stats.finished
    });
}

/// Holds a thread until it is opened.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar, AtomicBool);

impl Gate {
    fn hold(&self) {
        self.2.store(true, SeqCst);
        let mut is_open = self.0.lock().unwrap();
        while !*is_open {
            is_open = self.1.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait_until_held(&self) {
        eventually("a worker is held", || self.2.load(SeqCst));
    }
}

/// Two workers, each held by a gate, and some futures in the injector: the first two that run are
/// held by gates of their own.
struct Held {
    pool: InTime<WorkerPool>,
    workers: [Arc<Gate>; 2],
    firsts: [Arc<Gate>; 2],
    done: Arc<AtomicUsize>,
    /// What was stolen before: perhaps one of those that hold the workers.
    stolen_before: u64,
}

impl Held {
    fn new(n_futures: usize) -> Self {
        let pool = pool(2);
        let workers = [(); 2].map(|()| Arc::new(Gate::default()));
        for gate in &workers {
            let gate = Arc::clone(gate);
            drop(pool.spawn_future(async move { gate.hold() }));
        }
        workers.iter().for_each(|gate| gate.wait_until_held());
        let stolen_before = pool.stats().stolen;
        let firsts = [(); 2].map(|()| Arc::new(Gate::default()));
        let (begun, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..n_futures {
            let (begun, done, firsts) = (Arc::clone(&begun), Arc::clone(&done), firsts.clone());
            drop(pool.spawn_future(async move {
                if let Some(gate) = firsts.get(begun.fetch_add(1, SeqCst)) {
                    gate.hold();
                }
                done.fetch_add(1, SeqCst);
            }));
        }
        Self { pool, workers, firsts, done, stolen_before }
    }

    /// As [`new`](Self::new), and the first worker has taken some, and is held by its first future.
    fn by_one(n_futures: usize) -> Self {
        let held = Self::new(n_futures);
        held.workers[0].open();
        held.firsts[0].wait_until_held();
        held
    }

    /// The last future is let go, and then all are done.
    fn end(&self, n_futures: usize) {
        self.firsts[0].open();
        self.wait_until_done(n_futures);
    }

    fn stolen(&self) -> u64 {
        self.pool.stats().stolen - self.stolen_before
    }

    fn wait_until_done(&self, n: usize) {
        eventually("the futures are done", || self.done.load(SeqCst) == n);
    }
}

#[test]
fn a_worker_takes_one_and_up_to_sixteen_more_from_the_injector() {
    let held = Held::by_one(30);
    // The other one does the rest, and has to steal what the first had taken for itself.
    held.firsts[1].open();
    held.workers[1].open();
    held.wait_until_done(29);
    assert_eq!(held.stolen(), 16);
    held.end(30);
    assert!(held.pool.shutdown_in_time(LONG).is_clean());
}

#[test]
fn a_thief_takes_half_at_a_time() {
    let held = Held::by_one(17);
    held.workers[1].open();
    held.firsts[1].wait_until_held();
    assert_eq!(held.stolen(), 8, "of sixteen");
    held.firsts[1].open();
    held.wait_until_done(16);
    assert_eq!(held.stolen(), 16);
    held.end(17);
}

#[test]
fn workers_without_work_stop_to_spin_and_park_and_are_woken_for_work() {
    let pool = pool(3);
    eventually("all have parked", || pool.stats().parked >= 3);
    assert_eq!(pool.stats().steps, 0);
    for n in 0..20 {
        let parked = pool.stats().parked;
        assert_eq!(pool.block_on(pool.spawn_future(async move { n })).unwrap(), n);
        eventually("who worked has parked again", || pool.stats().parked > parked);
    }
}

#[test]
fn two_that_wake_each_other_leave_the_others_their_turns() {
    let pool = pool(1);
    // Both wakers, and how often one of the two ran since the third did.
    type Wakers = Arc<Mutex<[Option<Waker>; 2]>>;
    let wakers = Wakers::default();
    let (run, run_max) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for me in 0..2 {
        let (wakers, run) = (Arc::clone(&wakers), Arc::clone(&run));
        drop(pool.spawn_future(core::future::poll_fn(move |cx| -> Poll<()> {
            run.fetch_add(1, SeqCst);
            let mut wakers = wakers.lock().unwrap();
            wakers[me] = Some(cx.waker().clone());
            if let Some(other) = &wakers[1 - me] {
                other.wake_by_ref();
            }
            Poll::Pending
        })));
    }
    let third = pool.spawn_future({
        let (run, run_max) = (Arc::clone(&run), Arc::clone(&run_max));
        async move {
            let mut sum = 0;
            // The first turns do not count: the two may not be on their way yet.
            for turn in 0..1000 {
                yield_now().await;
                let run = run.swap(0, SeqCst);
                if turn > 10 {
                    run_max.fetch_max(run, SeqCst);
                    sum += run;
                }
            }
            sum
        }
    });
    let sum = pool.block_on(third).unwrap();
    assert!(sum > 1000, "the two hardly ran: {sum}");
    assert!(run_max.load(SeqCst) <= 3, "{} in a row", run_max.load(SeqCst));
}

/// Reports a channel.
struct Tell(mpsc::Sender<&'static str>);

impl Wake for Tell {
    fn wake(self: Arc<Self>) {
        // Nobody listens any more if the test has failed.
        let _ = self.0.send("woken");
    }
}

#[test]
fn what_a_held_worker_has_is_done_by_another() {
    let pool = pool(2);
    let handle = pool.handle();
    let held = pool.spawn_future(async move {
        let said = |receiver: &mpsc::Receiver<&'static str>| receiver.recv_timeout(LONG).unwrap();
        // In its ring.
        let (sender, receiver) = mpsc::channel();
        drop(spawn_future(async move { sender.send("spawned").unwrap() }));
        assert_eq!(said(&receiver), "spawned");
        // In its LIFO slot.
        let (sender, receiver) = mpsc::channel();
        let waker = Arc::new(Mutex::new(None));
        let theirs = Arc::clone(&waker);
        drop(spawn_future(core::future::poll_fn(move |cx| {
            if theirs.lock().unwrap().replace(cx.waker().clone()).is_none() {
                sender.send("waits").unwrap();
                return Poll::Pending;
            }
            sender.send("woken").unwrap();
            Poll::Ready(())
        })));
        assert_eq!(said(&receiver), "waits");
        let waker = waker.lock().unwrap().take().unwrap();
        waker.wake_by_ref();
        assert_eq!(said(&receiver), "waits", "it had lost its waker, so it waits once more");
        waker.wake();
        assert_eq!(said(&receiver), "woken");
        // Among its timers.
        let (sender, receiver) = mpsc::channel();
        let mut timer = handle.timer();
        timer.arm(Duration::from_millis(1), Waker::from(Arc::new(Tell(sender)))).unwrap();
        assert_eq!(said(&receiver), "woken");
    });
    pool.block_on(held).unwrap();
    assert!(pool.shutdown_in_time(LONG).is_clean());
}

struct Ask;

impl Command for Ask {
    const ID: CommandId = CommandId(300);
    type Reply = ();
}

/// Asks so many times, each time when the last was answered.
struct Asks<C>(u32, fn() -> C);

impl<C: Command> Process for Asks<C> {
    type Message = u32;

    fn step(&mut self, events: &mut Events<'_, u32>, out: &mut StepOutput) -> Result<(), Failure> {
        for event in events {
            match event {
                Event::Message(n) => self.0 = n + 1,
                Event::YieldComplete { result, .. } => drop(result?),
                _ => return Err(Failure::msg("an event that was not expected")),
            }
            self.0 -= 1;
            if self.0 == 0 {
                out.done(Payload::unit());
                return Ok(());
            }
            out.yield_command(Tag(1), (self.1)());
        }
        out.wait();
        Ok(())
    }
}

#[test]
fn no_completion_is_lost_between_a_worker_and_another_thread() {
    const N: u32 = 20_000;
    let (give, given) = mpsc::channel::<Completer<()>>();
    let give = Mutex::new(give);
    let commands =
        Commands::new().handle(move |Ask, done| give.lock().unwrap().send(done).unwrap());
    let answerer = std::thread::spawn(move || {
        // Ends when the handler goes with its pool.
        given.into_iter().for_each(|done| done.complete(Ok(())));
    });
    let pool = pool_with(2, commands);
    let asks = [(); 2].map(|()| {
        let it = pool.submit(Asks(0, || Ask)).unwrap();
        it.tell(N).unwrap();
        it
    });
    eventually("every command was answered", || asks.iter().all(|it| it.is_finished()));
    for it in asks {
        pool.block_on(it.join()).unwrap();
    }
    assert!(pool.shutdown_in_time(LONG).is_clean());
    answerer.join().unwrap();
}

/// Ends in its first step.
struct Brief;

impl Process for Brief {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::new(5_u32));
        Err(Failure::msg("brief"))
    }
}

#[test]
fn the_result_of_the_shortest_process_is_not_missed() {
    const N: u32 = 5_000;
    let pool = pool(2);
    let it = pool.submit(Asks(0, || Exec::future(async { Ok(1_u32) }))).unwrap();
    it.tell(N).unwrap();
    eventually("every future was executed", || it.is_finished());
    pool.block_on(it.join()).unwrap();

    // A process that has ended before it is joined still has its result, for one.
    for _ in 0..N {
        let it = pool.submit(Brief).unwrap();
        let exit = pool.block_on(it.join()).unwrap_err();
        assert_eq!(exit.into_failure().unwrap().to_string(), "brief");
        assert!(pool.block_on(it.join()).unwrap_err().is_already_joined());
    }
    let exec = || Exec::process(Done, "", Payloads::new());
    let it = pool.submit(Asks(0, exec)).unwrap();
    it.tell(N).unwrap();
    eventually("every process was executed", || it.is_finished());
    pool.block_on(it.join()).unwrap();
}

/// Ends well in its first step.
struct Done;

impl Process for Done {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.done(Payload::unit());
        Ok(())
    }
}

#[test]
fn whoever_spawns_with_a_tie_is_told_of_every_end() {
    let pool = pool(3);
    let parents = [(); 2].map(|()| pool.submit(Tied::new(3_000)).unwrap());
    eventually("all ends were told", || parents.iter().all(|it| it.is_finished()));
    for it in parents {
        pool.block_on(it.join()).unwrap();
    }
    all_ended(&pool);
}

/// Spawns a brief process, monitored and linked, whenever it was told twice of the end of the last.
struct Tied {
    left: u32,
    receiver: u32,
}

impl Tied {
    fn new(left: u32) -> Self {
        Self { left, receiver: 2 }
    }
}

impl Process for Tied {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.trap_links(true);
        for event in events {
            match event {
                Event::YieldComplete { result, .. } => drop(result?),
                Event::Exit { .. } | Event::LinkDown { .. } => self.receiver += 1,
                _ => return Err(Failure::msg("an event that was not expected")),
            }
        }
        if self.receiver < 2 {
            out.idle();
        } else if self.left == 0 {
            out.done(Payload::unit());
        } else {
            (self.left, self.receiver) = (self.left - 1, 0);
            out.yield_command(Tag(1), Spawn::new(Brief).monitored().linked());
        }
        Ok(())
    }
}

/// Goes on and on until it is cancelled.
struct Endless(Arc<AtomicU64>);

impl Process for Endless {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        self.0.fetch_add(1, Relaxed);
        if let Some(Event::Cancel { reason: SHUTDOWN }) = events.next() {
            out.done(Payload::unit());
        }
        Ok(())
    }
}

#[test]
fn endless_processes_share_one_worker_fairly_and_starve_nobody() {
    let pool = pool(1);
    let counts = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    for count in &counts {
        drop(pool.submit(Endless(Arc::clone(count))).unwrap());
    }
    // Timers, and what comes from outside.
    let slept = pool.spawn_future(async {
        for _ in 0..10 {
            clockjack_rt::sleep(Duration::from_millis(1)).await.unwrap();
        }
    });
    pool.block_on(slept).unwrap();
    for n in 0..100 {
        assert_eq!(pool.block_on(pool.spawn_future(async move { n })).unwrap(), n);
    }
    eventually("both go on", || counts.iter().all(|count| count.load(Relaxed) > 10_000));
    assert!(pool.shutdown_in_time(LONG).is_clean());
    let [a, b] = counts.map(|count| count.load(Relaxed));
    // They take turns; one may have begun before the other was there.
    assert!(a < 2 * b && b < 2 * a, "{a} and {b} turns");
}

#[test]
fn a_shutdown_waits_for_a_process_that_sleeps_in_its_clean_up() {
    struct Tidy;
    impl Process for Tidy {
        type Message = ();

        fn step(
            &mut self,
            events: &mut Events<'_, ()>,
            out: &mut StepOutput,
        ) -> Result<(), Failure> {
            for event in events {
                match event {
                    Event::Cancel { .. } => {
                        out.yield_command(Tag(1), SleepFor(Duration::from_millis(30)));
                    }
                    Event::YieldComplete { result, .. } => {
                        result?;
                        out.done(Payload::new("tidy"));
                        return Ok(());
                    }
                    _ => {}
                }
            }
            out.idle();
            Ok(())
        }
    }
    let pool = pool(2);
    let tidy: Vec<_> = (0..5).map(|_| pool.submit(Tidy).unwrap()).collect();
    let report = pool.shutdown_in_time(LONG);
    assert!(report.is_clean());
    assert_eq!(report.completed, 5);
    for it in tidy {
        assert!(it.is_finished());
        let mut join = it.join();
        let mut cx = core::task::Context::from_waker(Waker::noop());
        match core::pin::Pin::new(&mut join).poll(&mut cx) {
            Poll::Ready(Ok(result)) => assert_eq!(result.downcast::<&str>().unwrap(), "tidy"),
            other => panic!("no result but {other:?}"),
        }
    }
}

#[test]
fn a_deaf_process_is_ended_at_the_deadline_and_reported() {
    struct Deaf(Arc<AtomicUsize>);
    impl Process for Deaf {
        type Message = ();

        fn step(
            &mut self,
            events: &mut Events<'_, ()>,
            out: &mut StepOutput,
        ) -> Result<(), Failure> {
            events.for_each(drop);
            out.idle();
            Ok(())
        }

        fn close(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let closed = Arc::new(AtomicUsize::new(0));
    let pool = pool(2);
    let it = pool.submit(Deaf(Arc::clone(&closed))).unwrap();
    let report = pool.shutdown_in_time(Duration::from_millis(1));
    assert_eq!(report.stragglers.len(), 1);
    assert_eq!(report.stragglers[0].pid, it.pid());
    assert!(it.is_finished());
    assert_eq!(closed.load(SeqCst), 1);
}

/// Asks for blocking work, and ends with the answer.
struct Blocks(Option<Blocking>);

impl Process for Blocks {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        if let Some(work) = self.0.take() {
            out.yield_command(Tag(1), work);
        }
        if let Some(Event::YieldComplete { result, .. }) = events.next() {
            out.done(result?);
            return Ok(());
        }
        out.wait();
        Ok(())
    }
}

#[test]
fn blocking_work_is_done_elsewhere_and_answered() {
    let pool = pool(1);
    let check = |work: Blocking| pool.block_on(pool.submit(Blocks(Some(work))).unwrap().join());
    let (sender, receiver) = mpsc::channel();
    // It holds its thread until the only worker has done something else.
    let it = pool.submit(Blocks(Some(Blocking::new(move || Ok(receiver.recv_timeout(LONG)?)))));
    pool.block_on(pool.spawn_future(async move { sender.send(5_u32).unwrap() })).unwrap();
    let five = pool.block_on(it.unwrap().join()).unwrap();
    assert_eq!(five.downcast::<u32>().unwrap(), 5);

    let failed = check(Blocking::new(|| Err::<(), _>(Failure::msg("no")))).unwrap_err();
    assert_eq!(failed.into_failure().unwrap().to_string(), "no");
    let panicked = check(Blocking::new::<(), _>(|| panic!("never"))).unwrap_err();
    assert_eq!(panicked.into_failure().unwrap().code(), Some(3));
    all_ended(&pool);
    assert!(pool.shutdown_in_time(LONG).is_clean());
}
