//! Moving time: what falls due, in order, within a budget.
//!
//! One unit of the budget pays for one timer fired, moved down a level, or brought back from the
//! overflow. Wherever the budget ends, the wheel is whole: a half-done cascade waits in its own
//! list, the tick whose timers are firing stays open, and new timers queue up behind those that
//! were there before them.

use clockjack_sync::mutant;

use super::{
    Storage, TimerId, Wheel,
    level::{self, AT_ONCE, RANGE, SLOTS},
    list::Lists,
    overflow,
    record::Seat,
    store::{Entry, Place},
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
        self.lists.tidy(&mut self.store);
        Advance { wheel: self, to, budget }
    }

    /// Whether an advance to `to` would have anything to do besides moving the clock hand.
    fn has_work(&self, to: u64) -> bool {
        self.lists.occupancy.has(AT_ONCE)
            || self.is_suspended()
            || self.lists.occupancy.next(self.elapsed).is_some_and(|event| event.tick <= to)
            || overflow::first(&self.store).is_some_and(|far| far.deadline <= to)
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
        self.set_near_len();
    }

    /// Brings timers that have come into range back from the overflow, at most as many as this
    /// tick may. Only between cascades, so that none of them overtakes one that is in a slot.
    #[inline(always)]
    fn reinsert(&mut self, budget: &mut usize) {
        if self.store.far().is_empty() || self.reinsertions_left == 0 {
            return;
        }
        self.reinsert_some(budget);
    }

    fn reinsert_some(&mut self, budget: &mut usize) {
        while self.reinsertions_left > 0 && *budget > 0 {
            let Some(far) = overflow::first(&self.store) else { break };
            if far.deadline - self.elapsed >= RANGE {
                break;
            }
            overflow::pop(&mut self.store);
            let list = level::place(far.deadline, self.elapsed);
            let entry = Entry::new(far.timer, far.class, far.deadline);
            let place = self.lists.append(&mut self.store, list, entry);
            self.store.set_place(far.timer, place);
            self.reinsertions_left -= 1;
            *budget -= 1;
        }
        self.set_near_len();
    }

    /// Deals the entries of the slot that time has entered out to finer slots, as far as the
    /// budget goes.
    #[inline(always)]
    fn cascade(&mut self, budget: &mut usize) {
        let elapsed = self.elapsed;
        let place = |lists: &mut Lists, store: &mut S, entry: Entry| {
            let list = level::place(entry.ahead(elapsed), elapsed);
            let place = lists.append(store, list, entry);
            store.set_place(entry.timer(), place);
        };
        while *budget > 0 {
            let moved = self.lists.pop_chunk(&mut self.store, self.suspended, *budget, place);
            *budget -= moved;
            if moved == 0 {
                let Some(entry) = self.lists.pop(&mut self.store, self.suspended) else {
                    self.suspended_span = 0;
                    return;
                };
                place(&mut self.lists, &mut self.store, entry);
                *budget -= 1;
            }
        }
    }

    /// Decides and takes out the first timer of a list. `None` if somebody else had cancelled it.
    #[inline(always)]
    fn fire_first(&mut self, list: u32, to: u64) -> Option<Expired<T>> {
        let entry = self.lists.pop(&mut self.store, list)?;
        let deadline = if list == AT_ONCE { entry.behind(self.elapsed) } else { self.elapsed };
        self.finish(entry.timer(), entry.class_code(), deadline, to)
    }

    /// Decides a timer that is in no list any more.
    #[inline(always)]
    fn finish(
        &mut self,
        timer: u32,
        class_code: u32,
        deadline: u64,
        to: u64,
    ) -> Option<Expired<T>> {
        let Some((generation, value)) = self.store.fire(timer) else {
            self.detach(timer, class_code);
            return None;
        };
        self.free(timer, class_code);
        let id = self.id(timer, generation);
        Some(Expired { id, deadline: Tick::new(deadline), now: Tick::new(to), value })
    }

    /// Leaves a timer that somebody else has cancelled out of all lists until it is returned.
    #[cold]
    fn detach(&mut self, timer: u32, class_code: u32) {
        self.uncount(class_code);
        if mutant!("shard_frees_before_return") {
            drop(self.store.seat_mut(timer).and_then(Seat::take));
            return self.store.give_slot(timer);
        }
        self.store.set_place(timer, Place::DETACHED);
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
                && !wheel.lists.occupancy.has(AT_ONCE)
                && wheel.suspended_span == 0
            {
                self.budget -= 1;
                if let Some(expired) = wheel.fire_first(slot, self.to) {
                    return Some(expired);
                }
                continue;
            }
            if wheel.lists.occupancy.has(AT_ONCE) {
                self.budget -= 1;
                if let Some(expired) = wheel.fire_first(AT_ONCE, self.to) {
                    return Some(expired);
                }
                continue;
            }
            if wheel.suspended_span != 0 {
                wheel.cascade(&mut self.budget);
                continue;
            }
            wheel.reinsert(&mut self.budget);
            match self.turn() {
                Turn::Moved => {}
                Turn::Fired(expired) => return Some(expired),
                Turn::Done => return None,
            }
        }
    }
}

enum Turn<T> {
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
    fn turn(&mut self) -> Turn<T> {
        let wheel = &mut *self.wheel;
        let far = overflow::first(&wheel.store).map_or(u64::MAX, |far| far.deadline);
        if let Some(event) = wheel.lists.occupancy.next(wheel.elapsed)
            && event.tick <= self.to + u64::from(mutant!("wheel_early"))
            && event.tick <= far
        {
            wheel.enter(event.tick);
            if !event.fires() {
                wheel.suspended = event.list;
                wheel.suspended_span = level::span(event.list);
            }
            return Turn::Moved;
        }
        if far <= self.to && !wheel.store.far().is_empty() {
            return self.fire_far();
        }
        wheel.enter(self.to);
        wheel.open = self.to.saturating_add(1);
        wheel.set_near_len();
        wheel.reinsert(&mut self.budget);
        Turn::Done
    }

    /// Fires straight from the overflow a timer that could not be brought back in time.
    fn fire_far(&mut self) -> Turn<T> {
        let wheel = &mut *self.wheel;
        let Some(far) = overflow::pop(&mut wheel.store) else { return Turn::Done };
        wheel.enter(far.deadline);
        wheel.set_near_len();
        self.budget = self.budget.saturating_sub(1);
        match wheel.finish(far.timer, far.class.code(), far.deadline, self.to) {
            Some(expired) => Turn::Fired(expired),
            None => Turn::Moved,
        }
    }
}
