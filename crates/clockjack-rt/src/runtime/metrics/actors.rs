//! The worst actors of a reading.

use std::collections::{BTreeMap, BTreeSet};

use clockjack_actor::{ActorStats, ActorSystem};
use clockjack_exec::Pid;
use clockjack_observe::samples::SampleSet;

use super::{counter, gauge, sampler::Sampler};

/// The figures of at most so many actors are read.
const ACTORS_MAX: usize = 20_000;

/// How many actors are the worst by one criterion.
const WORST_MAX: usize = 10;

/// What the last reading found, so that the next one sees what has changed.
#[derive(Default)]
pub(super) struct WorstActors {
    last: BTreeMap<Pid, Figures>,
}

/// The figures by which actors are compared.
#[derive(Clone, Copy, Default)]
struct Figures {
    taken: usize,
    refused: usize,
    restarts: usize,
    busy_ns: u64,
}

impl WorstActors {
    pub(super) fn add_to(&mut self, set: &mut SampleSet, system: &ActorSystem, sampler: &Sampler) {
        let actors = system.actor_stats(ACTORS_MAX);
        let help = "Actors whose figures were read for this page.";
        gauge(set, "actors.sampled", help, &[], actors.len());
        let busy = sampler.busy_ns(actors.iter().map(|actor| actor.pid));
        let figures = actors.iter().map(|actor| Figures {
            taken: actor.messages_taken,
            refused: actor.refused,
            restarts: actor.restarts,
            busy_ns: busy.get(&actor.pid).copied().unwrap_or(0),
        });
        let figures: Vec<Figures> = figures.collect();
        for at in self.worst(&actors, &figures) {
            add_actor(set, &actors[at], figures[at].busy_ns);
        }
        self.last = actors.iter().map(|actor| actor.pid).zip(figures).collect();
    }

    /// The positions of the worst actors by each criterion, in ascending order.
    fn worst(&self, actors: &[ActorStats], figures: &[Figures]) -> BTreeSet<usize> {
        let since = |at: usize| {
            let (now, last) = (figures[at], self.last.get(&actors[at].pid));
            let last = last.copied().unwrap_or_default();
            Figures {
                taken: now.taken.wrapping_sub(last.taken),
                refused: now.refused.wrapping_sub(last.refused),
                restarts: now.restarts.wrapping_sub(last.restarts),
                busy_ns: now.busy_ns.saturating_sub(last.busy_ns),
            }
        };
        let mut worst = BTreeSet::new();
        worst.extend(largest(actors.len(), |at| actors[at].mailbox_len as u64));
        worst.extend(largest(actors.len(), |at| since(at).taken as u64));
        worst.extend(largest(actors.len(), |at| since(at).refused as u64));
        worst.extend(largest(actors.len(), |at| since(at).restarts as u64));
        worst.extend(largest(actors.len(), |at| since(at).busy_ns));
        let mut paths = BTreeSet::new();
        // A path is a label, and no series may occur twice: an actor that is about to be removed
        // may have the path of its successor.
        worst.retain(|at| paths.insert(actors[*at].path.to_string()));
        worst
    }
}

/// The positions of the largest numbers that are not zero.
fn largest(len: usize, number: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut all: Vec<_> = (0..len).map(|at| (number(at), at)).filter(|(n, _)| *n > 0).collect();
    if all.len() > WORST_MAX {
        all.select_nth_unstable_by(WORST_MAX - 1, |one, other| other.cmp(one));
        all.truncate(WORST_MAX);
    }
    all.into_iter().map(|(_, at)| at).collect()
}

fn add_actor(set: &mut SampleSet, actor: &ActorStats, busy_ns: u64) {
    let path = actor.path.to_string();
    let labels = [("path", path.as_str())];
    let help = "Messages in the mailbox of this actor.";
    gauge(set, "actor.mailbox_length", help, &labels, actor.mailbox_len);
    let help = "How many messages the mailbox may hold.";
    gauge(set, "actor.mailbox_capacity", help, &labels, actor.mailbox_capacity);
    let help = "Messages that this actor took out of its mailbox.";
    counter(set, "actor.messages", help, &labels, actor.messages_taken as u64);
    let help = "Messages that the full mailbox returned to their senders.";
    counter(set, "actor.messages_refused", help, &labels, actor.refused as u64);
    let help = "Restarts of this actor.";
    counter(set, "actor.restarts", help, &labels, actor.restarts as u64);
    let help = "How long this actor ran, as a hundred looks per second saw it.";
    counter(set, "actor.busy_ns", help, &labels, busy_ns);
}
