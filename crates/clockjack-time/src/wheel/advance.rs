//! Moving time: what falls due, in order, within a budget.
//!
//! One unit of the budget pays for one timer fired, moved down a level, or brought back from the
//! overflow. Wherever the budget ends, the wheel is whole: a half-done cascade waits in its own
//! list, the tick whose timers are firing stays open, and new timers queue up behind those that
//! were there before them.

use clockjack_sync::mutant;

use super::{
    Storage, TimerId, Wheel,
    level::{self, ALREADY_DUE, RANGE, SLOTS},
    list::Lists,
    overflow,
    record::TimerEntry,
    store::{ListEntry, Location},
};
use crate::{Tick, TickSpan};

/// A timer that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired<T> {
    /// Its id, which names nothing any more.
    pub id: TimerId,
    /// When it was due. For a timer that was armed past its deadline this goes back 2^30 ticks at
    /// the most.
    pub deadline: Tick,
    /// The time up to which the wheel was advanced.
    pub now: Tick,
    /// What it was armed with.
    pub value: T,
}

impl<T> Expired<T> {
    /// How long after its deadline the timer fired: never negative.
    #[must_use]
    pub fn late(&self) -> TickSpan {
        self.now.checked_since(self.deadline).unwrap_or(TickSpan::ZERO)
    }
}

/// The timers that fall due up to a tick, in order; made by [`Wheel::advance`].
///
/// Time moves as the iterator is drained. To drop it early is to stop there: the rest comes at the
/// next call.
#[derive(Debug)]
#[must_use = "time moves only as this is drained"]
pub struct Advance<'w, T, S> {
    wheel: &'w mut Wheel<T, S>,
    to: u64,
    budget: usize,
}

impl<T, S: Storage<T>> Wheel<T, S> {
    /// Moves time to `to` and yields what fell due, in order of deadline and registration.
    ///
    /// Does at most `budget` units of work: timers fired and timers moved inside the wheel. If it
    /// ended there, [`Advance::more`] says so, and the next call goes on where this one stopped;
    /// nothing is skipped and no order is lost. A `to` that lies before [`elapsed`](Self::elapsed)
    /// counts as `elapsed`.
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
    /// # Ok::<(), clockjack_time::Full<&str>>(())
    /// ```
    pub fn advance(&mut self, to: Tick, budget: usize) -> Advance<'_, T, S> {
        let to = to.get().max(self.elapsed);
        self.lists.free_empty_chunks(&mut self.store);
        Advance { wheel: self, to, budget }
    }

    /// Whether an advance to `to` would have anything to do besides moving the clock hand.
    fn has_work(&self, to: u64) -> bool {
        self.lists.occupancy.has(ALREADY_DUE)
            || self.is_suspended()
            || self.lists.occupancy.next(self.elapsed).is_some_and(|event| event.tick <= to)
            || overflow::first(&self.store).is_some_and(|entry| entry.deadline <= to)
    }

    /// Moves the hand to a tick whose slots are empty or are dealt with at once by the caller.
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

    /// Brings timers that have come into range back from the overflow, at most as many as this
    /// tick may. Only between cascades, so that none of them overtakes one that is in a slot.
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

    /// Deals the entries of the slot that time has entered out to finer slots, as far as the
    /// budget goes.
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

    /// Decides and takes out the first timer of a list. `None` if somebody else had cancelled it.
    #[inline(always)]
    fn fire_first(&mut self, list: u32, to: u64) -> Option<Expired<T>> {
        let entry = self.lists.pop(&mut self.store, list)?;
        let deadline = if list == ALREADY_DUE { entry.behind(self.elapsed) } else { self.elapsed };
        self.finish(entry.timer(), entry.priority_code(), deadline, to)
    }

    /// Decides a timer that is in no list any more.
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

    /// Leaves a timer that somebody else has cancelled out of all lists until it is returned.
    #[cold]
    fn detach(&mut self, timer: u32, priority_code: u32) {
        self.uncount(priority_code);
        if mutant!("shard_frees_before_return") {
            drop(self.store.entry_mut(timer).and_then(TimerEntry::take));
            return self.store.give_slot(timer);
        }
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
            // Most often: one more of the tick that is firing.
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

    /// Moves the hand to the next slot or overflow entry that is due, or to the end.
    #[inline]
    fn go_to_next_event(&mut self) -> Progress<T> {
        let wheel = &mut *self.wheel;
        let overflow_first = overflow::first(&wheel.store)
            .map_or(u64::MAX, |overflow_first| overflow_first.deadline);
        if let Some(event) = wheel.lists.occupancy.next(wheel.elapsed)
            && event.tick <= self.to + u64::from(mutant!("wheel_early"))
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

    /// Fires straight from the overflow a timer that could not be brought back in time.
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
