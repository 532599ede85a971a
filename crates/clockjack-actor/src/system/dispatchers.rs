//! Executors beside the default one: threads that share actors, and threads with actors of their
//! own.
//!
//! A host that has threads gives a [`DispatcherHost`], which makes the executors; the system keeps
//! their names and numbers. Each executor has its own node number, so pids stay unique in the
//! system. Actors on different executors reach each other as all others do: what is left for an
//! actor is left in its cell, and the wake goes to the engine of that cell.
#![expect(unsafe_code, reason = "starts actors on the one thread of an executor")]

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_exec::{Handle, StartError};
use clockjack_sched::DispatcherId;
use clockjack_sync::lock::Lock;

use super::{
    ActorSystem,
    own_thread::{OwnThread, ThreadPolicy},
};
use crate::{
    ActorRef, IntoProps, MsgOf, SpawnError, SpawnErrorKind,
    spawn::{self, Where},
};

/// The numbers below are those that hosts give a meaning to.
const FIRST: u16 = 16;

/// A dispatcher that a system is to have from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherConfig {
    /// Its name, which also its threads have.
    pub name: Box<str>,
    /// What it is made of.
    pub kind: DispatcherKind,
}

/// What a dispatcher is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatcherKind {
    /// Threads that share their actors, as by [`ActorSystem::dispatcher`].
    Pool {
        /// How many, at least one.
        workers: usize,
    },
    /// One thread for actors that stay on it, as by [`ActorSystem::pinned`].
    Pinned,
}

impl DispatcherConfig {
    /// So many threads that share their actors.
    #[must_use]
    pub fn pool(name: &str, workers: usize) -> Self {
        Self { name: name.into(), kind: DispatcherKind::Pool { workers } }
    }

    /// One thread, for actors that need not be `Send`.
    #[must_use]
    pub fn pinned(name: &str) -> Self {
        Self { name: name.into(), kind: DispatcherKind::Pinned }
    }
}

/// The number that a dispatcher gets if these are the first that are made, in their order, and none
/// is refused.
pub(super) fn planned(configs: &[DispatcherConfig], name: &str) -> Option<DispatcherId> {
    let at = configs.iter().position(|config| *config.name == *name)?;
    Some(DispatcherId(FIRST.checked_add(u16::try_from(at).ok()?)?))
}

/// What makes executors, on a host that has threads.
#[doc(hidden)]
pub trait DispatcherHost: fmt::Debug + Send + Sync + 'static {
    /// So many threads that share what is started on them.
    ///
    /// # Errors
    ///
    /// If there cannot be so many, or after the host has stopped.
    fn create(&self, id: DispatcherId, name: &str, threads: usize) -> Result<Handle, StartError>;

    /// One thread, with an executor of its own.
    ///
    /// # Errors
    ///
    /// If there is no thread, or after the host has stopped.
    fn pinned(&self, id: DispatcherId, name: &str) -> Result<Handle, StartError>;

    /// One thread, with an executor of its own, for who asks and no longer; see
    /// [`ActorSystem::own_thread`].
    ///
    /// # Errors
    ///
    /// If there is no thread, as on a host that does not say otherwise, or after the host has
    /// stopped.
    fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        let _ = policy;
        Err(StartError::unsupported(name))
    }

    /// An executor that the host has of itself, and may make now.
    fn find(&self, id: DispatcherId) -> Option<Handle>;

    /// An actor was started there.
    fn started(&self, id: DispatcherId);
}

/// What a system knows of its executors but the default one.
pub(super) struct Dispatchers {
    list: Lock<List>,
    host: Option<Box<dyn DispatcherHost>>,
}

struct List {
    entries: Vec<Entry>,
    next: u16,
}

struct Entry {
    id: DispatcherId,
    name: Box<str>,
    /// It has one thread, for actors that stay there.
    is_pinned: bool,
    /// None while it is being made.
    handle: Option<Handle>,
}

impl Dispatchers {
    pub(super) fn new(
        given: Vec<(DispatcherId, Handle)>,
        host: Option<Box<dyn DispatcherHost>>,
    ) -> Self {
        let entry =
            |(id, handle)| Entry { id, name: "".into(), is_pinned: false, handle: Some(handle) };
        let entries = given.into_iter().map(entry).collect();
        Self { list: Lock::new(List { entries, next: FIRST }), host }
    }

    pub(super) fn find(&self, id: DispatcherId) -> Option<Handle> {
        let known = self.list.with(|list| {
            let entry = list.entries.iter().find(|entry| entry.id == id)?;
            Some(entry.handle.clone())
        });
        match known {
            Some(handle) => handle,
            None => self.host.as_ref()?.find(id),
        }
    }

    /// What makes executors, if the host has threads.
    pub(super) fn host(&self) -> Option<&dyn DispatcherHost> {
        self.host.as_deref()
    }

    pub(super) fn started(&self, id: DispatcherId) {
        if let Some(host) = &self.host {
            host.started(id);
        }
    }

    /// Makes those that a builder has, which are the first: so they have the numbers that
    /// [`planned`] says.
    pub(super) fn make_all(&self, configs: &[DispatcherConfig]) -> Result<(), StartError> {
        configs.iter().try_for_each(|config| self.make(&config.name, config.kind).map(drop))
    }

    /// One that is there, by its name.
    fn by_name(&self, name: &str) -> Option<(DispatcherId, bool, Handle)> {
        self.list.with(|list| {
            let entry = list.entries.iter().find(|entry| *entry.name == *name)?;
            Some((entry.id, entry.is_pinned, entry.handle.clone()?))
        })
    }

    /// Takes a name and a number, and has an executor made for them, outside of the lock.
    fn make(&self, name: &str, kind: DispatcherKind) -> Result<(DispatcherId, Handle), StartError> {
        let host = self.host.as_deref().ok_or_else(|| StartError::unsupported(name))?;
        let kept: Box<str> = name.into();
        let id = self.list.with(|list| {
            if list.entries.iter().any(|entry| *entry.name == *name) {
                return Err(StartError::name_taken(name));
            }
            let id = DispatcherId(list.next);
            list.next = list.next.checked_add(1).ok_or_else(|| StartError::unsupported(name))?;
            let is_pinned = kind == DispatcherKind::Pinned;
            list.entries.push(Entry { id, name: kept, is_pinned, handle: None });
            Ok(id)
        })?;
        let made = match kind {
            DispatcherKind::Pool { workers } => host.create(id, name, workers),
            DispatcherKind::Pinned => host.pinned(id, name),
        };
        self.list.with(|list| match &made {
            Ok(handle) => {
                let entry = list.entries.iter_mut().find(|entry| entry.id == id);
                if let Some(entry) = entry {
                    entry.handle = Some(handle.clone());
                }
            }
            Err(_) => list.entries.retain(|entry| entry.id != id),
        });
        made.map(|handle| (id, handle))
    }
}

/// A thread with an executor of its own, on which actors stay that need not be `Send`. It ends
/// with its system, not with this.
#[derive(Clone)]
pub struct Pinned {
    id: DispatcherId,
    handle: Handle,
}

impl Pinned {
    /// Its number, by which `Props` put actors there that are `Send`.
    #[must_use]
    pub fn id(&self) -> DispatcherId {
        self.id
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").field("id", &self.id).finish_non_exhaustive()
    }
}

impl ActorSystem {
    /// Makes a dispatcher: so many threads more, for actors whose `Props` name it. They end with
    /// the system.
    ///
    /// # Errors
    ///
    /// On a host without threads, for a name that is taken, for zero threads or more than there can
    /// be, and when the system has terminated.
    pub fn dispatcher(&self, name: &str, threads: usize) -> Result<DispatcherId, StartError> {
        self.check_alive()?;
        let kind = DispatcherKind::Pool { workers: threads };
        self.inner().dispatchers.make(name, kind).map(|(id, _)| id)
    }

    /// Makes a thread for actors that stay on it, and need not be `Send`. It ends with the system.
    ///
    /// # Errors
    ///
    /// On a host without threads, for a name that is taken, if the operating system has no thread
    /// to give, and when the system has terminated.
    pub fn pinned(&self, name: &str) -> Result<Pinned, StartError> {
        self.check_alive()?;
        let made = self.inner().dispatchers.make(name, DispatcherKind::Pinned);
        made.map(|(id, handle)| Pinned { id, handle })
    }

    /// The number of a dispatcher, by the name that it was made with: here, by
    /// [`pinned`](Self::pinned), or by the [builder](crate::SystemBuilder::dispatcher).
    #[must_use]
    pub fn dispatcher_id(&self, name: &str) -> Option<DispatcherId> {
        self.inner().dispatchers.by_name(name).map(|(id, ..)| id)
    }

    /// A thread for actors that stay on it, by the name that it was made with; none if there is no
    /// dispatcher of this name, or it is one whose threads share their actors.
    #[must_use]
    pub fn find_pinned(&self, name: &str) -> Option<Pinned> {
        let (id, is_pinned, handle) = self.inner().dispatchers.by_name(name)?;
        is_pinned.then_some(Pinned { id, handle })
    }

    /// Without actors nobody has any use for threads.
    pub(super) fn check_alive(&self) -> Result<(), StartError> {
        self.inner().user().map(drop).ok_or_else(StartError::stopped)
    }

    /// Starts an actor below `/user` that stays on a thread. Its factory goes there, so that and
    /// the messages are `Send`; the actor, which is made and dropped there, need not be. A
    /// dispatcher in its props does not count.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn), and if the thread belongs to another system.
    pub fn spawn_pinned<P>(
        &self,
        on: &Pinned,
        name: &str,
        props: P,
    ) -> Result<ActorRef<MsgOf<P>>, SpawnError<P>>
    where
        P: IntoProps,
        P::Factory: Send,
        MsgOf<P>: Send,
    {
        let inner = self.inner();
        let mine = inner.dispatchers.find(on.id);
        let is_mine = mine.is_some_and(|mine| {
            core::ptr::eq::<clockjack_exec::engine::Engine>(&**mine.engine(), &**on.handle.engine())
        });
        if !is_mine {
            return Err(SpawnError::new(SpawnErrorKind::NoDispatcher, props));
        }
        let Some(user) = inner.user() else {
            return Err(SpawnError::new(SpawnErrorKind::Stopping, props));
        };
        // SAFETY: factory and messages are `Send`, and the executor has one thread.
        unsafe { spawn::spawn(&user, true, Where::On(on.handle.clone()), name, props) }
    }
}
