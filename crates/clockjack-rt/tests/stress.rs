//! A pool under everything at once: futures, processes and timers come from many threads while
//! workers come and go. What was begun is accounted for to the last piece.
//!
//! Nothing is said about how long anything takes; a test that does not end has lost something.
#![cfg(not(loom))]

use core::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::Waker,
    time::Duration,
};
use std::{
    panic::resume_unwind,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Wake,
    thread,
};

use clockjack_rt::{
    PoolConfig, WorkerPool,
    exec::{
        Commands, Event, Events, Failure, JoinError, Payload, Pid, Process, ProcessRef, StepOutput,
        Tag,
        builtin::{Link, Spawn, Terminate},
    },
};
use clockjack_testing::{
    InTime, Random,
    post::{Letter, Post},
};

#[path = "actors/load.rs"]
mod actors;
#[path = "support/eventually.rs"]
mod eventually;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "support/patience.rs"]
mod patience;
#[path = "actors/storm.rs"]
mod storm;
#[path = "support/token.rs"]
mod token;

use crate::eventually::eventually;
use in_time::ShutdownInTime as _;

const LONG: Duration = Duration::from_secs(60);
/// Threads that disturb.
const THREADS: usize = 3;

fn pool() -> InTime<WorkerPool> {
    let config = PoolConfig { workers: Some(3), workers_max: 8, ..PoolConfig::DEFAULT };
    let pool = WorkerPool::new(config, Commands::new()).expect("a pool of a few threads starts");
    InTime::new(pool, PoolConfig::DEFAULT.drop_timeout)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `disturb` on some threads and makes workers come and go until all are through.
fn while_workers_come_and_go(pool: &WorkerPool, disturb: impl Fn(u64) + Sync) {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(99);
            while !is_over.load(SeqCst) {
                let workers = usize::try_from(1 + random.below(6)).expect("few");
                pool.resize(workers).expect("not too many, and not stopped");
                thread::yield_now();
            }
            pool.resize(2).expect("not too many, and not stopped");
        });
        // Also after a panic in one of the threads, so that the test ends.
        let _over = OnDrop(&is_over);
        thread::scope(|scope| {
            for number in 0..THREADS {
                let disturb = &disturb;
                scope.spawn(move || disturb(number as u64));
            }
        });
    });
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn all_has_ended(pool: InTime<WorkerPool>) {
    eventually("all that was started has ended", || {
        let stats = pool.stats();
        stats.spawned == stats.finished
    });
    assert_eq!(pool.stats().drop_panics, 0);
    let report = pool.shutdown_in_time(LONG);
    assert!(report.is_clean(), "{report:?}");
}

/// Counts that its future was dropped.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Something that blocks, to its end.
fn blocking(pool: &WorkerPool, guard: Guard) {
    let done = Arc::new(AtomicBool::new(false));
    let work = {
        let done = Arc::clone(&done);
        move || {
            let _guard = guard;
            done.store(true, SeqCst);
        }
    };
    drop(pool.spawn_blocking(work).expect("few wait at a time"));
    eventually("blocking work is done", || done.load(SeqCst));
}

/// One future of a kind that the number tells, and what has to become of it; gives the number of
/// processes that were started for it.
fn one_future(pool: &WorkerPool, kind: u64, drops: &Arc<AtomicUsize>) -> u64 {
    let guard = Guard(Arc::clone(drops));
    let result = match kind {
        0 => pool.block_on(pool.spawn_future(async move {
            let _guard = guard;
            kind
        })),
        1 => pool.block_on(pool.spawn_future(async move {
            let _guard = guard;
            for _ in 0..5 {
                clockjack_rt::yield_now().await;
            }
            kind
        })),
        2 => pool.block_on(pool.spawn_future(async move {
            let _guard = guard;
            // A sleep is refused only after the pool has stopped.
            match clockjack_rt::sleep(Duration::from_micros(700)).await {
                Err(_) => resume_unwind(Box::new("refused")),
                Ok(()) => kind,
            }
        })),
        3 => pool.block_on(pool.spawn_future(async move {
            let _guard = guard;
            let child = clockjack_rt::spawn_future(async move {
                clockjack_rt::yield_now().await;
                kind
            });
            child.await.unwrap_or(0)
        })),
        4 => {
            let exit = pool.block_on(pool.spawn_future(async move {
                let _guard = guard;
                resume_unwind(Box::new("on purpose"))
            }));
            assert_eq!(exit.map(|(): ()| ()).map_err(|exit| exit.is_panicked()), Err(true));
            return 1;
        }
        5 => {
            let join = pool.spawn_future(async move {
                let _guard = guard;
                clockjack_rt::yield_now().await;
                kind
            });
            join.abort();
            let ended = pool.block_on(join);
            assert!(ended.as_ref().map_or_else(JoinError::is_terminated, |output| *output == kind));
            return 1;
        }
        6 => {
            // Detached, and aborted while it sleeps.
            let join = pool.spawn_future(async move {
                let _guard = guard;
                let _ = clockjack_rt::sleep(LONG).await;
            });
            join.abort();
            return 1;
        }
        _ => {
            blocking(pool, guard);
            return 0;
        }
    };
    assert_eq!(result.expect("nobody ends it"), kind);
    if kind == 3 { 2 } else { 1 }
}

#[test]
fn every_future_ends_as_it_must_and_is_dropped_once() {
    const EACH: u64 = 1_200;
    let pool = pool();
    let (drops, started) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    while_workers_come_and_go(&pool, |number| {
        let mut random = Random::new(number);
        for _ in 0..EACH {
            let n_started = one_future(&pool, random.below(8), &drops);
            started.fetch_add(usize::try_from(n_started).expect("one or two"), SeqCst);
        }
    });
    eventually("all were dropped", || drops.load(SeqCst) == THREADS * 1_200);
    assert_eq!(pool.stats().spawned, started.load(SeqCst) as u64);
    all_has_ended(pool);
    assert_eq!(drops.load(SeqCst), THREADS * 1_200, "some were dropped twice");
}

/// How many processes have come and gone.
#[derive(Default)]
struct Lives {
    begun: AtomicUsize,
    closed: AtomicUsize,
}

/// Takes letters; may be linked to another one and go down with it.
struct Sink {
    lives: Arc<Lives>,
    linked_to: Option<Pid>,
}

impl Process for Sink {
    type Message = Letter<()>;

    fn step(
        &mut self,
        events: &mut Events<'_, Letter<()>>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        out.idle();
        if let Some(pid) = self.linked_to.take() {
            out.yield_command(Tag(1), Link(pid));
        }
        for event in events {
            match event {
                Event::Message(letter) => letter.handle(),
                Event::Cancel { reason: "fail" } => return Err(Failure::msg("on purpose")),
                Event::Cancel { reason: "panic" } => resume_unwind(Box::new("on purpose")),
                Event::Cancel { .. } => {
                    out.done(Payload::new(()));
                    return Ok(());
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        self.lives.closed.fetch_add(1, SeqCst);
    }
}

fn sink(pool: &WorkerPool, lives: &Arc<Lives>, linked_to: Option<Pid>) -> ProcessRef<Letter<()>> {
    lives.begun.fetch_add(1, SeqCst);
    let sink = Sink { lives: Arc::clone(lives), linked_to };
    pool.submit(sink).expect("there is room, and nobody stops")
}

#[test]
fn every_letter_is_handled_comes_back_or_dies_with_who_was_to_take_it() {
    const EACH: usize = 6_000;
    let (pool, post, lives) = (pool(), Arc::new(Post::default()), Arc::new(Lives::default()));
    let sinks: Vec<_> = (0..16).map(|_| Mutex::new(sink(&pool, &lives, None))).collect();
    while_workers_come_and_go(&pool, |number| {
        let mut random = Random::new(number);
        let mut choose = |n: u64| usize::try_from(random.below(n)).expect("few");
        for _ in 0..EACH {
            let place = &sinks[choose(16)];
            let to = lock(place).clone();
            if let Err(refused) = to.tell(post.write(())) {
                let is_stopped = refused.is_stopped();
                refused.into_inner().come_back();
                let peer = lock(&sinks[choose(16)]).pid();
                let mut place = lock(place);
                if is_stopped && *place == to {
                    *place = sink(&pool, &lives, (peer != to.pid()).then_some(peer));
                }
            }
            // Whether it was alive is for others to know.
            let _ = match choose(400) {
                0 => to.terminate(),
                1 => to.cancel("fail"),
                2 => to.cancel("panic"),
                3 => to.cancel("enough"),
                4 => pool.handle().terminate(to.pid()),
                _ => true,
            };
        }
    });
    for sink in &sinks {
        let _ = lock(sink).cancel("the end");
    }
    drop(sinks);
    all_has_ended(pool);
    let count = |counter: &AtomicUsize| counter.load(SeqCst);
    post.assert_conserved(THREADS * EACH);
    assert_eq!(count(&lives.closed), count(&lives.begun), "closed once each");
}

/// Starts children, watches each, kills some, and ends when it was notified of every end.
struct Nursery {
    to_start: usize,
    is_open: bool,
    alive: Vec<Pid>,
    told: usize,
    unknown: Vec<Pid>,
}

#[derive(Clone, Copy)]
enum Child {
    Done,
    Fails,
    Panics,
    Waits,
}

impl Process for Child {
    type Message = ();

    fn step(&mut self, _: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        match self {
            Self::Done => out.done(Payload::new(())),
            Self::Fails => return Err(Failure::msg("on purpose")),
            Self::Panics => resume_unwind(Box::new("on purpose")),
            Self::Waits => out.idle(),
        }
        Ok(())
    }
}

const CHILDREN: usize = 200;
const STARTED: Tag = Tag(1);

impl Process for Nursery {
    type Message = ();

    fn step(&mut self, events: &mut Events<'_, ()>, out: &mut StepOutput) -> Result<(), Failure> {
        out.trap_links(true);
        out.wait();
        for event in events {
            match event {
                Event::YieldComplete { tag: STARTED, result } => {
                    let pid = result?.downcast::<Pid>().map_err(|_| Failure::msg("no pid"))?;
                    self.is_open = false;
                    // The end may have come before the answer.
                    match self.unknown.iter().position(|known| *known == pid) {
                        Some(at) => drop(self.unknown.swap_remove(at)),
                        None => self.alive.push(pid),
                    }
                    // Those that wait are ended from here; for the others it may be too late.
                    out.yield_command(Tag(2), Terminate(pid));
                }
                Event::Exit { pid, .. } => {
                    self.told += 1;
                    match self.alive.iter().position(|known| *known == pid) {
                        Some(at) => drop(self.alive.swap_remove(at)),
                        None => self.unknown.push(pid),
                    }
                }
                _ => {}
            }
        }
        if self.to_start > 0 && !self.is_open {
            self.to_start -= 1;
            self.is_open = true;
            let kind = [Child::Done, Child::Fails, Child::Panics, Child::Waits][self.to_start % 4];
            let spawn = Spawn::new(kind).monitored();
            let spawn = if self.to_start.is_multiple_of(3) { spawn.linked() } else { spawn };
            out.yield_command(STARTED, spawn);
        } else if self.told == CHILDREN && !self.is_open {
            let is_known = self.alive.is_empty() && self.unknown.is_empty();
            out.done(Payload::new(is_known));
        }
        Ok(())
    }
}

#[test]
fn every_watch_is_answered_once() {
    const NURSERIES: usize = 24;
    let pool = pool();
    while_workers_come_and_go(&pool, |_| {
        let nurseries: Vec<_> = (0..NURSERIES / THREADS)
            .map(|_| {
                let nursery = Nursery {
                    to_start: CHILDREN,
                    is_open: false,
                    alive: Vec::new(),
                    told: 0,
                    unknown: Vec::new(),
                };
                pool.submit(nursery).expect("there is room, and nobody stops").join()
            })
            .collect();
        for nursery in nurseries {
            let is_known = pool.block_on(nursery).expect("told of each").downcast::<bool>();
            assert!(is_known.expect("that is its result"), "told of one that it never had");
        }
    });
    let stats = pool.stats();
    assert_eq!(stats.spawned, (NURSERIES * (CHILDREN + 1)) as u64);
    all_has_ended(pool);
}

/// What became of one arming of a timer.
#[derive(Default)]
struct Shot {
    fired: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Wake for Shot {
    fn wake(self: Arc<Self>) {
        self.fired.fetch_add(1, SeqCst);
    }
}

#[test]
fn every_timer_fires_once_or_is_cancelled() {
    const EACH: usize = 4_000;
    let (pool, shots) = (pool(), Mutex::new(Vec::new()));
    while_workers_come_and_go(&pool, |number| {
        let mut random = Random::new(number);
        let mut timers: Vec<_> =
            (0..32).map(|_| (pool.handle().timer(), Arc::new(Shot::default()))).collect();
        let mut mine = Vec::new();
        for _ in 0..EACH {
            let at = usize::try_from(random.below(32)).expect("few");
            let (timer, before) = &mut timers[at];
            before.is_cancelled.store(timer.cancel(), SeqCst);
            let shot = Arc::new(Shot::default());
            let after = Duration::from_micros(random.below(4_000));
            // Another may have been stopped with the shard in its hands, and the inbox be full.
            timer.arm(after, Waker::from(Arc::clone(&shot))).expect("no limit is reached");
            *before = Arc::clone(&shot);
            mine.push(shot);
        }
        for (timer, _) in &timers {
            eventually("the last ones have fired", || !timer.is_armed());
        }
        lock(&shots).extend(mine);
    });
    let shots = shots.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(shots.len(), THREADS * EACH);
    let settled =
        |shot: &Arc<Shot>| shot.fired.load(SeqCst) + usize::from(shot.is_cancelled.load(SeqCst));
    eventually("every timer has fired or was cancelled", || shots.iter().all(|s| settled(s) > 0));
    all_has_ended(pool);
    assert!(
        shots.iter().all(|shot| settled(shot) == 1),
        "one fired twice, or in spite of a cancel"
    );
}

#[test]
fn a_shutdown_in_the_middle_of_everything_leaves_nothing_behind() {
    for round in 0..30 {
        let (pool, drops) = (pool(), Arc::new(AtomicUsize::new(0)));
        let handle = pool.handle();
        let is_over = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = (0..THREADS)
            .map(|_| {
                let (handle, drops) = (handle.clone(), Arc::clone(&drops));
                let is_over = Arc::clone(&is_over);
                thread::spawn(move || {
                    let (mut n_started, mut n_made) = (0_usize, 0_usize);
                    while !is_over.load(SeqCst) && n_made < 1_500 {
                        let guard = Guard(Arc::clone(&drops));
                        let join = handle.spawn_future(async move {
                            let _guard = guard;
                            let _ = clockjack_rt::sleep(LONG).await;
                        });
                        n_made += 1;
                        n_started += usize::from(join.pid().is_some());
                    }
                    (n_started, n_made)
                })
            })
            .collect();
        for _ in 0..round {
            thread::yield_now();
        }
        let report = pool.shutdown_in_time(LONG);
        is_over.store(true, SeqCst);
        let made = threads.into_iter().map(|thread| thread.join().unwrap());
        let (n_started, n_made) = made.fold((0, 0), |sum, made| (sum.0 + made.0, sum.1 + made.1));
        assert!(report.is_clean(), "{report:?}");
        let stats = handle.stats();
        assert_eq!((stats.spawned, stats.finished), (n_started as u64, n_started as u64));
        assert_eq!(drops.load(SeqCst), n_made, "each future was dropped, also those refused");
    }
}
