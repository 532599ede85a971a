//! A worker that the caller steps: for simulations, in which several workers share one thread.
//!
//! It does what a worker on its own thread does, one poll per call; where that worker would sleep,
//! this one returns. Between two steps it is like a thread that the operating system has suspended;
//! it is never suspended in the middle of a poll.
#![expect(unsafe_code, reason = "keeps a worker next to what it borrows")]

use alloc::boxed::Box;
use core::{fmt, ptr::NonNull};

use clockjack_time::Tick;

use super::{EnterGuard, Requested, Worker, WorkerLocal, occupy_slot};
use crate::executor_ref::ExecutorRef;

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualStep {
    /// The worker has polled a task, or has found nothing and will search again.
    Awake,
    /// The worker sleeps until the tick, or until it is unparked.
    Parked(Option<Tick>),
    /// The worker was asked to stop, and has stopped.
    Stopped,
}

/// A worker that the caller steps; see the [module](self).
pub struct ManualWorker {
    /// `None` after the worker has stopped. It borrows the next two fields, which are dropped after
    /// it.
    worker: Option<Worker<'static>>,
    local: NonNull<WorkerLocal>,
    executor: ExecutorRef,
    park: Option<Option<Tick>>,
}

impl ManualWorker {
    /// Starts the worker of an index.
    ///
    /// # Panics
    /// If the worker of this index runs already, or there is no such index.
    #[must_use]
    pub fn new(executor: &ExecutorRef, worker_index: usize) -> Self {
        let executor = executor.clone();
        let local = NonNull::from(Box::leak(Box::new(occupy_slot(&executor, worker_index))));
        // SAFETY: the reference in the field `executor` keeps the executor alive, and it does not
        // move.
        let borrowed = unsafe { NonNull::from(&*executor).as_ref() };
        // SAFETY: the drop below frees it, after the worker is gone.
        let here = unsafe { local.as_ref() };
        let worker = Some(Worker::new(borrowed, here));
        Self { worker, local, executor, park: None }
    }

    /// Runs one step. A parked worker wakes up, whatever the reason for the call.
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
            // SAFETY: the task was being polled when the panic was caught.
            unsafe { self.executor.finish_panicked(running, payload) };
        }
        match result {
            ManualStep::Parked(until) => self.park = Some(until),
            ManualStep::Stopped => {
                worker.leave(entered);
                self.worker = None;
            }
            ManualStep::Awake => {}
        }
        result
    }
}

fn step_worker(worker: &mut Worker<'_>, park: Option<Option<Tick>>) -> ManualStep {
    if park.is_some() {
        worker.finish_park(park);
    }
    if worker.handle_requests::<false>() == Requested::Stop {
        return ManualStep::Stopped;
    }
    if let Some(runnable) = worker.next().or_else(|| worker.poll_rest()).or_else(|| worker.search())
    {
        worker.poll(runnable);
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
    /// Asks a worker that still runs to stop, and steps it until it has.
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            self.executor.request_worker_stop(worker.local.index);
            while self.step() != ManualStep::Stopped {}
        }
        // SAFETY: `new` leaked it, and the worker that had borrowed it is gone.
        drop(unsafe { Box::from_raw(self.local.as_ptr()) });
    }
}

impl fmt::Debug for ManualWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualWorker").field("park", &self.park).finish_non_exhaustive()
    }
}
