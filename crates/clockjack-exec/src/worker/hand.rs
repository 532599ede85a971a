//! A worker that is turned by hand: for simulations, in which several take turns on one thread.
//!
//! It does what a worker on a thread of its own does, step by step: where that one would go to
//! sleep, this one says so and returns. Between two of its turns it is as a thread that the system
//! has stopped; in the middle of a step it never is.
#![expect(unsafe_code, reason = "keeps a worker beside what it borrows")]

use alloc::boxed::Box;
use core::{fmt, ptr::NonNull};

use clockjack_time::Tick;

use super::{Entered, Local, Worker, sit_down};
use crate::engine_ref::EngineRef;

/// What a turn came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turned {
    /// It has stepped a process, or looked in vain and will look again.
    Awake,
    /// It sleeps until the tick, or until its seat is unparked.
    Asleep(Option<Tick>),
    /// It was asked to leave, and has left.
    Left,
}

/// See the [module](self).
pub struct Hand {
    /// None once it has left. It borrows the two below, which are given up after it.
    worker: Option<Worker<'static>>,
    local: NonNull<Local>,
    engine: EngineRef,
    slept: Option<Option<Tick>>,
}

impl Hand {
    /// Sits down.
    ///
    /// # Panics
    /// If the seat is taken, or there is none of that number.
    #[must_use]
    pub fn new(engine: &EngineRef, seat: usize) -> Self {
        let engine = engine.clone();
        let local = NonNull::from(Box::leak(Box::new(sit_down(&engine, seat))));
        // SAFETY: the engine is kept alive by the reference beside the worker, and does not move.
        let borrowed = unsafe { NonNull::from(&*engine).as_ref() };
        // SAFETY: it is freed when the worker is gone, by the drop below.
        let here = unsafe { local.as_ref() };
        let worker = Some(Worker::new(borrowed, here));
        Self { worker, local, engine, slept: None }
    }

    /// One turn. One that sleeps is woken by it, whoever has called for that.
    pub fn turn(&mut self) -> Turned {
        let Some(worker) = &mut self.worker else { return Turned::Left };
        let entered =
            Entered { engine: &self.engine, before: self.engine.host().enter(self.local.as_ptr()) };
        let slept = self.slept.take();
        let mut turned = Turned::Awake;
        let guarded = self.engine.host().guarded(&mut || turned = turn(worker, slept));
        if let Err(caught) = guarded {
            let running = worker.running.take();
            let running = running.unwrap_or_else(|| panic!("a worker failed: {caught:?}"));
            worker.end_turn();
            // SAFETY: it was running when the panic was caught.
            unsafe { self.engine.bury(running, caught) };
        }
        match turned {
            Turned::Asleep(until) => self.slept = Some(until),
            Turned::Left => {
                worker.leave();
                self.worker = None;
            }
            Turned::Awake => {}
        }
        drop(entered);
        if self.worker.is_none() {
            // SAFETY: the worker that had borrowed it is gone.
            let local = unsafe { self.local.as_ref() };
            EngineRef::take_back(&self.engine, &local.stock);
        }
        turned
    }
}

fn turn(worker: &mut Worker<'_>, slept: Option<Option<Tick>>) -> Turned {
    if slept.is_some() {
        worker.wake_up(slept);
    }
    if worker.is_to_leave() {
        return Turned::Left;
    }
    if let Some(entry) = worker.next().or_else(|| worker.search()) {
        worker.step(entry);
        return Turned::Awake;
    }
    match worker.go_to_sleep() {
        Some(until) => Turned::Asleep(until),
        None => {
            worker.wake_up(None);
            Turned::Awake
        }
    }
}

impl Drop for Hand {
    /// One that has not left is asked to, and does.
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            self.engine.dismiss(worker.local.seat);
            while self.turn() != Turned::Left {}
        }
        // SAFETY: it was leaked by `new`, and the worker that had borrowed it is gone.
        drop(unsafe { Box::from_raw(self.local.as_ptr()) });
    }
}

impl fmt::Debug for Hand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hand").field("slept", &self.slept).finish_non_exhaustive()
    }
}
