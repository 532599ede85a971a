//! Component types by name.

pub(crate) mod node;

use core::{fmt, time::Duration};
use std::{collections::BTreeMap, sync::Arc};

use clockjack_actor::{ActorRef, ReplyTo};

use crate::{
    bridge::ActorCall,
    component::{Component, Descriptor, Execute, ExecuteShared},
    data::Data,
};
use node::{Body, Own, Shared};

/// Makes a component.
pub(crate) type Factory = Arc<dyn Fn() -> Body + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) descriptor: Arc<Descriptor>,
    pub(crate) make: Factory,
}

/// The component types that a file may name.
#[derive(Clone, Default)]
pub struct Registry {
    entries: BTreeMap<String, Entry>,
}

impl Registry {
    /// One without any types.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// One with the [standard components](crate::components).
    #[must_use]
    pub fn standard() -> Self {
        crate::components::register_all(Self::new())
    }

    /// Adds a type, in the place of one of the same name.
    #[must_use]
    pub fn register<C: Execute + Default>(self) -> Self {
        self.register_with(C::default)
    }

    /// Adds a type whose components are made by a call.
    #[must_use]
    pub fn register_with<C: Execute>(
        mut self,
        make: impl Fn() -> C + Send + Sync + 'static,
    ) -> Self {
        self.insert::<C>(C::describe(), Arc::new(move || Body::Own(Own::boxed(make()))));
        self
    }

    /// Adds a type whose invocations may overlap.
    #[must_use]
    pub fn register_shared<C: ExecuteShared + Default>(mut self) -> Self {
        let mut descriptor = C::describe();
        descriptor.reentrant = true;
        self.insert::<C>(descriptor, Arc::new(|| Body::Shared(Shared::counted(C::default()))));
        self
    }

    /// Adds a type whose components forward what comes to an actor and publish its answers; see
    /// [`ActorCall`]. `request` makes the message, usually as a variant of the actor's type.
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
        let make: Factory =
            Arc::new(move || Body::Own(Own::boxed(ActorCall::new(&to, request, timeout))));
        let entry = Entry { descriptor: Arc::new(descriptor), make };
        self.entries.insert(component_type.into(), entry);
        self
    }

    /// The names of all types, in order.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// What a type says of itself.
    #[must_use]
    pub fn descriptor(&self, component_type: &str) -> Option<&Descriptor> {
        self.entries.get(component_type).map(|entry| &*entry.descriptor)
    }

    pub(crate) fn entry(&self, component_type: &str) -> Option<&Entry> {
        self.entries.get(component_type)
    }

    fn insert<C: Component>(&mut self, descriptor: Descriptor, make: Factory) {
        self.entries.insert(C::TYPE.into(), Entry { descriptor: Arc::new(descriptor), make });
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries.keys()).finish()
    }
}
