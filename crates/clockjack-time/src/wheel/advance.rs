//! Advancing time: yields the due timers, in order, within a budget.
//!
//! One unit of the budget pays for one timer that fires, moves down a level, or returns from the
//! overflow. Wherever the budget ends, the wheel is consistent: an interrupted cascade stays in its
//! own list, the tick whose timers are firing stays open, and new timers queue up behind older
//! ones.

use clockjack_sync::prefetch;

use super::{
    Storage, TimerId, Wheel,
    level::{self, ALREADY_DUE, RANGE, SLOTS},
    list::Lists,
    overflow,
    store::{ListEntry, Location},
};
use crate::{Tick, TickSpan};

/// A timer that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    /// Its id, which refers to nothing any more.
    pub id: TimerId,
    /// When it was due. For a timer that was armed past its deadline this goes back at most 2^30
    /// ticks.
    pub deadline: Tick,
    /// The time up to which the wheel was advanced.
    pub now: Tick,
    /// The value that it was armed with.
    pub value: T,
}

impl<T> Expired<T> {
    /// How long after its deadline the timer fired: never negative.
    #[must_use]
    pub fn late(&self) -> TickSpan {
        self.now.checked_since(self.deadline).unwrap_or(TickSpan::ZERO)
    }
}

/// The timers that are due up to a tick, in order; made by [`Wheel::advance`].
///
/// Time moves as the iterator is drained. If it is dropped early, time stops there, and the next
/// call yields the rest.
#[derive(Debug)]
#[must_use = "time moves only as this is drained"]
pub struct Advance<'w, T, S> {
    wheel: &'w mut Wheel<T, S>,
    to: u64,
    budget: usize,
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// Moves time to `to` and yields the due timers, in order of deadline and registration.
    ///
    /// Does at most `budget` units of work: timers that fire and timers that move inside the wheel.
    /// If the budget ended, [`Advance::more`] reports that, and the next call continues there;
    /// nothing is skipped and the order is kept. A `to` before [`elapsed`](Self::elapsed) counts as
    /// `elapsed`.
    ///
    /// # Examples
    /// ```
    /// use clockjack_time::{FixedWheel, Tick};
    ///
    /// let mut wheel = FixedWheel::<&str, 8>::fixed(Tick::ZERO);
    /// for (deadline, name) in [(30, "c"), (10, "a"), (10, "b")] {
    ///     wheel.insert(Tick::new(deadline), name)?;
    /// }
    /// let mut due = wheel.advance(Tick::new(29), 100);
    /// assert_eq!(due.by_ref().map(|timer| timer.value).collect::<Vec<_>>(), ["a", "b"]);
    /// assert!(!due.more());
    /// assert_eq!(wheel.next_deadline(), Some(Tick::new(30)));
    /// # Ok::<(), clockjack_time::InsertError<&str>>(())
    /// ```
    pub fn advance(&mut self, to: Tick, budget: usize) -> Advance<'_, T, S> {
        let to = to.get().max(self.elapsed);
        self.lists.free_empty_chunks(&mut self.store);
        Advance { wheel: self, to, budget }
    }

    /// Whether an advance to `to` would have anything to do besides changing `elapsed`.
    fn has_work(&self, to: u64) -> bool {
        self.lists.occupancy.has(ALREADY_DUE)
            || self.is_suspended()
            || self.lists.occupancy.next(self.elapsed).is_some_and(|event| event.tick <= to)
            || overflow::first(&self.store).is_some_and(|entry| entry.deadline <= to)
    }

    /// Moves `elapsed` to a tick whose slots are empty or are handled at once by the caller.
    #[inline(always)]
    fn enter(&mut self, tick: u64) {
        debug_assert!(tick >= self.elapsed, "time went back from {} to {tick}", self.elapsed);
        if tick != self.elapsed {
            self.elapsed = tick;
            self.reinsertions_left = self.reinsertion_batch_limit;
        }
        self.open = tick;
        self.update_in_range_len();
    }

    /// Moves timers that have come into range from the overflow to the wheel, at most as many as
    /// allowed per tick. Only between cascades, so that none of them overtakes a timer in a slot.
    #[inline(always)]
    fn reinsert(&mut self, budget: &mut usize) {
        if self.store.overflow().is_empty() || self.reinsertions_left == 0 {
            return;
        }
        self.reinsert_some(budget);
    }

    fn reinsert_some(&mut self, budget: &mut usize) {
        while self.reinsertions_left > 0 && *budget > 0 {
            let Some(entry) = overflow::first(&self.store) else { break };
            if entry.deadline - self.elapsed >= RANGE {
                break;
            }
            overflow::pop(&mut self.store);
            let list = level::list_for(entry.deadline, self.elapsed);
            let listed = ListEntry::new(entry.timer, entry.priority, entry.deadline);
            let location = self.lists.append(&mut self.store, list, listed);
            self.store.set_location(entry.timer, location);
            self.reinsertions_left -= 1;
            *budget -= 1;
        }
        self.update_in_range_len();
    }

    /// Moves the entries of the slot that time has entered to finer slots, as far as the budget
    /// goes.
    #[inline(always)]
    fn cascade(&mut self, budget: &mut usize) {
        let elapsed = self.elapsed;
        let location = |lists: &mut Lists, store: &mut S, entry: ListEntry| {
            let list = level::list_for(entry.ahead(elapsed), elapsed);
            let location = lists.append(store, list, entry);
            store.set_location(entry.timer(), location);
        };
        while *budget > 0 {
            let moved = self.lists.pop_chunk(&mut self.store, self.suspended, *budget, location);
            *budget -= moved;
            if moved == 0 {
                let Some(entry) = self.lists.pop(&mut self.store, self.suspended) else {
                    self.suspended_span = 0;
                    return;
                };
                location(&mut self.lists, &mut self.store, entry);
                *budget -= 1;
            }
        }
    }

    /// Fires the first timer of a list. `None` if another thread had cancelled it.
    #[inline(always)]
    fn fire_first(&mut self, list: u32, to: u64) -> Option<Expired<T>> {
        let entry = self.lists.pop(&mut self.store, list)?;
        let deadline = if list == ALREADY_DUE { entry.behind(self.elapsed) } else { self.elapsed };
        self.finish(entry.timer(), entry.priority_code(), deadline, to)
    }

    /// Fires a timer that is in no list any more.
    #[inline(always)]
    fn finish(
        &mut self,
        timer: u32,
        priority_code: u32,
        deadline: u64,
        to: u64,
    ) -> Option<Expired<T>> {
        let Some((generation, value)) = self.store.fire(timer) else {
            self.detach(timer, priority_code);
            return None;
        };
        self.free(timer, priority_code);
        let id = self.id(timer, generation);
        Some(Expired { id, deadline: Tick::new(deadline), now: Tick::new(to), value })
    }

    /// Keeps a timer that another thread has cancelled out of all lists until its slot is returned.
    #[cold]
    fn detach(&mut self, timer: u32, priority_code: u32) {
        self.uncount(priority_code);
        self.store.set_location(timer, Location::DETACHED);
    }

    #[inline(always)]
    fn current_slot(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "masked to six bits")]
        let slot = (self.elapsed & u64::from(SLOTS - 1)) as u32;
        slot
    }
}

impl<T, S: Storage<T>> Iterator for Advance<'_, T, S> {
    type Item = Expired<T>;

    #[inline]
    fn next(&mut self) -> Option<Expired<T>> {
        loop {
            if self.budget == 0 {
                return None;
            }
            let wheel = &mut *self.wheel;
            // The most common case: one more timer of the tick that is firing.
            let slot = wheel.current_slot();
            if wheel.open == wheel.elapsed
                && wheel.lists.occupancy.has(slot)
                && !wheel.lists.occupancy.has(ALREADY_DUE)
                && wheel.suspended_span == 0
            {
                self.budget -= 1;
                if let Some(expired) = wheel.fire_first(slot, self.to) {
                    return Some(expired);
                }
                continue;
            }
            if wheel.lists.occupancy.has(ALREADY_DUE) {
                self.budget -= 1;
                if let Some(expired) = wheel.fire_first(ALREADY_DUE, self.to) {
                    return Some(expired);
                }
                continue;
            }
            if wheel.suspended_span != 0 {
                wheel.cascade(&mut self.budget);
                continue;
            }
            wheel.reinsert(&mut self.budget);
            match self.go_to_next_event() {
                Progress::Moved => {}
                Progress::Fired(expired) => return Some(expired),
                Progress::Done => return None,
            }
        }
    }
}

enum Progress<T> {
    Moved,
    Fired(Expired<T>),
    Done,
}

impl<T, S: Storage<T>> Advance<'_, T, S> {
    /// Whether the budget ended before the work did. Then call [`Wheel::advance`] again before
    /// sleeping.
    #[must_use]
    pub fn more(&self) -> bool {
        self.budget == 0 && self.wheel.has_work(self.to)
    }

    /// Prefetches about thirty of the timers that fire or move down a level next, so that their
    /// cache misses overlap. For callers with many timers per tick.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self) {
        if !prefetch::IS_SUPPORTED {
            return;
        }
        let wheel = &*self.wheel;
        let list = if wheel.suspended_span != 0 {
            wheel.suspended
        } else {
            match wheel.lists.occupancy.next(wheel.elapsed) {
                Some(event) if event.tick <= self.to => event.list,
                _ => return,
            }
        };
        wheel.lists.prefetch(&wheel.store, list);
    }

    /// Moves `elapsed` to the next slot or overflow entry that is due, or to the end.
    #[inline]
    fn go_to_next_event(&mut self) -> Progress<T> {
        let wheel = &mut *self.wheel;
        let overflow_first = overflow::first(&wheel.store)
            .map_or(u64::MAX, |overflow_first| overflow_first.deadline);
        if let Some(event) = wheel.lists.occupancy.next(wheel.elapsed)
            && event.tick <= self.to
            && event.tick <= overflow_first
        {
            wheel.enter(event.tick);
            if !event.fires() {
                wheel.suspended = event.list;
                wheel.suspended_span = level::span(event.list);
            }
            return Progress::Moved;
        }
        if overflow_first <= self.to && !wheel.store.overflow().is_empty() {
            return self.fire_from_overflow();
        }
        wheel.enter(self.to);
        wheel.open = self.to.saturating_add(1);
        wheel.update_in_range_len();
        wheel.reinsert(&mut self.budget);
        Progress::Done
    }

    /// Fires a timer directly from the overflow that could not return to the wheel in time.
    fn fire_from_overflow(&mut self) -> Progress<T> {
        let wheel = &mut *self.wheel;
        let Some(entry) = overflow::pop(&mut wheel.store) else { return Progress::Done };
        wheel.enter(entry.deadline);
        wheel.update_in_range_len();
        self.budget = self.budget.saturating_sub(1);
        match wheel.finish(entry.timer, entry.priority.code(), entry.deadline, self.to) {
            Some(expired) => Progress::Fired(expired),
            None => Progress::Moved,
        }
    }
}
