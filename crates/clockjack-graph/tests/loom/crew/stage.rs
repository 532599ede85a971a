//! A small run: jobs with a script, an executor of some threads for helpers, threads of lanes, and
//! the coordinator, which is the main thread of the model.
//!
//! Who waits does block here, so a wake that is lost is a deadlock, which loom reports. Each job
//! writes a cell that those who wait for it read: loom tells of two who are not in order. Between
//! epochs the coordinator wants the ground for itself: a share that is still out is told of.

use alloc::{boxed::Box, collections::VecDeque, sync::Arc as StdArc, task::Wake};
use core::{
    future::Future,
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};
use std::panic::{catch_unwind, resume_unwind};

use clockjack_sync::prim::{
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
    board::{Outcome, Share},
    shared::{Shared, Spawn, help_lane},
    waits::{JobSpec, LaneSpec, Waits},
};

/// What a job does beside its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Work,
    Fail,
    Panic,
    /// It wants the run to stop.
    Stop,
    /// It has work for so many.
    Batch(u32),
}

/// A job of a script.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) deed: Deed,
    pub(super) before: &'static [usize],
    pub(super) lane: usize,
    pub(super) is_gated: bool,
}

/// A job of the first lane that waits for these.
pub(super) fn job(before: &'static [usize]) -> Part {
    Part { deed: Deed::Work, before, lane: 0, is_gated: false }
}

impl Part {
    pub(super) fn does(self, deed: Deed) -> Self {
        Self { deed, ..self }
    }

    pub(super) fn in_lane(self, lane: usize) -> Self {
        Self { lane, ..self }
    }

    pub(super) fn gated(self) -> Self {
        Self { is_gated: true, ..self }
    }
}

/// A lane for so many jobs at once.
pub(super) const fn lane(n_at_once: usize) -> LaneSpec {
    LaneSpec { n_at_once, is_isolated: false, aging: 0 }
}

/// A lane with its own thread.
pub(super) const OWN_THREAD: LaneSpec = LaneSpec { n_at_once: 1, is_isolated: true, aging: 0 };

/// What the jobs are done on.
pub(super) struct Ground {
    epoch: u32,
    script: Vec<Part>,
    /// For each job, the last epoch in which it was done.
    done: Vec<UnsafeCell<u32>>,
    stop: AtomicBool,
    board: Option<StdArc<Board>>,
}

/// A share of the ground.
#[derive(Clone)]
pub(super) struct Plot(Arc<Ground>);

pub(super) type Board = Shared<Plot, StdArc<Pool>>;

// SAFETY: the cells are what the models are about: loom tells of two accesses without an order.
#[expect(unsafe_code, reason = "loom watches the cells")]
unsafe impl Sync for Ground {}

impl Ground {
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

    fn do_it(&self, position: usize) {
        let part = &self.script[position];
        let all_before = if part.is_gated { 0..position } else { 0..0 };
        for before in part.before.iter().copied().chain(all_before) {
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

/// What a job that panics does so with.
pub(super) struct Thrown(pub(super) usize);

impl Share for Plot {
    type Fault = usize;
    type Batch = Heap;

    fn is_due(&self, _lane: usize) -> bool {
        true
    }

    fn is_stopping(&self) -> bool {
        self.0.stop.load(Acquire)
    }

    fn run(&self, position: usize, worker: u16) -> Result<u32, usize> {
        self.0.do_it(position);
        match self.0.script[position].deed {
            Deed::Work => {}
            Deed::Fail => return Err(position),
            Deed::Panic => resume_unwind(Box::new(Thrown(position))),
            Deed::Stop => {
                self.0.stop.swap(true, AcqRel);
            }
            Deed::Batch(n_pieces) => {
                let board = self.0.board.as_ref().expect("it was set");
                let heap = StdArc::new(Heap::new(n_pieces));
                board.offer(&heap);
                self.help(&heap, worker);
                heap.wait();
                board.withdraw(&heap);
            }
        }
        Ok(1)
    }

    fn has_job(batch: &Heap) -> bool {
        batch.pieces.lock().unwrap().0 > 0
    }

    fn help(&self, batch: &Heap, _worker: u16) {
        while batch.take() {
            batch.give_back();
        }
    }
}

/// Pieces of work: how many are left, and how many are out.
pub(super) struct Heap {
    pieces: Mutex<(u32, u32)>,
    back: Condvar,
}

impl Heap {
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
    /// It takes no helper.
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

    /// Also after its end, if there is one: it comes late.
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
pub(super) struct Stage {
    board: StdArc<Board>,
    plot: Option<Plot>,
    pool: StdArc<Pool>,
    n_helpers: usize,
    threads: Vec<thread::JoinHandle<()>>,
}

/// How a run is set up.
pub(super) struct Setup {
    pub(super) script: Vec<Part>,
    pub(super) lanes: Vec<LaneSpec>,
    /// Helpers, each with a thread.
    pub(super) n_helpers: usize,
    pub(super) n_spins: u32,
    /// The executor takes no helper.
    pub(super) is_full: bool,
}

impl Setup {
    pub(super) fn new(script: Vec<Part>, lanes: Vec<LaneSpec>, n_helpers: usize) -> Self {
        Self { script, lanes, n_helpers, n_spins: 0, is_full: false }
    }

    pub(super) fn start(self) -> Stage {
        let Self { script, lanes, n_helpers, n_spins, is_full } = self;
        let own_threads: Vec<usize> =
            (0..lanes.len()).filter(|lane| lanes[*lane].is_isolated).collect();
        let jobs = script.iter().map(|part| JobSpec {
            before: part.before.to_vec(),
            is_gated: part.is_gated,
            lane: part.lane,
            rank: 0,
        });
        let waits = Waits::of(jobs, lanes);
        let state = Mutex::new((VecDeque::new(), false));
        let pool = StdArc::new(Pool { state, more: Condvar::new(), is_full });
        let board = StdArc::new(Shared::new(waits, StdArc::clone(&pool), n_helpers, n_spins));
        let has_batch = script.iter().any(|part| matches!(part.deed, Deed::Batch(_)));
        let plot = Plot(Arc::new(Ground {
            epoch: 0,
            done: script.iter().map(|_| UnsafeCell::new(0)).collect(),
            script,
            stop: AtomicBool::new(false),
            board: has_batch.then(|| StdArc::clone(&board)),
        }));
        let mut threads = Vec::new();
        for _ in 0..if is_full { 0 } else { n_helpers } {
            let pool = StdArc::clone(&pool);
            threads.push(thread::spawn(move || pool.work()));
        }
        for (number, lane) in own_threads.into_iter().enumerate() {
            let worker = u16::try_from(n_helpers + number + 1).unwrap();
            let helper = help_lane(StdArc::clone(&board), lane, worker);
            threads.push(thread::spawn(move || block_on(helper)));
        }
        Stage { board, plot: Some(plot), pool, n_helpers, threads }
    }
}

impl Stage {
    fn ground(&mut self) -> &mut Ground {
        let plot = self.plot.as_mut().expect("the run goes on");
        Arc::get_mut(&mut plot.0).expect("nobody else has a share between epochs")
    }

    /// Runs an epoch.
    pub(super) fn epoch(&mut self) -> Outcome<usize> {
        self.ground().epoch += 1;
        let board = StdArc::clone(&self.board);
        let outcome = block_on(board.epoch(self.plot.as_ref().expect("the run goes on")));
        self.ground();
        outcome
    }

    /// Runs an epoch that ends with a panic; that of which job.
    pub(super) fn epoch_that_panics(&mut self) -> usize {
        let result = catch_unwind(AssertUnwindSafe(|| self.epoch()));
        self.ground();
        match result.expect_err("it panics").downcast::<Thrown>() {
            Ok(thrown) => thrown.0,
            Err(other) => resume_unwind(other),
        }
    }

    /// The jobs that the last epoch has done.
    pub(super) fn done(&mut self) -> Vec<usize> {
        let ground = self.ground();
        (0..ground.done.len()).filter(|at| ground.done_in(*at) == ground.epoch).collect()
    }

    /// Ends the run: all threads, and all helpers are at home.
    pub(super) fn end(mut self) {
        self.board.close();
        self.pool.close();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
        self.ground().board = None;
        self.plot = None;
        let mut home = core::mem::take(&mut self.board.lock().home);
        home.sort_unstable();
        let all: Vec<u16> = (1..=u16::try_from(self.n_helpers).unwrap()).collect();
        assert_eq!(home, all, "who is at home");
    }
}

/// Rings when a future is to be polled again.
#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: StdArc<Self>) {
        self.0.notify();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let bell = StdArc::new(Bell::default());
    let waker = Waker::from(StdArc::clone(&bell));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => bell.0.wait(),
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
