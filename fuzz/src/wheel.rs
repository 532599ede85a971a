//! The timer wheel, against a sorted map.

use std::collections::{BTreeSet, VecDeque};

use clockjack_time::{Fixed, Slab, Storage, Tick, TimerId, Wheel, WheelConfig};

use crate::input::Input;

/// Where the clock starts: just below each border that has been somebody's bug.
const STARTS: [u64; 8] = [
    0,
    (1 << 20) - 70,
    (1 << 30) - 70,
    (1 << 32) - 70,
    (1 << 36) - 70,
    (1 << 63) - 70,
    u64::MAX - (1 << 21),
    u64::MAX - 3000,
];
/// How many past ticks a wheel remembers.
const PAST_MAX: u64 = (1 << 30) - 1;

/// Arms, cancels and advances. Every timer fires once, not early, in the order of deadline and
/// arming, unless it was cancelled; a full wheel gives the value back.
pub fn wheel(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let start = Tick::new(STARTS[input.below(STARTS.len())]);
    if input.below(2) == 0 {
        let limit = [0, 1, 3, 100][input.below(4)];
        let config = WheelConfig { start, reinsertion_batch_limit: limit, ..WheelConfig::DEFAULT };
        run(Wheel::<u64, Slab<u64>>::new(config), &mut input);
    } else {
        run(Wheel::<u64, Fixed<u64, 20>>::fixed(start), &mut input);
    }
}

fn run<S: Storage<u64>>(wheel: Wheel<u64, S>, input: &mut Input<'_>) {
    let now = wheel.elapsed().get();
    let mut pair = Pair { wheel, now, model: Model::default() };
    while !input.is_empty() {
        match input.below(5) {
            0 | 1 => pair.insert(pair.now.saturating_add(input.number())),
            2 => pair.insert(pair.now.saturating_sub(input.number())),
            3 => pair.cancel(input.below(256)),
            _ => {
                let to = pair.now.saturating_add(input.number());
                pair.advance(to, 1 + input.below(64));
            }
        }
        assert_eq!(pair.wheel.len(), pair.model.live.len());
    }
    pair.advance(u64::MAX, usize::MAX);
    assert!(pair.wheel.is_empty() && pair.model.live.is_empty(), "something never fires");
}

/// What the wheel must do, in the plainest way.
#[derive(Default)]
struct Model {
    /// What had passed when it came, in the order of its coming.
    at_once: VecDeque<(u64, u64)>,
    /// Deadline and number of the others.
    waiting: BTreeSet<(u64, u64)>,
    live: Vec<(TimerId, u64, u64)>,
    armed: u64,
}

impl Model {
    /// The timer that must fire next if time is `to`.
    fn next_due(&mut self, to: u64) -> Option<(u64, u64)> {
        if let Some(first) = self.at_once.pop_front() {
            return Some(first);
        }
        let first = *self.waiting.first()?;
        (first.0 <= to && self.waiting.remove(&first)).then_some(first)
    }
}

struct Pair<S> {
    wheel: Wheel<u64, S>,
    now: u64,
    model: Model,
}

impl<S: Storage<u64>> Pair<S> {
    fn insert(&mut self, deadline: u64) {
        let (elapsed, open) = (self.wheel.elapsed().get(), self.wheel.open_tick().get());
        let number = self.model.armed + 1;
        let is_full = self.wheel.len() == self.wheel.capacity();
        match self.wheel.insert(Tick::new(deadline), number) {
            Ok(id) => {
                assert!(!is_full, "a full wheel took a timer");
                self.model.armed = number;
                if deadline < open {
                    let told = deadline.max(elapsed.saturating_sub(PAST_MAX));
                    self.model.at_once.push_back((told, number));
                    self.model.live.push((id, told, number));
                } else {
                    self.model.waiting.insert((deadline, number));
                    self.model.live.push((id, deadline, number));
                }
            }
            Err(refused) => {
                assert!(is_full, "refused although there was room: {refused}");
                assert_eq!(refused.into_inner(), number, "the refused value comes back");
            }
        }
    }

    fn cancel(&mut self, nth: usize) {
        if self.model.live.is_empty() {
            return;
        }
        let nth = nth % self.model.live.len();
        let (id, deadline, number) = self.model.live.swap_remove(nth);
        self.model.waiting.remove(&(deadline, number));
        self.model.at_once.retain(|(_, other)| *other != number);
        assert_eq!(self.wheel.cancel(id), Some(number));
        assert_eq!(self.wheel.cancel(id), None, "a second cancel finds nothing");
    }

    fn advance(&mut self, to: u64, budget: usize) {
        self.now = self.now.max(to);
        let mut due = self.wheel.advance(Tick::new(to), budget);
        let mut fired = Vec::new();
        for timer in due.by_ref() {
            assert!(timer.deadline.get() <= self.now, "early: {timer:?}");
            let expected = self.model.next_due(self.now);
            assert_eq!(Some((timer.deadline.get(), timer.value)), expected);
            fired.push(timer.id);
        }
        assert!(fired.len() <= budget, "more timers than the budget allows");
        let is_more = due.more();
        for id in fired {
            self.model.live.retain(|(other, ..)| *other != id);
            assert_eq!(self.wheel.cancel(id), None, "a fired timer cannot be cancelled");
        }
        if !is_more {
            assert_eq!(self.model.next_due(self.now), None, "due at {} and kept", self.now);
        }
    }
}
