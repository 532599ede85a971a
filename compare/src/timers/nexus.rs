//! `nexus-timer`: a hierarchical wheel over a slab that grows by chunks; entries do not cascade
//! but fire from the level they were placed in, unless a poll moves them to a finer one.

use core::time::Duration;
use std::time::Instant;

use nexus_timer::{TimerHandle, Wheel};

use super::subject::{Cancel, Facts, Fired, Ids, Role, Subject};

/// The entries of a slab chunk. Large, so that growing is rare at a million timers.
const CHUNK_LEN: usize = 65_536;

pub(crate) struct NexusTimer {
    wheel: Wheel<u32>,
    start: Instant,
    due: Vec<u32>,
}

impl NexusTimer {
    fn instant(&self, at_ms: u64) -> Instant {
        self.start + Duration::from_millis(at_ms)
    }
}

impl Subject for NexusTimer {
    const FACTS: Facts = Facts {
        name: "nexus-timer",
        package: Some("nexus-timer"),
        role: Role::Crate,
        cancel: Cancel::Frees,
        ids: Ids::HandedBack,
        note: "unbounded wheel, default levels, 1 ms tick; freeing the handle of a fired timer \
               is not charged to it",
    };

    type Key = TimerHandle<u32>;

    fn new() -> Self {
        let start = Instant::now();
        Self { wheel: Wheel::unbounded(CHUNK_LEN, start), start, due: Vec::new() }
    }

    fn insert(&mut self, deadline_ms: u64, id: u32) -> Self::Key {
        self.wheel.schedule(self.instant(deadline_ms), id)
    }

    fn cancel(&mut self, key: Self::Key) {
        core::hint::black_box(self.wheel.cancel(key));
    }

    /// `poll_and_rebalance` is the poll its documentation advises for a running program; a plain
    /// `poll` never moves an entry to a finer level and degrades to a scan of all timers.
    fn jump(&mut self, to_ms: u64) -> Fired {
        let now = self.instant(to_ms);
        self.wheel.poll_and_rebalance(now, &mut self.due);
        let mut fired = Fired::default();
        for id in self.due.drain(..) {
            fired.note(id);
        }
        fired
    }

    /// A handle must not simply be dropped: in a debug build that panics, and in a release build
    /// the slot of its entry, which a fired timer keeps as long as its handle exists, is lost until
    /// the wheel is dropped. `free` releases the slot of a fired timer and the handle of a pending
    /// one.
    fn retire(&mut self, key: Self::Key) {
        self.wheel.free(key);
    }
}
