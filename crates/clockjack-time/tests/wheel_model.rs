//! The wheel against a sorted map: random arming, cancelling, re-arming and advancing, with every
//! timer's place in the order checked. What would make this fail: a timer early, late, lost, twice,
//! or out of order; an id that names a later timer; a value that is dropped or kept wrongly.
#![cfg(not(loom))]

extern crate alloc;

use alloc::collections::{BTreeMap, VecDeque};

use clockjack_time::{Fixed, Slab, Storage, Tick, TimerId, Wheel, WheelConfig};
use proptest::prelude::*;

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

/// Ticks after the start at which timers crowd: first ticks of slots of every level, ticks inside
/// them, and both sides of the wheel's range.
const CROWDED: [u64; 12] = [
    64,
    70,
    4_096,
    4_160,
    4_161,
    8_192,
    1 << 18,
    (1 << 18) + 4_160,
    (1 << 20) - 1,
    1 << 20,
    (1 << 20) + 4_160,
    1 << 21,
];

#[derive(Clone, Debug)]
enum Op {
    /// Several timers for one tick that others were and will be armed for.
    Crowd {
        nth: usize,
        copies: usize,
    },
    /// Just into the slot of such a tick, with a budget that ends somewhere in it.
    Approach {
        nth: usize,
        before: u64,
        budget: usize,
    },
    Insert {
        ahead: i64,
    },
    Cancel {
        nth: usize,
    },
    Rearm {
        nth: usize,
        ahead: i64,
    },
    Advance {
        by: u64,
        budget: usize,
    },
    /// Advances to exactly what `next_deadline` says, as a host does that sleeps until then.
    Sleep,
}

/// Deadlines of every kind: past, now, each level, the edges of the range, the overflow.
fn ahead() -> impl Strategy<Value = i64> {
    prop_oneof![
        1 => -5_000_i64..=0,
        4 => 0_i64..4,
        4 => 0_i64..130,
        3 => 0_i64..9_000,
        2 => 0_i64..600_000,
        3 => (1_i64 << 20) - 3..(1 << 20) + 200,
        2 => 0_i64..1 << 22,
        1 => 0_i64..1 << 40,
        // Few distinct ticks, so that many timers share one.
        6 => (0_i64..6).prop_map(|step| step * 4_096 + 64),
        6 => (0_i64..3).prop_map(|step| (1 << 20) + step),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..CROWDED.len(), 1_usize..6).prop_map(|(nth, copies)| Op::Crowd { nth, copies }),
        8 => (0..CROWDED.len(), prop_oneof![Just(0_u64), 0_u64..70, 0_u64..5_000], 1_usize..8)
            .prop_map(|(nth, before, budget)| Op::Approach { nth, before, budget }),
        10 => ahead().prop_map(|ahead| Op::Insert { ahead }),
        3 => any::<usize>().prop_map(|nth| Op::Cancel { nth }),
        2 => (any::<usize>(), ahead()).prop_map(|(nth, ahead)| Op::Rearm { nth, ahead }),
        2 => (0_u64..3, 1_usize..9).prop_map(|(by, budget)| Op::Advance { by, budget }),
        2 => (0_u64..5_000, 1_usize..20).prop_map(|(by, budget)| Op::Advance { by, budget }),
        2 => (0_u64..1 << 21, 1_usize..40).prop_map(|(by, budget)| Op::Advance { by, budget }),
        1 => (0_u64..1 << 41).prop_map(|by| Op::Advance { by, budget: usize::MAX }),
        2 => Just(Op::Sleep),
    ]
}

/// What the wheel must do, in the plainest way.
#[derive(Default)]
struct Model {
    at_once: VecDeque<(u64, u64)>,
    timers: BTreeMap<(u64, u64), ()>,
    /// Of each live timer: its id, its deadline, its registration number.
    live: Vec<(TimerId, u64, u64)>,
    dead: Vec<TimerId>,
    registered: u64,
}

/// Where the wheel stands when a timer is armed.
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

    fn earliest(&self) -> Option<u64> {
        let past = self.at_once.iter().map(|(deadline, _)| *deadline).min();
        past.or_else(|| self.timers.first_key_value().map(|((deadline, _), ())| *deadline))
    }
}

struct Run<S> {
    wheel: Wheel<u64, S>,
    model: Model,
    start: u64,
    now: u64,
}

impl<S: Storage<u64>> Run<S> {
    fn deadline(&self, ahead: i64) -> u64 {
        self.now.saturating_add_signed(ahead)
    }

    fn at(&self) -> At {
        At { elapsed: self.wheel.elapsed().get(), open: self.wheel.open_tick().get() }
    }

    fn crowded(&self, nth: usize) -> u64 {
        self.start.saturating_add(CROWDED[nth])
    }

    fn insert(&mut self, deadline: u64) {
        let at = self.at();
        let number = self.model.registered + 1;
        let was_full = self.wheel.len() == self.wheel.capacity();
        match self.wheel.insert(Tick::new(deadline), number) {
            Ok(id) => {
                assert!(!was_full, "a full wheel took a timer");
                assert!(!self.model.dead.contains(&id), "an id came back");
                assert_eq!(self.model.arm(id, deadline, at), number);
            }
            Err(refused) => {
                assert!(was_full, "refused although there was room: {refused}");
                assert_eq!(refused.into_inner(), number, "the refused value comes back");
            }
        }
    }

    fn cancel(&mut self, nth: usize) {
        if self.model.live.is_empty() {
            return;
        }
        let (id, number) = self.model.forget(nth % self.model.live.len());
        assert!(self.wheel.contains(id));
        assert_eq!(self.wheel.get(id), Some(&number));
        assert_eq!(self.wheel.cancel(id), Some(number));
        assert_eq!(self.wheel.cancel(id), None, "a second cancel finds nothing");
    }

    fn rearm(&mut self, nth: usize, ahead: i64) {
        if self.model.live.is_empty() {
            return;
        }
        let nth = nth % self.model.live.len();
        let deadline = self.deadline(ahead);
        let at = self.at();
        let (old, value) = self.model.forget(nth);
        let new = self.wheel.rearm(old, Tick::new(deadline)).expect("room").expect("armed");
        let number = self.model.arm(new, deadline, at);
        // The value stays what it was; the registration is new.
        assert_eq!(self.wheel.cancel(old), None, "the old id names nothing");
        *self.wheel.get_mut(new).expect("armed anew") = number;
        assert_ne!(number, value);
    }

    fn advance(&mut self, to: u64, budget: usize) {
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

    fn check(&self) {
        assert_eq!(self.wheel.len(), self.model.live.len());
        match (self.wheel.next_deadline(), self.model.earliest()) {
            (None, None) => {}
            (Some(said), Some(true_one)) => {
                // Late is wrong. Early is a wasted wake-up, which the docs allow for one case.
                let latest = true_one.max(self.wheel.elapsed().get());
                assert!(said.get() <= latest, "said {said:?}, but {true_one} is due");
                if self.model.live.len() <= 64 && self.wheel.elapsed() < said {
                    assert_eq!(said.get(), true_one, "exact when few are armed");
                }
            }
            (said, earliest) => panic!("wheel says {said:?}, model {earliest:?}"),
        }
        for id in &self.model.dead {
            assert!(!self.wheel.contains(*id), "{id:?} is dead");
        }
    }
}

fn run<S: Storage<u64>>(wheel: Wheel<u64, S>, ops: &[Op]) {
    let start = wheel.elapsed().get();
    let mut run = Run { wheel, model: Model::default(), start, now: start };
    for op in ops {
        match *op {
            Op::Insert { ahead } => run.insert(run.deadline(ahead)),
            Op::Crowd { nth, copies } => (0..copies).for_each(|_| run.insert(run.crowded(nth))),
            Op::Approach { nth, before, budget } => {
                run.advance(run.crowded(nth).saturating_sub(before).max(run.now), budget);
            }
            Op::Cancel { nth } => run.cancel(nth),
            Op::Rearm { nth, ahead } => run.rearm(nth, ahead),
            Op::Advance { by, budget } => run.advance(run.now.saturating_add(by), budget),
            Op::Sleep => {
                if let Some(deadline) = run.wheel.next_deadline() {
                    run.advance(deadline.get().max(run.now), usize::MAX);
                }
            }
        }
        run.check();
    }
    // In the end everything fires, in order, and nothing is left.
    run.advance(u64::MAX, usize::MAX);
    assert!(run.wheel.is_empty() && run.model.live.is_empty());
    assert_eq!(run.wheel.overflow_len(), 0);
    assert_eq!(run.wheel.occupied_slots(), 0);
}

fn config(start: u64, limit: u32) -> WheelConfig {
    WheelConfig { start: Tick::new(start), reinsertion_batch_limit: limit, ..WheelConfig::DEFAULT }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_500,
        failure_persistence: None,
        max_shrink_iters: 300,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_growing_wheel_fires_like_a_sorted_map(
        start in prop::sample::select(&STARTS[..]),
        limit in prop::sample::select(&[0_u32, 1, 3, 100][..]),
        ops in prop::collection::vec(op(), 1..160),
    ) {
        run(Wheel::<u64, Slab<u64>>::new(config(start, limit)), &ops);
    }

    #[test]
    fn a_fixed_wheel_fires_like_a_sorted_map_and_refuses_at_capacity(
        start in prop::sample::select(&STARTS[..]),
        ops in prop::collection::vec(op(), 1..160),
    ) {
        run(Wheel::<u64, Fixed<u64, 20>>::fixed(Tick::new(start)), &ops);
    }
}
