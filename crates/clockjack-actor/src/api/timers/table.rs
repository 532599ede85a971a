//! The timers that an actor has set, by key and by slot.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use clockjack_sched::{Cancellable, JobState};

use super::Key;
use crate::mailbox::system_queue::{TimerNode, timer_node};

/// The source of a timer's messages.
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
    /// Whether its events are control messages.
    pub(crate) has_priority: bool,
    /// Whether an event of it waits for its place among the user messages.
    pub(crate) is_due: bool,
}

impl<M> Timer<M> {
    /// Whether its job is active: the scheduler may have cancelled it.
    pub(crate) fn is_active(&self) -> bool {
        !matches!(self.job.state(), JobState::Cancelled | JobState::Completed)
    }
}

/// See the [module](self). Events refer to a slot, the actor refers to a key.
pub(crate) struct TimerTable<M> {
    slots: Vec<Option<Timer<M>>>,
    /// By slot: the node in which its events arrive. A slot that is reused keeps its node, even if
    /// that is linked.
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
    /// The slot for a timer of this key, and a generation that was not used before. Nothing is
    /// reserved yet: until a timer is inserted, the same slot may be returned again.
    pub(super) fn choose_slot(&mut self, key: Key) -> (u32, u32) {
        self.generation = self.generation.wrapping_add(1);
        let slot = self.by_key.get(&key).or(self.free.last()).copied();
        let next = || u32::try_from(self.slots.len()).expect("more timers than a quota has");
        (slot.unwrap_or_else(next), self.generation)
    }

    /// The node of a slot that `choose_slot` has returned.
    pub(super) fn node(&mut self, slot: u32) -> &TimerNode {
        let index = slot as usize;
        if index == self.nodes.len() {
            self.nodes.push(timer_node());
        }
        &self.nodes[index]
    }

    /// Inserts a timer into the slot that `choose_slot` has returned; returns the previous one,
    /// which had the same key.
    pub(super) fn insert(&mut self, slot: u32, timer: Timer<M>) -> Option<Timer<M>> {
        let index = slot as usize;
        if index == self.slots.len() {
            self.slots.push(None);
            // Capacity for the case that all slots are free: a restart allocates nothing.
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

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The number of slots, used or free.
    pub(super) fn n_slots(&self) -> usize {
        self.slots.len()
    }

    /// The slot of the timer with this key, and its generation.
    pub(crate) fn place(&self, key: Key) -> Option<(u32, u32)> {
        let slot = *self.by_key.get(&key)?;
        Some((slot, self.slots[slot as usize].as_ref()?.generation))
    }

    pub(super) fn remove_slot(&mut self, slot: u32) -> Option<Timer<M>> {
        let timer = self.slots.get_mut(slot as usize)?.take()?;
        self.by_key.remove(&timer.key);
        self.free.push(slot);
        Some(timer)
    }

    /// The slot of any timer.
    pub(super) fn last_slot(&self) -> Option<u32> {
        self.by_key.last_key_value().map(|(_, slot)| *slot)
    }

    /// Whether an event belongs to the timer that is in the slot now.
    pub(crate) fn is_current(&self, slot: u32, generation: u32) -> bool {
        let timer = self.slots.get(slot as usize).and_then(Option::as_ref);
        timer.is_some_and(|timer| timer.generation == generation)
    }

    /// The timer that is in the slot now, if an event of this generation belongs to it.
    pub(crate) fn current_mut(&mut self, slot: u32, generation: u32) -> Option<&mut Timer<M>> {
        let timer = self.slots.get_mut(slot as usize)?.as_mut()?;
        (timer.generation == generation).then_some(timer)
    }

    /// The message that a one-shot timer has.
    pub(crate) fn message(&self, slot: u32) -> Option<&M> {
        match &self.slots.get(slot as usize)?.as_ref()?.source {
            Source::Once(msg) => Some(msg),
            Source::Every(_) => None,
        }
    }

    /// The next message of a periodic timer.
    pub(crate) fn make_message(&mut self, slot: u32) -> Option<M> {
        match &mut self.slots.get_mut(slot as usize)?.as_mut()?.source {
            Source::Every(make) => Some(make()),
            Source::Once(_) => None,
        }
    }

    /// The message of a timer that has fired. A one-shot timer is removed.
    pub(crate) fn take_message(&mut self, slot: u32) -> Option<M> {
        if let Some(made) = self.make_message(slot) {
            return Some(made);
        }
        match self.remove_slot(slot)?.source {
            Source::Once(msg) => Some(msg),
            Source::Every(_) => None,
        }
    }
}
