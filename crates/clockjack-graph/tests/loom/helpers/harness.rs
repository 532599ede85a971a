//! A small run: jobs that follow a script, a pool of threads for helpers, threads of lanes, and the
//! coordinator, which is the main thread of the model.
//!
//! A worker that waits blocks its thread here, so a lost wake-up is a deadlock, which loom
//! reports. Each job writes a cell that its dependents read: loom reports two accesses without an
//! order. Between epochs the coordinator requires exclusive access to the state: a handle that a
//! worker still holds fails the model.

use core::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use std::{
    collections::VecDeque,
    panic::{catch_unwind, resume_unwind},
    sync::Arc as StdArc,
    task::Wake,
};

use clockjack_sync::primitive::{
    UnsafeCell,
    atomic::{
        AtomicBool,
        Ordering::{AcqRel, Acquire},
    },
};
use loom::{
    sync::{Arc, Condvar, Mutex, Notify},
    thread,
};

use super::{
    dependencies::{Dependencies, JobSpec, LaneSpec},
    ready_queue::{EpochHandle, EpochOutcome},
    shared::{HelpersShared, Spawn, run_lane_helper},
};

/// What a job does in addition to its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Work,
    Fail,
    Panic,
    /// It requests a stop of the run.
    Stop,
    /// It has a batch of so many pieces.
    Batch(u32),
}

/// A job of a script.
#[derive(Clone, Debug)]
pub(super) struct ScriptedJob {
    pub(super) action: Action,
    pub(super) before: &'static [usize],
    pub(super) lane: usize,
    pub(super) waits_for_all: bool,
}

/// A job of the first lane that depends on these.
pub(super) fn job(before: &'static [usize]) -> ScriptedJob {
    ScriptedJob { action: Action::Work, before, lane: 0, waits_for_all: false }
}

impl ScriptedJob {
    pub(super) fn does(self, action: Action) -> Self {
        Self { action, ..self }
    }

    pub(super) fn in_lane(self, lane: usize) -> Self {
        Self { lane, ..self }
    }

    pub(super) fn waiting_for_all(self) -> Self {
        Self { waits_for_all: true, ..self }
    }
}

/// A lane for so many jobs at once.
pub(super) const fn lane(n_at_once: usize) -> LaneSpec {
    LaneSpec { n_at_once, is_isolated: false, aging: 0 }
}

/// A lane with its own thread.
pub(super) const OWN_THREAD: LaneSpec = LaneSpec { n_at_once: 1, is_isolated: true, aging: 0 };

/// The state that the jobs work on.
pub(super) struct SharedState {
    epoch: u32,
    script: Vec<ScriptedJob>,
    /// For each job, the last epoch in which it was done.
    done: Vec<UnsafeCell<u32>>,
    stop: AtomicBool,
    workers: Option<StdArc<Workers>>,
}

/// A handle to the state.
#[derive(Clone)]
pub(super) struct StateHandle(Arc<SharedState>);

pub(super) type Workers = HelpersShared<StateHandle, StdArc<Pool>>;

// SAFETY: the cells are what the models are about: loom reports two accesses without an order.
#[expect(unsafe_code, reason = "loom watches the cells")]
unsafe impl Sync for SharedState {}

impl SharedState {
    /// The epoch in which a job was last done.
    fn done_in(&self, position: usize) -> u32 {
        self.done[position].with(|cell| {
            #[expect(unsafe_code, reason = "loom watches the cell")]
            // SAFETY: loom ends the model if somebody writes at the same time.
            unsafe {
                *cell
            }
        })
    }

    fn work(&self, position: usize) {
        let job = &self.script[position];
        let all_before = if job.waits_for_all { 0..position } else { 0..0 };
        for before in job.before.iter().copied().chain(all_before) {
            assert_eq!(self.done_in(before), self.epoch, "{position} has not waited for {before}");
        }
        self.done[position].with_mut(|cell| {
            #[expect(unsafe_code, reason = "loom watches the cell")]
            // SAFETY: loom ends the model if somebody else has the cell at the same time.
            let last = unsafe { &mut *cell };
            assert!(*last < self.epoch, "{position} is done twice");
            *last = self.epoch;
        });
    }
}

/// The payload of a job that panics.
pub(super) struct JobPanic(pub(super) usize);

impl EpochHandle for StateHandle {
    type Fault = usize;
    type Batch = Pieces;

    fn is_due(&self, _lane: usize) -> bool {
        true
    }

    fn is_stopping(&self) -> bool {
        self.0.stop.load(Acquire)
    }

    fn run(&self, position: usize, worker: u16) -> Result<u32, usize> {
        self.0.work(position);
        match self.0.script[position].action {
            Action::Work => {}
            Action::Fail => return Err(position),
            Action::Panic => resume_unwind(Box::new(JobPanic(position))),
            Action::Stop => {
                self.0.stop.swap(true, AcqRel);
            }
            Action::Batch(n_pieces) => {
                let workers = self.0.workers.as_ref().expect("it was set");
                let batch = StdArc::new(Pieces::new(n_pieces));
                workers.add_batch(&batch);
                self.help(&batch, worker);
                batch.wait();
                workers.remove_batch(&batch);
            }
        }
        Ok(1)
    }

    fn has_job(batch: &Pieces) -> bool {
        batch.pieces.lock().unwrap().0 > 0
    }

    fn help(&self, batch: &Pieces, _worker: u16) {
        while batch.take() {
            batch.give_back();
        }
    }
}

/// Pieces of work: how many are left, and how many are out.
pub(super) struct Pieces {
    pieces: Mutex<(u32, u32)>,
    back: Condvar,
}

impl Pieces {
    fn new(n_pieces: u32) -> Self {
        Self { pieces: Mutex::new((n_pieces, 0)), back: Condvar::new() }
    }

    fn take(&self) -> bool {
        let mut pieces = self.pieces.lock().unwrap();
        let is_one = pieces.0 > 0;
        if is_one {
            *pieces = (pieces.0 - 1, pieces.1 + 1);
        }
        is_one
    }

    fn give_back(&self) {
        self.pieces.lock().unwrap().1 -= 1;
        self.back.notify_all();
    }

    fn wait(&self) {
        let mut pieces = self.pieces.lock().unwrap();
        while *pieces != (0, 0) {
            pieces = self.back.wait(pieces).unwrap();
        }
    }
}

type Helper = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Threads that run helpers.
pub(super) struct Pool {
    state: Mutex<(VecDeque<Helper>, bool)>,
    more: Condvar,
    /// It drops every helper.
    is_full: bool,
}

impl Spawn for StdArc<Pool> {
    fn spawn(&self, helper: impl Future<Output = ()> + Send + 'static) {
        if self.is_full {
            return drop(helper);
        }
        self.state.lock().unwrap().0.push_back(Box::pin(helper));
        self.more.notify_one();
    }

    fn wake(&self, helper: Waker) {
        helper.wake();
    }
}

impl Pool {
    fn close(&self) {
        self.state.lock().unwrap().1 = true;
        self.more.notify_all();
    }

    fn work(&self) {
        while let Some(helper) = self.next() {
            block_on(helper);
        }
    }

    /// Also after `close`, if there is one: a late helper.
    fn next(&self) -> Option<Helper> {
        let mut state = self.state.lock().unwrap();
        loop {
            if let Some(helper) = state.0.pop_front() {
                return Some(helper);
            }
            if state.1 {
                return None;
            }
            state = self.more.wait(state).unwrap();
        }
    }
}

/// A run.
pub(super) struct Harness {
    workers: StdArc<Workers>,
    handle: Option<StateHandle>,
    pool: StdArc<Pool>,
    n_helpers: usize,
    threads: Vec<thread::JoinHandle<()>>,
}

/// How a run is set up.
pub(super) struct Setup {
    pub(super) script: Vec<ScriptedJob>,
    pub(super) lanes: Vec<LaneSpec>,
    /// Helpers, each with a thread.
    pub(super) n_helpers: usize,
    pub(super) n_spins: u32,
    /// The executor drops every helper.
    pub(super) is_full: bool,
}

impl Setup {
    pub(super) fn new(script: Vec<ScriptedJob>, lanes: Vec<LaneSpec>, n_helpers: usize) -> Self {
        Self { script, lanes, n_helpers, n_spins: 0, is_full: false }
    }

    pub(super) fn start(self) -> Harness {
        let Self { script, lanes, n_helpers, n_spins, is_full } = self;
        let own_threads: Vec<usize> =
            (0..lanes.len()).filter(|lane| lanes[*lane].is_isolated).collect();
        let jobs = script.iter().map(|job| JobSpec {
            dependencies: job.before.to_vec(),
            waits_for_all: job.waits_for_all,
            lane: job.lane,
            rank: 0,
        });
        let dependencies = Dependencies::from_jobs(jobs, lanes);
        let state = Mutex::new((VecDeque::new(), false));
        let pool = StdArc::new(Pool { state, more: Condvar::new(), is_full });
        let workers =
            StdArc::new(HelpersShared::new(dependencies, StdArc::clone(&pool), n_helpers, n_spins));
        let has_batch = script.iter().any(|job| matches!(job.action, Action::Batch(_)));
        let handle = StateHandle(Arc::new(SharedState {
            epoch: 0,
            done: script.iter().map(|_| UnsafeCell::new(0)).collect(),
            script,
            stop: AtomicBool::new(false),
            workers: has_batch.then(|| StdArc::clone(&workers)),
        }));
        let mut threads = Vec::new();
        for _ in 0..if is_full { 0 } else { n_helpers } {
            let pool = StdArc::clone(&pool);
            threads.push(thread::spawn(move || pool.work()));
        }
        for (number, lane) in own_threads.into_iter().enumerate() {
            let worker = u16::try_from(n_helpers + number + 1).unwrap();
            let helper = run_lane_helper(StdArc::clone(&workers), lane, worker);
            threads.push(thread::spawn(move || block_on(helper)));
        }
        Harness { workers, handle: Some(handle), pool, n_helpers, threads }
    }
}

impl Harness {
    fn state(&mut self) -> &mut SharedState {
        let handle = self.handle.as_mut().expect("the run goes on");
        Arc::get_mut(&mut handle.0).expect("no other handle exists between epochs")
    }

    /// Runs an epoch.
    pub(super) fn epoch(&mut self) -> EpochOutcome<usize> {
        self.state().epoch += 1;
        let workers = StdArc::clone(&self.workers);
        let outcome = block_on(workers.run_epoch(self.handle.as_ref().expect("the run goes on")));
        self.state();
        outcome
    }

    /// Runs an epoch that ends with a panic; that of which job.
    pub(super) fn epoch_that_panics(&mut self) -> usize {
        let result = catch_unwind(AssertUnwindSafe(|| self.epoch()));
        self.state();
        match result.expect_err("it panics").downcast::<JobPanic>() {
            Ok(thrown) => thrown.0,
            Err(other) => resume_unwind(other),
        }
    }

    /// The jobs that the last epoch has done.
    pub(super) fn done(&mut self) -> Vec<usize> {
        let state = self.state();
        (0..state.done.len()).filter(|at| state.done_in(*at) == state.epoch).collect()
    }

    /// Ends the run: joins all threads, and checks that all helpers are idle.
    pub(super) fn end(mut self) {
        self.workers.close();
        self.pool.close();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        self.state().workers = None;
        self.handle = None;
        let idle = core::mem::take(&mut self.workers.lock().idle);
        assert!(idle.iter().all(|one| one.waker.is_none()), "a helper has ended without its waker");
        let mut idle: Vec<u16> = idle.into_iter().map(|one| one.worker).collect();
        idle.sort_unstable();
        let all: Vec<u16> = (1..=u16::try_from(self.n_helpers).unwrap()).collect();
        assert_eq!(idle, all, "the idle helpers");
    }
}

/// Set when a future is to be polled again.
#[derive(Default)]
struct WakeFlag(Notify);

impl Wake for WakeFlag {
    fn wake(self: StdArc<Self>) {
        self.0.notify();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let flag = StdArc::new(WakeFlag::default());
    let waker = Waker::from(StdArc::clone(&flag));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => flag.0.wait(),
        }
    }
}

/// Explores a model of many threads with fewer preemptions than others have.
pub(super) fn model_within(preemptions: usize, f: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    let bound = model.preemption_bound.unwrap_or(preemptions);
    model.preemption_bound = Some(bound.min(preemptions));
    model.check(f);
}
