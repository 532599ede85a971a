//! Counts the actors of a load that have started, finished and stopped, so that the load knows when
//! it is complete and that no actor is left.
//!
//! The driver waits for wake flags, so it uses no CPU time while the actors work.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::wake_flag::WakeFlag;

/// The counts of one pass over a load.
#[derive(Debug)]
pub(crate) struct ActorCounts {
    n_actors: u64,
    n_to_finish: u64,
    n_started: AtomicU64,
    n_finished: AtomicU64,
    n_left: AtomicU64,
    /// The sum of the results of finished actors.
    result: AtomicU64,
    all_started: WakeFlag,
    all_finished: WakeFlag,
    all_left: WakeFlag,
}

impl ActorCounts {
    /// A load with this many actors, which is complete when `n_to_finish` of them are finished; a
    /// load of several steps completes a step each time that this many more have finished.
    pub(crate) fn new(n_actors: u64, n_to_finish: u64) -> Arc<Self> {
        Arc::new(Self {
            n_actors,
            n_to_finish,
            n_started: AtomicU64::new(0),
            n_finished: AtomicU64::new(0),
            n_left: AtomicU64::new(0),
            result: AtomicU64::new(0),
            all_started: WakeFlag::default(),
            all_finished: WakeFlag::default(),
            all_left: WakeFlag::default(),
        })
    }

    /// Waits until all have started.
    pub(crate) async fn all_started(&self) {
        self.all_started.wait().await;
    }

    /// Waits until all actors with a result have finished, and returns the sum of the results.
    pub(crate) async fn all_finished(&self) -> u64 {
        self.all_finished.wait().await;
        // Relaxed: the actor that set the flag was the last one, and the lock of the flag orders
        // its additions before this load.
        self.result.load(Ordering::Relaxed)
    }

    /// Waits until the state of every actor is dropped.
    pub(crate) async fn all_left(&self) {
        self.all_left.wait().await;
    }
}

/// The entry of one actor. Its drop counts the actor as stopped.
#[derive(Debug)]
pub(crate) struct Member {
    counts: Arc<ActorCounts>,
}

impl Member {
    pub(crate) fn of(counts: &Arc<ActorCounts>) -> Self {
        Self { counts: Arc::clone(counts) }
    }

    /// The counts, to add a child to them.
    pub(crate) const fn counts(&self) -> &Arc<ActorCounts> {
        &self.counts
    }

    /// Called by the host when the crate has started the actor.
    pub(crate) fn started(&self) {
        // Relaxed: a read-modify-write sees every earlier one, and it publishes nothing.
        if self.counts.n_started.fetch_add(1, Ordering::Relaxed) + 1 == self.counts.n_actors {
            self.counts.all_started.set();
        }
    }

    /// Called by a part that has finished its work, in a load of several steps after each.
    pub(crate) fn finish(&self, result: u64) {
        // Relaxed, because the count below publishes it.
        self.counts.result.fetch_add(result, Ordering::Relaxed);
        // AcqRel: the last actor to count has seen the results of all others, through their
        // releases.
        let n_finished = self.counts.n_finished.fetch_add(1, Ordering::AcqRel) + 1;
        if n_finished.is_multiple_of(self.counts.n_to_finish) {
            self.counts.all_finished.set();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Relaxed, as in `started`.
        if self.counts.n_left.fetch_add(1, Ordering::Relaxed) + 1 == self.counts.n_actors {
            self.counts.all_left.set();
        }
    }
}
