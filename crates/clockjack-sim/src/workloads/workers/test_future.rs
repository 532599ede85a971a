//! The load of the workers: futures that pass tokens to each other and sleep, and processes that
//! count their messages.

use core::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_exec::{
    Event, Events, Failure, Handle, JoinHandle, Payload, Process, ProcessRef, Sleep, StepOutput,
};

use crate::{
    context::{SimContext, lock},
    fault::Class,
    invariant::Invariant,
    random::Stream,
    run::inject_panic,
};

/// The maximum number of live futures.
const FUTURES_MAX: usize = 200;

/// The expected state of a future.
#[derive(Default)]
pub(super) struct FutureRecord {
    /// Tokens that the future was woken for and has not seen.
    pub(super) tokens: u64,
    pub(super) waker: Option<Waker>,
    /// When its sleep is due, if it sleeps.
    pub(super) due: Option<u64>,
    is_busy: bool,
    pub(super) is_over: bool,
}

/// The expected state of a process.
#[derive(Default)]
pub(super) struct ProcessRecord {
    pub(super) sent: VecDeque<u64>,
    pub(super) n_sent: u64,
    pub(super) is_over: bool,
}

#[derive(Default)]
pub(super) struct Oracle {
    pub(super) futures: Vec<FutureRecord>,
    pub(super) joins: BTreeMap<usize, JoinHandle<()>>,
    pub(super) processes: Vec<ProcessRecord>,
    pub(super) refs: Vec<ProcessRef<u64>>,
    pub(super) n_spawned: u64,
    pub(super) n_ended: u64,
    /// The random actions of futures; `None` in the drain phase.
    pub(super) actions: Option<Stream>,
}

#[derive(Clone)]
pub(super) struct Shared {
    pub(super) sim: SimContext,
    pub(super) handle: Handle,
    oracle: Arc<Mutex<Oracle>>,
}

impl Shared {
    pub(super) fn new(sim: &SimContext, handle: Handle) -> Self {
        let oracle = Oracle { actions: Some(sim.stream("deeds")), ..Oracle::default() };
        Self { sim: sim.clone(), handle, oracle: Arc::new(Mutex::new(oracle)) }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    /// Spawns a future.
    pub(super) fn spawn(&self) {
        let index = {
            let mut oracle = self.oracle();
            if oracle.n_spawned - oracle.n_ended >= FUTURES_MAX as u64 {
                return;
            }
            oracle.futures.push(FutureRecord::default());
            oracle.n_spawned += 1;
            oracle.futures.len() - 1
        };
        self.sim.record("spawn", &[index as u64]);
        let test_future = TestFuture { shared: self.clone(), index, sleep: None };
        let join = self.handle.spawn_future(test_future);
        if join.pid().is_none() {
            self.oracle().n_spawned -= 1;
            self.oracle().n_ended -= 1;
        }
        self.oracle().joins.insert(index, join);
    }

    /// Gives a future a token, and wakes it.
    pub(super) fn give(&self, to: usize) {
        let waker = {
            let mut oracle = self.oracle();
            let record = &mut oracle.futures[to];
            if record.is_over {
                return;
            }
            record.tokens += 1;
            record.waker.clone()
        };
        self.sim.record("give", &[to as u64]);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Starts a process.
    pub(super) fn submit(&self) {
        let index = {
            let mut oracle = self.oracle();
            oracle.processes.push(ProcessRecord::default());
            oracle.n_spawned += 1;
            oracle.processes.len() - 1
        };
        match self.handle.submit(TestProcess { shared: self.clone(), index }) {
            Ok(it) => self.oracle().refs.push(it),
            Err(refused) => {
                // The drop of the process counts it as finished.
                drop(refused);
                self.sim.check(Invariant::M1, false, || format!("process {index} was rejected"));
            }
        }
    }

    /// Sends a process its next number.
    pub(super) fn send(&self, to: usize) {
        let (it, number, is_over) = {
            let mut oracle = self.oracle();
            let Some(it) = oracle.refs.get(to).cloned() else { return };
            let record = &mut oracle.processes[to];
            record.n_sent += 1;
            (it, record.n_sent, record.is_over)
        };
        // Recorded before the send: the process may handle the message before the call returns.
        self.oracle().processes[to].sent.push_back(number);
        let sent = it.tell(number);
        let is_taken = sent.is_ok();
        self.sim.record("send", &[to as u64, number, u64::from(is_taken)]);
        if let Err(refused) = sent {
            let back = refused.into_inner();
            self.oracle().processes[to].sent.retain(|one| *one != number);
            self.sim.check(Invariant::M1, back == number, || format!("{back} was returned"));
        }
        self.sim.check(Invariant::S2, !(is_over && is_taken), || format!("process {to} is over"));
    }
}

/// A future that waits for tokens, and sometimes sleeps.
struct TestFuture {
    shared: Shared,
    index: usize,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for TestFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let shared = self.shared.clone();
        let index = self.index;
        let tokens = {
            let mut oracle = shared.oracle();
            let record = &mut oracle.futures[index];
            let (was_busy, is_over) =
                (core::mem::replace(&mut record.is_busy, true), record.is_over);
            record.waker = Some(cx.waker().clone());
            let tokens = core::mem::take(&mut record.tokens);
            drop(oracle);
            shared.sim.check(Invariant::X2, !was_busy && !is_over, || {
                format!("future {index} is polled: busy {was_busy}, over {is_over}")
            });
            tokens
        };
        shared.sim.record("poll", &[index as u64, tokens, shared.sim.now()]);
        let _running = RunningCall(&shared, index);
        self.poll_sleep(cx);
        for _ in 0..tokens {
            if self.action(cx) {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }
}

struct RunningCall<'s>(&'s Shared, usize);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.oracle().futures[self.1].is_busy = false;
    }
}

impl TestFuture {
    fn poll_sleep(&mut self, cx: &mut Context<'_>) {
        let Some(sleep) = &mut self.sleep else { return };
        let Poll::Ready(slept) = sleep.as_mut().poll(cx) else { return };
        self.sleep = None;
        let due = self.shared.oracle().futures[self.index].due.take();
        let (now, index) = (self.shared.sim.now(), self.index);
        // A sleep that ends because the executor shuts down, or lacks capacity, returns an error.
        let is_fine = slept.is_err() || due.is_some_and(|due| now >= due);
        self.shared.sim.check(Invariant::T1, is_fine, || {
            format!("future {index} wakes at {now}, its sleep is for {due:?}")
        });
    }

    /// The action for a token. Returns whether the future is done.
    fn action(&mut self, cx: &mut Context<'_>) -> bool {
        let shared = self.shared.clone();
        self.inject_faults();
        let drawn = {
            let mut oracle = shared.oracle();
            let n_cards = oracle.futures.len();
            oracle
                .actions
                .as_mut()
                .map(|actions| (actions.below(20), actions.index(n_cards), actions.between(1, 400)))
        };
        let Some((choice, other, ticks)) = drawn else { return false };
        match choice {
            0..6 => shared.give(other),
            // A token for the future itself, during its own poll: the wake-up that is lost most
            // easily.
            6..8 => shared.give(self.index),
            8 => shared.spawn(),
            9..14 => self.sleep_for(ticks, cx),
            14 => {
                self.sleep = None;
                shared.oracle().futures[self.index].due = None;
            }
            15 => {
                let n_tills = shared.oracle().processes.len().max(1);
                shared.send(other % n_tills);
            }
            16 if other % 4 == 0 => return true,
            _ => {}
        }
        false
    }

    fn sleep_for(&mut self, ticks: u64, cx: &mut Context<'_>) {
        let shared = &self.shared;
        let after = Duration::from_millis(ticks);
        let due = shared.sim.clock().raw() + ticks;
        let sleep = Box::pin(shared.handle.sleep(after));
        let found = sleep.deadline().map(|tick| tick.get());
        shared.sim.check(Invariant::T1, found == Some(due), || format!("{found:?}, not {due}"));
        shared.oracle().futures[self.index].due = Some(due);
        self.sleep = Some(sleep);
        self.poll_sleep(cx);
    }

    fn inject_faults(&self) {
        let sim = &self.shared.sim;
        sim.may_be_slow();
        if sim.fault(Class::HandlerPanic).is_some() {
            inject_panic();
        }
    }
}

impl Drop for TestFuture {
    fn drop(&mut self) {
        let (shared, index) = (&self.shared, self.index);
        let waker = {
            let mut oracle = shared.oracle();
            oracle.n_ended += 1;
            let record = &mut oracle.futures[index];
            record.tokens = 0;
            record.due = None;
            let was_over = core::mem::replace(&mut record.is_over, true);
            let waker = record.waker.take();
            drop(oracle);
            shared
                .sim
                .check(Invariant::X2, !was_over, || format!("future {index} is dropped twice"));
            waker
        };
        drop(waker);
        shared.sim.record("drop", &[index as u64]);
    }
}

/// A process that receives numbers in order.
struct TestProcess {
    shared: Shared,
    index: usize,
}

impl Process for TestProcess {
    type Message = u64;

    fn step(&mut self, events: &mut Events<'_, u64>, out: &mut StepOutput) -> Result<(), Failure> {
        let Self { shared, index } = self;
        for event in events {
            match event {
                Event::Message(number) => {
                    let expected = shared.oracle().processes[*index].sent.pop_front();
                    shared.sim.record("take", &[*index as u64, number]);
                    shared.sim.check(Invariant::A2, expected == Some(number), || {
                        format!("process {index} takes {number}, expected {expected:?}")
                    });
                    if shared.sim.fault(Class::HandlerError).is_some() {
                        return Err(Failure::msg("injected failure"));
                    }
                }
                Event::Cancel { .. } => {
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

impl Drop for TestProcess {
    fn drop(&mut self) {
        let mut oracle = self.shared.oracle();
        oracle.n_ended += 1;
        oracle.processes[self.index].is_over = true;
        drop(oracle);
        self.shared.sim.record("closed", &[self.index as u64]);
    }
}
