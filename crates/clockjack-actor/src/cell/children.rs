//! The children of an actor: by name, and in the order in which they were started.
//!
//! The entries are in a [`HashSlab`], by the hash of their names, and are linked in start order.
//! The name is in the child's path, so an entry has no copy of it.
//!
//! An entry also says how far the child is in what the parent does with several children together;
//! see [`group`](super::group).
//!
//! # Under the lock
//!
//! Each function here runs while its caller holds the [spin lock](SpinLock) of the children, which
//! a thread of a real-time class may wait for. So none of them allocates or frees, and each takes
//! constant time, however many children there are:
//!
//! * The memory for a new child comes from the caller ([`reserve`], [`Grows`]). Memory that is no
//!   longer needed leaves with [`Unneeded`].
//! * A walk over the children reads a [page](PAGE_LEN) of them at a time ([`read_all`]), and what
//!   is done to all of them is done to one after another.
//! * A search that continues where the last one ended ([`Search`]) visits a page of entries.
//! * Entries that are being created are searched one by one: there are as many as threads that
//!   create a child of the same parent.
//!
//! # Walks
//!
//! Between two pages children come and go. A page starts after a child that was read before, the
//! last one that still is a child: those between the two have left. New children are the youngest,
//! and only [`Withdrawn`](ChildPhase::Withdrawn) ones change their place, to the oldest end, where
//! a walk does not go. So it reads each child that stays exactly once.

mod phase;

use alloc::vec::Vec;

use clockjack_sync::{Arc, spin_lock::SpinLock};

pub(crate) use self::phase::ChildPhase;
use crate::{
    ActorPath,
    cell::header::AnyActor,
    escalation::Escalations,
    room::{Grows, HashSlab, NONE, hash_of_name, with_room},
};

/// How many entries a walk visits while it holds the lock.
pub(crate) const PAGE_LEN: usize = 32;

/// How many children an actor may have.
const CHILDREN_MAX: usize = NONE as usize - 1;

/// What a parent knows about a child.
pub(crate) struct ChildEntry {
    /// None while the child is being created.
    child: Option<AnyActor>,
    /// The sibling that was started before it.
    prev: u32,
    /// The sibling that was started after it.
    next: u32,
    /// Whether the parent watches it.
    pub(crate) is_watched: bool,
    /// Whether the parent has suspended it.
    is_suspended: bool,
    /// Whether the parent, which stops or restarts, has ordered it to stop.
    stop_requested: bool,
    phase: ChildPhase,
}

const _: () =
    assert!(size_of::<usize>() != 8 || size_of::<ChildEntry>() == 24, "one for each child");

impl ChildEntry {
    pub(crate) fn child(&self) -> Option<&AnyActor> {
        self.child.as_ref()
    }

    /// Whether the order of first starts ignores the entry.
    fn is_passed_over(&self) -> bool {
        // Nobody knows when a child comes that another thread is creating.
        self.child.is_none() || self.phase == ChildPhase::PassedOver
    }
}

/// See the [module](self).
pub(crate) struct Children {
    entries: Entries,
    /// The oldest entry; before it are those of withdrawn children.
    oldest: u32,
    /// The first entry, which may be that of a withdrawn child.
    first: u32,
    last: u32,
    /// The names of children that are being created: nearly always none or one.
    reserved: Reserved,
    /// New children start suspended, as the existing ones are.
    suspends: bool,
    /// Where the search for the next member of the group to stop, or to start, continues.
    cursor: u32,
    /// The cursor moves from old to young, because the group starts.
    cursor_ascends: bool,
    /// Where the search for the next child to stop continues: all younger ones were found.
    stop_cursor: u32,
    /// How many children are ending or stopping with their group.
    n_ending: u32,
    /// No more children are accepted.
    pub(crate) is_closed: bool,
    /// Receives failures that the actor or its descendants escalate.
    pub(crate) sink: Option<Arc<Escalations>>,
}

/// Memory that the children no longer need. To be dropped when the lock is no longer held.
#[must_use = "it is dropped when the lock is no longer held"]
pub(crate) struct Unneeded {
    _entries: Option<Entries>,
    _path: Option<ActorPath>,
}

impl Default for Children {
    fn default() -> Self {
        Self {
            entries: HashSlab::new(),
            oldest: NONE,
            first: NONE,
            last: NONE,
            reserved: Vec::new(),
            suspends: false,
            cursor: NONE,
            cursor_ascends: false,
            stop_cursor: NONE,
            n_ending: 0,
            is_closed: false,
            sink: None,
        }
    }
}

/// Why a name cannot be reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotReserved {
    Taken,
    Closed,
    Full,
}

/// The result of a search that visits a page of entries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Search<T> {
    Found(T),
    /// Not found so far: call again.
    Continue,
    /// There is none.
    End,
}

/// Repeats a search until it has ended, and leaves the lock to others in between.
pub(crate) fn search<T>(
    children: &SpinLock<Children>,
    mut part: impl FnMut(&mut Children) -> Search<T>,
) -> Option<T> {
    loop {
        match children.with(&mut part) {
            Search::Found(found) => return Some(found),
            Search::Continue => {}
            Search::End => return None,
        }
    }
}

/// Reserves a name for a child that is about to be created; returns the index of its entry.
pub(crate) fn reserve(children: &SpinLock<Children>, path: &ActorPath) -> Result<u32, NotReserved> {
    let hash = hash_of_name(path.name());
    // The path is cloned and dropped while no lock is held.
    let mut mine = Some(path.clone());
    let reserve = |children: &mut Children| children.reserve(path.name(), hash, &mut mine);
    with_room(children, |children| children, reserve)
}

/// In which direction a walk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    OldestFirst,
    NewestFirst,
}

/// Where a walk starts.
#[derive(Clone, Copy)]
pub(crate) enum Start<'c> {
    Begin,
    /// With this child.
    At(&'c AnyActor),
    /// After this child.
    After(&'c AnyActor),
}

/// A part of the children.
type Page = [Option<AnyActor>; PAGE_LEN];

/// What reading a page has shown.
enum PageEnd {
    /// There are further children.
    Continues,
    Ended,
    /// The child that the page starts after is gone.
    Gone,
}

/// All children; see the [module](self) on those that come or go meanwhile.
pub(crate) fn read_all(children: &SpinLock<Children>, order: Direction) -> Vec<AnyActor> {
    read_some(children, order, Start::Begin, usize::MAX)
}

/// As [`read_all`], from one of them on, and at most `max` of them.
pub(crate) fn read_some(
    children: &SpinLock<Children>,
    order: Direction,
    from: Start<'_>,
    max: usize,
) -> Vec<AnyActor> {
    let mut all = Vec::<AnyActor>::new();
    loop {
        let mut page: Page = [const { None }; PAGE_LEN];
        let continues = read_next(children, order, (from, &all), &mut page);
        all.extend(page.into_iter().flatten().take(max - all.len()));
        if all.len() == max || !continues {
            return all;
        }
    }
}

/// Reads the page after those children that were read, and returns whether there are further ones.
fn read_next(
    children: &SpinLock<Children>,
    order: Direction,
    (from, read): (Start<'_>, &[AnyActor]),
    page: &mut Page,
) -> bool {
    let mut n_left = read.len();
    loop {
        let start = n_left.checked_sub(1).and_then(|at| read.get(at));
        let start = start.map_or(from, Start::After);
        match (children.with(|children| children.read_page(order, start, page)), n_left) {
            (PageEnd::Continues, _) => return true,
            (PageEnd::Ended, _) | (PageEnd::Gone, 0) => return false,
            (PageEnd::Gone, _) => n_left -= 1,
        }
    }
}

type Entries = HashSlab<ChildEntry>;
type Reserved = Vec<(u32, ActorPath)>;

/// For a child that is about to be created.
impl Grows for Children {
    type Missing = (Option<<Entries as Grows>::Missing>, Option<<Reserved as Grows>::Missing>);
    type Room = (Option<<Entries as Grows>::Room>, Option<<Reserved as Grows>::Room>);

    fn missing(&self) -> Option<Self::Missing> {
        let missing = (self.entries.missing(), self.reserved.missing());
        (missing.0.is_some() || missing.1.is_some()).then_some(missing)
    }

    fn allocate(missing: Self::Missing) -> Self::Room {
        (missing.0.map(Entries::allocate), missing.1.map(Reserved::allocate))
    }

    fn add_room(&mut self, (entries, reserved): Self::Room) -> Self::Room {
        let entries = entries.map(|room| self.entries.add_room(room));
        (entries, reserved.map(|room| self.reserved.add_room(room)))
    }
}

impl Children {
    /// How many there are, including those that are being created.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    fn entry(&self, index: u32) -> Option<&ChildEntry> {
        self.entries.get(index)
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut ChildEntry> {
        self.entries.get_mut(index)
    }

    fn name(&self, index: u32) -> Option<&str> {
        match self.entry(index)?.child() {
            Some(child) => Some(child.path.name()),
            None => {
                let reserved = self.reserved.iter().find(|(at, _)| *at == index);
                reserved.map(|(_, path)| path.name())
            }
        }
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.find_hashed(name, hash_of_name(name))
    }

    fn find_hashed(&self, name: &str, hash: u32) -> Option<u32> {
        let mut all = self.entries.with_hash(hash).map(|(index, _)| index);
        all.find(|index| self.name(*index) == Some(name))
    }

    fn find_child(&self, child: &AnyActor) -> Option<u32> {
        let index = self.find(child.path.name())?;
        self.entry(index)?.child()?.ptr_eq(child).then_some(index)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ChildEntry> {
        self.find(name).and_then(|index| self.entry(index))
    }

    /// The entry of an actor, if it is a child.
    pub(crate) fn entry_of(&mut self, child: &AnyActor) -> Option<&mut ChildEntry> {
        let index = self.find_child(child)?;
        self.entry_mut(index)
    }

    /// As [`reserve`], with room; takes the path if it succeeds.
    fn reserve(
        &mut self,
        name: &str,
        hash: u32,
        path: &mut Option<ActorPath>,
    ) -> Result<u32, NotReserved> {
        if self.is_closed {
            return Err(NotReserved::Closed);
        }
        if self.find_hashed(name, hash).is_some() {
            return Err(NotReserved::Taken);
        }
        if self.entries.len() >= CHILDREN_MAX {
            return Err(NotReserved::Full);
        }
        let entry = ChildEntry {
            child: None,
            prev: NONE,
            next: NONE,
            is_watched: false,
            is_suspended: false,
            stop_requested: false,
            phase: ChildPhase::Single,
        };
        let index = self.entries.insert(hash, entry);
        self.reserved.extend(path.take().map(|path| (index, path)));
        self.link_between(self.last, index, NONE);
        if self.oldest == NONE {
            self.oldest = index;
        }
        Ok(index)
    }

    /// Links an entry between two that are neighbours.
    fn link_between(&mut self, prev: u32, index: u32, next: u32) {
        if let Some(entry) = self.entry_mut(index) {
            (entry.prev, entry.next) = (prev, next);
        }
        match self.entry_mut(prev) {
            Some(before) => before.next = index,
            None => self.first = index,
        }
        match self.entry_mut(next) {
            Some(after) => after.prev = index,
            None => self.last = index,
        }
    }

    /// Takes an entry out of the start order; searches continue at its neighbour.
    fn unlink(&mut self, index: u32) {
        let Some(entry) = self.entry(index) else { return };
        let (prev, next) = (entry.prev, entry.next);
        if self.cursor == index {
            self.cursor = if self.cursor_ascends { next } else { prev };
        }
        if self.stop_cursor == index {
            self.stop_cursor = prev;
        }
        if self.oldest == index {
            self.oldest = next;
        }
        match self.entry_mut(prev) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match self.entry_mut(next) {
            Some(after) => after.prev = prev,
            None => self.last = prev,
        }
    }

    /// Puts the child into its reserved entry. Returns whether the parent has begun to stop in the
    /// meantime. `starts_in_order`: it starts after the siblings that were added before it.
    pub(crate) fn fill(
        &mut self,
        index: u32,
        child: AnyActor,
        starts_in_order: bool,
    ) -> (bool, Unneeded) {
        let suspends = self.suspends;
        if let Some(entry) = self.entry_mut(index) {
            if starts_in_order {
                entry.phase = ChildPhase::Unstarted;
            }
            if suspends {
                child.suspend(true);
            }
            entry.is_suspended = suspends;
            entry.child = Some(child);
        }
        self.stop_cursor = self.last;
        let path = self.take_reserved(index);
        (self.is_closed, Unneeded { _entries: None, _path: path })
    }

    fn take_reserved(&mut self, index: u32) -> Option<ActorPath> {
        let at = self.reserved.iter().position(|(at, _)| *at == index)?;
        Some(self.reserved.swap_remove(at).1)
    }

    /// Releases a reserved name.
    pub(crate) fn cancel(&mut self, index: u32) -> Unneeded {
        let (_, mut unneeded) = self.take(index);
        unneeded._path = self.take_reserved(index);
        unneeded
    }

    /// A child has stopped: its name is free. Returns the child, if it was one.
    pub(crate) fn remove(&mut self, child: &AnyActor) -> Option<Removed> {
        let index = self.find_child(child)?;
        let is_watched = self.entry(index)?.is_watched;
        let (child, unneeded) = self.take(index);
        child.map(|child| Removed { child, is_watched, _unneeded: unneeded })
    }

    fn take(&mut self, index: u32) -> (Option<AnyActor>, Unneeded) {
        self.set_phase(index, ChildPhase::Single);
        self.unlink(index);
        let entry = self.entries.remove(index);
        let unneeded = Unneeded { _entries: self.entries.take_unneeded(), _path: None };
        (entry.and_then(|entry| entry.child), unneeded)
    }

    /// The youngest child that this function has not returned before.
    pub(crate) fn next_to_stop(&mut self) -> Search<AnyActor> {
        for _ in 0..PAGE_LEN {
            let at = self.stop_cursor;
            let Some(entry) = self.entry_mut(at) else { return Search::End };
            let prev = entry.prev;
            // A child that is being created sets the cursor again when it is there.
            let found = if entry.stop_requested { None } else { entry.child.clone() };
            entry.stop_requested |= found.is_some();
            self.stop_cursor = prev;
            if let Some(child) = found {
                return Search::Found(child);
            }
        }
        Search::Continue
    }

    /// Whether children that are added from now on are suspended from the beginning.
    pub(crate) fn suspend_new(&mut self, suspends: bool) {
        self.suspends = suspends;
    }

    /// Suspends a child that is not suspended, or resumes one that is. Returns whether it has
    /// changed. It is not woken.
    pub(crate) fn suspend(&mut self, child: &AnyActor, suspends: bool) -> bool {
        let Some(entry) = self.entry_of(child) else { return false };
        let was = core::mem::replace(&mut entry.is_suspended, suspends);
        if was != suspends {
            child.suspend(suspends);
        }
        was != suspends
    }

    /// The youngest child.
    pub(crate) fn newest(&self) -> Option<&AnyActor> {
        let newest = self.entry(self.last);
        let mut all = core::iter::successors(newest, |entry| self.entry(entry.prev));
        all.find_map(ChildEntry::child)
    }

    fn read_page(&self, order: Direction, from: Start<'_>, page: &mut Page) -> PageEnd {
        let start = match from {
            Start::Begin if order == Direction::OldestFirst => Some(self.oldest),
            // Withdrawn ones are all that is left.
            Start::Begin if self.oldest == NONE => Some(NONE),
            Start::Begin => Some(self.last),
            Start::At(child) => self.find_in_order(child),
            Start::After(child) => self.find_in_order(child).map(|at| self.follow(at, order)),
        };
        let Some(mut at) = start else { return PageEnd::Gone };
        for place in page {
            // Entries that are being created are few; see the module.
            while self.entry(at).is_some_and(|entry| entry.child.is_none()) {
                at = self.follow(at, order);
            }
            let Some(entry) = self.entry(at) else { return PageEnd::Ended };
            place.clone_from(&entry.child);
            at = self.follow(at, order);
        }
        PageEnd::Continues
    }

    /// The entry of a child that has a place in the order.
    fn find_in_order(&self, child: &AnyActor) -> Option<u32> {
        let index = self.find_child(child)?;
        (self.entry(index)?.phase != ChildPhase::Withdrawn).then_some(index)
    }

    /// The entry after this one.
    fn follow(&self, at: u32, order: Direction) -> u32 {
        let entry = self.entry(at);
        match order {
            Direction::OldestFirst => entry.map_or(NONE, |entry| entry.next),
            Direction::NewestFirst if at == self.oldest => NONE,
            Direction::NewestFirst => entry.map_or(NONE, |entry| entry.prev),
        }
    }
}

/// A child that is no longer in the table.
pub(crate) struct Removed {
    pub(crate) child: AnyActor,
    /// Whether its parent has watched it.
    pub(crate) is_watched: bool,
    _unneeded: Unneeded,
}

#[cfg(test)]
mod tests;
