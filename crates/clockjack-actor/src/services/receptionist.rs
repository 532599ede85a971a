//! The receptionist: actors register services under keys, and other actors look up a key, once, or
//! subscribe to its changes.
//!
//! # Protocol
//!
//! Roles: *callers*, any thread, which register, deregister, find and subscribe; and *runners*, the
//! workers that run the last poll of a stopping actor. They share one table under a lock.
//!
//! 1. A caller prepares a change of a key outside of the lock: the new listing, from the present
//!    one, and the memory. The replacement of the listing, and the push of the new one into the
//!    backlog of each subscriber, are one step under the lock. It is refused if the key has changed
//!    meanwhile; then the caller prepares another change. So each subscriber receives one listing
//!    per change, in the order of the changes. The drainer of its backlog sends the listings,
//!    outside of the lock.
//! 2. Subscribing pushes the first listing in the same step. So a subscriber misses no later
//!    change.
//! 3. A stopped actor is removed from the table before its watchers are notified: by its runner, or
//!    by the caller that lists the actor at that moment; see `listed_filter` of the system.
//! 4. A timer retries a subscriber whose mailbox is full. If the backlog is full, the oldest
//!    listing is dropped: a newer one contains more.

mod key;
mod table;

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use clockjack_exec::{Handle, Pid, SendError};
use clockjack_sched::{FireContext, Scheduler};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicUsize, Ordering::Acquire},
    spin_lock::SpinLock,
};

pub use self::key::{Listing, Registered, ServiceKey};
use self::table::{Addition, Change, KeyEntry, ServiceTable, Subscriber, ToNotify};
use crate::{
    ActorRef, events::backlog::BacklogEntry, room::with_room, system::call_catching_panics,
};

/// The most services, subscribers and groups, all together.
pub const LISTED_MAX: usize = 1 << 16;

/// The most listings that wait for a subscriber whose mailbox is full.
pub const LISTINGS_WAITING_MAX: usize = 16;

/// The receptionist of a system: service discovery by keys. Cheap to clone.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorRef, ActorSystem, ServiceKey};
///
/// fn printers() -> ServiceKey<String> {
///     ServiceKey::new("printer")
/// }
///
/// fn print(system: &ActorSystem, printer: &ActorRef<String>) {
///     system.receptionist().register(&printers(), printer).expect("it is alive");
///     for printer in system.receptionist().find(&printers()).services() {
///         printer.tell_or_dead_letter("a page".into());
///     }
/// }
/// ```
#[derive(Clone)]
pub struct Receptionist(Arc<Inner>);

struct Inner {
    table: SpinLock<ServiceTable>,
    executor: Handle,
    scheduler: Scheduler,
}

/// Why the receptionist refused a registration or subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceptionistError {
    /// There are [`LISTED_MAX`] entries already. Transient.
    Full,
    /// The actor has stopped. Permanent.
    Stopped,
    /// The system has terminated. Permanent.
    Terminated,
    /// The system is sealed and allocates no more memory. Permanent.
    Sealed,
}

impl fmt::Display for ReceptionistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the receptionist is full",
            Self::Stopped => "the actor has stopped",
            Self::Terminated => "the system has terminated",
            Self::Sealed => "the system is sealed and allocates no more memory",
        })
    }
}

impl core::error::Error for ReceptionistError {}

impl Receptionist {
    pub(crate) fn new(executor: Handle, scheduler: Scheduler) -> Self {
        let table = SpinLock::new(ServiceTable::new());
        Self(Arc::new(Inner { table, executor, scheduler }))
    }

    /// Registers an actor under a key, until it is deregistered or stops. The returned value
    /// confirms the registration, also if the actor was registered before. One actor may be
    /// registered under several keys.
    ///
    /// # Errors
    ///
    /// If the actor has stopped, if the system has terminated or is sealed, or if there is no room.
    pub fn register<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> Result<Registered<M>, ReceptionistError> {
        let pid = self.prepare_listing(service)?;
        let to_notify = self.add_service(key, service, pid)?;
        self.deliver(key, to_notify);
        self.remove_if_stopped(service);
        Ok(Registered { key: key.clone(), service: service.clone() })
    }

    /// As [`register`](Self::register), but the confirmation is sent to `ack` as a message.
    ///
    /// # Errors
    ///
    /// As [`register`](Self::register); then no message is sent.
    pub fn register_and_tell<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
        ack: &ActorRef<Registered<M>>,
    ) -> Result<(), ReceptionistError> {
        let registered = self.register(key, service)?;
        ack.tell_or_dead_letter(registered);
        Ok(())
    }

    /// Deregisters an actor from this key; registrations under other keys stay. Returns false if
    /// the actor was not registered.
    pub fn deregister<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> bool {
        self.remove_services(key, service.pid(), |one| one == service)
    }

    /// The actors that are registered under a key now, in the order of registration.
    #[must_use]
    pub fn find<M: Send + 'static>(&self, key: &ServiceKey<M>) -> Listing<M> {
        let found = self.0.table.with(|table| table.entry(key).map(|entry| entry.listing.clone()));
        found.unwrap_or_else(|| Listing::empty(key.clone()))
    }

    /// As [`find`](Self::find), but the listing is sent to `to` as a message.
    ///
    /// # Errors
    ///
    /// Returns the listing to the caller, as [`ActorRef::tell`] does.
    pub fn find_and_tell<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Result<(), SendError<Listing<M>>> {
        to.tell(self.find(key))
    }

    /// Subscribes `to` to a key: it receives the current listing at once, even if that is empty,
    /// and a new one at each change, until it unsubscribes or stops. One actor may subscribe to
    /// several keys; a second subscription to the same key sends the listing again.
    ///
    /// # Errors
    ///
    /// If `to` has stopped, if the system has terminated or is sealed, or if there is no room.
    pub fn subscribe<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Result<(), ReceptionistError> {
        let pid = self.prepare_listing(to)?;
        let mut new = Addition::new(Subscriber::new(to.clone()), KeyEntry::new(key, 1, 0));
        let id = loop {
            let step = with_room(
                &self.0.table,
                |table| table,
                |table| table.subscribe(key, pid, &mut new),
            );
            match step? {
                Ok(id) => break id,
                Err(missing) => new.allocate(missing),
            }
        };
        // With it, the subscriber that was replaced.
        drop(new);
        self.deliver_to(key, id, to);
        self.remove_if_stopped(to);
        Ok(())
    }

    /// Unsubscribes `to` from a key. Returns false if it was not subscribed.
    pub fn unsubscribe<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> bool {
        let removed = self.0.table.with(|table| table.unsubscribe(key, |one| one.to == *to));
        removed.is_some()
    }

    /// The number of services, subscribers and groups.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.0.table.with(|table| table.len())
    }

    /// Rule 3: called before an actor is added to the table.
    fn prepare_listing<M: 'static>(&self, actor: &ActorRef<M>) -> Result<Pid, ReceptionistError> {
        let actor = actor.any();
        if actor.system().is_sealed() {
            return Err(ReceptionistError::Sealed);
        }
        actor.system().listed_filter().insert(actor.pid());
        if actor.is_stopped() { Err(ReceptionistError::Stopped) } else { Ok(actor.pid()) }
    }

    fn remove_if_stopped<M: 'static>(&self, actor: &ActorRef<M>) {
        if actor.is_stopped() {
            self.remove_actor(actor.pid());
        }
    }

    /// Removes an actor that has stopped.
    pub(crate) fn remove_actor(&self, pid: Pid) {
        let next = || self.0.table.with(|table| table.take_listed(pid));
        let all = core::iter::from_fn(next).map(|(listed, _)| listed);
        let mut all = all.collect::<Vec<_>>();
        all.sort_unstable_by_key(|listed| listed.number);
        for listed in all {
            (listed.remove)(self, listed.name, pid);
        }
    }

    /// Removes an actor that has stopped from the key with this name.
    fn remove_from<M: Send + 'static>(&self, name: Arc<Box<str>>, pid: Pid) {
        let key = ServiceKey::<M>::named(name);
        let is_its = |one: &Subscriber<M>| one.to.pid() == pid;
        while let Some(removed) = self.0.table.with(|table| table.unsubscribe(&key, is_its)) {
            drop(removed);
        }
        self.remove_services(&key, pid, |one| one.pid() == pid);
    }

    /// The listing of a key, and the number of its subscribers.
    fn present<M: Send + 'static>(&self, key: &ServiceKey<M>) -> (Option<Listing<M>>, usize) {
        let present = self.0.table.with(|table| {
            table.entry(key).map(|entry| (entry.listing.clone(), entry.subscribers.len()))
        });
        present.map_or((None, 0), |(listing, n_subscribers)| (Some(listing), n_subscribers))
    }

    /// Rule 1. Returns the subscribers to notify.
    fn add_service<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
        pid: Pid,
    ) -> Result<ToNotify<M>, ReceptionistError> {
        loop {
            let (listing, n_subscribers) = self.present(key);
            let services = listing.as_ref().map_or(&[][..], Listing::services);
            if services.contains(service) {
                self.0.table.with(|table| table.check())?;
                return Ok(Vec::new());
            }
            let mut longer = Vec::with_capacity(services.len() + 1);
            longer.extend(services.iter().cloned().chain([service.clone()]));
            let mut change = Change::new(key, listing, n_subscribers, longer);
            let commit = with_room(
                &self.0.table,
                |table| table,
                |table| table.add_service(key, pid, &mut change),
            );
            if commit?.is_some() {
                return Ok(change.to_notify);
            }
        }
    }

    /// Rule 1. Removes the services for which `is_it` returns true, which are those of one actor.
    /// Returns false if there are none.
    fn remove_services<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        pid: Pid,
        is_it: impl Fn(&ActorRef<M>) -> bool,
    ) -> bool {
        loop {
            let (Some(listing), n_subscribers) = self.present(key) else { return false };
            let services = listing.services();
            let left: Vec<_> = services.iter().filter(|one| !is_it(one)).cloned().collect();
            if left.len() == services.len() {
                return false;
            }
            let mut change = Change::new(key, Some(listing), n_subscribers, left);
            let commit = self.0.table.with(|table| table.remove_services(key, pid, &mut change));
            if commit.is_some() {
                self.deliver(key, change.to_notify);
                return true;
            }
        }
    }

    /// Closes the receptionist of a system that has terminated.
    pub(crate) fn close(&self) {
        let removed = self.0.table.with(ServiceTable::close);
        drop(removed);
    }

    /// Sends subscribers the listings of their backlogs.
    fn deliver<M: Send + 'static>(&self, key: &ServiceKey<M>, to_notify: ToNotify<M>) {
        for (id, to) in to_notify {
            self.deliver_to(key, id, &to);
        }
    }

    fn deliver_to<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        id: u64,
        to: &ActorRef<Listing<M>>,
    ) {
        let table = &self.0.table;
        let of = |entry: &mut KeyEntry<M>| {
            entry.backlog(id).is_some_and(|backlog| backlog.begin_drain())
        };
        if !table.with(|table| table.entry(key).is_some_and(of)) {
            return;
        }
        let guard = DrainGuard { receptionist: self, key, id };
        loop {
            let next = table.with(|table| table.entry(key)?.backlog(id)?.next());
            let mut listing = match next {
                None => return core::mem::forget(guard),
                // A newer listing replaces the dropped ones.
                Some(BacklogEntry::Lost(_)) => continue,
                Some(BacklogEntry::Item(listing)) => Some(listing),
            };
            let mut sent = Ok(());
            call_catching_panics(&self.0.executor, &mut || {
                if let Some(listing) = listing.take() {
                    sent = to.offer(listing);
                }
            });
            match sent {
                Ok(()) => {}
                Err(refused) if refused.is_full() => {
                    core::mem::forget(guard);
                    return self.put_back(key, id, to, refused.into_inner());
                }
                Err(_) => return self.remove_actor(to.pid()),
            }
        }
    }

    /// The subscriber has no room: puts the listing back and sets a timer for the next attempt.
    fn put_back<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        id: u64,
        to: &ActorRef<Listing<M>>,
        listing: Listing<M>,
    ) {
        let put_back = |table: &mut ServiceTable| {
            let backlog = table.entry(key)?.backlog(id)?;
            Some((backlog.put_back(BacklogEntry::Item(listing)), backlog.needs_timer()))
        };
        let Some((lost, needs_timer)) = self.0.table.with(put_back) else { return };
        drop(lost);
        if !needs_timer {
            return;
        }
        let (again, at, receiver) = (self.clone(), key.clone(), to.clone());
        let job = move |_: &FireContext| {
            again.timer_fired(&at, id);
            again.deliver_to(&at, id, &receiver);
        };
        let retry = crate::events::RETRY;
        if self.0.scheduler.schedule_internal(retry, job).is_err() {
            // The next change drains the backlog.
            self.timer_fired(key, id);
        }
    }

    fn timer_fired<M: Send + 'static>(&self, key: &ServiceKey<M>, id: u64) {
        self.0.table.with(|table| {
            if let Some(backlog) = table.entry(key).and_then(|entry| entry.backlog(id)) {
                backlog.timer_fired();
            }
        });
    }

    /// A view of a key; checking it costs one load while nothing changes.
    pub(crate) fn view<M: Send + 'static>(&self, key: &ServiceKey<M>) -> View<M> {
        let version = Arc::new(AtomicUsize::new(0));
        let mut new = Addition::new(version.clone(), KeyEntry::new(key, 0, 1));
        // If there is no room, or the system has terminated, the view stays empty.
        while let Ok(Err(missing)) =
            with_room(&self.0.table, |table| table, |table| table.add_view(key, &mut new))
        {
            new.allocate(missing);
        }
        View { receptionist: self.clone(), version, key: key.clone() }
    }
}

struct DrainGuard<'s, M: Send + 'static> {
    receptionist: &'s Receptionist,
    key: &'s ServiceKey<M>,
    id: u64,
}

impl<M: Send + 'static> Drop for DrainGuard<'_, M> {
    fn drop(&mut self) {
        self.receptionist.0.table.with(|table| {
            if let Some(backlog) = table.entry(self.key).and_then(|e| e.backlog(self.id)) {
                backlog.end_drain();
            }
        });
    }
}

/// A view of the actors that are registered under a key.
pub(crate) struct View<M: Send + 'static> {
    receptionist: Receptionist,
    key: ServiceKey<M>,
    version: Arc<AtomicUsize>,
}

impl<M: Send + 'static> View<M> {
    /// The version of the listing, which increases with every change.
    #[inline]
    pub(crate) fn version(&self) -> usize {
        // Acquire: pairs with the increment at a change; a listing that is read afterwards is that
        // version or a newer one.
        self.version.load(Acquire)
    }

    pub(crate) fn listing(&self) -> Listing<M> {
        self.receptionist.find(&self.key)
    }
}

impl<M: Send + 'static> Drop for View<M> {
    fn drop(&mut self) {
        let table = &self.receptionist.0.table;
        let removed = table.with(|table| table.remove_view(&self.key, &self.version));
        drop(removed);
    }
}

impl fmt::Debug for Receptionist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receptionist").field("listed", &self.listed()).finish_non_exhaustive()
    }
}
