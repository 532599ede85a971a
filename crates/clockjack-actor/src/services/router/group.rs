//! [`Group`]: a router for the actors that are registered under a key.

use alloc::boxed::Box;
use core::fmt;

use clockjack_sync::Arc;

use super::{
    Logic, Routing, Undelivered,
    logic::{Random, RoundRobin, SmallestMailbox, hash_of},
};
use crate::{
    Actor, Context, Failure, IntoProps, Mailbox, Next, Props, ServiceKey, props::SettingsRef,
    receptionist::View,
};

/// A router for the actors that are registered under a key with the receptionist at the time a
/// message is routed. See the [module](super) for what happens to a message.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorRef, ActorSystem, Group, ServiceKey};
///
/// fn workers(system: &ActorSystem) -> ActorRef<String> {
///     let key = ServiceKey::new("workers");
///     system.spawn("workers", Group::round_robin(&key)).expect("the name is free")
/// }
/// ```
pub struct Group<M: Send + 'static> {
    key: ServiceKey<M>,
    logic: Logic<M>,
    mailbox: Mailbox,
}

impl<M: Send + 'static> Group<M> {
    fn new(key: &ServiceKey<M>, logic: Logic<M>) -> Self {
        Self { key: key.clone(), logic, mailbox: Mailbox::DEFAULT }
    }

    /// Routes to the actors in rotation.
    #[must_use]
    pub fn round_robin(key: &ServiceKey<M>) -> Self {
        Self::new(key, Logic::RoundRobin(RoundRobin::new()))
    }

    /// Routes to pseudo-random actors, from the sequence of this seed.
    #[must_use]
    pub fn random(key: &ServiceKey<M>, seed: u64) -> Self {
        Self::new(key, Logic::Random(Random::new(seed)))
    }

    /// Routes to the actor with the fewest messages.
    #[must_use]
    pub fn smallest_mailbox(key: &ServiceKey<M>) -> Self {
        Self::new(key, Logic::Smallest(SmallestMailbox::new()))
    }

    /// Routes messages with the same hash to the same actor, as long as it is registered. If other
    /// actors come or go, as few messages as possible change their actor.
    #[must_use]
    pub fn consistent_hash(
        key: &ServiceKey<M>,
        hash: impl Fn(&M) -> u64 + Send + Sync + 'static,
    ) -> Self {
        Self::new(key, Logic::Hash(Arc::new(Box::new(hash))))
    }

    /// Sends each message to all actors.
    #[must_use]
    pub fn broadcast(key: &ServiceKey<M>) -> Self
    where
        M: Clone,
    {
        Self::new(key, Logic::Broadcast(M::clone))
    }

    /// Sets the mailbox of the router itself.
    #[must_use]
    pub fn mailbox(self, mailbox: Mailbox) -> Self {
        Self { mailbox, ..self }
    }
}

impl<M: Send + 'static> fmt::Debug for Group<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<M: Send + 'static> IntoProps for Group<M> {
    type Actor = GroupRouter<M>;
    type Factory = Box<dyn FnMut() -> GroupRouter<M> + Send>;

    fn into_props(self) -> Props<GroupRouter<M>, Self::Factory> {
        let Self { key, logic, mailbox } = self;
        let factory: Self::Factory = Box::new(move || GroupRouter {
            key: key.clone(),
            routing: Routing::new(logic.clone()),
            view: None,
            seen_version: None,
        });
        Props::new(factory).mailbox(mailbox)
    }

    fn peek_settings(&self) -> Option<SettingsRef> {
        None
    }
}

/// The actor behind a [`Group`].
pub struct GroupRouter<M: Send + 'static> {
    key: ServiceKey<M>,
    routing: Routing<M>,
    view: Option<View<M>>,
    seen_version: Option<usize>,
}

impl<M: Send + 'static> GroupRouter<M> {
    fn refresh(&mut self) {
        let Some(view) = &self.view else { return };
        let version = view.version();
        if self.seen_version == Some(version) {
            return;
        }
        self.seen_version = Some(version);
        let listing = view.listing();
        // The id comes from the path, so it is the same in every run.
        let number = |index: usize| hash_of(&listing.services()[index].path());
        self.routing.set(listing.services().to_vec(), number);
    }
}

impl<M: Send + 'static> Actor for GroupRouter<M> {
    type Msg = M;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.view = Some(cx.system().receptionist().view(&self.key));
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        self.refresh();
        let system = cx.system().inner();
        let mut undelivered = alloc::vec::Vec::new();
        self.routing.route(msg, &mut |_| None, &mut |one| undelivered.push(one));
        for Undelivered { index, reason } in undelivered {
            let routee = index.and_then(|index| self.routing.routees().get(index));
            let path = routee.map_or_else(|| cx.path().clone(), |routee| routee.path());
            system.dead_letter::<M>(&path, reason);
        }
        Ok(Next::Stay)
    }
}

impl<M: Send + 'static> fmt::Debug for GroupRouter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupRouter").field("key", &self.key).finish_non_exhaustive()
    }
}
