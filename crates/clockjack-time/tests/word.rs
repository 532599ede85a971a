//! The timer word, both twins: every short history against a plain model, and real threads
//! against a conservation law. The races themselves are in `loom.rs`.
#![cfg(not(loom))]

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use clockjack_time::{
    CancelledFrom, Generation, TimerWord,
    word::{Raw, State, Word},
    word_narrow::Narrow,
    word_wide::Wide,
};

/// What the word should do, written as plainly as possible.
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
    Begin,
    End,
    Release,
    Link,
}

use Call::*;

const CALLS: [Call; 11] =
    [Arm, Expire, Take, Fire, Complete, Rearm, Cancel, Begin, End, Release, Link];

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

/// Makes one call on both and compares what it says and what is there afterwards. Calls that the
/// contract forbids in this state are left out.
fn step<R: Raw>(word: &Word<R>, model: &mut Model, call: Call, generation: Generation) {
    use State::*;
    let (got, expected) = match call {
        Arm | Release if !model.state.is_at_rest() => return,
        Link if model.state != Cancelled => return,
        Arm => {
            word.arm(generation);
            *model = Model { state: Scheduled, generation: Some(generation) };
            return assert_eq!(word.state(), (model.state, model.generation));
        }
        Release => {
            word.release();
            *model = Model { state: Pending, generation: None };
            return assert_eq!(word.state(), (model.state, model.generation));
        }
        Link => {
            // A link with the very bits of a generation must not revive it.
            let link = u32::try_from(generation.get() & u64::from(Word::<R>::LINK_MAX));
            word.set_link(link.expect("masked"));
            assert_eq!(word.link(), link.expect("masked"));
            return assert_eq!(word.state(), (Cancelled, None));
        }
        Expire => (word.expire(generation), model.exchange(generation, Scheduled, Queued)),
        Take => (word.take(generation), model.exchange(generation, Queued, Executing)),
        Fire => (word.fire(generation), model.exchange(generation, Scheduled, Completed)),
        Complete => (word.complete(generation), model.exchange(generation, Executing, Completed)),
        Begin => {
            (word.begin_migration(generation), model.exchange(generation, Scheduled, Migrating))
        }
        End => (word.end_migration(generation), model.exchange(generation, Migrating, Scheduled)),
        Rearm => {
            let expected = model.exchange(generation, Executing, Scheduled);
            if expected {
                model.generation = Some(generation.next());
            }
            (word.rearm(generation, generation.next()), expected)
        }
        Cancel => {
            let expected = [
                (Scheduled, CancelledFrom::Scheduled),
                (Queued, CancelledFrom::Queued),
                (Migrating, CancelledFrom::Migrating),
            ]
            .into_iter()
            .find_map(|(from, said)| model.exchange(generation, from, Cancelled).then_some(said));
            let got = word.cancel(generation);
            assert_eq!(got, expected, "cancel {generation} on {model:?}");
            (got.is_some(), expected.is_some())
        }
    };
    assert_eq!(got, expected, "{call:?} {generation} gave another answer, now {model:?}");
    assert_eq!(word.state(), (model.state, model.generation), "after {call:?} {generation}");
    assert_eq!(
        word.state_of(generation),
        (model.generation == Some(generation)).then_some(model.state)
    );
}

/// Every history of `depth` calls with keys of two neighbouring generations, from each state.
fn every_history<R: Raw>(first: Generation, depth: u32) {
    let moves = CALLS.len() * 2;
    for opening in [&[][..], &[Arm], &[Arm, Expire, Take], &[Arm, Begin], &[Arm, Cancel, Link]] {
        for mut history in 0..moves.pow(depth) {
            let word = Word::<R>::default();
            let mut model = Model { state: State::Pending, generation: None };
            for &call in opening {
                step(&word, &mut model, call, first);
            }
            for _ in 0..depth {
                let chosen = history % moves;
                history /= moves;
                let generation = if chosen.is_multiple_of(2) { first } else { first.next() };
                step(&word, &mut model, CALLS[chosen / 2], generation);
            }
        }
    }
}

/// Where something carries: the first, the last of the narrow twin's low part, the last of all.
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
fn every_short_history_of_the_wide_twin_is_as_the_model_says() {
    edges().into_iter().for_each(|first| every_history::<Wide>(first, 3));
}

#[test]
fn every_short_history_of_the_narrow_twin_is_as_the_model_says() {
    edges().into_iter().for_each(|first| every_history::<Narrow>(first, 3));
}

#[test]
fn a_word_takes_eight_bytes_in_both_forms_and_starts_pending() {
    assert_eq!((size_of::<Word<Wide>>(), size_of::<Word<Narrow>>()), (8, 8));
    static WIDE: Word<Wide> = Word::<Wide>::new();
    static NARROW: Word<Narrow> = Word::<Narrow>::new();
    assert_eq!(WIDE.state(), (State::Pending, None));
    assert_eq!(NARROW.state(), (State::Pending, None));
    assert_eq!(TimerWord::default().state(), (State::Pending, None));
}

#[test]
fn a_key_whose_generation_differs_only_above_the_low_part_is_stale() {
    fn check<R: Raw>() {
        let word = Word::<R>::default();
        let old = Generation::new(5).expect("in range");
        let new = Generation::new(5 + (1 << 29)).expect("in range");
        word.arm(new);
        assert_eq!(word.cancel(old), None);
        assert!(!word.expire(old));
        assert!(word.expire(new));
        assert!(!word.take(old));
    }
    check::<Wide>();
    check::<Narrow>();
}

#[test]
fn the_largest_link_is_kept_whole() {
    fn check<R: Raw>() {
        let word = Word::<R>::default();
        word.arm(Generation::FIRST);
        assert_eq!(word.cancel(Generation::FIRST), Some(CancelledFrom::Scheduled));
        assert_eq!(word.link(), 0);
        word.set_link(Word::<R>::LINK_MAX);
        assert_eq!(word.link(), Word::<R>::LINK_MAX);
        assert_eq!(word.state(), (State::Cancelled, None));
    }
    check::<Wide>();
    check::<Narrow>();
}

#[test]
#[should_panic(expected = "link 536870912 is more than 536870911")]
fn a_link_too_large_for_the_narrow_twin_is_refused() {
    let word = Word::<Narrow>::default();
    word.arm(Generation::FIRST);
    let _ = word.cancel(Generation::FIRST);
    word.set_link(1 << 29);
}

/// One owner runs periodic timers in one slot while two threads cancel whatever is current: each
/// use of the slot ends once, and every cancel that said true is one that the owner saw.
fn uses_end_once<R: Raw>(first: Generation) {
    const USES: u64 = 20_000;
    let word = Word::<R>::default();
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
                    if word.cancel(generation).is_some() {
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
                word.arm(generation);
            }
            current.store(generation.get(), Ordering::Release);
            scheduled = false;
            if word.expire(generation) && word.take(generation) {
                ran += 1;
                let next = generation.next();
                if ran % 2 == 0 {
                    assert!(word.rearm(generation, next), "nobody else leaves Executing");
                    scheduled = true;
                } else {
                    assert!(word.complete(generation), "nobody else leaves Executing");
                }
                generation = next;
                continue;
            }
            // Lost: one canceller won, and no other one ever will.
            cancelled += 1;
            while wins.load(Ordering::Acquire) < cancelled {
                std::thread::yield_now();
            }
            word.release();
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
        uses_end_once::<Wide>(first);
        uses_end_once::<Narrow>(first);
    }
}
