//! The channel of an edge: the messages that its reader has not read yet, in one of six modes.
//!
//! It is plain memory with one owner at a time: no lock, no waiting, no clock of its own (the
//! caller passes `now_ns`), and no allocation after its creation. A full channel evicts or refuses;
//! it never blocks. An edge ends at one input, so a channel has one reader.
//!
//! # Where each message is counted
//!
//! Every offered message is *published* or *rejected*. Every published message is counted in
//! exactly one other place:
//!
//! ```text
//! offered       = publish_count + reject_count
//! publish_count = delivery_count + drop_count + overwrite_count + stale_drop_count + still inside
//! ```
//!
//! | what happens | counter |
//! |---|---|
//! | full, `reject`, `fail_fast` or `block` | `reject_count` |
//! | full, `drop_newest`: the one that was offered | `drop_count` |
//! | full, `drop_oldest`: the one that makes room | `drop_count` |
//! | full, `overwrite`: the one that makes room | `overwrite_count` |
//! | a slot is replaced before its reader has seen it | as the one that makes room |
//! | its reader was isolated: its messages, and all later ones | `drop_count` |
//! | too old at its delivery | `stale_drop_count` |
//!
//! `deadline_miss_count` counts delivered messages. `latest`, `latched` and `previous_tick` have a
//! slot: room for one message. The slot counts as full until the reader has seen its message; so
//! with `reject` or `fail_fast` it refuses messages until then.
//!
//! # Age
//!
//! The age of a message counts from its publication. A message is too old, or late, when it is
//! *older* than the limit. Both are checked at delivery: a message in a closed barrier counts
//! towards opening it, however old it is.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use super::{
    message::{Message, Meta},
    origins::MessageCalls,
    pending::PLACES_AT_ONCE,
};
use crate::{
    data::Value,
    describe::{EdgeMode, EdgeOverflow, EdgePolicy},
    run::observe::health::{HealthKey, HealthKind, HealthSink, Notes},
};

/// What was counted, by the names of `runtime.channel.*`; see the [module](self).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelCounters {
    pub(crate) publish_count: u64,
    pub(crate) delivery_count: u64,
    pub(crate) drop_count: u64,
    /// Those of `drop_count` whose reader was isolated.
    pub(crate) abandoned_count: u64,
    pub(crate) deadline_miss_count: u64,
    pub(crate) stale_drop_count: u64,
    pub(crate) reject_count: u64,
    pub(crate) overwrite_count: u64,
    /// Recorded health events: none with `emit_health_events: false`.
    pub(crate) health_event_count: u64,
    /// The most unread messages at the same time.
    pub(crate) max_depth: u32,
    /// How old the last message was when it was delivered.
    pub(crate) message_age_ns: u64,
}

/// Why a message was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// `drop_newest`: it counts as dropped.
    DroppedNewest,
    /// `block`: there may be room later.
    WouldBlock,
    /// `reject`.
    Rejected,
    /// `fail_fast`: the run fails.
    FailFast,
}

/// The result of a push.
#[derive(Debug)]
#[must_use]
pub(crate) enum Pushed {
    /// It is in the channel.
    Accepted,
    /// It is in the channel, and this number of unread messages was evicted.
    AcceptedEvicting(#[cfg_attr(not(test), expect(dead_code, reason = "for tests"))] u32),
    /// The message is returned to the caller.
    Refused(
        #[expect(dead_code, reason = "who pushes may want it back")] Message,
        #[cfg_attr(not(test), expect(dead_code, reason = "for tests"))] Refusal,
    ),
}

/// How a channel stores messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    /// A queue; messages are visible at once.
    Fifo,
    /// A queue; messages are visible when it is full.
    Barrier,
    /// One message, visible at once.
    Slot,
    /// One message, visible from the next epoch on.
    LaterSlot,
}

/// The channel of an edge; see the [module](self).
#[derive(Debug)]
pub(crate) struct Channel {
    /// How many messages the reader can pop now.
    n_ready: u32,
    capacity: u32,
    edge: u32,
    storage: Storage,
    overflow: EdgeOverflow,
    /// The reader has seen the message in the slot, so it is counted as delivered.
    is_seen: bool,
    /// A popped message stays in the slot and can be read again.
    keeps_read: bool,
    /// A slot that does not keep popped messages.
    is_simple_slot: bool,
    /// One, if the last read message stays in the other place until the next one was read; else
    /// zero.
    keeps_last: u8,
    /// Which of the `places` is the slot.
    front: u8,
    /// The queue has been full before.
    was_full: bool,
    /// The reader is isolated and never reads again.
    is_abandoned: bool,
    /// The sequence number of the last accepted message.
    seq: u64,
    lifespan_ns: u64,
    /// The shorter of lifespan and deadline: below it, age needs no check.
    age_check_ns: u64,
    deadline_ns: u64,
    queue: VecDeque<Message>,
    /// The slot and the other place. The other place holds, for `previous_tick`, the message that
    /// becomes visible in the next epoch; for a channel that keeps the last message, that one. A
    /// message that was read stays in the slot; the next message makes the other place the slot.
    places: [Message; 2],
    counters: ChannelCounters,
    /// `None`: health events are off.
    notes: Option<Box<Notes>>,
    /// Which calls published its messages; `None`: it is on no chain.
    message_calls: Option<Box<MessageCalls>>,
}

const NS_PER_MS: u64 = 1_000_000;

/// A limit in nanoseconds; zero means that there is none.
const fn limit_ns(ms: u64) -> u64 {
    if ms == 0 { u64::MAX } else { ms.saturating_mul(NS_PER_MS) }
}

impl Channel {
    /// The channel of the edge with this index. Unless the capacity is huge, all memory is
    /// allocated here.
    pub(crate) fn new(edge: u32, policy: &EdgePolicy) -> Self {
        let storage = match policy.mode {
            EdgeMode::Latest | EdgeMode::Latched => Storage::Slot,
            EdgeMode::Queue | EdgeMode::RingBuffer => Storage::Fifo,
            EdgeMode::Barrier => Storage::Barrier,
            EdgeMode::PreviousTick => Storage::LaterSlot,
        };
        let is_slot = matches!(storage, Storage::Slot | Storage::LaterSlot);
        let capacity = if is_slot { 1 } else { policy.capacity.max(1) };
        let places = if is_slot { 0 } else { PLACES_AT_ONCE.min(capacity as usize) };
        let lifespan_ns = limit_ns(policy.lifespan_ms);
        let deadline_ns = limit_ns(policy.deadline_ms);
        Self {
            n_ready: 0,
            capacity,
            edge,
            storage,
            overflow: policy.overflow,
            is_seen: true,
            keeps_read: is_slot,
            is_simple_slot: false,
            keeps_last: 0,
            front: 0,
            was_full: false,
            is_abandoned: false,
            seq: 0,
            lifespan_ns,
            age_check_ns: lifespan_ns.min(deadline_ns),
            deadline_ns,
            queue: VecDeque::with_capacity(places),
            places: [const { Message::none() }; 2],
            counters: ChannelCounters::default(),
            notes: policy.emit_health_events.then(Box::default),
            message_calls: None,
        }
    }

    /// Popped messages cannot be read again: saves one reference per message of a `latest`,
    /// `latched` or `previous_tick` channel. For readers that never need them.
    pub(crate) fn forget_read(&mut self) {
        self.keeps_read = false;
        self.is_simple_slot = self.storage == Storage::Slot;
    }

    /// A message read by [`open`](Self::open) stays as the last one, which the reader sees together
    /// with the next. For a reader that keeps nothing itself. Only for channels with
    /// [`forget_read`](Self::forget_read).
    pub(crate) fn keep_last(&mut self) {
        self.keeps_last = u8::from(self.is_simple_slot);
    }

    /// Keeps which calls published its messages: the edge is on a chain.
    pub(crate) fn track(&mut self, calls: MessageCalls) {
        self.message_calls = Some(Box::new(calls));
        // Only a push does so.
        self.is_simple_slot = false;
    }

    /// The number of the call that published a message, if the edge is on a chain and the call too.
    pub(crate) fn take_call(&mut self, seq: u64) -> Option<u64> {
        self.message_calls.as_mut()?.take(seq)
    }

    /// Whether [`keep_last`](Self::keep_last) is in effect.
    pub(crate) fn does_keep_last(&self) -> bool {
        self.keeps_last != 0
    }

    /// Lends the last read message to the reader, if it is kept here. No message may be popped
    /// before it, and the caller must [return](Self::give_last) it.
    pub(crate) fn take_last(&mut self) -> Message {
        core::mem::replace(self.last_mut(), const { Message::none() })
    }

    /// Returns the last read message.
    pub(crate) fn give_last(&mut self, last: Message) {
        *self.last_mut() = last;
    }

    fn last_mut(&mut self) -> &mut Message {
        let at = if self.n_ready > 0 { self.back() } else { self.front() };
        &mut self.places[at]
    }

    /// The index of the slot.
    #[inline(always)]
    fn front(&self) -> usize {
        usize::from(self.front & 1)
    }

    /// The index of the other place.
    #[inline(always)]
    fn back(&self) -> usize {
        usize::from(!self.front & 1)
    }

    /// The message in the slot.
    #[inline]
    fn slot(&self) -> Option<&Message> {
        Some(&self.places[self.front()]).filter(|one| !one.is_none())
    }

    /// Takes the message in a place.
    #[inline]
    fn take(&mut self, place: usize) -> Option<Message> {
        let taken = core::mem::replace(&mut self.places[place], const { Message::none() });
        Some(taken).filter(|one| !one.is_none())
    }

    /// The edge.
    pub(crate) fn edge(&self) -> u32 {
        self.edge
    }

    /// The counters.
    pub(crate) fn counters(&self) -> &ChannelCounters {
        &self.counters
    }

    /// Published messages that are in no other counter yet.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        match self.storage {
            #[expect(clippy::cast_possible_truncation, reason = "it is at most the capacity")]
            Storage::Fifo | Storage::Barrier => self.queue.len() as u32,
            Storage::Slot => u32::from(!self.is_seen),
            Storage::LaterSlot => u32::from(!self.is_seen) + u32::from(self.has_later()),
        }
    }

    /// How many more pushes will be accepted before one is refused: `u32::MAX` if none ever is.
    #[inline]
    pub(crate) fn room(&self) -> u32 {
        match self.overflow {
            EdgeOverflow::Overwrite | EdgeOverflow::DropOldest => u32::MAX,
            _ if self.is_abandoned => u32::MAX,
            _ => self.free(),
        }
    }

    /// How many messages leave less room for the next ones that come from another domain. They
    /// come after [`advance`](Self::advance), which empties the later place.
    pub(crate) fn n_without_room(&self) -> u32 {
        if self.storage == Storage::LaterSlot { 0 } else { self.depth() }
    }

    /// Counts messages that did not get here from another domain, because as many were on their
    /// way as this channel keeps: as if this channel had evicted or refused each of them.
    #[cold]
    pub(crate) fn count_lost_before(&mut self, n_lost: u64, now_ns: u64) {
        for _ in 0..n_lost {
            if self.overflow.evicts() {
                self.counters.publish_count += 1;
                self.count_evicted();
                self.note(HealthKind::ChannelOverflow, self.seq, now_ns);
            } else {
                self.refuse(now_ns);
            }
        }
    }

    /// The reader never reads again: drops all messages, and all later ones. The channel blocks no
    /// producer any more.
    pub(crate) fn abandon(&mut self) {
        self.counters.drop_count += u64::from(self.depth());
        self.counters.abandoned_count += u64::from(self.depth());
        self.queue.clear();
        self.places = [const { Message::none() }; 2];
        (self.n_ready, self.is_seen) = (0, true);
        (self.is_simple_slot, self.is_abandoned) = (false, true);
    }

    /// How many messages fit in before it is full.
    #[inline]
    fn free(&self) -> u32 {
        match self.storage {
            Storage::LaterSlot => u32::from(!self.has_later()),
            _ => self.capacity - self.depth(),
        }
    }

    /// Whether a message becomes visible in the next epoch.
    #[inline]
    pub(crate) fn has_later(&self) -> bool {
        !self.places[self.back()].is_none()
    }

    /// Adds a message, and sets its sequence number, its edge and its time of arrival.
    pub(crate) fn push(&mut self, now_ns: u64, mut message: Message) -> Pushed {
        if self.is_abandoned {
            self.counters.publish_count += 1;
            self.counters.drop_count += 1;
            self.counters.abandoned_count += 1;
            return Pushed::Accepted;
        }
        let mut n_evicted = 0;
        if self.free() == 0 {
            match self.overflow {
                EdgeOverflow::Overwrite | EdgeOverflow::DropOldest => {
                    self.evict(now_ns);
                    n_evicted = 1;
                }
                _ => return Pushed::Refused(message, self.refuse(now_ns)),
            }
        }
        self.seq += 1;
        message.meta.seq = self.seq;
        message.meta.edge = self.edge;
        if let Some(calls) = &mut self.message_calls {
            calls.push(self.seq, message.meta.received_ns);
        }
        message.meta.received_ns = now_ns;
        self.counters.publish_count += 1;
        match self.storage {
            Storage::Fifo => {
                self.queue.push_back(message);
                self.n_ready += 1;
                if self.n_ready == self.capacity && !self.was_full {
                    self.fill_first(now_ns);
                }
            }
            Storage::Slot => {
                if self.n_ready == 0 {
                    self.front ^= self.keeps_last;
                }
                self.places[self.front()] = message;
                self.n_ready = 1;
                self.is_seen = false;
            }
            Storage::Barrier => {
                self.queue.push_back(message);
                if self.queue.len() == self.capacity as usize {
                    self.n_ready = self.capacity;
                }
            }
            Storage::LaterSlot => self.places[self.back()] = message,
        }
        self.counters.max_depth = self.counters.max_depth.max(self.depth());
        if n_evicted == 0 { Pushed::Accepted } else { Pushed::AcceptedEvicting(n_evicted) }
    }

    /// As [`push`](Self::push), for a message in two parts that is written in place; returns
    /// whether it was accepted.
    #[inline(always)]
    pub(crate) fn put(&mut self, now_ns: u64, value: Value, meta: &Meta) -> bool {
        // Usually the previous message was popped.
        if !self.is_simple_slot || self.n_ready > 0 {
            let pushed = self.push(now_ns, Message { value, meta: *meta });
            return !matches!(pushed, Pushed::Refused(..));
        }
        self.seq += 1;
        self.counters.publish_count += 1;
        self.counters.max_depth = 1;
        let meta = Meta { seq: self.seq, edge: self.edge, received_ns: now_ns, ..*meta };
        self.front ^= self.keeps_last;
        // The old message there was popped, or is older than the last one read.
        self.places[self.front()].put(value, meta);
        self.n_ready = 1;
        self.is_seen = false;
        true
    }

    /// Whether [`open`](Self::open) returns a message.
    #[inline(always)]
    pub(crate) fn can_open(&self, now_ns: u64) -> bool {
        let message = &self.places[self.front()];
        let age_ns = now_ns.saturating_sub(message.meta.published_ns);
        self.is_simple_slot && self.n_ready > 0 && age_ns <= self.age_check_ns
    }

    /// As [`pop`](Self::pop), for a simple slot, without moving the message: returns it and the
    /// last one. The caller may take its value. `None` if the fast path does not apply; then the
    /// caller uses `pop`.
    #[inline(always)]
    pub(crate) fn open(&mut self, now_ns: u64) -> Option<(&mut Message, &mut Message)> {
        if !self.is_simple_slot || self.n_ready == 0 {
            return None;
        }
        let front = self.front();
        let age_ns = now_ns.saturating_sub(self.places[front].meta.published_ns);
        if age_ns > self.age_check_ns {
            return None;
        }
        self.n_ready = 0;
        self.is_seen = true;
        self.counters.delivery_count += 1;
        self.counters.message_age_ns = age_ns;
        let [first, second] = &mut self.places;
        Some(if front == 0 { (first, second) } else { (second, first) })
    }

    /// The reader has taken the value of the [opened](Self::open) message: the last message is
    /// again the one before it.
    #[cold]
    pub(crate) fn was_taken(&mut self) {
        self.take(self.front());
        self.front ^= self.keeps_last;
    }

    /// Counts a message that this full channel refuses, and returns why. A push does so itself;
    /// this is for callers that checked the [room](Self::room) first.
    #[cold]
    pub(crate) fn refuse(&mut self, now_ns: u64) -> Refusal {
        let refusal = match self.overflow {
            EdgeOverflow::DropNewest => Refusal::DroppedNewest,
            EdgeOverflow::Block => Refusal::WouldBlock,
            EdgeOverflow::FailFast => Refusal::FailFast,
            EdgeOverflow::Overwrite | EdgeOverflow::DropOldest | EdgeOverflow::Reject => {
                Refusal::Rejected
            }
        };
        if refusal == Refusal::DroppedNewest {
            self.counters.publish_count += 1;
            self.counters.drop_count += 1;
        } else {
            self.counters.reject_count += 1;
        }
        self.note(HealthKind::ChannelOverflow, self.seq, now_ns);
        refusal
    }

    /// Evicts the oldest unread message. In a full queue, also in a barrier, all messages are
    /// visible.
    #[cold]
    fn evict(&mut self, now_ns: u64) {
        let evicted = match self.storage {
            Storage::Fifo | Storage::Barrier => {
                self.n_ready -= 1;
                self.queue.pop_front()
            }
            Storage::Slot => self.take(self.front()),
            Storage::LaterSlot => self.take(self.back()),
        };
        self.count_evicted();
        let seq = evicted.map_or(self.seq, |message| message.meta.seq);
        self.note(HealthKind::ChannelOverflow, seq, now_ns);
    }

    fn count_evicted(&mut self) {
        if self.overflow == EdgeOverflow::DropOldest {
            self.counters.drop_count += 1;
        } else {
            self.counters.overwrite_count += 1;
        }
    }

    #[cold]
    fn fill_first(&mut self, now_ns: u64) {
        self.was_full = true;
        self.note(HealthKind::BackpressureHighWatermark, self.seq, now_ns);
    }

    fn note(&mut self, kind: HealthKind, sequence: u64, now_ns: u64) {
        let depth = self.depth();
        if let Some(notes) = &mut self.notes {
            self.counters.health_event_count += 1;
            notes.add(kind, sequence, depth, now_ns);
        }
    }

    /// Begins an epoch: the message that `previous_tick` got in the previous epoch becomes visible,
    /// and is an update once. Other modes do nothing.
    #[inline]
    pub(crate) fn advance(&mut self, now_ns: u64) {
        if self.storage != Storage::LaterSlot {
            return;
        }
        let Some(message) = self.take(self.back()) else {
            return;
        };
        if !self.is_seen {
            self.count_evicted();
            let seq = self.slot().map_or(self.seq, |unread| unread.meta.seq);
            self.note(HealthKind::ChannelOverflow, seq, now_ns);
        }
        self.places[self.front()] = message;
        self.n_ready = 1;
        self.is_seen = false;
    }

    /// Whether there is a message to pop. It may turn out to be stale.
    #[inline]
    pub(crate) fn has_update(&self) -> bool {
        self.n_ready > 0
    }

    /// The next message for the reader. Drops messages that are too old.
    #[inline]
    pub(crate) fn pop(&mut self, now_ns: u64) -> Option<Message> {
        if matches!(self.storage, Storage::Slot | Storage::LaterSlot) {
            return self.pop_slot(now_ns);
        }
        while self.n_ready > 0 {
            self.n_ready -= 1;
            let mut message = self.queue.pop_front()?;
            let age_ns = now_ns.saturating_sub(message.meta.published_ns);
            match self.check_age(message.meta.seq, age_ns, true, now_ns) {
                AgeCheck::Stale => {}
                check => {
                    message.meta.is_late = check == AgeCheck::Late;
                    return Some(message);
                }
            }
        }
        None
    }

    #[inline]
    fn pop_slot(&mut self, now_ns: u64) -> Option<Message> {
        if self.n_ready == 0 || !self.see_slot(now_ns) {
            return None;
        }
        self.n_ready = 0;
        if self.keeps_read
            && let Some(shared) = self.slot()?.share()
        {
            return Some(shared);
        }
        self.take(self.front())
    }

    /// Marks the message in the slot as seen; returns whether there is one that is not too old.
    #[inline]
    fn see_slot(&mut self, now_ns: u64) -> bool {
        let Some(message) = self.slot() else { return false };
        let (seq, age_ns) = (message.meta.seq, now_ns.saturating_sub(message.meta.published_ns));
        let is_new = !core::mem::replace(&mut self.is_seen, true);
        let check = self.check_age(seq, age_ns, is_new, now_ns);
        if check == AgeCheck::Stale {
            self.n_ready = 0;
            self.take(self.front());
            return false;
        }
        if check == AgeCheck::Late {
            self.places[self.front()].meta.is_late = true;
        }
        true
    }

    /// Whether a message may be delivered. Counts a new message as delivered or dropped.
    #[inline]
    fn check_age(&mut self, seq: u64, age_ns: u64, is_new: bool, now_ns: u64) -> AgeCheck {
        let check = if age_ns > self.age_check_ns {
            self.check_old(seq, age_ns, is_new, now_ns)
        } else {
            AgeCheck::Fine
        };
        if is_new && check != AgeCheck::Stale {
            self.counters.delivery_count += 1;
            self.counters.message_age_ns = age_ns;
        }
        check
    }

    #[cold]
    fn check_old(&mut self, seq: u64, age_ns: u64, is_new: bool, now_ns: u64) -> AgeCheck {
        if age_ns > self.lifespan_ns {
            if is_new {
                self.counters.stale_drop_count += 1;
                self.note(HealthKind::ChannelStaleDrop, seq, now_ns);
            }
            return AgeCheck::Stale;
        }
        if age_ns <= self.deadline_ns {
            return AgeCheck::Fine;
        }
        if is_new {
            self.counters.deadline_miss_count += 1;
            self.note(HealthKind::ChannelDeadlineMiss, seq, now_ns);
        }
        AgeCheck::Late
    }

    /// The newest message that the reader may see; it stays in the channel. For a slot, it is the
    /// message there, also if it was popped before (unless the value allows one reader only, or
    /// [`forget_read`](Self::forget_read) is in effect); the message counts as delivered when it is
    /// first seen, and stays an update until it is popped. For a queue it is the last message, and
    /// nothing is counted.
    #[cfg(test)]
    pub(crate) fn newest(&mut self, now_ns: u64) -> Option<&Message> {
        if matches!(self.storage, Storage::Slot | Storage::LaterSlot) {
            return if self.see_slot(now_ns) { self.slot() } else { None };
        }
        let last = (self.n_ready as usize).checked_sub(1)?;
        let message = self.queue.get_mut(last)?;
        let age_ns = now_ns.saturating_sub(message.meta.published_ns);
        message.meta.is_late = age_ns > self.deadline_ns;
        (age_ns <= self.lifespan_ns).then_some(message)
    }

    /// Pops up to `max` messages. The rest stays.
    #[cfg(test)]
    pub(crate) fn drain(
        &mut self,
        now_ns: u64,
        max: usize,
        mut each: impl FnMut(Message),
    ) -> usize {
        for n_drained in 0..max {
            let Some(message) = self.pop(now_ns) else { return n_drained };
            each(message);
        }
        max
    }

    /// Whether there are health events to report.
    #[inline]
    pub(crate) fn has_health(&self) -> bool {
        self.notes.as_ref().is_some_and(|notes| notes.is_any())
    }

    /// Moves the health events since the last call to a sink, for the component that reads and its
    /// lane.
    pub(crate) fn drain_health(&mut self, component: u32, lane: u32, sink: &mut HealthSink) {
        if let Some(notes) = &mut self.notes {
            let kind = HealthKind::ChannelOverflow;
            let policy = self.overflow.name();
            let key =
                HealthKey { edge: self.edge, ..HealthKey::new(kind, component, lane, policy) };
            notes.drain_into(key, self.capacity, sink);
        }
    }
}

/// What the age of a message means for its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgeCheck {
    Fine,
    Late,
    Stale,
}
