//! Who of a load has started and who is gone, so that a load knows when it is done and that nobody
//! is left behind.
//!
//! The driver waits at bells: it costs nothing while the actors work, neither turns nor polls.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::bell::Bell;

/// The roll of one pass over a load.
#[derive(Debug)]
pub(crate) struct Roll {
    n_actors: u64,
    n_to_finish: u64,
    n_started: AtomicU64,
    n_finished: AtomicU64,
    n_left: AtomicU64,
    /// What those who finished added up.
    result: AtomicU64,
    all_started: Bell,
    all_finished: Bell,
    all_left: Bell,
}

impl Roll {
    /// A load with so many actors, which is done if `n_to_finish` of them are; a load of several
    /// steps is done with a step each time that so many more have finished.
    pub(crate) fn new(n_actors: u64, n_to_finish: u64) -> Arc<Self> {
        Arc::new(Self {
            n_actors,
            n_to_finish,
            n_started: AtomicU64::new(0),
            n_finished: AtomicU64::new(0),
            n_left: AtomicU64::new(0),
            result: AtomicU64::new(0),
            all_started: Bell::default(),
            all_finished: Bell::default(),
            all_left: Bell::default(),
        })
    }

    /// Waits until all have started.
    pub(crate) async fn all_started(&self) {
        self.all_started.rung().await;
    }

    /// Waits until all who have something to finish have done so, and returns what they added up.
    pub(crate) async fn all_finished(&self) -> u64 {
        self.all_finished.rung().await;
        // Relaxed: whoever rang came last, and the lock of the bell is between its ring and this.
        self.result.load(Ordering::Relaxed)
    }

    /// Waits until the state of every actor is dropped.
    pub(crate) async fn all_left(&self) {
        self.all_left.rung().await;
    }
}

/// The place of one actor on the roll. It leaves when its state is dropped.
#[derive(Debug)]
pub(crate) struct Member {
    roll: Arc<Roll>,
}

impl Member {
    pub(crate) fn of(roll: &Arc<Roll>) -> Self {
        Self { roll: Arc::clone(roll) }
    }

    /// The roll, to put a child on it.
    pub(crate) const fn roll(&self) -> &Arc<Roll> {
        &self.roll
    }

    /// Called by the host when the crate has started the actor.
    pub(crate) fn started(&self) {
        // Relaxed: a read-modify-write sees every earlier one, and nothing is published by it.
        if self.roll.n_started.fetch_add(1, Ordering::Relaxed) + 1 == self.roll.n_actors {
            self.roll.all_started.ring();
        }
    }

    /// Called by a part that has done all it was to do, in a load of several steps after each.
    pub(crate) fn finish(&self, result: u64) {
        // Relaxed, since it stands in front of the count below.
        self.roll.result.fetch_add(result, Ordering::Relaxed);
        // AcqRel: who counts last has seen the results of all before, by their releases.
        let n_finished = self.roll.n_finished.fetch_add(1, Ordering::AcqRel) + 1;
        if n_finished.is_multiple_of(self.roll.n_to_finish) {
            self.roll.all_finished.ring();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Relaxed, as in `started`.
        if self.roll.n_left.fetch_add(1, Ordering::Relaxed) + 1 == self.roll.n_actors {
            self.roll.all_left.ring();
        }
    }
}
