//! Routers: actors that distribute messages to other actors, the routees.
//!
//! A [`Pool`] starts its routees as its children, supervises them and changes their number. A
//! [`Group`] routes to the actors that are registered under a key. Both are spawned like any actor;
//! the result is an `ActorRef` for the routees' messages.
//!
//! A router is itself an actor, so messages from one sender to one routee keep their order.
//! Messages are moved from mailbox to mailbox, without boxing.
//!
//! # What happens to a message
//!
//! * If the mailbox of the chosen routee is full, the next routee with room gets the message. With
//!   consistent hashing and in a broadcast only the chosen routee may handle the message; then the
//!   message becomes a dead letter.
//! * If a routee of a pool has stopped, by itself or because the limit of its strategy was
//!   exceeded, the next message for it starts a new routee, which gets that message.
//! * A routee of a group that has stopped is removed from the listing.
//! * If there is no routee, the message becomes a dead letter: [`DeadLetterReason::NoReceiver`].

mod group;
mod logic;
mod pool;
mod shared;

use alloc::{boxed::Box, vec::Vec};

use clockjack_sync::Arc;

use self::logic::{HashRing, Random, RoundRobin, SmallestMailbox};
pub use self::{
    group::Group,
    logic::{Resizer, hash_of},
    pool::{MESSAGES_PER_LOAD_CHECK, Pool},
    shared::PoolHandle,
};
use crate::{ActorRef, DeadLetterReason};

/// A function of the user that returns the hash of a message.
pub(crate) type HashFn<M> = Arc<Box<dyn Fn(&M) -> u64 + Send + Sync>>;

/// The routing logic: which routee gets a message.
pub(crate) enum Logic<M> {
    RoundRobin(RoundRobin),
    Random(Random),
    Smallest(SmallestMailbox),
    Hash(HashFn<M>),
    Broadcast(fn(&M) -> M),
}

impl<M> Clone for Logic<M> {
    fn clone(&self) -> Self {
        match self {
            Self::RoundRobin(logic) => Self::RoundRobin(logic.clone()),
            Self::Random(logic) => Self::Random(logic.clone()),
            Self::Smallest(logic) => Self::Smallest(logic.clone()),
            Self::Hash(hash) => Self::Hash(hash.clone()),
            Self::Broadcast(clone) => Self::Broadcast(*clone),
        }
    }
}

/// The routees, and the logic that chooses one of them.
pub(crate) struct Routing<M> {
    logic: Logic<M>,
    routees: Vec<ActorRef<M>>,
    /// The hash ring with the ids of the routees. `numbers` contains the id of each routee, by its
    /// index.
    ring: HashRing,
    numbers: Vec<u64>,
}

/// A message that could not be delivered: its intended routee, and the reason.
pub(crate) struct Undelivered {
    /// `None` if there is no routee.
    pub(crate) index: Option<usize>,
    pub(crate) reason: DeadLetterReason,
}

impl<M: 'static> Routing<M> {
    pub(crate) fn new(logic: Logic<M>) -> Self {
        Self { logic, routees: Vec::new(), ring: HashRing::new(&[]), numbers: Vec::new() }
    }

    pub(crate) fn routees(&self) -> &[ActorRef<M>] {
        &self.routees
    }

    /// Replaces the routees. A routee keeps its id on the ring, so that its keys stay with it.
    pub(crate) fn set(&mut self, routees: Vec<ActorRef<M>>, number: impl Fn(usize) -> u64) {
        self.routees = routees;
        if let Logic::Hash(_) = self.logic {
            let numbers: Vec<_> = (0..self.routees.len()).map(number).collect();
            if numbers != self.numbers {
                self.ring = HashRing::new(&numbers);
                self.numbers = numbers;
            }
        }
    }

    /// Routes a message. `replace` may start a new routee in place of one that has stopped;
    /// `on_undelivered` is called for a message without a receiver.
    pub(crate) fn route(
        &mut self,
        msg: M,
        replace: &mut dyn FnMut(usize) -> Option<ActorRef<M>>,
        on_undelivered: &mut dyn FnMut(Undelivered),
    ) {
        let n = self.routees.len();
        let picked = match &mut self.logic {
            Logic::RoundRobin(logic) => logic.pick(n),
            Logic::Random(logic) => logic.pick(n),
            Logic::Smallest(logic) => logic.pick(n, |index| self.routees[index].mailbox_len()),
            Logic::Hash(key) => {
                let number = self.ring.pick(key(&msg));
                number.and_then(|number| self.numbers.iter().position(|one| *one == number))
            }
            Logic::Broadcast(clone) => {
                let clone = *clone;
                return self.broadcast(clone, msg, replace, on_undelivered);
            }
        };
        let Some(first) = picked else {
            return on_undelivered(Undelivered {
                index: None,
                reason: DeadLetterReason::NoReceiver,
            });
        };
        let tries = if let Logic::Hash(_) = self.logic { 1 } else { n };
        let mut msg = Some(msg);
        let mut undelivered = Undelivered { index: Some(first), reason: DeadLetterReason::Stopped };
        for index in (first..n).chain(0..first).take(tries) {
            let Some(one) = msg.take() else { return };
            match self.tell_routee(index, one, replace) {
                Ok(()) => return,
                Err((one, reason)) => {
                    msg = Some(one);
                    if index == first {
                        undelivered.reason = reason;
                    }
                }
            }
        }
        on_undelivered(undelivered);
    }

    fn broadcast(
        &mut self,
        clone: fn(&M) -> M,
        msg: M,
        replace: &mut dyn FnMut(usize) -> Option<ActorRef<M>>,
        on_undelivered: &mut dyn FnMut(Undelivered),
    ) {
        let n = self.routees.len();
        let mut original = Some(msg);
        for index in 0..n {
            let one = if index + 1 == n { original.take() } else { original.as_ref().map(clone) };
            let Some(one) = one else { return };
            if let Err((_, reason)) = self.tell_routee(index, one, replace) {
                on_undelivered(Undelivered { index: Some(index), reason });
            }
        }
        if n == 0 {
            on_undelivered(Undelivered { index: None, reason: DeadLetterReason::NoReceiver });
        }
    }

    fn tell_routee(
        &mut self,
        index: usize,
        msg: M,
        replace: &mut dyn FnMut(usize) -> Option<ActorRef<M>>,
    ) -> Result<(), (M, DeadLetterReason)> {
        let refused = match self.routees[index].tell(msg) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        if refused.is_full() {
            return Err((refused.into_inner(), DeadLetterReason::MailboxFull));
        }
        let Some(fresh) = replace(index) else {
            return Err((refused.into_inner(), DeadLetterReason::Stopped));
        };
        self.routees[index] = fresh;
        self.routees[index].tell(refused.into_inner()).map_err(|refused| {
            let is_full = refused.is_full();
            let reason =
                if is_full { DeadLetterReason::MailboxFull } else { DeadLetterReason::Stopped };
            (refused.into_inner(), reason)
        })
    }
}
