//! The registry of component types.

pub(crate) mod node;

use core::{fmt, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use clockjack_actor::{ActorRef, ReplyTo};

use crate::{
    bridge::ActorCall,
    component::{Component, Descriptor, Execute, ExecuteShared},
    data::Data,
};
use node::{ErasedComponent, ExclusiveComponent, SharedComponent};

/// Creates a component.
pub(crate) type Factory = Arc<dyn Fn() -> ErasedComponent + Send + Sync>;

#[derive(Clone)]
pub(crate) struct RegisteredType {
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) make: Factory,
}

/// The component types that a file may use.
#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<String, RegisteredType>,
}

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry with the [standard components](crate::components).
    #[must_use]
    pub fn standard() -> Self {
        crate::components::register_all(Self::new())
    }

    /// Registers a type; replaces a type of the same name.
    #[must_use]
    pub fn register<C: Execute + Default>(self) -> Self {
        self.register_with(C::default)
    }

    /// Registers a type whose components are created by a factory.
    #[must_use]
    pub fn register_with<C: Execute>(
        mut self,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Self {
        self.insert::<C>(
            C::describe(),
            Arc::new(move || ErasedComponent::Exclusive(ExclusiveComponent::boxed(make()))),
        );
        self
    }

    /// Registers a type whose invocations may overlap.
    #[must_use]
    pub fn register_shared<C: ExecuteShared + Default>(mut self) -> Self {
        let mut descriptor = C::describe();
        descriptor.reentrant = true;
        self.insert::<C>(
            descriptor,
            Arc::new(|| ErasedComponent::Shared(SharedComponent::in_arc(C::default()))),
        );
        self
    }

    /// Registers a type whose components forward their inputs to an actor and publish its replies;
    /// see [`ActorCall`]. `request` creates the message, usually as a variant of the actor's type.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{ActorRef, ReplyTo};
    /// use clockjack_graph::Registry;
    /// use core::time::Duration;
    ///
    /// enum Db {
    ///     Find(u32, ReplyTo<f64>),
    /// }
    ///
    /// fn types(db: &ActorRef<Db>) -> Registry {
    ///     Registry::standard().register_actor(
    ///         "actor:db",
    ///         db,
    ///         Db::Find,
    ///         Duration::from_millis(200),
    ///     )
    /// }
    /// ```
    #[must_use]
    pub fn register_actor<M, Q, R>(
        mut self,
        component_type: &str,
        to: &ActorRef<M>,
        request: fn(Q, ReplyTo<R>) -> M,
        timeout: Duration,
    ) -> Self
    where
        M: Send + 'static,
        Q: Data + Clone,
        R: Data,
    {
        let mut descriptor = ActorCall::<M, Q, R>::describe();
        descriptor.component_type = component_type.into();
        let to = to.clone();
        let make: Factory = Arc::new(move || {
            ErasedComponent::Exclusive(ExclusiveComponent::boxed(ActorCall::new(
                &to, request, timeout,
            )))
        });
        let entry = RegisteredType { descriptor: Arc::new(descriptor), make };
        self.entries.insert(component_type.into(), entry);
        self
    }

    /// The names of all types, sorted.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The descriptor of a type.
    #[must_use]
    pub fn descriptor(&self, component_type: &str) -> Option<&Descriptor> {
        self.entries.get(component_type).map(|entry| &*entry.descriptor)
    }

    pub(crate) fn entry(&self, component_type: &str) -> Option<&RegisteredType> {
        self.entries.get(component_type)
    }

    fn insert<C: Component>(&mut self, descriptor: Descriptor, make: Factory) {
        self.entries
            .insert(C::TYPE.into(), RegisteredType { descriptor: Arc::new(descriptor), make });
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.keys()).finish()
    }
}
