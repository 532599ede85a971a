//! Keys of services, and listings of the actors registered under them.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, hash, marker::PhantomData};

use clockjack_sync::Arc;

use crate::ActorRef;

/// A key for services that receive messages of type `M`. Keys are equal if their names and message
/// types are equal. Cheap to clone.
pub struct ServiceKey<M> {
    name: Arc<Box<str>>,
    _message: PhantomData<fn(M)>,
}

impl<M: 'static> ServiceKey<M> {
    /// A key with this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: Arc::new(name.into()), _message: PhantomData }
    }

    /// The name of the key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The key with this name.
    pub(super) fn named(name: Arc<Box<str>>) -> Self {
        Self { name, _message: PhantomData }
    }

    pub(super) fn shared_name(&self) -> &Arc<Box<str>> {
        &self.name
    }
}

impl<M> Clone for ServiceKey<M> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), _message: PhantomData }
    }
}

impl<M> PartialEq for ServiceKey<M> {
    fn eq(&self, other: &Self) -> bool {
        *self.name == *other.name
    }
}

impl<M> Eq for ServiceKey<M> {}

impl<M> hash::Hash for ServiceKey<M> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl<M> fmt::Debug for ServiceKey<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServiceKey").field(&&**self.name).finish()
    }
}

/// The confirmation that an actor is registered.
pub struct Registered<M> {
    /// The key.
    pub key: ServiceKey<M>,
    /// The registered actor.
    pub service: ActorRef<M>,
}

impl<M> Clone for Registered<M> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), service: self.service.clone() }
    }
}

impl<M: 'static> fmt::Debug for Registered<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, service } = self;
        f.debug_struct("Registered").field("key", key).field("service", service).finish()
    }
}

/// The actors that were registered under a key at some moment. Cheap to clone.
pub struct Listing<M> {
    key: ServiceKey<M>,
    services: Arc<Vec<ActorRef<M>>>,
}

impl<M: 'static> Listing<M> {
    pub(super) fn empty(key: ServiceKey<M>) -> Self {
        Self::new(key, Vec::new())
    }

    pub(super) fn new(key: ServiceKey<M>, services: Vec<ActorRef<M>>) -> Self {
        Self { key, services: Arc::new(services) }
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &ServiceKey<M> {
        &self.key
    }

    /// Whether it is a clone of the other one.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.services, &other.services)
    }

    /// The actors, in the order of registration.
    #[must_use]
    pub fn services(&self) -> &[ActorRef<M>] {
        &self.services
    }
}

impl<M> Clone for Listing<M> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), services: self.services.clone() }
    }
}

impl<M: 'static> fmt::Debug for Listing<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing")
            .field("key", &self.key)
            .field("services", &self.services())
            .finish()
    }
}
