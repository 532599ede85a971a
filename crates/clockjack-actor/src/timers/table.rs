//! The timers that an actor has set, by key and by slot.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use clockjack_sched::{Cancellable, JobState};
use clockjack_sync::mutant;

use super::Key;
use crate::system_queue::{TimerNode, timer_node};

/// What a timer sends.
pub(crate) enum Source<M> {
    Once(M),
    Every(Box<dyn FnMut() -> M + Send>),
}

/// A timer that is set.
pub(crate) struct Timer<M> {
    pub(crate) key: Key,
    pub(crate) generation: u32,
    pub(crate) job: Cancellable,
    pub(crate) source: Source<M>,
}

impl<M> Timer<M> {
    /// Whether its job goes on: the scheduler may have ended it.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self.job.state(), JobState::Cancelled | JobState::Completed)
    }
}

/// See the [module](self). A slot is named by fires, a key by the actor.
pub(crate) struct TimerTable<M> {
    slots: Vec<Option<Timer<M>>>,
    /// By slot: what its fires come by. A slot that is taken anew keeps it, whatever hangs there.
    nodes: Vec<TimerNode>,
    free: Vec<u32>,
    by_key: BTreeMap<Key, u32>,
    generation: u32,
}

impl<M> Default for TimerTable<M> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            by_key: BTreeMap::new(),
            generation: 0,
        }
    }
}

impl<M> TimerTable<M> {
    /// Where a timer of this key is to be put, and a generation that none had before. Nothing is
    /// taken by that: until something is put there it may be given again.
    pub(super) fn reserve(&mut self, key: Key) -> (u32, u32) {
        self.generation = self.generation.wrapping_add(1);
        let slot = self.by_key.get(&key).or(self.free.last()).copied();
        let next = || u32::try_from(self.slots.len()).expect("more timers than a quota has");
        (slot.unwrap_or_else(next), self.generation)
    }

    /// The post of a slot that `reserve` has given.
    pub(super) fn node(&mut self, slot: u32) -> &TimerNode {
        let index = slot as usize;
        if index == self.nodes.len() {
            self.nodes.push(timer_node());
        }
        &self.nodes[index]
    }

    /// Puts a timer where `reserve` said; gives the one that stood there, which had the same key.
    pub(super) fn insert(&mut self, slot: u32, timer: Timer<M>) -> Option<Timer<M>> {
        let index = slot as usize;
        if index == self.slots.len() {
            self.slots.push(None);
            // Room for the day when all of them are free: a restart allocates nothing.
            self.free.reserve(self.slots.len() - self.free.len());
        } else if self.slots[index].is_none() {
            self.free.pop();
        }
        self.by_key.insert(timer.key, slot);
        self.slots[index].replace(timer)
    }

    pub(super) fn get(&self, key: Key) -> Option<&Timer<M>> {
        let slot = *self.by_key.get(&key)?;
        self.slots[slot as usize].as_ref()
    }

    /// Where the timer of this key stands, and its generation.
    pub(crate) fn place(&self, key: Key) -> Option<(u32, u32)> {
        let slot = *self.by_key.get(&key)?;
        Some((slot, self.slots[slot as usize].as_ref()?.generation))
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<Timer<M>> {
        let slot = *self.by_key.get(&key)?;
        self.remove_slot(slot)
    }

    pub(super) fn remove_slot(&mut self, slot: u32) -> Option<Timer<M>> {
        let timer = self.slots.get_mut(slot as usize)?.take()?;
        self.by_key.remove(&timer.key);
        self.free.push(slot);
        Some(timer)
    }

    /// Takes any of them out; none is left after as many calls as there are.
    pub(super) fn remove_last(&mut self) -> Option<Timer<M>> {
        let (_, slot) = self.by_key.last_key_value()?;
        self.remove_slot(*slot)
    }

    /// Whether a fire is of the timer that stands there now.
    pub(crate) fn is_current(&self, slot: u32, generation: u32) -> bool {
        let timer = self.slots.get(slot as usize).and_then(Option::as_ref);
        let is_any = mutant!("actor-timer-any-generation");
        timer.is_some_and(|timer| timer.generation == generation || is_any)
    }

    /// The message of a timer that has fired. One that fires once is taken out.
    pub(crate) fn take_message(&mut self, slot: u32) -> Option<M> {
        let timer = self.slots.get_mut(slot as usize)?.as_mut()?;
        if let Source::Every(make) = &mut timer.source {
            return Some(make());
        }
        match self.remove_slot(slot)?.source {
            Source::Once(msg) => Some(msg),
            Source::Every(_) => None,
        }
    }
}
