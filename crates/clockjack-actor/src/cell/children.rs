//! The children of an actor: by name, and in the order in which they were started.
//!
//! Linear probing is analysed by Knuth ("The Art of Computer Programming", volume 3, section 6.4).
//!
//! A hash table with open addressing (linear probing, tombstones) of indices into a slab of
//! entries, which are linked in start order. The name is in the child's path, so an entry has no
//! copy of it.
//!
//! An entry also says how far the child is in what the parent does with several children together;
//! see [`group`](super::group).

use alloc::vec::Vec;

use clockjack_sync::Arc;

use crate::{ActorPath, cell::header::AnyActor, escalation::Escalations};

const NONE: u32 = u32::MAX;
/// An index that was removed: probing continues.
const TOMBSTONE: u32 = u32::MAX - 1;

/// A table up to this size is kept when the last child has stopped, because other children may
/// follow soon.
const TABLE_KEPT_MAX: usize = 64;

/// What a parent knows about a child.
pub(crate) struct ChildEntry {
    /// None while the child is being created, and in a free entry.
    child: Option<AnyActor>,
    hash: u32,
    prev: u32,
    next: u32,
    /// Whether the parent watches it.
    pub(crate) is_watched: bool,
    /// Whether the parent has suspended it.
    is_suspended: bool,
    /// Whether the parent, which stops or restarts, has ordered it to stop.
    stop_requested: bool,
    phase: ChildPhase,
}

/// How far a child is in what its parent does with several children together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChildPhase {
    /// Belongs to no group.
    Single,
    /// Has not made its first attempt to start; only for a parent that starts its children in
    /// order.
    Unstarted,
    /// As `Unstarted`, and the child sleeps until the sibling before it has started.
    AwaitsTurn,
    /// As `Single`, and those after it look for the sibling before it: it stops without an attempt
    /// to start, or was faster than a sibling that another thread was creating.
    PassedOver,
    /// Is to restart with its group, and has not been ordered to yet.
    ToRestart,
    /// Is to stop with its group, and has not been ordered to yet.
    ToStop,
    /// Was ordered to end its incarnation and to wait.
    Ending,
    /// Was ordered to stop.
    Stopping,
    /// Its incarnation has ended, and it waits for its start.
    Down,
    /// Was ordered to start.
    Starting,
}

impl ChildPhase {
    /// Whether the group waits for the child to end or to stop.
    fn is_ending(self) -> bool {
        matches!(self, Self::Ending | Self::Stopping)
    }

    /// Whether the child is to end, or has ended, together with its group: its own failures no
    /// longer matter.
    pub(crate) fn ends_with_group(self) -> bool {
        matches!(self, Self::ToRestart | Self::ToStop | Self::Ending | Self::Stopping | Self::Down)
    }

    fn is_unstarted(self) -> bool {
        matches!(self, Self::Unstarted | Self::AwaitsTurn)
    }
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
    entries: Vec<ChildEntry>,
    free: u32,
    first: u32,
    last: u32,
    len: u32,
    /// The length is a power of two, or zero.
    table: Vec<u32>,
    /// How many buckets of the table are not NONE.
    used: u32,
    /// The names of children that are being created: nearly always none or one.
    reserved: Vec<(u32, ActorPath)>,
    /// New children start suspended, as the existing ones are.
    suspends: bool,
    /// Where the search for the next member of the group to stop, or to start, continues.
    cursor: u32,
    /// The cursor moves from old to young, because the group starts.
    cursor_ascends: bool,
    /// How many children are ending or stopping with their group.
    n_ending: u32,
    /// No more children are accepted.
    pub(crate) is_closed: bool,
    /// Receives failures that the actor or its descendants escalate.
    pub(crate) sink: Option<Arc<Escalations>>,
}

impl Default for Children {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            len: 0,
            table: Vec::new(),
            used: 0,
            reserved: Vec::new(),
            suspends: false,
            cursor: NONE,
            cursor_ascends: false,
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

fn hash(name: &str) -> u32 {
    // FNV-1a, folded: names do not come from attackers, and the order must be reproducible.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for &byte in name.as_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or(0)
}

impl Children {
    fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn entry(&self, index: u32) -> Option<&ChildEntry> {
        self.entries.get(index as usize)
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut ChildEntry> {
        self.entries.get_mut(index as usize)
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

    /// The bucket of a name in the table.
    fn bucket(&self, name: &str) -> Option<usize> {
        self.bucket_of(name, hash(name))
    }

    fn bucket_of(&self, name: &str, hash: u32) -> Option<usize> {
        let mask = self.table.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        for _ in 0..self.table.len() {
            let index = *self.table.get(at)?;
            if index == NONE {
                return None;
            }
            if self.entry(index).is_some_and(|e| e.hash == hash) && self.name(index) == Some(name) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.bucket(name).and_then(|at| self.table.get(at).copied())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ChildEntry> {
        self.find(name).and_then(|index| self.entry(index))
    }

    /// The entry of an actor, if it is a child.
    pub(crate) fn entry_of(&mut self, child: &AnyActor) -> Option<&mut ChildEntry> {
        let index = self.find(child.path.name())?;
        let entry = self.entry_mut(index)?;
        entry.child().is_some_and(|one| one.ptr_eq(child)).then_some(entry)
    }

    /// Reserves a name for a child that is about to be created; returns the index of its entry.
    pub(crate) fn reserve(&mut self, path: ActorPath) -> Result<u32, NotReserved> {
        if self.is_closed {
            return Err(NotReserved::Closed);
        }
        let hash = hash(path.name());
        if self.bucket_of(path.name(), hash).is_some() {
            return Err(NotReserved::Taken);
        }
        if self.len >= TOMBSTONE - 1 {
            return Err(NotReserved::Full);
        }
        let prev = self.last;
        let index = self.put(ChildEntry {
            child: None,
            hash,
            prev,
            next: NONE,
            is_watched: false,
            is_suspended: false,
            stop_requested: false,
            phase: ChildPhase::Single,
        });
        self.reserved.push((index, path));
        match self.entry_mut(prev) {
            Some(before) => before.next = index,
            None => self.first = index,
        }
        self.last = index;
        self.len += 1;
        self.index(hash, index);
        Ok(index)
    }

    fn put(&mut self, entry: ChildEntry) -> u32 {
        let free = self.free;
        match self.entries.get_mut(free as usize) {
            Some(slot) => {
                self.free = slot.next;
                *slot = entry;
                free
            }
            None => {
                self.entries.push(entry);
                // `reserve` has bounded it.
                u32::try_from(self.entries.len() - 1).unwrap_or(TOMBSTONE - 1)
            }
        }
    }

    fn index(&mut self, hash: u32, index: u32) {
        // At most three quarters full, tombstones included.
        if (self.used as usize + 1) * 4 > self.table.len() * 3 {
            let len = (self.len() * 2).next_power_of_two().max(8);
            self.table.clear();
            self.table.resize(len, NONE);
            self.used = 0;
            let mut at = self.first;
            while let Some(entry) = self.entry(at) {
                let (hash, next) = (entry.hash, entry.next);
                self.insert(hash, at);
                at = next;
            }
            return;
        }
        self.insert(hash, index);
    }

    fn insert(&mut self, hash: u32, index: u32) {
        let mask = self.table.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            match self.table.get_mut(at) {
                Some(bucket) if *bucket == NONE => {
                    *bucket = index;
                    self.used += 1;
                    return;
                }
                Some(bucket) if *bucket == TOMBSTONE => {
                    *bucket = index;
                    return;
                }
                _ => at = (at + 1) & mask,
            }
        }
    }

    /// Puts the child into its reserved entry; true if the parent has begun to stop in the
    /// meantime. `starts_in_order`: it starts after the siblings that were added before it.
    pub(crate) fn fill(&mut self, index: u32, child: AnyActor, starts_in_order: bool) -> bool {
        self.reserved.retain(|(at, _)| *at != index);
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
        self.is_closed
    }

    /// Releases a reserved name.
    pub(crate) fn cancel(&mut self, index: u32) {
        let at = self.name(index).and_then(|name| self.bucket(name));
        self.reserved.retain(|(at, _)| *at != index);
        self.take(at, index);
    }

    /// A child has stopped: its name is free. Returns the child and whether it was watched, if it
    /// was a child.
    pub(crate) fn remove(&mut self, child: &AnyActor) -> Option<(AnyActor, bool)> {
        let at = self.bucket(child.path.name())?;
        let index = *self.table.get(at)?;
        if !self.entry(index)?.child()?.ptr_eq(child) {
            return None;
        }
        let is_watched = self.entry(index)?.is_watched;
        self.take(Some(at), index).map(|child| (child, is_watched))
    }

    fn take(&mut self, at: Option<usize>, index: u32) -> Option<AnyActor> {
        if let Some(bucket) = at.and_then(|at| self.table.get_mut(at)) {
            *bucket = TOMBSTONE;
        }
        let free = self.free;
        let entry = self.entry_mut(index)?;
        let (prev, next) = (entry.prev, entry.next);
        let child = entry.child.take();
        entry.next = free;
        self.free = index;
        self.len -= 1;
        self.set_phase(index, ChildPhase::Single);
        if self.cursor == index {
            self.cursor = if self.cursor_ascends { next } else { prev };
        }
        match self.entry_mut(prev) {
            Some(before) => before.next = next,
            None => self.first = next,
        }
        match self.entry_mut(next) {
            Some(after) => after.prev = prev,
            None => self.last = prev,
        }
        if self.len == 0 {
            self.release_storage();
        }
        child
    }

    /// Frees the tables of a parent that had many children; keeps small ones.
    fn release_storage(&mut self) {
        if self.table.len() > TABLE_KEPT_MAX {
            self.entries = Vec::new();
            self.table = Vec::new();
        } else {
            self.entries.clear();
            self.table.fill(NONE);
        }
        (self.free, self.used, self.cursor) = (NONE, 0, NONE);
    }

    /// The parent no longer watches any of them.
    pub(crate) fn unwatch_all(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.is_watched = false);
    }

    /// The youngest child that this function has not returned before.
    pub(crate) fn next_to_stop(&mut self) -> Option<AnyActor> {
        let mut at = self.last;
        while let Some(entry) = self.entry_mut(at) {
            at = entry.prev;
            if let (Some(child), false) = (&entry.child, entry.stop_requested) {
                entry.stop_requested = true;
                return Some(child.clone());
            }
        }
        None
    }

    /// Suspends the children that are not suspended, and those that are added from now on; or
    /// resumes those that were suspended. Returns the children that have changed, newest first.
    /// They are not woken.
    pub(crate) fn suspend(&mut self, suspends: bool) -> Vec<AnyActor> {
        self.suspends = suspends;
        let mut changed = Vec::new();
        let mut at = self.last;
        while let Some(entry) = self.entry_mut(at) {
            at = entry.prev;
            let Some(child) = &entry.child else { continue };
            let was = core::mem::replace(&mut entry.is_suspended, suspends);
            if was != suspends {
                child.suspend(suspends);
                changed.push(child.clone());
            }
        }
        changed
    }

    /// The current children, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &AnyActor> {
        let newest = self.entry(self.last);
        core::iter::successors(newest, |entry| self.entry(entry.prev)).filter_map(ChildEntry::child)
    }

    /// The current children, oldest first.
    pub(crate) fn oldest_first(&self) -> impl Iterator<Item = &AnyActor> {
        let oldest = self.entry(self.first);
        core::iter::successors(oldest, |entry| self.entry(entry.next)).filter_map(ChildEntry::child)
    }
}

impl Children {
    fn set_phase(&mut self, index: u32, phase: ChildPhase) {
        let Some(entry) = self.entry_mut(index) else { return };
        let before = core::mem::replace(&mut entry.phase, phase);
        self.n_ending -= u32::from(before.is_ending());
        self.n_ending += u32::from(phase.is_ending());
    }

    /// How far the child is; none if it is no child.
    pub(crate) fn phase_of(&mut self, child: &AnyActor) -> Option<ChildPhase> {
        self.entry_of(child).map(|entry| entry.phase)
    }

    /// Changes the phase of a child that is in the first phase; false if it is not.
    pub(crate) fn change_phase(
        &mut self,
        child: &AnyActor,
        from: ChildPhase,
        to: ChildPhase,
    ) -> bool {
        let Some(index) = self.find(child.path.name()) else { return false };
        if self.phase_of(child) != Some(from) {
            return false;
        }
        self.set_phase(index, to);
        true
    }

    /// Puts children into the group: all, or one and those after it. They are to restart, or to
    /// stop. Returns how many.
    pub(crate) fn join_group(&mut self, oldest: Option<&AnyActor>, stops: bool) -> usize {
        let first = match oldest {
            Some(child) => self.find(child.path.name()).unwrap_or(NONE),
            None => self.first,
        };
        let (mut at, mut n_joined) = (first, 0);
        while let Some(entry) = self.entry(at) {
            let (index, is_there) = (at, entry.child.is_some());
            at = entry.next;
            let phase = match (entry.phase, stops) {
                (phase @ (ChildPhase::ToStop | ChildPhase::Stopping), _)
                | (phase @ (ChildPhase::Ending | ChildPhase::Down), false) => phase,
                (_, false) => ChildPhase::ToRestart,
                (_, true) => ChildPhase::ToStop,
            };
            // A child that is being created is not there yet.
            if is_there {
                self.set_phase(index, phase);
                n_joined += 1;
            }
        }
        (self.cursor, self.cursor_ascends) = (self.last, false);
        n_joined
    }

    /// The youngest member of the group that is to end, and whether it stops. It is marked as
    /// ordered.
    pub(crate) fn next_to_end(&mut self) -> Option<(AnyActor, bool)> {
        if self.cursor_ascends {
            // All have got their order.
            return None;
        }
        while let Some(entry) = self.entry(self.cursor) {
            let (index, phase, child) = (self.cursor, entry.phase, entry.child.clone());
            self.cursor = entry.prev;
            let told = match phase {
                ChildPhase::ToRestart => ChildPhase::Ending,
                ChildPhase::ToStop => ChildPhase::Stopping,
                _ => continue,
            };
            self.set_phase(index, told);
            return child.map(|child| (child, told == ChildPhase::Stopping));
        }
        None
    }

    /// Whether a member of the group has been ordered to end, and has not ended.
    pub(crate) fn has_ending(&self) -> bool {
        self.n_ending > 0
    }

    /// The oldest member of the group that waits for its start; it is marked as ordered.
    pub(crate) fn next_to_start(&mut self) -> Option<AnyActor> {
        if !core::mem::replace(&mut self.cursor_ascends, true) {
            self.cursor = self.first;
        }
        while let Some(entry) = self.entry(self.cursor) {
            let (index, phase, child) = (self.cursor, entry.phase, entry.child.clone());
            self.cursor = entry.next;
            if phase == ChildPhase::Down {
                self.set_phase(index, ChildPhase::Starting);
                return child;
            }
        }
        None
    }

    /// Ends the group: the parent stops all of its children.
    pub(crate) fn dissolve_group(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.phase = ChildPhase::Single);
        self.n_ending = 0;
    }

    /// Whether a new child may make its first attempt to start. If not, it is woken by
    /// [`made_attempt`](Self::made_attempt) of the sibling before it, or by the order of its group.
    pub(crate) fn may_start(&mut self, child: &AnyActor) -> bool {
        let Some(entry) = self.entry_of(child) else { return true };
        let (prev, phase) = (entry.prev, entry.phase);
        if !phase.is_unstarted() {
            // A member of a group is about to be ordered to end, and then to start in its place.
            // Any other child has made its attempt, which has failed: nobody would wake it, because
            // an elder sibling that another thread has added since then finds no mark.
            return !phase.ends_with_group();
        }
        let waits = self.has_unstarted_before(prev);
        if waits {
            self.change_phase(child, ChildPhase::Unstarted, ChildPhase::AwaitsTurn);
        }
        !waits
    }

    /// Whether the nearest child that counts, from this entry on towards the oldest, has not made
    /// its first attempt to start.
    fn has_unstarted_before(&self, mut at: u32) -> bool {
        while let Some(entry) = self.entry(at).filter(|entry| entry.is_passed_over()) {
            at = entry.prev;
        }
        self.entry(at).is_some_and(|entry| entry.phase.is_unstarted())
    }

    /// A new child has made its first attempt to start, or stops before that. Returns the sibling
    /// that may start now, if it sleeps until then.
    pub(crate) fn made_attempt(&mut self, child: &AnyActor) -> Option<AnyActor> {
        let index = self.find(child.path.name())?;
        let entry = self.entry_of(child)?;
        let (prev, mut next, phase) = (entry.prev, entry.next, entry.phase);
        if phase.is_unstarted() {
            if self.has_unstarted_before(prev) {
                // Out of turn: those after it wait for the one before it, which finds them.
                self.set_phase(index, ChildPhase::PassedOver);
                return None;
            }
            self.set_phase(index, ChildPhase::Single);
        }
        while let Some(entry) = self.entry(next).filter(|entry| entry.is_passed_over()) {
            next = entry.next;
        }
        let next = self.entry(next).filter(|entry| entry.phase == ChildPhase::AwaitsTurn)?;
        next.child().cloned()
    }
}
