//! Dispatchers other than the default one: thread pools, and single threads for actors that are not
//! `Send`.
//!
//! A host that has threads provides a [`DispatcherHost`], which creates the executors; the system
//! keeps their names and ids. Each executor has its own node number, so pids are unique in the
//! system. Actors on different executors communicate like any others: a message is stored in the
//! receiver's cell, and the wake-up goes to the executor of that cell.
#![expect(unsafe_code, reason = "spawns actors that are not `Send` on a single-threaded executor")]

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_exec::{Handle, StartError};
use clockjack_sched::DispatcherId;
use clockjack_sync::spin_lock::SpinLock;

use super::{
    ActorSystem,
    own_thread::{OwnThread, ThreadPolicy},
};
use crate::{
    ActorRef, IntoProps, MsgOf, SpawnError,
    cell::spawn::{self, Placement},
    error::SpawnErrorKind,
    room::with_room,
};

/// Smaller ids have meanings that the host defines.
const FIRST: u16 = 16;

/// The configuration of a dispatcher that a system creates at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatcherConfig {
    /// The name of the dispatcher and of its threads.
    pub name: Box<str>,
    /// The kind of dispatcher.
    pub kind: DispatcherKind,
}

/// The kind of a dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatcherKind {
    /// A pool of threads that share their actors, as [`ActorSystem::create_dispatcher`] creates it.
    Pool {
        /// The number of threads, at least one.
        workers: usize,
    },
    /// One thread for actors that stay on it, as [`ActorSystem::create_pinned`] creates it.
    Pinned,
}

impl DispatcherConfig {
    /// A pool of `workers` threads that share their actors.
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

/// The id that a dispatcher gets if these configurations are created first, in this order, and none
/// is refused.
pub(super) fn planned(configs: &[DispatcherConfig], name: &str) -> Option<DispatcherId> {
    let at = configs.iter().position(|config| *config.name == *name)?;
    Some(DispatcherId(FIRST.checked_add(u16::try_from(at).ok()?)?))
}

/// Creates executors, on a host that has threads.
#[doc(hidden)]
pub trait DispatcherHost: fmt::Debug + Send + Sync + 'static {
    /// Starts an executor with this number of threads.
    ///
    /// # Errors
    ///
    /// If there cannot be that many threads, or if the host has stopped.
    fn create(&self, id: DispatcherId, name: &str, threads: usize) -> Result<Handle, StartError>;

    /// Starts one thread with its own executor.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started, or if the host has stopped.
    fn pinned(&self, id: DispatcherId, name: &str) -> Result<Handle, StartError>;

    /// Starts one thread with its own executor, which lives as long as the returned value; see
    /// [`ActorSystem::own_thread`].
    ///
    /// # Errors
    ///
    /// If the thread cannot be started (the default implementation always fails), or if the host
    /// has stopped.
    fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        let _ = policy;
        Err(StartError::unsupported(name))
    }

    /// Finds an executor that the host itself provides; the host may create it on this call.
    fn find(&self, id: DispatcherId) -> Option<Handle>;

    /// Called when an actor was started on a dispatcher.
    fn started(&self, id: DispatcherId);
}

/// The dispatchers of a system, except the default one.
pub(super) struct Dispatchers {
    list: SpinLock<List>,
    host: Option<Box<dyn DispatcherHost>>,
}

struct List {
    entries: Vec<Entry>,
    next: u16,
}

struct Entry {
    id: DispatcherId,
    name: Box<str>,
    /// Whether the dispatcher has one thread, for actors that stay there.
    is_pinned: bool,
    /// `None` while the executor is being created.
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
        Self { list: SpinLock::new(List { entries, next: FIRST }), host }
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

    /// Creates executors, if the host has threads.
    pub(super) fn host(&self) -> Option<&dyn DispatcherHost> {
        self.host.as_deref()
    }

    pub(super) fn started(&self, id: DispatcherId) {
        if let Some(host) = &self.host {
            host.started(id);
        }
    }

    /// Creates the dispatchers of a builder. They are the first ones, so they get the ids that
    /// [`planned`] predicts.
    pub(super) fn make_all(&self, configs: &[DispatcherConfig]) -> Result<(), StartError> {
        configs.iter().try_for_each(|config| self.make(&config.name, config.kind).map(drop))
    }

    /// Finds an existing dispatcher by its name.
    fn by_name(&self, name: &str) -> Option<(DispatcherId, bool, Handle)> {
        self.list.with(|list| {
            let entry = list.entries.iter().find(|entry| *entry.name == *name)?;
            Some((entry.id, entry.is_pinned, entry.handle.clone()?))
        })
    }

    /// Reserves a name and an id, and lets the host create an executor for them, outside of the
    /// lock.
    fn make(&self, name: &str, kind: DispatcherKind) -> Result<(DispatcherId, Handle), StartError> {
        let host = self.host.as_deref().ok_or_else(|| StartError::unsupported(name))?;
        let mut kept = Some(name.into());
        let reserve = |list: &mut List| {
            if list.entries.iter().any(|entry| *entry.name == *name) {
                return Err(StartError::name_taken as fn(&str) -> StartError);
            }
            let id = DispatcherId(list.next);
            let next = list.next.checked_add(1);
            list.next = next.ok_or(StartError::unsupported as fn(&str) -> StartError)?;
            let is_pinned = kind == DispatcherKind::Pinned;
            let new = |name| Entry { id, name, is_pinned, handle: None };
            list.entries.extend(kept.take().map(new));
            Ok(id)
        };
        let reserved = with_room(&self.list, |list| &mut list.entries, reserve);
        let id = reserved.map_err(|error| error(name))?;
        let made = match kind {
            DispatcherKind::Pool { workers } => host.create(id, name, workers),
            DispatcherKind::Pinned => host.pinned(id, name),
        };
        let refused = self.list.with(|list| {
            let at = list.entries.iter().position(|entry| entry.id == id)?;
            match &made {
                Ok(handle) => list.entries.get_mut(at)?.handle = Some(handle.clone()),
                Err(_) => return Some(list.entries.remove(at)),
            }
            None
        });
        drop(refused);
        made.map(|handle| (id, handle))
    }
}

/// A thread with its own executor, for actors that stay on it and need not be `Send`. The thread
/// stops with its system, not when this handle is dropped.
#[derive(Clone)]
pub struct Pinned {
    id: DispatcherId,
    handle: Handle,
}

impl Pinned {
    /// The id, by which the `Props` of `Send` actors can name this thread.
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
    /// Creates a dispatcher with its own threads, for actors whose `Props` name it. The threads
    /// stop with the system.
    ///
    /// # Errors
    ///
    /// If the host has no threads, if the name is taken, if the number of threads is 0 or too
    /// large, or if the system has terminated.
    pub fn create_dispatcher(
        &self,
        name: &str,
        threads: usize,
    ) -> Result<DispatcherId, StartError> {
        self.check_alive()?;
        let kind = DispatcherKind::Pool { workers: threads };
        self.inner().dispatchers.make(name, kind).map(|(id, _)| id)
    }

    /// Starts a thread for actors that stay on it and need not be `Send`. The thread stops with the
    /// system.
    ///
    /// # Errors
    ///
    /// If the host has no threads, if the name is taken, if the operating system cannot start a
    /// thread, or if the system has terminated.
    pub fn create_pinned(&self, name: &str) -> Result<Pinned, StartError> {
        self.check_alive()?;
        let made = self.inner().dispatchers.make(name, DispatcherKind::Pinned);
        made.map(|(id, handle)| Pinned { id, handle })
    }

    /// The id of the dispatcher with this name, whether it was created by
    /// [`create_dispatcher`](Self::create_dispatcher), by [`create_pinned`](Self::create_pinned),
    /// or by the [builder](crate::SystemBuilder::dispatcher).
    #[must_use]
    pub fn dispatcher_id(&self, name: &str) -> Option<DispatcherId> {
        self.inner().dispatchers.by_name(name).map(|(id, ..)| id)
    }

    /// The pinned thread with this name; `None` if there is no dispatcher of this name, or if it is
    /// a pool.
    #[must_use]
    pub fn find_pinned(&self, name: &str) -> Option<Pinned> {
        let (id, is_pinned, handle) = self.inner().dispatchers.by_name(name)?;
        is_pinned.then_some(Pinned { id, handle })
    }

    /// Refuses to start threads for a system that has terminated.
    pub(super) fn check_alive(&self) -> Result<(), StartError> {
        self.inner().user().map(drop).ok_or_else(StartError::stopped)
    }

    /// Starts an actor under `/user` that stays on a pinned thread. The factory moves to that
    /// thread, so the factory and the messages must be `Send`; the actor is made and dropped on the
    /// thread and need not be `Send`. The dispatcher in the props is ignored.
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
        let own = inner.dispatchers.find(on.id);
        let is_own = own.is_some_and(|own| {
            core::ptr::eq::<clockjack_exec::executor::ExecutorShared>(
                &**own.executor(),
                &**on.handle.executor(),
            )
        });
        if !is_own {
            return Err(SpawnError::new(SpawnErrorKind::NoDispatcher, props));
        }
        let Some(user) = inner.user() else {
            return Err(SpawnError::new(SpawnErrorKind::Stopping, props));
        };
        // SAFETY: factory and messages are `Send`, and the executor has one thread.
        unsafe { spawn::spawn(&user, true, Placement::On(on.handle.clone()), name, props) }
    }
}
