#![doc = include_str!("wheel.md")]

mod advance;
mod eviction;
mod fixed;
pub(crate) mod level;
pub(crate) mod overflow;
mod priority;
#[cfg(feature = "alloc")]
mod slab;
pub(crate) mod store;

use core::{fmt, marker::PhantomData, num::NonZeroU64};

#[cfg(feature = "alloc")]
pub use self::slab::Slab;
pub use self::{
    advance::{Advance, Expired},
    eviction::{Admitted, Dropped},
    fixed::Fixed,
    priority::Class,
};
use self::{
    level::{AT_ONCE, HEADS, Occupancy, RANGE, SUSPENDED},
    overflow::IN_OVERFLOW,
    store::{Columns, DUE_MASK, Far, Generation, due_class, index_of, pack_due},
};
use crate::{Full, Tick};

/// The end of the free list.
const NO_SLOT: u32 = u32::MAX;

/// How many entries of a coarse slot [`Wheel::next_deadline`] looks at for an exact answer.
const DEADLINE_SCAN_MAX: usize = 64;

/// What a [`Wheel`] can keep its entries in; sealed.
///
/// [`Slab`] grows, [`Fixed`] does not and needs no allocator.
pub trait Storage<T>: Columns<T> {}

#[cfg(feature = "alloc")]
impl<T> Storage<T> for Slab<T> {}
impl<T, const N: usize, const FAR: usize> Storage<T> for Fixed<T, N, FAR> {}

/// A wheel that grows up to the limits of its [`WheelConfig`].
#[cfg(feature = "alloc")]
pub type GrowingWheel<T> = Wheel<T, Slab<T>>;

/// A wheel for at most `N` timers that never allocates.
pub type FixedWheel<T, const N: usize, const FAR: usize = N> = Wheel<T, Fixed<T, N, FAR>>;

/// Names one arming of one timer, for cancel and re-arm.
///
/// An id outlives its timer harmlessly: once the timer has fired or was cancelled, the id names
/// nothing, and it never comes to name another timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerId {
    pub(crate) slot: u32,
    pub(crate) shard: u32,
    pub(crate) generation: NonZeroU64,
}

const _: () = assert!(size_of::<TimerId>() == 16, "a key is two words");
const _: () = assert!(size_of::<Option<TimerId>>() == 16, "no room is lost to `Option`");

impl TimerId {
    /// The number of the shard that the timer lives in; 0 for a wheel that stands alone.
    #[must_use]
    pub const fn shard(self) -> u32 {
        self.shard
    }
}

/// The limits of a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WheelConfig {
    /// The tick at which the wheel stands at first.
    pub start: Tick,
    /// How many timers there may be.
    pub capacity: usize,
    /// How many of them may lie beyond the wheel's range of 2^20 ticks.
    pub overflow_capacity: usize,
    /// How many timers return from the overflow to the wheel at one tick. Those beyond it fire on
    /// time all the same, straight from the overflow.
    pub reinsertion_batch_limit: u32,
    /// The number that ids carry, so that an id of another wheel is not taken for one's own.
    pub shard: u32,
}

impl WheelConfig {
    /// A million timers, all of which may be far, from tick 0.
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
/// The [module](self) tells how it works and what it promises.
pub struct Wheel<T, S> {
    pub(crate) store: S,
    /// Where time stands. All before it has fired.
    elapsed: u64,
    /// The first tick that is not finished: `elapsed` while its timers are firing, else one more.
    /// What is due before it goes to the at-once list.
    open: u64,
    /// What is due before this goes to the wheel, what is due later to the overflow: the end of
    /// the range or the first deadline of the overflow, whichever is earlier (rule 3).
    near_end: u64,
    /// How many ticks the suspended cascade spans, from `elapsed` on; 0 if there is none.
    suspended_span: u64,
    occupancy: Occupancy,
    free: u32,
    /// Live timers of each class.
    len: [u32; 3],
    /// Where the search for somebody to evict goes on.
    eviction_cursor: u32,
    /// How many timers may still return from the overflow at this tick.
    reinsertions_left: u32,
    reinsertion_batch_limit: u32,
    shard: u32,
    /// The generation that was given last.
    generation: u64,
    /// The registration number that the overflow gave last.
    sequence: u64,
    values: PhantomData<T>,
}

#[cfg(feature = "alloc")]
impl<T> Wheel<T, Slab<T>> {
    /// An empty wheel that grows up to its limits.
    #[must_use]
    pub fn new(config: WheelConfig) -> Self {
        let store = Slab::new(config.capacity, config.overflow_capacity);
        let mut wheel = Self::with_store(store, config.start);
        wheel.reinsertion_batch_limit = config.reinsertion_batch_limit;
        wheel.shard = config.shard;
        wheel
    }
}

impl<T, const N: usize, const FAR: usize> Wheel<T, Fixed<T, N, FAR>> {
    /// An empty wheel that holds everything in itself. A `const fn`: it can be a static's value.
    #[must_use]
    pub const fn fixed(start: Tick) -> Self {
        Self::with_store(Fixed::new(), start)
    }
}

impl<T, S> Wheel<T, S> {
    pub(crate) const fn with_store(store: S, start: Tick) -> Self {
        let elapsed = start.get();
        Self {
            store,
            elapsed,
            open: elapsed.saturating_add(1),
            near_end: elapsed.saturating_add(RANGE),
            suspended_span: 0,
            occupancy: Occupancy::EMPTY,
            free: NO_SLOT,
            len: [0; 3],
            eviction_cursor: 0,
            reinsertions_left: 0,
            reinsertion_batch_limit: WheelConfig::DEFAULT.reinsertion_batch_limit,
            shard: 0,
            generation: 0,
            sequence: 0,
            values: PhantomData,
        }
    }

    /// The tick at which the wheel stands: nothing due before it is left in the slots.
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
        self.len[0] as usize + self.len[1] as usize + self.len[2] as usize
    }

    /// Whether no timer is armed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many timers of a class are armed.
    #[must_use]
    pub const fn len_of(&self, class: Class) -> usize {
        self.len[class.position()] as usize
    }
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// How many ticks ahead a timer may lie without being in the overflow.
    pub const RANGE: u64 = RANGE;

    /// How many timers there may be.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.store.slots_max() as usize
    }

    /// How many timers are in the overflow.
    #[must_use]
    pub fn overflow_len(&self) -> usize {
        self.store.far().len()
    }

    /// How many timers the overflow may hold.
    #[must_use]
    pub fn overflow_capacity(&self) -> usize {
        self.store.far_max()
    }

    /// How many slots of the wheel hold timers, for dumps.
    #[must_use]
    pub fn occupied_slots(&self) -> usize {
        self.occupancy.slots() as usize
    }

    /// Arms a timer of class [`Class::Normal`].
    ///
    /// A deadline that has passed is no error: the timer fires at the next
    /// [`advance`](Self::advance), and says how late it is.
    ///
    /// # Errors
    /// [`Full`], which holds the value, if the wheel or its overflow has no room.
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
    /// # Ok::<(), clockjack_time::Full<&str>>(())
    /// ```
    #[inline]
    pub fn insert(&mut self, deadline: Tick, value: T) -> Result<TimerId, Full<T>> {
        self.insert_class(deadline, Class::Normal, value)
    }

    /// Arms a timer of the given class; otherwise as [`insert`](Self::insert).
    ///
    /// # Errors
    /// [`Full`], which holds the value. Nobody is displaced: see
    /// [`insert_or_evict`](Self::insert_or_evict) for that.
    #[inline]
    pub fn insert_class(
        &mut self,
        deadline: Tick,
        class: Class,
        value: T,
    ) -> Result<TimerId, Full<T>> {
        let Some(index) = self.allocate() else { return Err(Full::store(value)) };
        if !self.link(index, deadline.get()) {
            self.release(index);
            return Err(Full::overflow(value));
        }
        self.store.put(index, self.column_due(deadline.get(), class), value);
        self.len[class.position()] += 1;
        let generation = self.next_generation();
        self.store.arm(index, generation);
        Ok(self.id(index, generation))
    }

    /// Disarms a timer and gives its value back: `None` if it has fired, was cancelled already, or
    /// is not of this wheel. All that the timer held is free again when this returns.
    #[inline]
    pub fn cancel(&mut self, id: TimerId) -> Option<T> {
        let index = self.index(id)?;
        if !self.store.claim(index, id.generation) {
            return None;
        }
        self.remove(index)
    }

    /// Moves an armed timer to another deadline, as a new registration: among equal deadlines it
    /// is the last. The old id names nothing from then on. `Ok(None)` if the timer has fired or
    /// was cancelled.
    ///
    /// # Errors
    /// [`Full`] if the new deadline lies in an overflow that has no room; the timer stays armed as
    /// it was, under its old id.
    pub fn rearm(&mut self, id: TimerId, deadline: Tick) -> Result<Option<TimerId>, Full<()>> {
        let Some(index) = self.index(id) else { return Ok(None) };
        if !self.store.is_armed(index, id.generation) {
            return Ok(None);
        }
        let deadline = deadline.get();
        let was_far = self.store.next(index) == IN_OVERFLOW;
        if !was_far && self.overflow_is_full_for(deadline) {
            return Err(Full::overflow(()));
        }
        let generation = self.next_generation();
        if !self.store.rearm(index, id.generation, generation) {
            return Ok(None);
        }
        let class = due_class(self.store.due(index)).unwrap_or_default();
        self.unlink(index);
        let linked = self.link(index, deadline);
        assert!(linked, "room in the overflow was made sure of before");
        self.store.set_due(index, self.column_due(deadline, class));
        Ok(Some(self.id(index, generation)))
    }

    /// Whether the timer is armed: not yet fired and not cancelled.
    #[must_use]
    pub fn contains(&self, id: TimerId) -> bool {
        self.index(id).is_some_and(|index| self.store.is_armed(index, id.generation))
    }

    /// A look at the value of an armed timer.
    #[must_use]
    pub fn get(&self, id: TimerId) -> Option<&T> {
        let index = self.index(id)?;
        if self.store.is_armed(index, id.generation) { self.store.value(index) } else { None }
    }

    /// A look at the value of an armed timer, to change it.
    #[must_use]
    pub fn get_mut(&mut self, id: TimerId) -> Option<&mut T> {
        let index = self.index(id)?;
        if self.store.is_armed(index, id.generation) { self.store.value_mut(index) } else { None }
    }

    /// When the host should call [`advance`](Self::advance) next; `None` if nothing is armed.
    ///
    /// Never later than the earliest deadline. It is that deadline exactly, unless the next slot
    /// that holds anything spans several ticks and has more than 64 timers: then it is where that
    /// slot begins, and the call after that is exact. While work is left over that a budget
    /// interrupted, it is the tick at which the wheel stands.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Tick> {
        if self.occupancy.has(AT_ONCE) || self.occupancy.has(SUSPENDED) {
            return Some(Tick::new(self.elapsed));
        }
        let in_wheel = self
            .occupancy
            .next(self.elapsed)
            .map(|event| if event.fires() { event.tick } else { self.earliest_in(event) });
        let far = overflow::first(&self.store).map(|far| far.deadline);
        let earliest = match (in_wheel, far) {
            (Some(near), Some(far)) => near.min(far),
            (near, far) => near.or(far)?,
        };
        Some(Tick::new(earliest))
    }

    /// Gives the memory of an empty wheel back; does nothing while a timer is armed.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.store.reset();
            self.free = NO_SLOT;
            self.eviction_cursor = 0;
        }
    }

    fn overflow_is_full_for(&self, deadline: u64) -> bool {
        let is_far = deadline >= self.near_end && deadline >= self.open;
        is_far && self.store.far().len() == self.store.far_max()
    }

    fn store_is_full(&self) -> bool {
        self.free == NO_SLOT && self.store.slots() == self.store.slots_max()
    }

    fn earliest_in(&self, event: level::Event) -> u64 {
        let mut earliest = u64::MAX;
        let mut index = self.store.next(event.head);
        for _ in 0..DEADLINE_SCAN_MAX {
            if index == event.head {
                return earliest;
            }
            earliest = earliest.min(store::due_ahead(self.store.due(index), event.tick));
            index = self.store.next(index);
        }
        if index == event.head { earliest } else { event.tick }
    }

    #[inline(always)]
    pub(crate) fn index(&self, id: TimerId) -> Option<u32> {
        if id.shard != self.shard || id.slot >= self.store.slots() {
            return None;
        }
        index_of(id.slot)
    }

    #[inline(always)]
    pub(crate) const fn id(&self, index: u32, generation: Generation) -> TimerId {
        TimerId { slot: index - HEADS, shard: self.shard, generation }
    }

    #[inline(always)]
    pub(crate) fn next_generation(&mut self) -> Generation {
        self.generation =
            if self.generation == store::GENERATION_MAX { 1 } else { self.generation + 1 };
        Generation::new(self.generation).unwrap_or(Generation::MIN)
    }

    #[inline(always)]
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        let index = self.free;
        if index != NO_SLOT {
            self.free = self.store.next(index);
            return Some(index);
        }
        if self.store.add_slot() { Some(HEADS + self.store.slots() - 1) } else { None }
    }

    #[inline(always)]
    pub(crate) fn release(&mut self, index: u32) {
        self.store.set_next(index, self.free);
        self.free = index;
    }

    /// What the deadline column of a timer says. A past deadline is remembered as far back as the
    /// column reaches.
    #[inline(always)]
    fn column_due(&self, deadline: u64, class: Class) -> u32 {
        pack_due(class, deadline.max(self.elapsed.saturating_sub(DUE_MASK)))
    }

    /// Puts a timer where its deadline belongs, behind all that are there for the same tick.
    /// False if that is the overflow and it is full.
    #[inline(always)]
    fn link(&mut self, index: u32, deadline: u64) -> bool {
        let head = if deadline < self.open {
            AT_ONCE
        } else if deadline >= self.near_end {
            return self.link_far(index, deadline);
        } else {
            self.head_for(deadline)
        };
        self.append(head, index);
        true
    }

    /// The list for a deadline that is in range and not past.
    #[inline(always)]
    fn head_for(&self, deadline: u64) -> u32 {
        if deadline - self.elapsed < self.suspended_span {
            return SUSPENDED;
        }
        level::place(deadline, self.elapsed)
    }

    #[cold]
    fn link_far(&mut self, index: u32, deadline: u64) -> bool {
        let entry = Far { deadline, sequence: self.sequence, index };
        if !overflow::push(&mut self.store, entry) {
            return false;
        }
        self.sequence += 1;
        self.near_end = self.near_end.min(deadline);
        true
    }

    #[inline(always)]
    pub(crate) fn append(&mut self, head: u32, index: u32) {
        let last = self.store.prev(head);
        self.store.set_next(last, index);
        self.store.set_prev(index, last);
        self.store.set_next(index, head);
        self.store.set_prev(head, index);
        self.occupancy.set(head);
    }

    /// Takes a timer out of whatever list it is in, without asking which.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, index: u32) {
        let next = self.store.next(index);
        if next == IN_OVERFLOW {
            overflow::remove(&mut self.store, index);
            self.set_near_end();
            return;
        }
        let prev = self.store.prev(index);
        self.store.set_next(prev, next);
        self.store.set_prev(next, prev);
        if prev == next && prev < HEADS {
            self.list_became_empty(prev);
        }
    }

    #[inline(always)]
    fn list_became_empty(&mut self, head: u32) {
        self.occupancy.clear(head);
        if head == SUSPENDED {
            self.suspended_span = 0;
        }
    }

    fn set_near_end(&mut self) {
        let range_end = self.elapsed.saturating_add(RANGE);
        self.near_end =
            overflow::first(&self.store).map_or(range_end, |far| range_end.min(far.deadline));
    }

    /// Frees everything of a timer whose arming the caller has decided.
    #[inline(always)]
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        self.unlink(index);
        self.vacate(index)
    }

    /// Frees the slot of a timer that is in no list.
    #[inline(always)]
    pub(crate) fn vacate(&mut self, index: u32) -> Option<T> {
        if let Some(class) = due_class(self.store.due(index)) {
            self.len[class.position()] -= 1;
        }
        let value = self.store.take(index);
        self.store.disarm(index);
        self.release(index);
        value
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
