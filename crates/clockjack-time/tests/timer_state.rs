//! The timer state, both forms: every short sequence of calls against a simple model, and real
//! threads with a conservation check. The races themselves are in `loom.rs`.
#![cfg(not(loom))]

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use clockjack_time::{
    AtomicTimerState, CancelledFrom, Generation,
    timer_state::{AtomicState, RawTimerState, State},
    timer_state_32::TimerState32,
    timer_state_64::TimerState64,
};

/// The expected behaviour of the state, as simple as possible.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Model {
    state: State,
    generation: Option<Generation>,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Arm,
    Expire,
    Take,
    Fire,
    Complete,
    Rearm,
    Cancel,
    Release,
    Link,
}

use Call::*;

const CALLS: [Call; 9] = [Arm, Expire, Take, Fire, Complete, Rearm, Cancel, Release, Link];

impl Model {
    fn exchange(&mut self, generation: Generation, from: State, to: State) -> bool {
        let met = self.state == from && self.generation == Some(generation);
        if met {
            self.state = to;
            if to == State::Cancelled {
                self.generation = None;
            }
        }
        met
    }
}

/// Makes one call on both and compares its result and the state afterwards. Calls that the contract
/// forbids in this state are skipped.
fn step<R: RawTimerState>(
    state: &AtomicState<R>,
    model: &mut Model,
    call: Call,
    generation: Generation,
) {
    use State::*;
    let (got, expected) = match call {
        Arm | Release if !model.state.is_at_rest() => return,
        Link if model.state != Cancelled => return,
        Arm => {
            state.arm(generation);
            *model = Model { state: Scheduled, generation: Some(generation) };
            return assert_eq!(state.state(), (model.state, model.generation));
        }
        Release => {
            state.release();
            *model = Model { state: Pending, generation: None };
            return assert_eq!(state.state(), (model.state, model.generation));
        }
        Link => {
            // A link with the same bits as a generation must not be mistaken for it.
            let link = u32::try_from(generation.get() & u64::from(AtomicState::<R>::LINK_MAX));
            state.set_link(link.expect("masked"));
            assert_eq!(state.link(), link.expect("masked"));
            return assert_eq!(state.state(), (Cancelled, None));
        }
        Expire => (state.expire(generation), model.exchange(generation, Scheduled, Queued)),
        Take => (state.take(generation), model.exchange(generation, Queued, Executing)),
        Fire => (state.fire(generation), model.exchange(generation, Scheduled, Completed)),
        Complete => (state.complete(generation), model.exchange(generation, Executing, Completed)),
        Rearm => {
            let expected = model.exchange(generation, Executing, Scheduled);
            if expected {
                model.generation = Some(generation.next());
            }
            (state.rearm(generation, generation.next()), expected)
        }
        Cancel => {
            let expected = [(Scheduled, CancelledFrom::Scheduled), (Queued, CancelledFrom::Queued)]
                .into_iter()
                .find_map(|(from, said)| {
                    model.exchange(generation, from, Cancelled).then_some(said)
                });
            let got = state.cancel(generation);
            assert_eq!(got, expected, "cancel {generation} on {model:?}");
            (got.is_some(), expected.is_some())
        }
    };
    assert_eq!(got, expected, "{call:?} {generation} gave another answer, now {model:?}");
    assert_eq!(state.state(), (model.state, model.generation), "after {call:?} {generation}");
    assert_eq!(
        state.state_of(generation),
        (model.generation == Some(generation)).then_some(model.state)
    );
}

/// Every sequence of `depth` calls with keys of two neighbouring generations, from each state.
fn every_history<R: RawTimerState>(first: Generation, depth: u32) {
    let moves = CALLS.len() * 2;
    for opening in [&[][..], &[Arm], &[Arm, Expire, Take], &[Arm, Cancel, Link]] {
        for mut history in 0..moves.pow(depth) {
            let state = AtomicState::<R>::default();
            let mut model = Model { state: State::Pending, generation: None };
            for &call in opening {
                step(&state, &mut model, call, first);
            }
            for _ in 0..depth {
                let chosen = history % moves;
                history /= moves;
                let generation = if chosen.is_multiple_of(2) { first } else { first.next() };
                step(&state, &mut model, CALLS[chosen / 2], generation);
            }
        }
    }
}

/// Generations at which a part carries: the first, the last of the low part of the 32-bit state,
/// the last of all.
fn edges() -> [Generation; 4] {
    let low_end = (1 << 29) - 1;
    [
        Generation::FIRST,
        Generation::new(low_end).expect("in range"),
        Generation::new((7 << 29) + low_end).expect("in range"),
        Generation::MAX,
    ]
}

#[test]
fn every_short_history_of_the_64_bit_state_is_as_the_model_says() {
    edges().into_iter().for_each(|first| every_history::<TimerState64>(first, 3));
}

#[test]
fn every_short_history_of_the_32_bit_state_is_as_the_model_says() {
    edges().into_iter().for_each(|first| every_history::<TimerState32>(first, 3));
}

#[test]
fn a_state_takes_eight_bytes_in_both_forms_and_starts_pending() {
    assert_eq!(
        (size_of::<AtomicState<TimerState64>>(), size_of::<AtomicState<TimerState32>>()),
        (8, 8)
    );
    static WIDE: AtomicState<TimerState64> = AtomicState::<TimerState64>::new();
    static NARROW: AtomicState<TimerState32> = AtomicState::<TimerState32>::new();
    assert_eq!(WIDE.state(), (State::Pending, None));
    assert_eq!(NARROW.state(), (State::Pending, None));
    assert_eq!(AtomicTimerState::default().state(), (State::Pending, None));
}

#[test]
fn a_key_whose_generation_differs_only_above_the_low_part_is_stale() {
    fn check<R: RawTimerState>() {
        let state = AtomicState::<R>::default();
        let old = Generation::new(5).expect("in range");
        let new = Generation::new(5 + (1 << 29)).expect("in range");
        state.arm(new);
        assert_eq!(state.cancel(old), None);
        assert!(!state.expire(old));
        assert!(state.expire(new));
        assert!(!state.take(old));
    }
    check::<TimerState64>();
    check::<TimerState32>();
}

#[test]
fn the_largest_link_is_kept_whole() {
    fn check<R: RawTimerState>() {
        let state = AtomicState::<R>::default();
        state.arm(Generation::FIRST);
        assert_eq!(state.cancel(Generation::FIRST), Some(CancelledFrom::Scheduled));
        assert_eq!(state.link(), 0);
        state.set_link(AtomicState::<R>::LINK_MAX);
        assert_eq!(state.link(), AtomicState::<R>::LINK_MAX);
        assert_eq!(state.state(), (State::Cancelled, None));
    }
    check::<TimerState64>();
    check::<TimerState32>();
}

#[test]
#[should_panic(expected = "link 536870912 is more than 536870911")]
fn a_link_too_large_for_the_32_bit_state_is_refused() {
    let state = AtomicState::<TimerState32>::default();
    state.arm(Generation::FIRST);
    let _ = state.cancel(Generation::FIRST);
    state.set_link(1 << 29);
}

/// One owner runs periodic timers in one slot while two threads cancel whatever is current: each
/// use of the slot ends once, and the owner sees every cancel that returned true.
fn uses_end_once<R: RawTimerState>(first: Generation) {
    const USES: u64 = 20_000;
    let state = AtomicState::<R>::default();
    let current = AtomicU64::new(0);
    let (wins, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut ran = 0;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    let Some(generation) = Generation::new(current.load(Ordering::Acquire)) else {
                        continue;
                    };
                    if state.cancel(generation).is_some() {
                        wins.fetch_add(1, Ordering::Release);
                    }
                }
            });
        }
        let mut generation = first;
        let mut cancelled = 0;
        let mut scheduled = false;
        for _ in 0..USES {
            if !scheduled {
                state.arm(generation);
            }
            current.store(generation.get(), Ordering::Release);
            scheduled = false;
            if state.expire(generation) && state.take(generation) {
                ran += 1;
                let next = generation.next();
                if ran % 2 == 0 {
                    assert!(state.rearm(generation, next), "only this thread leaves Executing");
                    scheduled = true;
                } else {
                    assert!(state.complete(generation), "only this thread leaves Executing");
                }
                generation = next;
                continue;
            }
            // Lost: one canceller won, and no other one ever will.
            cancelled += 1;
            while wins.load(Ordering::Acquire) < cancelled {
                std::thread::yield_now();
            }
            state.release();
            generation = generation.next();
        }
        done.store(true, Ordering::Release);
        // A last re-arm may still be cancelled after the loop; it is not one of the uses.
        assert_eq!(ran + cancelled, usize::try_from(USES).expect("small"));
    });
}

#[test]
fn every_use_of_a_slot_ends_once_under_real_threads() {
    for first in edges() {
        // Start a little before the edge, so that it is crossed in the middle of the race.
        let first = Generation::new(first.get().saturating_sub(10_000).max(1)).expect("in range");
        uses_end_once::<TimerState64>(first);
        uses_end_once::<TimerState32>(first);
    }
}
