//! A wheel next to a sorted map, which is its oracle. Random steps and the bytes of a fuzzer drive
//! both.

use alloc::collections::{BTreeMap, VecDeque};

use clockjack_time::{Storage, Tick, TimerId, Wheel};

/// Where the clock starts: just below each border that was a bug in another project.
pub(crate) const STARTS: [u64; 8] = [
    0,
    (1 << 20) - 70,
    (1 << 30) - 70,
    (1 << 32) - 70,
    (1 << 36) - 70,
    (1 << 63) - 70,
    u64::MAX - (1 << 21),
    u64::MAX - 3000,
];

/// The expected behaviour of the wheel, as simple as possible.
#[derive(Default)]
pub(crate) struct Model {
    at_once: VecDeque<(u64, u64)>,
    timers: BTreeMap<(u64, u64), ()>,
    /// Of each live timer: its id, its deadline, its registration number.
    pub(crate) live: Vec<(TimerId, u64, u64)>,
    pub(crate) dead: Vec<TimerId>,
    registered: u64,
}

/// The tick of the wheel when a timer is armed.
struct At {
    elapsed: u64,
    open: u64,
}

impl Model {
    fn arm(&mut self, id: TimerId, deadline: u64, at: At) -> u64 {
        self.registered += 1;
        let number = self.registered;
        if deadline < at.open {
            // A past deadline is remembered for less than 2^30 ticks.
            let deadline = deadline.max(at.elapsed.saturating_sub((1 << 30) - 1));
            self.at_once.push_back((deadline, number));
        } else {
            self.timers.insert((deadline, number), ());
        }
        self.live.push((id, deadline, number));
        number
    }

    fn forget(&mut self, nth: usize) -> (TimerId, u64) {
        let (id, deadline, number) = self.live.swap_remove(nth);
        self.timers.remove(&(deadline, number));
        self.at_once.retain(|(_, other)| *other != number);
        self.dead.push(id);
        (id, number)
    }

    /// The timer that must fire next if time is `to`.
    fn next_due(&mut self, to: u64) -> Option<(u64, u64)> {
        if let Some(first) = self.at_once.pop_front() {
            return Some(first);
        }
        let (&(deadline, number), ()) = self.timers.first_key_value()?;
        if deadline > to {
            return None;
        }
        self.timers.pop_first();
        Some((deadline, number))
    }

    pub(crate) fn earliest(&self) -> Option<u64> {
        let past = self.at_once.iter().map(|(deadline, _)| *deadline).min();
        past.or_else(|| self.timers.first_key_value().map(|((deadline, _), ())| *deadline))
    }
}

/// A wheel, and what it must do.
pub(crate) struct Pair<S> {
    pub(crate) wheel: Wheel<u64, S>,
    pub(crate) model: Model,
    pub(crate) now: u64,
}

impl<S: Storage<u64>> Pair<S> {
    pub(crate) fn new(wheel: Wheel<u64, S>) -> Self {
        let now = wheel.elapsed().get();
        Self { wheel, model: Model::default(), now }
    }

    fn at(&self) -> At {
        At { elapsed: self.wheel.elapsed().get(), open: self.wheel.open_tick().get() }
    }

    pub(crate) fn insert(&mut self, deadline: u64) {
        let at = self.at();
        let number = self.model.registered + 1;
        let was_full = self.wheel.len() == self.wheel.capacity();
        match self.wheel.insert(Tick::new(deadline), number) {
            Ok(id) => {
                assert!(!was_full, "a full wheel took a timer");
                assert!(!self.model.dead.contains(&id), "an id was reused");
                assert_eq!(self.model.arm(id, deadline, at), number);
            }
            Err(refused) => {
                assert!(was_full, "refused although there was room: {refused}");
                assert_eq!(refused.into_inner(), number, "the error contains the refused value");
            }
        }
    }

    pub(crate) fn cancel(&mut self, nth: usize) {
        if self.model.live.is_empty() {
            return;
        }
        let (id, number) = self.model.forget(nth % self.model.live.len());
        assert!(self.wheel.contains(id));
        assert_eq!(self.wheel.get(id), Some(&number));
        assert_eq!(self.wheel.cancel(id), Some(number));
        assert_eq!(self.wheel.cancel(id), None, "a second cancel finds nothing");
    }

    pub(crate) fn rearm(&mut self, nth: usize, deadline: u64) {
        if self.model.live.is_empty() {
            return;
        }
        let nth = nth % self.model.live.len();
        let at = self.at();
        let (old, value) = self.model.forget(nth);
        let new = self.wheel.rearm(old, Tick::new(deadline)).expect("room").expect("armed");
        let number = self.model.arm(new, deadline, at);
        // The value stays what it was; the registration is new.
        assert_eq!(self.wheel.cancel(old), None, "the old id names nothing");
        *self.wheel.get_mut(new).expect("armed again") = number;
        assert_ne!(number, value);
    }

    pub(crate) fn advance(&mut self, to: u64, budget: usize) {
        self.now = self.now.max(to);
        let mut left = budget;
        let mut due = self.wheel.advance(Tick::new(to), budget);
        let mut fired = Vec::new();
        for timer in due.by_ref() {
            assert!(left > 0, "more timers than the budget allows");
            left -= 1;
            assert!(timer.deadline.get() <= self.now, "early by {:?}", timer);
            assert_eq!(timer.late().get(), timer.now.get() - timer.deadline.get());
            let expected = self.model.next_due(self.now);
            assert_eq!(Some((timer.deadline.get(), timer.value)), expected);
            fired.push(timer.id);
        }
        let more = due.more();
        for id in fired {
            self.model.live.retain(|(other, ..)| *other != id);
            self.model.dead.push(id);
            assert_eq!(self.wheel.cancel(id), None, "a fired timer cannot be cancelled");
        }
        if !more {
            let left = self.model.earliest();
            assert!(
                left.is_none_or(|d| d > self.now),
                "{left:?} is due at {} and was kept",
                self.now
            );
        }
    }

    /// In the end everything fires, in order, and nothing is left.
    pub(crate) fn finish(&mut self) {
        self.advance(u64::MAX, usize::MAX);
        assert!(self.wheel.is_empty() && self.model.live.is_empty(), "something never fires");
        assert_eq!(self.wheel.overflow_len(), 0);
        assert_eq!(self.wheel.occupied_slots(), 0);
    }
}
