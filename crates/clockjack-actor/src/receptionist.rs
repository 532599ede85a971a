//! Where actors are found by what they offer: services are registered under keys, and whoever asks
//! for a key gets a listing of them, once or at every change.
//!
//! # Protocol
//!
//! Roles: *callers*, any thread, who register, deregister, find and subscribe, and *runners* of
//! actors that end. They share one table under a lock.
//!
//! 1. A change, the new listing and its place in the backlog of each subscriber are one step
//!    under the lock. So each subscriber is told one listing for each change, in the order of the
//!    changes, and by whoever serves its backlog, outside of the lock.
//! 2. A subscriber's first listing is put in when it subscribes, in the same step. So it misses no
//!    change after it.
//! 3. An actor that ends is taken out of the table before anybody who watches it is told: by its
//!    runner, or by the caller who lists it at that moment; see `Listed`, of the system.
//! 4. A subscriber whose mailbox is full is tried again by a timer. If so many listings wait that
//!    there is no room, the oldest goes: a newer one says more.
//!

mod key;
mod table;

use core::fmt;

use clockjack_exec::{Handle, Pid, SendError};
use clockjack_sched::{DispatcherId, FireContext, Scheduler};
use clockjack_sync::{
    Counted,
    lock::Lock,
    prim::atomic::{AtomicUsize, Ordering::Acquire},
};

pub use self::key::{Listing, Registered, ServiceKey};
use self::table::{KeyEntry, ServiceTable, ToNotify};
use crate::{ActorRef, events::backlog::BacklogEntry, system::call_catching_panics};

/// How many services, subscribers and groups there may be, all together.
pub const LISTED_MAX: usize = 1 << 16;

/// How many listings wait for a subscriber whose mailbox is full.
pub const LISTINGS_WAITING_MAX: usize = 16;

/// The receptionist of a system; see the [module](self). Cheap to clone.
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
pub struct Receptionist(Counted<Inner>);

struct Inner {
    table: Lock<ServiceTable>,
    executor: Handle,
    scheduler: Scheduler,
}

/// Why something was not listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReceptionistError {
    /// There are [`LISTED_MAX`] already. Transient.
    Full,
    /// The actor has ended. Permanent.
    Stopped,
    /// The system has terminated. Permanent.
    Terminated,
    /// The system allocates no more, since it was sealed. Permanent.
    Sealed,
}

impl fmt::Display for ReceptionistError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "the receptionist has no room for more",
            Self::Stopped => "the actor has ended",
            Self::Terminated => "the system has terminated",
            Self::Sealed => "the system is sealed and allocates no more",
        })
    }
}

impl core::error::Error for ReceptionistError {}

impl Receptionist {
    pub(crate) fn new(executor: Handle, scheduler: Scheduler) -> Self {
        let table = Lock::new(ServiceTable::default());
        Self(Counted::new(Inner { table, executor, scheduler }))
    }

    /// Offers an actor under a key, until it is taken back or the actor ends. What comes back
    /// acknowledges it, each time; an actor that is registered already stays so. One actor may be
    /// registered under several keys.
    ///
    /// # Errors
    ///
    /// If the actor has ended, the system has terminated or is sealed, or there is no room.
    pub fn register<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> Result<Registered<M>, ReceptionistError> {
        let pid = self.prepare_listing(service)?;
        let (to_notify, removed) =
            self.0.table.with(|table| table.add_service(key, service.clone(), pid))?;
        drop(removed);
        self.deliver(key, to_notify);
        self.remove_if_stopped(service);
        Ok(Registered { key: key.clone(), service: service.clone() })
    }

    /// As [`register`](Self::register), for actors: the acknowledgement comes as a message.
    ///
    /// # Errors
    ///
    /// As there; then no message comes.
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

    /// Offers an actor no more under this key; under others it stays. False if it was not.
    pub fn deregister<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> bool {
        let Some((to_notify, removed)) = self.0.table.with(|table| table.remove_service(key, service))
        else {
            return false;
        };
        drop(removed);
        self.deliver(key, to_notify);
        true
    }

    /// Who is registered under a key now, in the order of registration.
    #[must_use]
    pub fn find<M: Send + 'static>(&self, key: &ServiceKey<M>) -> Listing<M> {
        let found = self.0.table.with(|table| table.entry(key).map(|entry| entry.listing.clone()));
        found.unwrap_or_else(|| Listing::empty(key.clone()))
    }

    /// As [`find`](Self::find), for actors: the listing comes as a message.
    ///
    /// # Errors
    ///
    /// The listing comes back, as from [`ActorRef::tell`].
    pub fn find_and_tell<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Result<(), SendError<Listing<M>>> {
        to.tell(self.find(key))
    }

    /// Tells `to` at once who is registered under a key, also if nobody is, and again at each
    /// change, until it unsubscribes or ends. One actor may subscribe to several keys; a second
    /// time to the same one is answered again.
    ///
    /// # Errors
    ///
    /// If `to` has ended, the system has terminated or is sealed, or there is no room.
    pub fn subscribe<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Result<(), ReceptionistError> {
        let pid = self.prepare_listing(to)?;
        let (to_notify, removed) = self.0.table.with(|table| table.subscribe(key, to.clone(), pid))?;
        drop(removed);
        self.deliver(key, to_notify);
        self.remove_if_stopped(to);
        Ok(())
    }

    /// Tells `to` no more of this key. False if it was told nothing before.
    pub fn unsubscribe<M: Send + 'static>(
        &self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> bool {
        let removed = self.0.table.with(|table| table.unsubscribe(key, to));
        removed.is_some()
    }

    /// How many services, subscribers and groups are listed.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.0.table.with(|table| table.len())
    }

    /// Rule 3: an actor is about to be listed.
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

    /// An actor has ended.
    pub(crate) fn remove_actor(&self, pid: Pid) {
        let task = self.0.table.with(|table| table.remove_actor(pid));
        for task in task {
            task(self);
        }
    }

    /// The system has ended.
    pub(crate) fn close(&self) {
        let removed = self.0.table.with(ServiceTable::close);
        drop(removed);
    }

    /// Tells subscribers what waits for them.
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
        let of = |entry: &mut KeyEntry<M>| entry.backlog(id).is_some_and(|backlog| backlog.begin_drain());
        if !table.with(|table| table.entry(key).is_some_and(of)) {
            return;
        }
        let guard = DrainGuard { receptionist: self, key, id };
        loop {
            let next = table.with(|table| table.entry(key)?.backlog(id)?.next());
            let mut listing = match next {
                None => return core::mem::forget(guard),
                // A newer one says more.
                Some(BacklogEntry::Lost(_)) => continue,
                Some(BacklogEntry::Item(listing)) => Some(listing),
            };
            let mut sent = Ok(());
            call_catching_panics(&self.0.executor, &mut || {
                if let Some(listing) = listing.take() {
                    sent = to.tell(listing);
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

    /// There was no room: a timer sees to it that it is tried again.
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
        if self.0.scheduler.schedule_once_fn(retry, DispatcherId::DEFAULT, job).is_err() {
            // The next change serves it.
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

    /// A look at a key that costs one load while nothing changes.
    pub(crate) fn view<M: Send + 'static>(&self, key: &ServiceKey<M>) -> View<M> {
        let version = Counted::new(AtomicUsize::new(0));
        // Without room, or after the end, it is always empty.
        let _ = self.0.table.with(|table| table.add_view(key, version.clone()));
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

/// A look at who is registered under a key.
pub(crate) struct View<M: Send + 'static> {
    receptionist: Receptionist,
    key: ServiceKey<M>,
    version: Counted<AtomicUsize>,
}

impl<M: Send + 'static> View<M> {
    /// Which listing it is; it rises with every change.
    #[inline]
    pub(crate) fn version(&self) -> usize {
        // Acquire: pairs with the change; what is found after it is that or newer.
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
