//! The table of the receptionist, which is kept under its lock.
//!
//! Nothing here allocates or frees memory: the caller brings what is needed, and gets what is
//! removed. A [`Change`] of the services of a key is prepared outside of the lock, and refused if
//! another thread was faster.

use alloc::{boxed::Box, vec::Vec};
use core::any::{Any, TypeId};

use clockjack_exec::Pid;
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicUsize, Ordering::Release},
};

use super::{
    LISTED_MAX, LISTINGS_WAITING_MAX, Listing, Receptionist, ReceptionistError, ServiceKey,
};
use crate::{
    ActorRef,
    events::backlog::Backlog,
    room::{Grows, HashSlab, hash_of_name, hash_of_pid},
};

/// Subscribers that have listings in their backlogs.
pub(super) type ToNotify<M> = Vec<(u64, ActorRef<Listing<M>>)>;

type Keys = HashSlab<Key>;
type AllListed = HashSlab<Listed>;

/// See the [module](self).
pub(super) struct ServiceTable {
    /// By name.
    keys: Keys,
    /// Each actor with each key under which it is listed, by pid.
    listed: AllListed,
    len: usize,
    next_id: u64,
    is_closed: bool,
}

pub(super) struct Key {
    id: TypeId,
    name: Arc<Box<str>>,
    entry: Box<dyn AnyKeyEntry>,
}

/// An actor is a service or a subscriber of a key.
pub(super) struct Listed {
    /// In the order of registration.
    pub(super) number: u64,
    pid: Pid,
    id: TypeId,
    pub(super) name: Arc<Box<str>>,
    /// Removes the actor from the key with this name and the message type of the function.
    pub(super) remove: fn(&Receptionist, Arc<Box<str>>, Pid),
}

/// The services, subscribers and views of one key.
pub(super) struct KeyEntry<M: Send + 'static> {
    pub(super) listing: Listing<M>,
    pub(super) subscribers: Vec<Subscriber<M>>,
    views: Vec<Arc<AtomicUsize>>,
}

pub(super) struct Subscriber<M: Send + 'static> {
    id: u64,
    pub(super) to: ActorRef<Listing<M>>,
    backlog: Backlog<Listing<M>>,
}

/// A [`KeyEntry`] with its message type erased.
trait AnyKeyEntry: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn is_empty(&self) -> bool;
    /// Whether an actor is a service or a subscriber.
    fn has(&self, pid: Pid) -> bool;
}

/// What is removed together with a service, a subscriber or a view, to be dropped outside of the
/// lock.
#[derive(Default)]
#[must_use = "it is dropped when the lock is no longer held"]
pub(super) struct Removed {
    _key: Option<Key>,
    _listed: Option<Listed>,
    _memory: (Option<Keys>, Option<AllListed>),
}

/// A change of the services of a key, prepared outside of the lock.
pub(super) struct Change<M: Send + 'static> {
    /// The listing that it replaces; none if the key is new.
    old: Option<Listing<M>>,
    new: Listing<M>,
    /// For a new key.
    entry: Option<Box<KeyEntry<M>>>,
    pub(super) to_notify: ToNotify<M>,
    removed: Vec<Listing<M>>,
}

/// A subscriber or a view that is to be added, with the memory for it.
pub(super) struct Addition<M: Send + 'static, T> {
    element: Option<T>,
    /// For a new key.
    entry: Option<Box<KeyEntry<M>>>,
    /// For the list of the key.
    room: Option<Vec<T>>,
}

impl<M: Send + 'static, T> Addition<M, T> {
    /// The entry has room for the element.
    pub(super) fn new(element: T, entry: Box<KeyEntry<M>>) -> Self {
        Self { element: Some(element), entry: Some(entry), room: None }
    }

    /// Allocates what is missing in the list of the key.
    pub(super) fn allocate(&mut self, missing: usize) {
        self.room = Some(Vec::allocate(missing));
    }
}

impl<M: Send + 'static> Change<M> {
    /// A change of a key that has this listing and so many subscribers.
    pub(super) fn new(
        key: &ServiceKey<M>,
        old: Option<Listing<M>>,
        n_subscribers: usize,
        services: Vec<ActorRef<M>>,
    ) -> Self {
        Self {
            entry: old.is_none().then(|| KeyEntry::new(key, 0, 0)),
            old,
            new: Listing::new(key.clone(), services),
            to_notify: Vec::with_capacity(n_subscribers),
            // Each backlog drops two at most.
            removed: Vec::with_capacity(2 * n_subscribers + 1),
        }
    }
}

impl<M: Send + 'static> Subscriber<M> {
    pub(super) fn new(to: ActorRef<Listing<M>>) -> Self {
        Self { id: 0, to, backlog: Backlog::prepared(LISTINGS_WAITING_MAX) }
    }
}

impl<M: Send + 'static> KeyEntry<M> {
    /// An entry with room for so many subscribers and views.
    pub(super) fn new(key: &ServiceKey<M>, n_subscribers: usize, n_views: usize) -> Box<Self> {
        let listing = Listing::empty(key.clone());
        let subscribers = Vec::with_capacity(n_subscribers);
        Box::new(Self { listing, subscribers, views: Vec::with_capacity(n_views) })
    }

    pub(super) fn backlog(&mut self, id: u64) -> Option<&mut Backlog<Listing<M>>> {
        let subscriber = self.subscribers.iter_mut().find(|one| one.id == id);
        subscriber.map(|subscriber| &mut subscriber.backlog)
    }

    /// Whether the change was prepared for the present state.
    fn is_base_of(&self, change: &Change<M>) -> bool {
        let is_same = change.old.as_ref().is_none_or(|old| old.is_same(&self.listing));
        is_same && change.to_notify.capacity() >= self.subscribers.len()
    }

    /// Replaces the registered services.
    fn apply(&mut self, change: &mut Change<M>) {
        change.removed.push(core::mem::replace(&mut self.listing, change.new.clone()));
        for view in &self.views {
            // Release: pairs with the Acquire load of the view, which then reads the listing.
            view.fetch_add(1, Release);
        }
        for subscriber in &mut self.subscribers {
            let lost = subscriber.backlog.push(self.listing.clone());
            change.removed.extend(lost.into_iter().flatten());
            change.to_notify.push((subscriber.id, subscriber.to.clone()));
        }
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
}

/// For a key, and an actor that is listed under it.
impl Grows for ServiceTable {
    type Missing = (Option<<Keys as Grows>::Missing>, Option<<AllListed as Grows>::Missing>);
    type Room = (Option<<Keys as Grows>::Room>, Option<<AllListed as Grows>::Room>);

    fn missing(&self) -> Option<Self::Missing> {
        let missing = (self.keys.missing(), self.listed.missing());
        (missing.0.is_some() || missing.1.is_some()).then_some(missing)
    }

    fn allocate(missing: Self::Missing) -> Self::Room {
        (missing.0.map(Keys::allocate), missing.1.map(AllListed::allocate))
    }

    fn add_room(&mut self, (keys, listed): Self::Room) -> Self::Room {
        let keys = keys.map(|room| self.keys.add_room(room));
        (keys, listed.map(|room| self.listed.add_room(room)))
    }
}

impl ServiceTable {
    pub(super) const fn new() -> Self {
        Self {
            keys: HashSlab::new(),
            listed: HashSlab::new(),
            len: 0,
            next_id: 0,
            is_closed: false,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn find(&self, id: TypeId, name: &str) -> Option<u32> {
        let mut all = self.keys.with_hash(hash_of_name(name));
        all.find(|(_, key)| key.id == id && **key.name == *name).map(|(index, _)| index)
    }

    pub(super) fn entry<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
    ) -> Option<&mut KeyEntry<M>> {
        let index = self.find(TypeId::of::<M>(), key.name())?;
        self.keys.get_mut(index)?.entry.as_any().downcast_mut()
    }

    /// The entry of a key. If there is none, it is the one that the caller brings.
    fn entry_or<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        new: &mut Option<Box<KeyEntry<M>>>,
    ) -> Option<&mut KeyEntry<M>> {
        let id = TypeId::of::<M>();
        if self.find(id, key.name()).is_none() {
            let new = Key { id, name: key.shared_name().clone(), entry: new.take()? };
            self.keys.insert(hash_of_name(key.name()), new);
        }
        self.entry(key)
    }

    /// Whether there is room for another service, subscriber or view.
    pub(super) fn check(&self) -> Result<(), ReceptionistError> {
        if self.is_closed {
            return Err(ReceptionistError::Terminated);
        }
        if self.len >= LISTED_MAX { Err(ReceptionistError::Full) } else { Ok(()) }
    }

    fn find_listed(&self, pid: Pid, id: TypeId, name: &str) -> Option<u32> {
        let mut all = self.listed.with_hash(hash_of_pid(pid));
        let is_it = |one: &Listed| one.pid == pid && one.id == id && **one.name == *name;
        all.find(|(_, one)| is_it(one)).map(|(index, _)| index)
    }

    /// Records that an actor is listed under a key.
    fn add_listed<M: Send + 'static>(&mut self, pid: Pid, key: &ServiceKey<M>) {
        let id = TypeId::of::<M>();
        if self.find_listed(pid, id, key.name()).is_none() {
            self.next_id += 1;
            let (number, name) = (self.next_id, key.shared_name().clone());
            let new = Listed { number, pid, id, name, remove: Receptionist::remove_from::<M> };
            self.listed.insert(hash_of_pid(pid), new);
        }
    }

    /// Takes one of the keys under which an actor is listed.
    pub(super) fn take_listed(&mut self, pid: Pid) -> Option<(Listed, Removed)> {
        let mut all = self.listed.with_hash(hash_of_pid(pid));
        let index = all.find(|(_, one)| one.pid == pid)?.0;
        drop(all);
        let listed = self.listed.remove(index)?;
        Some((listed, self.unneeded()))
    }

    fn unneeded(&mut self) -> Removed {
        let memory = (self.keys.take_unneeded(), self.listed.take_unneeded());
        Removed { _memory: memory, ..Removed::default() }
    }

    /// Updates the counts after `n` entries of a key were removed, those of an actor or of a view;
    /// removes the key if nothing is left.
    fn count_removed<M: 'static>(
        &mut self,
        n: usize,
        pid: Option<Pid>,
        key: &ServiceKey<M>,
    ) -> Removed {
        self.len -= n;
        let (id, name) = (TypeId::of::<M>(), key.name());
        let Some(index) = self.find(id, name) else { return Removed::default() };
        let Some(found) = self.keys.get(index) else { return Removed::default() };
        let gone = pid.filter(|pid| !found.entry.has(*pid));
        let is_empty = found.entry.is_empty();
        let listed = gone.and_then(|pid| self.find_listed(pid, id, name));
        let listed = listed.and_then(|index| self.listed.remove(index));
        let key = if is_empty { self.keys.remove(index) } else { None };
        Removed { _key: key, _listed: listed, ..self.unneeded() }
    }

    /// Adds the service that the change has added. There must be room. None if the key has changed
    /// since the change was prepared.
    pub(super) fn add_service<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        pid: Pid,
        change: &mut Change<M>,
    ) -> Result<Option<Removed>, ReceptionistError> {
        self.check()?;
        // A new key must be new, and another one must not have been removed.
        if change.old.is_none() == self.entry(key).is_some() {
            return Ok(None);
        }
        let entry = self.entry_or(key, &mut change.entry);
        let Some(entry) = entry.filter(|entry| entry.is_base_of(change)) else {
            return Ok(None);
        };
        entry.apply(change);
        self.len += 1;
        self.add_listed(pid, key);
        Ok(Some(Removed::default()))
    }

    /// Removes the services that the change has left out. None if the key has changed since the
    /// change was prepared.
    pub(super) fn remove_services<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        pid: Pid,
        change: &mut Change<M>,
    ) -> Option<Removed> {
        let entry = self.entry(key).filter(|entry| entry.is_base_of(change))?;
        let n = entry.listing.services().len() - change.new.services().len();
        entry.apply(change);
        Some(self.count_removed(n, Some(pid), key))
    }

    /// Adds a subscriber, with its id, in place of an earlier one of the same actor, which is left
    /// in the addition. There must be room. Returns what is missing in the list of the key.
    pub(super) fn subscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        pid: Pid,
        new: &mut Addition<M, Subscriber<M>>,
    ) -> Result<Result<u64, usize>, ReceptionistError> {
        self.check()?;
        let id = self.next_id + 1;
        let entry = self.entry_or(key, &mut new.entry).expect("the caller brings one");
        let subscriber = new.element.as_mut().expect("it is added once");
        let at = entry.subscribers.iter().position(|one| one.to == subscriber.to);
        if at.is_none()
            && let Some(missing) = entry.subscribers.grow(&mut new.room)
        {
            return Ok(Err(missing));
        }
        subscriber.id = id;
        // The backlog is empty: it drops nothing.
        let _ = subscriber.backlog.push(entry.listing.clone());
        match at.and_then(|at| entry.subscribers.get_mut(at)) {
            Some(before) => core::mem::swap(before, subscriber),
            None => entry.subscribers.extend(new.element.take()),
        }
        self.next_id = id;
        self.len += usize::from(at.is_none());
        self.add_listed(pid, key);
        Ok(Ok(id))
    }

    pub(super) fn unsubscribe<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        is_it: impl Fn(&Subscriber<M>) -> bool,
    ) -> Option<(Subscriber<M>, Removed)> {
        let subscribers = &mut self.entry(key)?.subscribers;
        let at = subscribers.iter().position(is_it)?;
        let removed = subscribers.remove(at);
        let pid = removed.to.pid();
        Some((removed, self.count_removed(1, Some(pid), key)))
    }

    /// Adds a view. There must be room. Returns what is missing in the list of the key.
    pub(super) fn add_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        new: &mut Addition<M, Arc<AtomicUsize>>,
    ) -> Result<Result<(), usize>, ReceptionistError> {
        self.check()?;
        let entry = self.entry_or(key, &mut new.entry).expect("the caller brings one");
        if let Some(missing) = entry.views.grow(&mut new.room) {
            return Ok(Err(missing));
        }
        entry.views.extend(new.element.take());
        self.len += 1;
        Ok(Ok(()))
    }

    pub(super) fn remove_view<M: Send + 'static>(
        &mut self,
        key: &ServiceKey<M>,
        view: &Arc<AtomicUsize>,
    ) -> Option<(Arc<AtomicUsize>, Removed)> {
        let views = &mut self.entry(key)?.views;
        let at = views.iter().position(|one| Arc::ptr_eq(one, view))?;
        let removed = views.remove(at);
        Some((removed, self.count_removed(1, None, key)))
    }

    /// Closes the table of a system that has terminated: removes everything.
    #[must_use = "it is dropped when the lock is no longer held"]
    pub(super) fn close(&mut self) -> Self {
        core::mem::replace(self, Self { is_closed: true, ..Self::new() })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use clockjack_sync::spin_lock::SpinLock;
    use clockjack_testing::toolbox::ByHand;
    use clockjack_time::Resolution;

    use super::*;
    use crate::{ActorSystem, Next, Props, RootContext, room::with_room};

    #[test]
    fn a_change_that_was_prepared_before_another_one_is_refused() {
        let host = ByHand::new(Resolution::MILLI).0;
        let mut root = RootContext::new(host, ActorSystem::builder("t")).expect("there is room");
        let [a, b, c] = ["a", "b", "c"].map(|name| {
            let props = Props::from_fn(|_, _: u8| Ok(Next::Stay));
            root.spawn(name, props).expect("the name is free")
        });
        let (key, table) = (ServiceKey::new("key"), SpinLock::new(ServiceTable::new()));
        let add = |mut change: Change<u8>, pid| {
            let add = |table: &mut ServiceTable| table.add_service(&key, pid, &mut change);
            with_room(&table, |table| table, add).expect("there is room").is_some()
        };
        let listing = || table.with(|table| table.entry(&key).map(|entry| entry.listing.clone()));
        let new = |services| Change::new(&key, None, 0, services);
        let (first, second) = (new(vec![a.clone()]), new(vec![b.clone()]));
        assert!(add(first, a.pid()));
        assert!(!add(second, b.pid()), "the key is not new any more");
        let after = |services| Change::new(&key, listing(), 0, services);
        let (first, second) =
            (after(vec![a.clone(), b.clone()]), after(vec![a.clone(), c.clone()]));
        let mut third = after(vec![]);
        assert!(add(first, b.pid()));
        assert!(!add(second, c.pid()), "it would remove `b`");
        let removed = table.with(|table| table.remove_services(&key, a.pid(), &mut third));
        assert!(removed.is_none(), "it would remove `b`");
        assert_eq!(listing().expect("it has services").services(), [a, b]);
        assert_eq!(table.with(|table| table.len()), 2);
    }
}
