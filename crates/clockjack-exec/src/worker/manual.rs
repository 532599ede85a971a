//! A worker that is result by hand: for simulations, in which several take turns on one thread.
//!
//! It does what a worker on a thread of its own does, step by step: where that one would go to
//! sleep, this one says so and returns. Between two of its turns it is as a thread that the system
//! has stopped; in the middle of a step it never is.
#![expect(unsafe_code, reason = "keeps a worker beside what it borrows")]

use alloc::boxed::Box;
use core::{fmt, ptr::NonNull};

use clockjack_time::Tick;

use super::{EnterGuard, Worker, WorkerLocal, occupy_slot};
use crate::executor_ref::ExecutorRef;

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualStep {
    /// It has stepped a process, or looked in vain and will look again.
    Awake,
    /// It sleeps until the tick, or until its worker_index is unparked.
    Parked(Option<Tick>),
    /// It was asked to leave, and has left.
    Stopped,
}

/// See the [module](self).
pub struct ManualWorker {
    /// None once it has left. It borrows the two below, which are given up after it.
    worker: Option<Worker<'static>>,
    local: NonNull<WorkerLocal>,
    executor: ExecutorRef,
    park: Option<Option<Tick>>,
}

impl ManualWorker {
    /// Sits down.
    ///
    /// # Panics
    /// If the worker_index is taken, or there is none of that number.
    #[must_use]
    pub fn new(executor: &ExecutorRef, worker_index: usize) -> Self {
        let executor = executor.clone();
        let local = NonNull::from(Box::leak(Box::new(occupy_slot(&executor, worker_index))));
        // SAFETY: the executor is kept alive by the reference beside the worker, and does not move.
        let borrowed = unsafe { NonNull::from(&*executor).as_ref() };
        // SAFETY: it is freed when the worker is gone, by the drop below.
        let here = unsafe { local.as_ref() };
        let worker = Some(Worker::new(borrowed, here));
        Self { worker, local, executor, park: None }
    }

    /// One turn. One that sleeps is woken by it, whoever has called for that.
    pub fn step(&mut self) -> ManualStep {
        let Some(worker) = &mut self.worker else { return ManualStep::Stopped };
        let entered = EnterGuard {
            executor: &self.executor,
            before: self.executor.toolbox().enter(self.local.as_ptr()),
        };
        let park = self.park.take();
        let mut result = ManualStep::Awake;
        let caught =
            self.executor.toolbox().catch_unwind(&mut || result = step_worker(worker, park));
        if let Err(payload) = caught {
            let running = worker.running.take();
            let running = running.unwrap_or_else(|| panic!("a worker failed: {payload:?}"));
            worker.end_poll();
            // SAFETY: it was running when the panic was caught.
            unsafe { self.executor.finish_panicked(running, payload) };
        }
        match result {
            ManualStep::Parked(until) => self.park = Some(until),
            ManualStep::Stopped => {
                worker.leave();
                self.worker = None;
            }
            ManualStep::Awake => {}
        }
        drop(entered);
        if self.worker.is_none() {
            // SAFETY: the worker that had borrowed it is gone.
            let local = unsafe { self.local.as_ref() };
            ExecutorRef::take_back(&self.executor, &local.ref_cache);
        }
        result
    }
}

fn step_worker(worker: &mut Worker<'_>, park: Option<Option<Tick>>) -> ManualStep {
    if park.is_some() {
        worker.finish_park(park);
    }
    if worker.should_stop() {
        return ManualStep::Stopped;
    }
    if let Some(runnable) = worker.next().or_else(|| worker.search()) {
        worker.step(runnable);
        return ManualStep::Awake;
    }
    match worker.prepare_park() {
        Some(until) => ManualStep::Parked(until),
        None => {
            worker.finish_park(None);
            ManualStep::Awake
        }
    }
}

impl Drop for ManualWorker {
    /// One that has not left is asked to, and does.
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            self.executor.request_worker_stop(worker.local.index);
            while self.step() != ManualStep::Stopped {}
        }
        // SAFETY: it was leaked by `new`, and the worker that had borrowed it is gone.
        drop(unsafe { Box::from_raw(self.local.as_ptr()) });
    }
}

impl fmt::Debug for ManualWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualWorker").field("park", &self.park).finish_non_exhaustive()
    }
}
