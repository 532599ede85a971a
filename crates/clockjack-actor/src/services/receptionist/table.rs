//! The table of the receptionist, which is kept under its lock. Removed values are returned to the
//! caller, so that they are dropped outside of the lock.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::any::{Any, TypeId};

use clockjack_exec::Pid;
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicUsize, Ordering::Release},
};

use super::{
    LISTED_MAX, LISTINGS_WAITING_MAX, Listing, Receptionist, ReceptionistError, ServiceKey,
};
use crate::{ActorRef, events::backlog::Backlog};

/// Subscribers that have listings in their backlogs.
pub(super) type ToNotify<M> = Vec<(u64, ActorRef<Listing<M>>)>;

/// Work that has to be done after the lock is released.
pub(super) type AfterUnlock = Box<dyn FnOnce(&Receptionist) + Send>;

type AnyKey = (TypeId, Arc<Box<str>>);

/// See the [module](self).
#[derive(Default)]
pub(super) struct ServiceTable {
    entries: BTreeMap<TypeId, BTreeMap<Box<str>, Box<dyn AnyKeyEntry>>>,
    /// The keys under which each actor is listed.
    keys_of: BTreeMap<Pid, Vec<AnyKey>>,
    len: usize,
    next_id: u64,
    is_closed: bool,
}

/// The services, subscribers and views of one key.
pub(super) struct KeyEntry<M: Send + 'static> {
    pub(super) listing: Listing<M>,
    subscribers: Vec<Subscriber<M>>,
    views: Vec<Arc<AtomicUsize>>,
}

struct Subscriber<M: Send + 'static> {
    id: u64,
    to: ActorRef<Listing<M>>,
    backlog: Backlog<Listing<M>>,
}

/// A [`KeyEntry`] with its message type erased.
trait AnyKeyEntry: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn is_empty(&self) -> bool;
    /// Whether an actor is a service or a subscriber.
    fn has(&self, pid: Pid) -> bool;
    /// Removes an actor. Returns how many entries it had, and the work that has to be done after
    /// the lock is released.
    fn remove_actor(&mut self, pid: Pid) -> (usize, AfterUnlock);
}

/// Removed values, to be dropped outside of the lock.
pub(super) type Removed = Box<dyn Any + Send>;

impl<M: Send + 'static> KeyEntry<M> {
    fn new(key: &ServiceKey<M>) -> Self {
        let listing = Listing::empty(key.clone());
        Self { listing, subscribers: Vec::new(), views: Vec::new() }
    }

    pub(super) fn backlog(&mut self, id: u64) -> Option<&mut Backlog<Listing<M>>> {
        let subscriber = self.subscribers.iter_mut().find(|one| one.id == id);
        subscriber.map(|subscriber| &mut subscriber.backlog)
    }

    /// Replaces the registered services. Returns the subscribers to notify and the replaced
    /// listings.
    fn change(&mut self, services: Vec<ActorRef<M>>) -> (ToNotify<M>, Vec<Listing<M>>) {
        let new = Listing::new(self.listing.key().clone(), services);
        let mut removed = Vec::from([core::mem::replace(&mut self.listing, new)]);
        for view in &self.views {
            // Release: pairs with the Acquire load of the view, which then reads the listing.
            view.fetch_add(1, Release);
        }
        let mut to_notify = Vec::with_capacity(self.subscribers.len());
        for subscriber in &mut self.subscribers {
            removed.extend(subscriber.backlog.push(self.listing.clone()).into_iter().flatten());
            to_notify.push((subscriber.id, subscriber.to.clone()));
        }
        (to_notify, removed)
    }

    fn without(&self, is_it: impl Fn(&ActorRef<M>) -> bool) -> Option<Vec<ActorRef<M>>> {
        let services = self.listing.services();
        let left: Vec<_> = services.iter().filter(|one| !is_it(one)).cloned().collect();
        (left.len() < services.len()).then_some(left)
    }
}

impl<M: Send + 'static> AnyKeyEntry for KeyEntry<M> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn is_empty(&self) -> bool {
        self.listing.services().is_empty() && self.subscribers.is_empty() && self.views.is_empty()
    }

    fn has(&self, pid: Pid) -> bool {
        self.listing.services().iter().any(|one| one.pid() == pid)
            || self.subscribers.iter().any(|one| one.to.pid() == pid)
    }

    fn remove_actor(&mut self, pid: Pid) -> (usize, AfterUnlock) {
        let is_its = |one: &mut Subscriber<M>| one.to.pid() == pid;
        let gone: Vec<_> = self.subscribers.extract_if(.., is_its).collect();
        let mut n = gone.len();
        let (mut to_notify, mut removed) = (Vec::new(), Vec::new());
        let before = self.listing.services().len();
        if let Some(left) = self.without(|one| one.pid() == pid) {
            n += before - left.len();
            (to_notify, removed) = self.change(left);
        }
        let key = self.listing.key().clone();
        let after_unlock = move |receptionist: &Receptionist| {
            drop((gone, removed));
            receptionist.deliver(&key, to_notify);
        };
        (n, Box::new(after_unlock))
    }
}

impl ServiceTable {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn entry<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
    ) -> Option<&mut KeyEntry<M>> {
        let entry = self.entries.get_mut(&TypeId::of::<M>())?.get_mut(key.name())?;
        entry.as_any().downcast_mut()
    }

    fn entry_or_new<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
    ) -> Result<&mut KeyEntry<M>, ReceptionistError> {
        if self.is_closed {
            return Err(ReceptionistError::Terminated);
        }
        if self.len >= LISTED_MAX {
            return Err(ReceptionistError::Full);
        }
        let names = self.entries.entry(TypeId::of::<M>()).or_default();
        if !names.contains_key(key.name()) {
            names.insert(key.name().into(), Box::new(KeyEntry::new(key)));
        }
        Ok(self.entry(key).expect("inserted above"))
    }

    /// Records that an actor is listed under a key.
    fn add_key<M: 'static>(&mut self, pid: Pid, key: &ServiceKey<M>) {
        let keys = self.keys_of.entry(pid).or_default();
        let id = TypeId::of::<M>();
        if !keys.iter().any(|other| other.0 == id && **other.1 == *key.name()) {
            keys.push((id, key.shared_name().clone()));
        }
    }

    /// Updates the counts after one entry of a key was removed.
    fn count_removed<M: 'static>(
        &mut self,
        pid: Option<Pid>,
        key: &ServiceKey<M>,
    ) -> Option<Removed> {
        self.len -= 1;
        let id = TypeId::of::<M>();
        let entry = self.entries.get(&id)?.get(key.name())?;
        if let Some(pid) = pid.filter(|pid| !entry.has(*pid))
            && let Some(keys) = self.keys_of.get_mut(&pid)
        {
            keys.retain(|other| other.0 != id || **other.1 != *key.name());
            if keys.is_empty() {
                self.keys_of.remove(&pid);
            }
        }
        self.prune(id, key.name())
    }

    /// Removes the entry of a key if it is empty.
    fn prune(&mut self, id: TypeId, name: &str) -> Option<Removed> {
        let names = self.entries.get_mut(&id)?;
        if !names.get(name)?.is_empty() {
            return None;
        }
        let removed = names.remove(name)?;
        if names.is_empty() {
            self.entries.remove(&id);
        }
        Some(Box::new(removed))
    }

    pub(super) fn add_service<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        service: ActorRef<M>,
        pid: Pid,
    ) -> Result<(ToNotify<M>, Vec<Listing<M>>), ReceptionistError> {
        let entry = self.entry_or_new(key)?;
        let services = entry.listing.services();
        if services.contains(&service) {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut services = services.to_vec();
        services.push(service);
        let changed = entry.change(services);
        self.len += 1;
        self.add_key(pid, key);
        Ok(changed)
    }

    pub(super) fn remove_service<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> Option<(ToNotify<M>, Removed)> {
        let entry = self.entry(key)?;
        let left = entry.without(|one| one == service)?;
        let (to_notify, removed) = entry.change(left);
        let entry = self.count_removed(Some(service.pid()), key);
        Some((to_notify, Box::new((removed, entry))))
    }

    pub(super) fn subscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        to: ActorRef<Listing<M>>,
        pid: Pid,
    ) -> Result<(ToNotify<M>, Option<Removed>), ReceptionistError> {
        self.next_id += 1;
        let id = self.next_id;
        let entry = self.entry_or_new(key)?;
        let mut backlog = Backlog::new(LISTINGS_WAITING_MAX);
        drop(backlog.push(entry.listing.clone()));
        let to_notify = Vec::from([(id, to.clone())]);
        let new = Subscriber { id, to, backlog };
        let removed = match entry.subscribers.iter_mut().find(|one| one.to == new.to) {
            Some(removed) => Some(core::mem::replace(removed, new)),
            None => {
                entry.subscribers.push(new);
                self.len += 1;
                None
            }
        };
        self.add_key(pid, key);
        Ok((to_notify, removed.map(|removed| Box::new(removed) as Removed)))
    }

    pub(super) fn unsubscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Option<Removed> {
        let entry = self.entry(key)?;
        let at = entry.subscribers.iter().position(|one| one.to == *to)?;
        let removed = entry.subscribers.remove(at);
        let entry = self.count_removed(Some(to.pid()), key);
        Some(Box::new((removed, entry)))
    }

    pub(super) fn add_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        view: Arc<AtomicUsize>,
    ) -> Result<(), ReceptionistError> {
        self.entry_or_new(key)?.views.push(view);
        self.len += 1;
        Ok(())
    }

    pub(super) fn remove_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        view: &Arc<AtomicUsize>,
    ) -> Option<Removed> {
        let views = &mut self.entry(key)?.views;
        let at = views.iter().position(|one| Arc::ptr_eq(one, view))?;
        let removed = views.remove(at);
        let entry = self.count_removed(None, key);
        Some(Box::new((removed, entry)))
    }

    /// Removes an actor that has stopped.
    pub(super) fn remove_actor(&mut self, pid: Pid) -> Vec<AfterUnlock> {
        let mut tasks = Vec::new();
        for (id, name) in self.keys_of.remove(&pid).unwrap_or_default() {
            let entry = self.entries.get_mut(&id).and_then(|names| names.get_mut(&**name));
            let Some(entry) = entry else { continue };
            let (n, after_unlock) = entry.remove_actor(pid);
            self.len -= n;
            tasks.push(after_unlock);
            if let Some(removed) = self.prune(id, &name) {
                tasks.push(Box::new(move |_| drop(removed)));
            }
        }
        tasks
    }

    /// Closes the table of a system that has terminated: removes everything.
    pub(super) fn close(&mut self) -> Removed {
        self.is_closed = true;
        self.len = 0;
        Box::new((core::mem::take(&mut self.entries), core::mem::take(&mut self.keys_of)))
    }
}
