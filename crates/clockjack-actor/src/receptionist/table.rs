//! What the receptionist knows, under its lock. What is taken out is given out, to be dropped
//! there.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::any::{Any, TypeId};

use clockjack_exec::Pid;
use clockjack_sync::{
    Counted, mutant,
    prim::atomic::{AtomicUsize, Ordering::Release},
};

use super::{
    LISTED_MAX, LISTINGS_WAITING_MAX, Listing, Receptionist, ReceptionistError, ServiceKey,
};
use crate::{ActorRef, events::backlog::Backlog};

/// Subscribers that have something to be told.
pub(super) type Told<M> = Vec<(u64, ActorRef<Listing<M>>)>;

/// What is to be done after the lock is left.
pub(super) type Later = Box<dyn FnOnce(&Receptionist) + Send>;

type AnyKey = (TypeId, Counted<Box<str>>);

/// See the [module](self).
#[derive(Default)]
pub(super) struct Table {
    entries: BTreeMap<TypeId, BTreeMap<Box<str>, Box<dyn AnyEntry>>>,
    /// Where each actor stands.
    places: BTreeMap<Pid, Vec<AnyKey>>,
    len: usize,
    next_id: u64,
    is_closed: bool,
}

/// What is known of a key.
pub(super) struct Entry<M: Send + 'static> {
    pub(super) listing: Listing<M>,
    subscribers: Vec<Subscriber<M>>,
    views: Vec<Counted<AtomicUsize>>,
}

struct Subscriber<M: Send + 'static> {
    id: u64,
    to: ActorRef<Listing<M>>,
    backlog: Backlog<Listing<M>>,
}

/// An entry, whatever its messages are.
trait AnyEntry: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn is_empty(&self) -> bool;
    /// Whether an actor is a service or a subscriber.
    fn has(&self, pid: Pid) -> bool;
    /// Takes an actor out; says how many places it had, and what is to be done after that.
    fn forget(&mut self, pid: Pid) -> (usize, Later);
}

/// What was taken out.
pub(super) type Old = Box<dyn Any + Send>;

impl<M: Send + 'static> Entry<M> {
    fn new(key: &ServiceKey<M>) -> Self {
        let listing = Listing::empty(key.clone());
        Self { listing, subscribers: Vec::new(), views: Vec::new() }
    }

    pub(super) fn backlog(&mut self, id: u64) -> Option<&mut Backlog<Listing<M>>> {
        let subscriber = self.subscribers.iter_mut().find(|one| one.id == id);
        subscriber.map(|subscriber| &mut subscriber.backlog)
    }

    /// Sets who is registered: what every subscriber is to be told, and what was before.
    fn change(&mut self, services: Vec<ActorRef<M>>) -> (Told<M>, Vec<Listing<M>>) {
        let new = Listing::new(self.listing.key().clone(), services);
        let mut old = Vec::from([core::mem::replace(&mut self.listing, new)]);
        for view in &self.views {
            // Release: pairs with the view's look, which then asks for the listing.
            view.fetch_add(1, Release);
        }
        let mut told = Vec::with_capacity(self.subscribers.len());
        for subscriber in &mut self.subscribers {
            if !mutant!("receptionist-change-untold") {
                old.extend(subscriber.backlog.push(self.listing.clone()));
            }
            told.push((subscriber.id, subscriber.to.clone()));
        }
        (told, old)
    }

    fn without(&self, is_it: impl Fn(&ActorRef<M>) -> bool) -> Option<Vec<ActorRef<M>>> {
        let services = self.listing.services();
        let left: Vec<_> = services.iter().filter(|one| !is_it(one)).cloned().collect();
        (left.len() < services.len()).then_some(left)
    }
}

impl<M: Send + 'static> AnyEntry for Entry<M> {
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

    fn forget(&mut self, pid: Pid) -> (usize, Later) {
        let is_its = |one: &mut Subscriber<M>| one.to.pid() == pid;
        let gone: Vec<_> = self.subscribers.extract_if(.., is_its).collect();
        let mut n = gone.len();
        let (mut told, mut old) = (Vec::new(), Vec::new());
        let before = self.listing.services().len();
        if let Some(left) = self.without(|one| one.pid() == pid) {
            n += before - left.len();
            (told, old) = self.change(left);
        }
        let key = self.listing.key().clone();
        let later = move |receptionist: &Receptionist| {
            drop((gone, old));
            receptionist.serve(&key, told);
        };
        (n, Box::new(later))
    }
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn entry<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
    ) -> Option<&mut Entry<M>> {
        let entry = self.entries.get_mut(&TypeId::of::<M>())?.get_mut(key.name())?;
        entry.as_any().downcast_mut()
    }

    fn entry_or_new<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
    ) -> Result<&mut Entry<M>, ReceptionistError> {
        if self.is_closed {
            return Err(ReceptionistError::Terminated);
        }
        if self.len >= LISTED_MAX {
            return Err(ReceptionistError::Full);
        }
        let names = self.entries.entry(TypeId::of::<M>()).or_default();
        if !names.contains_key(key.name()) {
            names.insert(key.name().into(), Box::new(Entry::new(key)));
        }
        Ok(self.entry(key).expect("it was just put there"))
    }

    /// Notes that an actor stands under a key.
    fn place<M: 'static>(&mut self, pid: Pid, key: &ServiceKey<M>) {
        let places = self.places.entry(pid).or_default();
        let id = TypeId::of::<M>();
        if !places.iter().any(|place| place.0 == id && **place.1 == *key.name()) {
            places.push((id, key.shared_name().clone()));
        }
    }

    /// Something was taken out from under a key.
    fn removed<M: 'static>(&mut self, pid: Option<Pid>, key: &ServiceKey<M>) -> Option<Old> {
        self.len -= 1;
        let id = TypeId::of::<M>();
        let entry = self.entries.get(&id)?.get(key.name())?;
        if let Some(pid) = pid.filter(|pid| !entry.has(*pid))
            && let Some(places) = self.places.get_mut(&pid)
        {
            places.retain(|place| place.0 != id || **place.1 != *key.name());
            if places.is_empty() {
                self.places.remove(&pid);
            }
        }
        self.prune(id, key.name())
    }

    /// Takes an entry out if nothing stands in it.
    fn prune(&mut self, id: TypeId, name: &str) -> Option<Old> {
        let names = self.entries.get_mut(&id)?;
        if !names.get(name)?.is_empty() {
            return None;
        }
        let old = names.remove(name)?;
        if names.is_empty() {
            self.entries.remove(&id);
        }
        Some(Box::new(old))
    }

    pub(super) fn add_service<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        service: ActorRef<M>,
        pid: Pid,
    ) -> Result<(Told<M>, Vec<Listing<M>>), ReceptionistError> {
        let entry = self.entry_or_new(key)?;
        let services = entry.listing.services();
        if services.contains(&service) {
            return Ok((Vec::new(), Vec::new()));
        }
        let mut services = services.to_vec();
        services.push(service);
        let changed = entry.change(services);
        self.len += 1;
        self.place(pid, key);
        Ok(changed)
    }

    pub(super) fn remove_service<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        service: &ActorRef<M>,
    ) -> Option<(Told<M>, Old)> {
        let entry = self.entry(key)?;
        let left = entry.without(|one| one == service)?;
        let (told, old) = entry.change(left);
        let entry = self.removed(Some(service.pid()), key);
        Some((told, Box::new((old, entry))))
    }

    pub(super) fn subscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        to: ActorRef<Listing<M>>,
        pid: Pid,
    ) -> Result<(Told<M>, Option<Old>), ReceptionistError> {
        self.next_id += 1;
        let id = self.next_id;
        let entry = self.entry_or_new(key)?;
        let mut backlog = Backlog::new(LISTINGS_WAITING_MAX);
        if !mutant!("receptionist-no-first-listing") {
            backlog.push(entry.listing.clone());
        }
        let told = Vec::from([(id, to.clone())]);
        let new = Subscriber { id, to, backlog };
        let old = match entry.subscribers.iter_mut().find(|one| one.to == new.to) {
            Some(old) => Some(core::mem::replace(old, new)),
            None => {
                entry.subscribers.push(new);
                self.len += 1;
                None
            }
        };
        self.place(pid, key);
        Ok((told, old.map(|old| Box::new(old) as Old)))
    }

    pub(super) fn unsubscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        to: &ActorRef<Listing<M>>,
    ) -> Option<Old> {
        let entry = self.entry(key)?;
        let at = entry.subscribers.iter().position(|one| one.to == *to)?;
        let old = entry.subscribers.remove(at);
        let entry = self.removed(Some(to.pid()), key);
        Some(Box::new((old, entry)))
    }

    pub(super) fn add_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        view: Counted<AtomicUsize>,
    ) -> Result<(), ReceptionistError> {
        self.entry_or_new(key)?.views.push(view);
        self.len += 1;
        Ok(())
    }

    pub(super) fn remove_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        view: &Counted<AtomicUsize>,
    ) -> Option<Old> {
        let views = &mut self.entry(key)?.views;
        let at = views.iter().position(|one| Counted::ptr_eq(one, view))?;
        let old = views.remove(at);
        let entry = self.removed(None, key);
        Some(Box::new((old, entry)))
    }

    /// An actor has ended.
    pub(super) fn forget(&mut self, pid: Pid) -> Vec<Later> {
        let mut laters = Vec::new();
        for (id, name) in self.places.remove(&pid).unwrap_or_default() {
            let entry = self.entries.get_mut(&id).and_then(|names| names.get_mut(&**name));
            let Some(entry) = entry else { continue };
            let (n, later) = entry.forget(pid);
            self.len -= n;
            laters.push(later);
            if let Some(old) = self.prune(id, &name) {
                laters.push(Box::new(move |_| drop(old)));
            }
        }
        laters
    }

    /// The system has ended: nothing is known any more.
    pub(super) fn close(&mut self) -> Old {
        self.is_closed = true;
        self.len = 0;
        Box::new((core::mem::take(&mut self.entries), core::mem::take(&mut self.places)))
    }
}
