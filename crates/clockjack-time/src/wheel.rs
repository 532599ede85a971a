//! The timer wheel: a hierarchical timing wheel with one owner.
//!
//! Hierarchical timing wheels are from Varghese and Lauck ("Hashed and hierarchical timing wheels",
//! 1987).
#![doc = include_str!("wheel.md")]

mod advance;
mod eviction;
mod fixed;
mod level;
pub(crate) mod list;
mod overflow;
mod priority;
pub(crate) mod record;
#[cfg(feature = "alloc")]
mod shard_ops;
#[cfg(feature = "alloc")]
pub(crate) mod slab;
pub(crate) mod store;

use core::{fmt, marker::PhantomData};

#[cfg(feature = "alloc")]
pub use self::slab::{GrowingWheel, Slab};
pub use self::{
    advance::{Advance, Expired},
    eviction::{Admitted, Dropped},
    fixed::Fixed,
    priority::TimerPriority,
};
use self::{
    level::{ALREADY_DUE, RANGE},
    list::Lists,
    record::TimerEntry,
    store::{Columns, DUE_MASK, ListEntry, Location, OverflowEntry},
};
use crate::{InsertError, Tick, timer_state::Generation};

/// How many entries of a coarse slot [`Wheel::next_deadline`] scans for an exact result.
const DEADLINE_SCAN_MAX: u32 = 64;

/// The storage of a [`Wheel`]; sealed.
///
/// [`Slab`] grows, [`Fixed`] does not and needs no allocator.
#[doc(hidden)]
pub trait Storage<T>: Columns<T> {}

impl<T, const N: usize, const OVERFLOW: usize> Storage<T> for Fixed<T, N, OVERFLOW> {}

/// A wheel for at most `N` timers that never allocates.
pub type FixedWheel<T, const N: usize, const OVERFLOW: usize = N> = Wheel<T, Fixed<T, N, OVERFLOW>>;

/// Identifies one arming of one timer, for cancel and re-arm.
///
/// An id may outlive its timer: once the timer has fired or was cancelled, the id refers to
/// nothing, and it never refers to another timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    pub(crate) slot: u32,
    pub(crate) shard: u32,
    pub(crate) generation: Generation,
}

const _: () = assert!(size_of::<TimerId>() == 16, "a key is two words");
const _: () = assert!(size_of::<Option<TimerId>>() == 16, "no room is lost to `Option`");

impl TimerId {
    /// The number of the timer's shard; 0 for a wheel outside a shard.
    #[must_use]
    pub const fn shard(self) -> u32 {
        self.shard
    }

    /// The number of the timer's place in its store, which other timers had before it and will have
    /// after it.
    #[doc(hidden)]
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.slot
    }
}

/// The limits of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelConfig {
    /// The tick at which the wheel starts.
    pub start: Tick,
    /// How many timers there may be.
    pub capacity: usize,
    /// How many of them may be beyond the wheel's range of 2^20 ticks.
    pub overflow_capacity: usize,
    /// How many timers return from the overflow to the wheel per tick. The remaining ones fire on
    /// time nevertheless, directly from the overflow.
    pub reinsertion_batch_limit: u32,
    /// The number that ids contain, so that the wheel refuses ids of another wheel.
    pub shard: u32,
}

impl WheelConfig {
    /// A million timers, all of which may be in the overflow, from tick 0.
    pub const DEFAULT: Self = Self {
        start: Tick::ZERO,
        capacity: 1 << 20,
        overflow_capacity: 1 << 20,
        reinsertion_batch_limit: 100,
        shard: 0,
    };
}

impl Default for WheelConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The timers of one owner, in order of deadline and, at one tick, of registration.
///
/// The [module](self) says how it works and what it promises.
pub struct Wheel<T, S> {
    store: S,
    /// The current tick. All timers before it have fired.
    elapsed: u64,
    /// The first tick that is not finished: `elapsed` while its timers are firing, else one more.
    /// Timers that are due before it go to the already-due list.
    open: u64,
    /// How many ticks from `open` on belong to the wheel's slots. Later timers belong to the
    /// overflow: from the end of the range, or from the overflow's first deadline if that is
    /// earlier (rule 3).
    in_range_len: u64,
    /// The span in ticks, from `elapsed` on, of the slot whose cascade was interrupted; 0 if there
    /// is none (rule 4).
    suspended_span: u64,
    /// The list of that slot.
    suspended: u32,
    lists: Lists,
    /// Live timers by the code of their priority; the first element is not used.
    len: [u32; 4],
    /// Where the search for a timer to evict continues.
    eviction_cursor: u32,
    /// How many timers may still return from the overflow at this tick.
    reinsertions_left: u32,
    reinsertion_batch_limit: u32,
    shard: u32,
    /// The generation that the next timer gets.
    generation: Generation,
    /// The last registration number of the overflow.
    sequence: u64,
    values: PhantomData<T>,
}

impl<T, const N: usize, const OVERFLOW: usize> Wheel<T, Fixed<T, N, OVERFLOW>> {
    /// An empty wheel without heap memory. A `const fn`: it can be the value of a static.
    #[must_use]
    pub const fn fixed(start: Tick) -> Self {
        Self::with_store(Fixed::new(), start)
    }
}

impl<T, S> Wheel<T, S> {
    pub(crate) const fn with_store(store: S, start: Tick) -> Self {
        let elapsed = start.get();
        let open = elapsed.saturating_add(1);
        Self {
            store,
            elapsed,
            open,
            in_range_len: elapsed.saturating_add(RANGE).saturating_sub(open),
            suspended_span: 0,
            suspended: 0,
            lists: Lists::EMPTY,
            len: [0; 4],
            eviction_cursor: 0,
            reinsertions_left: 0,
            reinsertion_batch_limit: WheelConfig::DEFAULT.reinsertion_batch_limit,
            shard: 0,
            generation: Generation::FIRST,
            sequence: 0,
            values: PhantomData,
        }
    }

    /// The current tick: no slot holds a timer that is due before it.
    #[must_use]
    pub const fn elapsed(&self) -> Tick {
        Tick::new(self.elapsed)
    }

    /// The first tick that is not finished. A timer with an earlier deadline fires at the next
    /// [`advance`](Self::advance), before all others.
    #[must_use]
    pub const fn open_tick(&self) -> Tick {
        Tick::new(self.open)
    }

    /// How many timers are armed.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len[1] as usize + self.len[2] as usize + self.len[3] as usize
    }

    /// Whether no timer is armed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers of a priority are armed.
    #[must_use]
    pub const fn len_of(&self, priority: TimerPriority) -> usize {
        self.len[priority.code() as usize] as usize
    }
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// How many ticks ahead a timer may be without being in the overflow.
    pub const RANGE: u64 = RANGE;

    /// How many timers there may be.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.store.slots_max() as usize
    }

    /// How many timers are in the overflow.
    #[must_use]
    pub fn overflow_len(&self) -> usize {
        self.store.overflow().len()
    }

    /// How many timers the overflow may hold.
    #[must_use]
    pub fn overflow_capacity(&self) -> usize {
        self.store.overflow_max()
    }

    /// Whether a timer for `deadline` would have to go to the overflow, and the overflow is full:
    /// then only the eviction of an overflow timer can make room for it.
    #[must_use]
    pub fn is_overflow_full_for(&self, deadline: Tick) -> bool {
        self.overflow_is_full_for(deadline.get())
    }

    /// How many slots of the wheel hold timers, for dumps.
    #[must_use]
    pub fn occupied_slots(&self) -> usize {
        (0..ALREADY_DUE).filter(|list| !self.lists.is_empty(&self.store, *list)).count()
    }

    /// Which slots hold timers, for displays: bit `n` of word `l` is for slot `n` of level `l`.
    #[doc(hidden)]
    #[must_use]
    pub fn occupancy(&self) -> [u64; 4] {
        let mut words = [0; 4];
        for list in (0..ALREADY_DUE).filter(|list| !self.lists.is_empty(&self.store, *list)) {
            words[(list / level::SLOTS) as usize] |= 1 << (list % level::SLOTS);
        }
        words
    }

    /// Arms a timer of [`TimerPriority::Normal`].
    ///
    /// A deadline that has passed is no error: the timer fires at the next
    /// [`advance`](Self::advance), and reports how late it is.
    ///
    /// # Errors
    /// [`InsertError`], which holds the value, if the wheel or its overflow has no room.
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{FixedWheel, Tick};
    ///
    /// let mut wheel = FixedWheel::<&str, 1>::fixed(Tick::ZERO);
    /// let tea = wheel.insert(Tick::new(180), "tea")?;
    /// let refused = wheel.insert(Tick::new(240), "eggs").unwrap_err();
    /// assert_eq!(refused.into_inner(), "eggs");
    /// assert_eq!(wheel.cancel(tea), Some("tea"));
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, deadline: Tick, value: T) -> Result<TimerId, InsertError<T>> {
        self.insert_with_priority(deadline, TimerPriority::Normal, value)
    }

    /// Arms a timer of the given priority; otherwise as [`insert`](Self::insert).
    ///
    /// # Errors
    /// [`InsertError`], which holds the value. It evicts no timer:
    /// [`insert_or_evict`](Self::insert_or_evict) does.
    #[inline(always)]
    pub fn insert_with_priority(
        &mut self,
        deadline: Tick,
        priority: TimerPriority,
        value: T,
    ) -> Result<TimerId, InsertError<T>> {
        let deadline = deadline.get();
        if !self.is_in_range(deadline) {
            return self.insert_out_of_range(deadline, priority, value);
        }
        let Some(timer) = self.store.take_slot() else { return Err(InsertError::store(value)) };
        let generation = self.next_generation();
        let location = self.link_in_wheel(timer, deadline, priority);
        self.store.fill(timer, generation, location, value);
        self.len[priority.code() as usize] += 1;
        Ok(self.id(timer, generation))
    }

    /// Cancels a timer and returns its value: `None` if it has fired, was cancelled already, or
    /// is not of this wheel. Everything that the timer used is free when this returns.
    #[inline(always)]
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        let timer = self.timer(id)?;
        let (location, value) = self.store.claim(timer, id.generation)?;
        let priority_code = self.unlink(location);
        self.free(timer, priority_code);
        Some(value)
    }

    /// Moves an armed timer to another deadline, as a new registration: among equal deadlines it
    /// is the last. The old id refers to nothing from then on. `Ok(None)` if the timer has fired or
    /// was cancelled.
    ///
    /// # Errors
    /// [`InsertError`] if the new deadline belongs to the overflow and the overflow is full; the
    /// timer stays armed as it was, under its old id.
    pub fn rearm(
        &mut self,
        id: TimerId,
        deadline: Tick,
    ) -> Result<Option<TimerId>, InsertError<()>> {
        let Some(timer) = self.timer(id) else { return Ok(None) };
        if !self.store.is_armed(timer, id.generation) {
            return Ok(None);
        }
        let deadline = deadline.get();
        let Some(location) = self.store.entry(timer).map(TimerEntry::location) else {
            return Ok(None);
        };
        let was_in_overflow = location.position().is_some();
        if !was_in_overflow && self.overflow_is_full_for(deadline) {
            return Err(InsertError::overflow(()));
        }
        let generation = self.next_generation();
        if !self.store.rearm(timer, id.generation, generation) {
            return Ok(None);
        }
        let priority = TimerPriority::from_code(self.unlink(location)).unwrap_or_default();
        let location = self.link(timer, deadline, priority);
        self.store.set_location(timer, location);
        self.restore_heap_order(location);
        Ok(Some(self.id(timer, generation)))
    }

    /// Whether the timer is armed: not yet fired and not cancelled.
    #[must_use]
    pub fn contains(&self, id: TimerId) -> bool {
        self.timer(id).is_some_and(|timer| self.store.is_armed(timer, id.generation))
    }

    /// The value of an armed timer.
    #[must_use]
    pub fn get(&self, id: TimerId) -> Option<&T> {
        let timer = self.timer(id).filter(|_| self.contains(id))?;
        self.store.entry(timer)?.value()
    }

    /// The value of an armed timer, for changing it.
    #[must_use]
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        let timer = self.timer(id).filter(|_| self.contains(id))?;
        self.store.entry_mut(timer)?.value_mut()
    }

    /// When the host should call [`advance`](Self::advance) next; `None` if nothing is armed.
    ///
    /// Never later than the earliest deadline. It is that deadline exactly, unless the next slot
    /// that is not empty spans several ticks and has more than 64 timers: then it is the first tick
    /// of that slot, and the call after that is exact. While work is left that a budget
    /// interrupted, it is the current tick of the wheel.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Tick> {
        if !self.lists.is_empty(&self.store, ALREADY_DUE) || self.is_suspended() {
            return Some(Tick::new(self.elapsed));
        }
        let in_wheel = self
            .lists
            .next_event(&self.store, self.elapsed)
            .map(|event| if event.fires() { event.tick } else { self.earliest_in(event) });
        let in_overflow = overflow::first(&self.store).map(|entry| entry.deadline);
        let earliest = match (in_wheel, in_overflow) {
            (Some(wheel), Some(overflow)) => wheel.min(overflow),
            (wheel, overflow) => wheel.or(overflow)?,
        };
        Some(Tick::new(earliest))
    }

    /// Frees the memory of an empty wheel; does nothing while a timer is armed.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.lists.free_empty_chunks(&mut self.store);
            self.store.reset();
            self.eviction_cursor = 0;
        }
    }

    #[inline(always)]
    fn overflow_is_full_for(&self, deadline: u64) -> bool {
        let is_beyond_range = deadline >= self.open && !self.is_in_range(deadline);
        is_beyond_range && self.store.overflow().len() == self.store.overflow_max()
    }

    fn is_suspended(&self) -> bool {
        self.suspended_span != 0 && !self.lists.is_empty(&self.store, self.suspended)
    }

    fn earliest_in(&self, event: level::Event) -> u64 {
        let mut earliest = u64::MAX;
        let mut seen = 0;
        self.lists.walk(&self.store, event.list, |entry| {
            seen += 1;
            earliest = earliest.min(entry.ahead(event.tick));
            seen <= DEADLINE_SCAN_MAX
        });
        if seen > DEADLINE_SCAN_MAX { event.tick } else { earliest }
    }

    #[inline(always)]
    fn timer(&self, id: TimerId) -> Option<u32> {
        (id.shard == self.shard).then_some(id.slot)
    }

    #[inline(always)]
    const fn id(&self, timer: u32, generation: Generation) -> TimerId {
        TimerId { slot: timer, shard: self.shard, generation }
    }

    #[inline(always)]
    fn next_generation(&mut self) -> Generation {
        let generation = self.generation;
        self.generation = generation.next();
        generation
    }

    /// Whether a deadline belongs to the wheel's slots: it is neither past nor beyond the range.
    #[inline(always)]
    fn is_in_range(&self, deadline: u64) -> bool {
        deadline.wrapping_sub(self.open) < self.in_range_len
    }

    /// Arms a timer whose deadline is past or beyond the range.
    #[cold]
    fn insert_out_of_range(
        &mut self,
        deadline: u64,
        priority: TimerPriority,
        value: T,
    ) -> Result<TimerId, InsertError<T>> {
        if self.store.has_slot() && self.overflow_is_full_for(deadline) {
            return Err(InsertError::overflow(value));
        }
        let Some(timer) = self.store.take_slot() else { return Err(InsertError::store(value)) };
        let generation = self.next_generation();
        let location = self.link_out_of_range(timer, deadline, priority);
        self.store.fill(timer, generation, location, value);
        self.len[priority.code() as usize] += 1;
        self.restore_heap_order(location);
        Ok(self.id(timer, generation))
    }

    /// Links a timer where its deadline belongs, behind all timers of the same tick, and returns
    /// its location. If it belongs to the overflow, there is room.
    #[inline]
    fn link(&mut self, timer: u32, deadline: u64, priority: TimerPriority) -> Location {
        if self.is_in_range(deadline) {
            self.link_in_wheel(timer, deadline, priority)
        } else {
            self.link_out_of_range(timer, deadline, priority)
        }
    }

    #[inline(always)]
    fn link_in_wheel(&mut self, timer: u32, deadline: u64, priority: TimerPriority) -> Location {
        let is_suspended = deadline - self.elapsed < self.suspended_span;
        let list =
            if is_suspended { self.suspended } else { level::list_for(deadline, self.elapsed) };
        self.lists.append(&mut self.store, list, ListEntry::new(timer, priority, deadline))
    }

    #[cold]
    fn link_out_of_range(
        &mut self,
        timer: u32,
        deadline: u64,
        priority: TimerPriority,
    ) -> Location {
        if deadline >= self.open {
            return self.link_in_overflow(timer, deadline, priority);
        }
        // An entry keeps a past deadline as far back as its bits allow.
        let deadline = deadline.max(self.elapsed.saturating_sub(DUE_MASK));
        self.lists.append(&mut self.store, ALREADY_DUE, ListEntry::new(timer, priority, deadline))
    }

    fn link_in_overflow(&mut self, timer: u32, deadline: u64, priority: TimerPriority) -> Location {
        let pushed = self.store.overflow_push(OverflowEntry {
            deadline,
            sequence: self.sequence,
            timer,
            priority,
        });
        assert!(pushed, "room in the overflow was made sure of before");
        self.sequence += 1;
        self.in_range_len = self.in_range_len.min(deadline - self.open);
        #[expect(clippy::cast_possible_truncation, reason = "a store has fewer than 2^30 slots")]
        let last = self.store.overflow().len() as u32 - 1;
        Location::in_overflow(last)
    }

    /// Restores the heap order after a timer was appended to the overflow.
    #[inline(always)]
    fn restore_heap_order(&mut self, location: Location) {
        if location.position().is_some() {
            overflow::sift_up_last(&mut self.store);
        }
    }

    /// Takes a timer out of its list or of the overflow, and returns the code of its priority; 0 if
    /// it was in neither.
    #[inline(always)]
    fn unlink(&mut self, location: Location) -> u32 {
        let Some(cell) = location.cell() else { return self.unlink_from_overflow(location) };
        self.lists.remove(&mut self.store, cell);
        location.priority_code()
    }

    #[cold]
    fn unlink_from_overflow(&mut self, location: Location) -> u32 {
        let Some(position) = location.position() else { return 0 };
        let priority = self.store.overflow()[position as usize].priority;
        overflow::remove(&mut self.store, position as usize);
        self.update_in_range_len();
        priority.code()
    }

    /// Must be called after every change of `elapsed`, of `open` and of the overflow's first entry.
    #[inline(always)]
    fn update_in_range_len(&mut self) {
        let range_end = self.elapsed.saturating_add(RANGE);
        let in_overflow = overflow::first(&self.store).map_or(u64::MAX, |entry| entry.deadline);
        self.in_range_len = range_end.min(in_overflow).saturating_sub(self.open);
    }

    /// Frees the slot of a timer that is in no list and has no value. `priority_code` is the
    /// priority under which it was counted; 0 if it is not counted any more.
    #[inline(always)]
    fn free(&mut self, timer: u32, priority_code: u32) {
        self.uncount(priority_code);
        self.store.give_slot(timer);
    }

    #[inline(always)]
    fn uncount(&mut self, priority_code: u32) {
        let len = &mut self.len[(priority_code & 3) as usize];
        *len = len.wrapping_sub(1);
    }
}

impl<T, S: fmt::Debug> fmt::Debug for Wheel<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("elapsed", &self.elapsed)
            .field("len", &self.len())
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}
