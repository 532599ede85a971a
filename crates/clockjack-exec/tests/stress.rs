//! An executor of one thread, disturbed by others: every wake leads to a poll, every message is
//! handled or comes back, every timer fires or is cancelled.
//!
//! Bounded work and a clock that is advanced by hand: a test ends when everything is accounted for,
//! or when a thread has waited so often that something must be lost.
#![cfg(not(loom))]

extern crate alloc;

use alloc::{sync::Arc, task::Wake};
use core::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    sync::{Mutex, PoisonError},
    thread::{self, Thread},
};

use clockjack_exec::{
    Commands, Event, Events, Failure, Handle, JoinHandle, Limits, LocalExecutor, Payload, Process,
    ProcessRef, StepOutput, Toolbox,
};
use clockjack_testing::{
    Patience, Random,
    post::{self, Post},
};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// Threads that disturb.
const THREADS: usize = 3;

struct Bench {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    thread: Thread,
}

impl Toolbox for Bench {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }

    fn park(&self, _until: Option<Tick>) {
        thread::park();
    }

    fn unpark(&self) {
        self.thread.unpark();
    }
}

fn bench() -> (LocalExecutor, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(Resolution::MILLI));
    let driver = ManualDriver::new(Resolution::MILLI);
    let bench = Bench { clock: Arc::clone(&clock), driver, thread: thread::current() };
    let executor = LocalExecutor::new(bench, Limits::DEFAULT.messages(512), Commands::new());
    (executor.expect("there are no commands to clash"), clock)
}

/// Whether somebody has called, for a thread that looks.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Polls when, and only when, the waker was called.
fn wait_for<F: Future + Unpin>(mut future: F) -> F::Output {
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut patience = Patience::default();
    loop {
        if let Poll::Ready(output) = Pin::new(&mut future).poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !bell.0.swap(false, SeqCst) {
            patience.wait();
        }
    }
}

/// Runs the executor until all of these have ended and nothing lives any more.
fn run_until_over(executor: &mut LocalExecutor, at_work: &AtomicUsize, each: impl Fn()) {
    let mut patience = Patience::default();
    while at_work.load(SeqCst) > 0 || executor.live_len() > 0 || executor.next_wake().is_some() {
        each();
        let turn = executor.turn();
        if turn.steps == 0 && turn.fired == 0 {
            patience.wait();
        } else {
            patience.renew();
        }
    }
    executor.run_until_idle();
}

/// Counts down when its thread ends, also by a panic.
struct AtWork<'a>(&'a AtomicUsize);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A count that a future waits for.
#[derive(Default)]
struct Gate {
    count: AtomicUsize,
    waker: Mutex<Option<Waker>>,
    drops: AtomicUsize,
}

impl Gate {
    fn step(&self) {
        self.count.fetch_add(1, SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Counts that its future was dropped.
struct Guard(Arc<Gate>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.drops.fetch_add(1, SeqCst);
    }
}

fn reaches(gate: Arc<Gate>, count: usize) -> impl Future<Output = usize> + Send + 'static {
    let guard = Guard(gate);
    poll_fn(move |cx| {
        let gate = &guard.0;
        *gate.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        match gate.count.load(SeqCst) {
            reached if reached >= count => Poll::Ready(reached),
            _ => Poll::Pending,
        }
    })
}

#[test]
fn a_wake_from_another_thread_leads_to_a_turn() {
    const GATES: usize = 96;
    const STEPS: usize = 60;
    let (mut executor, _clock) = bench();
    let gates: Vec<Arc<Gate>> = (0..GATES).map(|_| Arc::default()).collect();
    // Two thirds are started here, the rest by the threads; one in four is aborted under way.
    let handle = executor.handle();
    let at_work = AtomicUsize::new(2 * THREADS);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mine: Vec<Arc<Gate>> =
                gates.iter().skip(number).step_by(THREADS).map(Arc::clone).collect();
            let joins: Vec<JoinHandle<usize>> = mine
                .iter()
                .map(|gate| handle.spawn_future(reaches(Arc::clone(gate), STEPS * THREADS)))
                .collect();
            let at_work = &at_work;
            let all = &gates;
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                for _ in 0..STEPS {
                    all.iter().for_each(|gate| gate.step());
                }
            });
            scope.spawn(move || {
                let _at_work = AtWork(at_work);
                for (at, join) in joins.into_iter().enumerate() {
                    let is_aborted = at % 4 == 3;
                    if is_aborted {
                        join.abort();
                    }
                    match wait_for(join) {
                        Ok(reached) => assert!(reached >= STEPS * THREADS),
                        Err(exit) => assert!(is_aborted && exit.is_terminated(), "{exit}"),
                    }
                }
            });
        }
        run_until_over(&mut executor, &at_work, || {});
    });
    assert!(gates.iter().all(|gate| gate.drops.load(SeqCst) == 1), "dropped once each");
    let stats = handle.stats();
    assert_eq!((stats.spawned, stats.finished), (GATES as u64, GATES as u64));
}

/// Who sends it, and which of its letters it is.
type Letter = post::Letter<(usize, usize)>;

/// Takes letters, in each sender's order, until it is cancelled.
struct Sink {
    n_closed: Arc<AtomicUsize>,
    last: [usize; THREADS],
}

impl Process for Sink {
    type Message = Letter;

    fn step(
        &mut self,
        events: &mut Events<'_, Letter>,
        out: &mut StepOutput,
    ) -> Result<(), Failure> {
        out.idle();
        for event in events {
            match event {
                Event::Message(letter) => {
                    let (from, number) = letter.text;
                    if number <= self.last[from] {
                        return Err(Failure::msg("a letter has overtaken another"));
                    }
                    self.last[from] = number;
                    letter.handle();
                }
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
        self.n_closed.fetch_add(1, SeqCst);
    }
}

fn sink(handle: &Handle, n_closed: &Arc<AtomicUsize>) -> ProcessRef<Letter> {
    let sink = Sink { n_closed: Arc::clone(n_closed), last: [0; THREADS] };
    handle.submit(sink).expect("there is room, and nobody stops")
}

/// Sends messages to the processes in the list, and replaces those that have ended.
fn write(
    (from, kills): (usize, bool),
    handle: &Handle,
    (post, n_closed): (&Arc<Post>, &Arc<AtomicUsize>),
    sinks: &[Mutex<ProcessRef<Letter>>],
) {
    let mut random = Random::new(from as u64 + 1);
    for number in 1..=15_000 {
        let place = &sinks[random.index(sinks.len())];
        let to = place.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Err(refused) = to.tell(post.write((from, number))) {
            let is_stopped = refused.is_stopped();
            refused.into_inner().come_back();
            let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
            if is_stopped && *place == to {
                *place = sink(handle, n_closed);
            }
        }
        if kills && random.index(200) == 0 {
            // Whether it was alive is for others to know.
            let _ = if random.index(2) == 0 { to.terminate() } else { to.cancel("enough") };
        }
    }
}

fn letters_are_conserved(kills: bool) {
    let (mut executor, _clock) = bench();
    let (handle, post) = (executor.handle(), Arc::new(Post::default()));
    let n_closed = Arc::new(AtomicUsize::new(0));
    let sinks: Vec<_> = (0..12).map(|_| Mutex::new(sink(&handle, &n_closed))).collect();
    let at_work = AtomicUsize::new(1);
    thread::scope(|scope| {
        let (handle, books, sinks, at_work) = (&handle, (&post, &n_closed), &sinks, &at_work);
        scope.spawn(move || {
            let _at_work = AtWork(at_work);
            thread::scope(|scope| {
                for from in 0..THREADS {
                    scope.spawn(move || write((from, kills), handle, books, sinks));
                }
            });
            // What was accepted is handled before a cancel that comes later is; wait for the mail.
            let mut patience = Patience::default();
            let waits = |sink: &Mutex<ProcessRef<Letter>>| {
                let state = sink.lock().unwrap_or_else(PoisonError::into_inner).state();
                !matches!(state, clockjack_exec::State::Idle | clockjack_exec::State::Complete)
            };
            while sinks.iter().any(waits) {
                patience.wait();
            }
            for sink in sinks {
                // One that was killed just now has ended already.
                let _ = sink.lock().unwrap_or_else(PoisonError::into_inner).cancel("the end");
            }
        });
        run_until_over(&mut executor, at_work, || {});
    });
    drop(sinks);
    post.assert_conserved(THREADS * 15_000);
    if !kills {
        assert_eq!(post.discarded(), 0, "nobody was ended with mail");
    }
    let stats = handle.stats();
    assert_eq!(stats.spawned, stats.finished);
    assert_eq!(stats.finished, n_closed.load(SeqCst) as u64, "closed once each");
}

#[test]
fn a_letter_is_handled_or_comes_back() {
    letters_are_conserved(false);
}

#[test]
fn a_letter_to_who_is_ended_meanwhile_is_handled_comes_back_or_dies_with_it() {
    letters_are_conserved(true);
}

/// What became of one arming of a timer.
struct Shot {
    clock: Arc<ManualClock>,
    /// It must not fire before.
    not_before: u64,
    fired: AtomicUsize,
    early: AtomicUsize,
    is_cancelled: AtomicBool,
}

impl Wake for Shot {
    fn wake(self: Arc<Self>) {
        if self.clock.now().ticks < self.not_before {
            self.early.fetch_add(1, SeqCst);
        }
        self.fired.fetch_add(1, SeqCst);
    }
}

fn shoot(seed: u64, handle: &Handle, clock: &Arc<ManualClock>) -> Vec<Arc<Shot>> {
    let mut random = Random::new(seed);
    let mut shots: Vec<Arc<Shot>> = Vec::new();
    let mut timers: Vec<_> = (0..64).map(|_| (handle.timer(), None::<usize>)).collect();
    for number in 0..6_000 {
        let at = random.index(timers.len());
        let (timer, armed) = &mut timers[at];
        if let Some(before) = armed.take() {
            shots[before].is_cancelled.store(timer.cancel(), SeqCst);
        }
        // Now and then a far one, so that timers move between the levels.
        let delay = if number % 16 == 0 { random.index(5_000) } else { random.index(40) } as u64;
        let shot = Arc::new(Shot {
            clock: Arc::clone(clock),
            not_before: clock.now().ticks + delay,
            fired: AtomicUsize::new(0),
            early: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
        });
        let waker = Waker::from(Arc::clone(&shot));
        // The owner may have been stopped with the shard in its hands, and the inbox be full.
        timer.arm(Duration::from_millis(delay), waker).expect("no limit is reached");
        *armed = Some(shots.len());
        shots.push(shot);
    }
    // Half of what is left is cancelled by the drop, the other half waits.
    for (timer, armed) in timers {
        let Some(armed) = armed else { continue };
        if armed % 2 == 0 {
            let mut timer = timer;
            shots[armed].is_cancelled.store(timer.cancel(), SeqCst);
        } else {
            let mut patience = Patience::default();
            while timer.is_armed() {
                patience.wait();
            }
        }
    }
    shots
}

#[test]
fn a_timer_fires_once_or_is_cancelled() {
    let (mut executor, clock) = bench();
    let handle = executor.handle();
    let at_work = AtomicUsize::new(THREADS);
    let shots: Vec<Arc<Shot>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (handle, clock, at_work) = (&handle, &clock, &at_work);
                scope.spawn(move || {
                    let _at_work = AtWork(at_work);
                    shoot(seed as u64, handle, clock)
                })
            })
            .collect();
        run_until_over(&mut executor, &at_work, || {
            clock.advance(Duration::from_micros(300));
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(shots.len(), THREADS * 6_000);
    for shot in &shots {
        let fired = shot.fired.load(SeqCst);
        assert_eq!(fired, usize::from(!shot.is_cancelled.load(SeqCst)));
        assert_eq!(shot.early.load(SeqCst), 0);
    }
    let n_cancelled = shots.iter().filter(|shot| shot.is_cancelled.load(SeqCst)).count();
    assert!(n_cancelled > 0 && n_cancelled < shots.len(), "{n_cancelled}: both must happen");
}

#[test]
fn an_executor_that_sleeps_is_woken_by_whoever_has_work_for_it() {
    const ROUNDS: usize = 2_000;
    let (mut executor, _clock) = bench();
    let handle = executor.handle();
    let there = Arc::new(Gate::default());
    let back = Arc::new(Gate::default());
    let done = thread::scope(|scope| {
        scope.spawn({
            let (there, back) = (Arc::clone(&there), Arc::clone(&back));
            move || {
                for round in 1..=ROUNDS {
                    there.step();
                    let mut patience = Patience::default();
                    while back.count.load(SeqCst) < round {
                        patience.wait();
                    }
                }
            }
        });
        executor.block_on(async {
            for round in 1..=ROUNDS {
                let (there, back) = (Arc::clone(&there), Arc::clone(&back));
                let join = handle.spawn_future(async move {
                    reaches(there, round).await;
                    back.step();
                });
                join.await.expect("nobody ends it");
            }
            ROUNDS
        })
    });
    assert_eq!((done, back.count.load(SeqCst)), (ROUNDS, ROUNDS));
}
