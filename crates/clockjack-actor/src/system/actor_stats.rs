//! Figures of single actors, read from outside: no actor is stopped or asked for them.

use alloc::vec::Vec;

use clockjack_exec::Pid;

use super::ActorSystem;
use crate::{ActorPath, cell::spawn};

/// The figures of one actor. They are not read at one instant. Counters wrap around.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorStats {
    /// The process id of the actor.
    pub pid: Pid,
    /// The path of the actor.
    pub path: ActorPath,
    /// The name of the actor's type.
    pub type_name: &'static str,
    /// The approximate number of messages in the mailbox.
    pub mailbox_len: usize,
    /// How many messages the mailbox may hold.
    pub mailbox_capacity: usize,
    /// How many messages the actor has taken out of its mailbox. Control messages and timers do
    /// not pass through the mailbox.
    pub messages_taken: usize,
    /// How many messages were returned to their senders because the mailbox was full; see
    /// [`ActorRef::refused`](crate::ActorRef::refused).
    pub refused: usize,
    /// How often the actor was restarted.
    pub restarts: usize,
}

impl ActorSystem {
    /// The figures of at most `actors_max` actors, each before its descendants; of many siblings,
    /// those of the newest. Reads some words per actor; actors continue to run meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::ActorSystem;
    ///
    /// fn deepest(system: &ActorSystem) -> Option<String> {
    ///     let all = system.actor_stats(10_000);
    ///     let deepest = all.iter().max_by_key(|actor| actor.mailbox_len)?;
    ///     Some(format!("{} has {} messages", deepest.path, deepest.mailbox_len))
    /// }
    /// ```
    #[must_use]
    pub fn actor_stats(&self, actors_max: usize) -> Vec<ActorStats> {
        let Some(guardians) = self.inner().guardians() else { return Vec::new() };
        let actors = spawn::first_descendants(&guardians.root, actors_max);
        let stats = actors.iter().map(|actor| {
            let (mailbox_len, mailbox_capacity) = actor.messages_waiting();
            ActorStats {
                pid: actor.pid(),
                path: actor.path.clone(),
                type_name: actor.name(),
                mailbox_len,
                mailbox_capacity,
                messages_taken: actor.messages_taken(),
                refused: actor.refused(),
                restarts: actor.restarts(),
            }
        });
        stats.collect()
    }
}
