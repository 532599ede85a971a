//! Which tasks of a join set may have finished: the queue between their wakers and the set.
//!
//! # Protocol
//!
//! Threads: the *set*, one thread at a time, which waits for the next task; *finishers*, the
//! threads on which tasks of the set end. Each task has an [`Entry`], which is the waker that the
//! set leaves in the join handle of the task. One lock protects the queue and the waker of the set.
//!
//! 1. A task is finished before its finisher wakes its entry.
//! 2. A finisher takes the lock, puts the key of its entry into the queue, takes the waker of the
//!    set, releases the lock, and wakes the waker. This is the linearization point of "the task may
//!    have finished".
//! 3. The set takes the lock and pops a key. If the queue is empty, it stores its waker under the
//!    same lock and waits.
//! 4. After a pop, the set polls the join handle of that key. If the task has not finished, the
//!    handle keeps the entry as its waker, so the finisher comes by rule 2.
//! 5. A new task is put into the queue by the set, so that rule 4 leaves the waker in its handle.
//!
//! *Why no task is missed*: the finisher's push and the set's look at the empty queue are under one
//! lock. If the push is first, the set finds the key. If the look is first, the finisher finds the
//! waker of the set. *Why it cannot hang*: no user code runs under the lock; the waker is cloned,
//! dropped and woken outside. A key may be in the queue more than once, or belong to a task that
//! the set has already returned; the set then polls once too often, or skips it.

use core::{mem, task::Waker};
use std::{
    collections::VecDeque,
    sync::{Arc, PoisonError},
    task::Wake,
};

use crate::platform::primitive::{Mutex, MutexGuard};

/// The queue of a join set.
pub(crate) struct WokenQueue(Mutex<Woken>);

struct Woken {
    keys: VecDeque<u64>,
    set: Option<Waker>,
}

/// The waker of one task of a set.
pub(crate) struct Entry {
    key: u64,
    queue: Arc<WokenQueue>,
}

impl Entry {
    pub(crate) const fn new(key: u64, queue: Arc<WokenQueue>) -> Self {
        Self { key, queue }
    }
}

impl Wake for Entry {
    fn wake(self: Arc<Self>) {
        self.queue.push(self.key);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.queue.push(self.key);
    }
}

impl WokenQueue {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Woken { keys: VecDeque::new(), set: None }))
    }

    fn lock(&self) -> MutexGuard<'_, Woken> {
        // No code under this lock leaves the value in an inconsistent state when it panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rule 2.
    pub(crate) fn push(&self, key: u64) {
        let mut woken = self.lock();
        woken.keys.push_back(key);
        let set = woken.set.take();
        drop(woken);
        if let Some(set) = set {
            set.wake();
        }
    }

    /// Rule 3: the next key. If there is none, the next push wakes the waker.
    pub(crate) fn pop_or_register(&self, waker: &Waker) -> Option<u64> {
        let mut woken = self.lock();
        if let Some(key) = woken.keys.pop_front() {
            return Some(key);
        }
        drop(woken);
        // Cloned outside of the lock, because a waker may run user code. So look again.
        let mut own = Some(waker.clone());
        woken = self.lock();
        let key = woken.keys.pop_front();
        if key.is_none() {
            mem::swap(&mut woken.set, &mut own);
        }
        drop(woken);
        drop(own);
        key
    }

    /// Rule 3, without waiting.
    pub(crate) fn pop(&self) -> Option<u64> {
        self.lock().keys.pop_front()
    }
}
