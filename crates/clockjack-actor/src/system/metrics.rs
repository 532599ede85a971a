//! Counts of what happens in a system. Nothing here is touched by a `tell` or a handler.

use core::array;

use clockjack_exec::Pid;
use clockjack_observe::Counter;
use clockjack_sync::pad::Padded;

use super::ActorSystem;
use crate::{DeadLetterReason, LifecycleStep, router_logic::hash_of};

/// How many rows of counters there are; which one an actor counts in follows from its pid.
const ROWS: usize = 8;

/// The counters of a system.
pub(super) struct Meters {
    rows: [Padded<Row>; ROWS],
    letters: [Counter; DeadLetterReason::ALL.len()],
    suppressed: Counter,
}

#[derive(Default)]
struct Row {
    spawned: Counter,
    started: Counter,
    restarted: Counter,
    stopped: Counter,
    failed: Counter,
}

impl Meters {
    pub(super) fn new() -> Self {
        Self {
            rows: array::from_fn(|_| Padded(Row::default())),
            letters: array::from_fn(|_| Counter::new()),
            suppressed: Counter::new(),
        }
    }

    fn row(&self, pid: Pid) -> &Row {
        let index = usize::try_from(hash_of(&pid) & 0xff).unwrap_or(0) % ROWS;
        &self.rows[index].0
    }

    pub(super) fn spawned(&self, pid: Pid) {
        self.row(pid).spawned.increment();
    }

    pub(super) fn stepped(&self, pid: Pid, step: LifecycleStep) {
        let row = self.row(pid);
        match step {
            LifecycleStep::Started => row.started.increment(),
            LifecycleStep::Restarted => row.restarted.increment(),
            LifecycleStep::Stopped => row.stopped.increment(),
        }
    }

    pub(super) fn failed(&self, pid: Pid) {
        self.row(pid).failed.increment();
    }

    pub(super) fn dead_letter(&self, reason: DeadLetterReason, is_suppressed: bool) {
        let at = DeadLetterReason::ALL.iter().position(|one| *one == reason);
        if let Some(counter) = at.and_then(|at| self.letters.get(at)) {
            counter.increment();
        }
        if is_suppressed {
            self.suppressed.increment();
        }
    }

    fn sum(&self, of: impl Fn(&Row) -> &Counter) -> usize {
        self.rows.iter().fold(0, |sum, row| sum.wrapping_add(of(&row.0).get()))
    }
}

/// What has happened in a system so far. The numbers are not of one moment: each was read by
/// itself. They wrap around.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemMetrics {
    /// Actors that were spawned and have not ended, the guardians among them.
    pub live: usize,
    /// Actors that were spawned, the guardians among them.
    pub spawned: usize,
    /// Actors that have started; some do not come that far.
    pub started: usize,
    /// Actors that have ended.
    pub stopped: usize,
    /// How often an actor was made anew.
    pub restarts: usize,
    /// Failures of actors about which was decided.
    pub failures: usize,
    /// Events that subscribers had no room for.
    pub events_dropped: usize,
    /// Dead letters of marked types, which are among the others.
    pub suppressed_dead_letters: usize,
    letters: [usize; DeadLetterReason::ALL.len()],
}

impl SystemMetrics {
    /// Dead letters for this reason.
    #[must_use]
    pub fn dead_letters(&self, reason: DeadLetterReason) -> usize {
        let at = DeadLetterReason::ALL.iter().position(|one| *one == reason);
        at.and_then(|at| self.letters.get(at).copied()).unwrap_or(0)
    }

    /// All dead letters.
    #[must_use]
    pub fn dead_letters_total(&self) -> usize {
        self.letters.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }
}

impl ActorSystem {
    /// What has happened so far.
    #[must_use]
    pub fn metrics(&self) -> SystemMetrics {
        let meters = &self.inner().meters;
        // Read first: so it is never more than were spawned.
        let stopped = meters.sum(|row| &row.stopped);
        let spawned = meters.sum(|row| &row.spawned);
        SystemMetrics {
            live: spawned.wrapping_sub(stopped),
            spawned,
            started: meters.sum(|row| &row.started),
            stopped,
            restarts: meters.sum(|row| &row.restarted),
            failures: meters.sum(|row| &row.failed),
            events_dropped: self.events().dropped(),
            suppressed_dead_letters: meters.suppressed.get(),
            letters: array::from_fn(|at| meters.letters[at].get()),
        }
    }
}
