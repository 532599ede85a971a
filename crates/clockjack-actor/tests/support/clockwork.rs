//! Timers that fire when a test says so.

#[cfg(not(loom))]
use alloc::sync::Arc;
use core::task::Waker;
#[cfg(not(loom))]
use std::sync::Mutex;

use clockjack_actor::ask::timer::TimerBackend;
use clockjack_time::Tick;
#[cfg(loom)]
use loom::sync::{Arc, Mutex};

/// A clock with its timers, shared by its clones.
#[derive(Clone)]
pub(crate) struct Clockwork(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    now: u64,
    next: u32,
    armed: Vec<(u32, u64, Waker)>,
    n_armed: u32,
    is_closed: bool,
}

/// No timer was armed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl TimerBackend for Clockwork {
    type Id = u32;
    type Refused = Closed;

    fn arm(&self, deadline: Tick, waker: Waker) -> Result<u32, Closed> {
        let mut state = self.0.lock().unwrap();
        if state.is_closed {
            drop(state);
            drop(waker);
            return Err(Closed);
        }
        let id = state.next;
        state.next += 1;
        state.n_armed += 1;
        state.armed.push((id, deadline.get(), waker));
        Ok(id)
    }

    fn disarm(&self, id: u32) {
        let mut state = self.0.lock().unwrap();
        let found = state.armed.iter().position(|(armed, ..)| *armed == id);
        let disarmed = found.map(|at| state.armed.remove(at));
        drop(state);
        drop(disarmed);
    }

    fn is_due(&self, deadline: Tick) -> bool {
        self.0.lock().unwrap().now >= deadline.get()
    }
}

impl Clockwork {
    /// At tick zero.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(State::default())))
    }

    /// Advances the time to a tick and fires due timers, in order.
    pub(crate) fn advance(&self, now: u64) {
        loop {
            let mut state = self.0.lock().unwrap();
            state.now = now;
            let due = state.armed.iter().enumerate().filter(|(_, (_, due, _))| *due <= now);
            let first = due.min_by_key(|(_, (id, due, _))| (*due, *id)).map(|(at, _)| at);
            let Some(at) = first else { return };
            let (_, _, waker) = state.armed.remove(at);
            drop(state);
            waker.wake();
        }
    }

    /// The deadlines of the armed timers, in the order in which they were armed.
    pub(crate) fn due(&self) -> Vec<u64> {
        self.0.lock().unwrap().armed.iter().map(|(_, due, _)| *due).collect()
    }
}

#[cfg(not(loom))]
impl Clockwork {
    /// The number of timers that were armed so far.
    pub(crate) fn n_armed(&self) -> u32 {
        self.0.lock().unwrap().n_armed
    }

    /// Refuses all timers from now on, and wakes the existing ones.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock().unwrap();
        state.is_closed = true;
        let armed = core::mem::take(&mut state.armed);
        drop(state);
        armed.into_iter().for_each(|(.., waker)| waker.wake());
    }
}
