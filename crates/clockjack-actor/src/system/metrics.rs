//! Counters of a system. Neither handlers nor a `tell` that succeeds touch them.

use core::array;

use clockjack_exec::Pid;
use clockjack_observe::Counter;
use clockjack_sync::pad::Padded;

use super::ActorSystem;
use crate::{DeadLetterReason, LifecycleStep, router::hash_of};

/// The number of stripes of counters; the pid of an actor selects its stripe.
const STRIPES: usize = 8;

/// The striped counters of a system.
pub(super) struct SystemCounters {
    stripes: [Padded<Stripe>; STRIPES],
    dead_letters: [Counter; DeadLetterReason::ALL.len()],
    suppressed: Counter,
}

#[derive(Default)]
struct Stripe {
    spawned: Counter,
    started: Counter,
    restarted: Counter,
    stopped: Counter,
    failed: Counter,
    refused_full: Counter,
    refused_stopped: Counter,
}

impl SystemCounters {
    pub(super) fn new() -> Self {
        Self {
            stripes: array::from_fn(|_| Padded(Stripe::default())),
            dead_letters: array::from_fn(|_| Counter::new()),
            suppressed: Counter::new(),
        }
    }

    fn stripe(&self, pid: Pid) -> &Stripe {
        let index = usize::try_from(hash_of(&pid) & 0xff).unwrap_or(0) % STRIPES;
        &self.stripes[index].0
    }

    pub(super) fn spawned(&self, pid: Pid) {
        self.stripe(pid).spawned.increment();
    }

    pub(super) fn lifecycle_changed(&self, pid: Pid, step: LifecycleStep) {
        let stripe = self.stripe(pid);
        match step {
            LifecycleStep::Started => stripe.started.increment(),
            LifecycleStep::Restarted => stripe.restarted.increment(),
            LifecycleStep::Stopped => stripe.stopped.increment(),
        }
    }

    pub(super) fn failed(&self, pid: Pid) {
        self.stripe(pid).failed.increment();
    }

    pub(super) fn refused(&self, pid: Pid, is_full: bool) {
        let stripe = self.stripe(pid);
        if is_full { stripe.refused_full.increment() } else { stripe.refused_stopped.increment() }
    }

    pub(super) fn dead_letter(&self, reason: DeadLetterReason, is_suppressed: bool) {
        let at = DeadLetterReason::ALL.iter().position(|one| *one == reason);
        if let Some(counter) = at.and_then(|at| self.dead_letters.get(at)) {
            counter.increment();
        }
        if is_suppressed {
            self.suppressed.increment();
        }
    }

    fn sum(&self, of: impl Fn(&Stripe) -> &Counter) -> usize {
        self.stripes.iter().fold(0, |sum, stripe| sum.wrapping_add(of(&stripe.0).get()))
    }
}

/// A snapshot of a system's counters. Each counter is read separately, so the numbers are not
/// exactly of one moment. Counters wrap around.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemMetrics {
    /// Actors that were spawned and have not stopped, including the guardians.
    pub live: usize,
    /// Actors that were spawned, including the guardians.
    pub spawned: usize,
    /// Actors that have started successfully.
    pub started: usize,
    /// Actors that have stopped.
    pub stopped: usize,
    /// Restarts of actors.
    pub restarts: usize,
    /// Failures of actors.
    pub failures: usize,
    /// Messages that were returned to their senders because the mailbox was full. A message for
    /// which a sender waits is not counted, nor one that the mailbox drops, which is a dead letter.
    pub refused_full: usize,
    /// Messages that were returned to their senders because the actor had stopped.
    pub refused_stopped: usize,
    /// Events that were dropped because a subscriber had no room.
    pub events_dropped: usize,
    /// Dead letters of suppressed types; they are also counted by their reason.
    pub suppressed_dead_letters: usize,
    dead_letters: [usize; DeadLetterReason::ALL.len()],
}

impl SystemMetrics {
    /// The number of dead letters with this reason.
    #[must_use]
    pub fn dead_letters(&self, reason: DeadLetterReason) -> usize {
        let at = DeadLetterReason::ALL.iter().position(|one| *one == reason);
        at.and_then(|at| self.dead_letters.get(at).copied()).unwrap_or(0)
    }

    /// The number of all dead letters.
    #[must_use]
    pub fn dead_letters_total(&self) -> usize {
        self.dead_letters.iter().fold(0, |sum, n| sum.wrapping_add(*n))
    }
}

impl ActorSystem {
    /// A snapshot of the system's counters.
    #[must_use]
    pub fn metrics(&self) -> SystemMetrics {
        let counters = &self.inner().counters;
        // Read before `spawned`, so that the difference is never negative.
        let stopped = counters.sum(|stripe| &stripe.stopped);
        let spawned = counters.sum(|stripe| &stripe.spawned);
        SystemMetrics {
            live: spawned.wrapping_sub(stopped),
            spawned,
            started: counters.sum(|stripe| &stripe.started),
            stopped,
            restarts: counters.sum(|stripe| &stripe.restarted),
            failures: counters.sum(|stripe| &stripe.failed),
            refused_full: counters.sum(|stripe| &stripe.refused_full),
            refused_stopped: counters.sum(|stripe| &stripe.refused_stopped),
            events_dropped: self.events().dropped(),
            suppressed_dead_letters: counters.suppressed.get(),
            dead_letters: array::from_fn(|at| counters.dead_letters[at].get()),
        }
    }
}
