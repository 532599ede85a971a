//! The timer state: every race of cancel, expiry, take and re-arm, in both forms.
//!
//! The value of a slot is a loom cell. The thread that wins the right to access the value does so,
//! and loom fails the model if two accesses are not ordered.

use clockjack_sync::primitive::{UnsafeCell, atomic::AtomicU32};
use clockjack_time::{
    CancelledFrom, Generation,
    timer_state::{AtomicState, RawTimerState, State},
};
use loom::{
    sync::{Arc, atomic::Ordering},
    thread,
};

/// A slot: its state, and the value that the state guards.
struct Slot<R> {
    state: AtomicState<R>,
    value: UnsafeCell<u64>,
}

// SAFETY: the models touch `value` only after winning the transition that gives them the right to
// it; that this is enough is what loom checks.
#[expect(unsafe_code, reason = "the cell is shared under the protocol that is being checked")]
unsafe impl<R: Sync> Sync for Slot<R> {}
// SAFETY: all fields are owned.
#[expect(unsafe_code, reason = "the cell is shared under the protocol that is being checked")]
unsafe impl<R: Send> Send for Slot<R> {}

impl<R: RawTimerState> Slot<R> {
    fn armed(generation: Generation) -> Self {
        let slot = Self { state: AtomicState::default(), value: UnsafeCell::new(0) };
        slot.arm(generation);
        slot
    }

    fn touch(&self) {
        self.value.with_mut(|_| ());
    }

    fn arm(&self, generation: Generation) {
        self.touch();
        self.state.arm(generation);
    }

    fn cancel(&self, generation: Generation) -> Option<CancelledFrom> {
        let from = self.state.cancel(generation)?;
        self.touch();
        Some(from)
    }

    fn take(&self, generation: Generation) -> bool {
        let taken = self.state.take(generation);
        if taken {
            self.touch();
        }
        taken
    }

    fn expire_and_take(&self, generation: Generation) -> bool {
        self.state.expire(generation) && self.take(generation)
    }
}

/// The last generation before the low part of the 32-bit state carries.
fn low_end() -> Generation {
    Generation::new((2 << 29) - 1).expect("in range")
}

fn cancel_against_expiry_and_take<R: RawTimerState + 'static>() {
    loom::model(|| {
        let generation = Generation::FIRST;
        let slot = Arc::new(Slot::<R>::armed(generation));
        let canceller = {
            let slot = slot.clone();
            thread::spawn(move || slot.cancel(generation).is_some())
        };
        // Owner and taker are different threads: the handover is a separate message.
        let taker = {
            let slot = slot.clone();
            thread::spawn(move || slot.take(generation))
        };
        let expired = slot.state.expire(generation);
        let (cancelled, taken) =
            (canceller.join().expect("no panic"), taker.join().expect("no panic"));
        assert!(!(cancelled && taken), "cancel said true and the handler ran");
        assert!(expired || cancelled, "expiry fails only against a cancel");
        // The taker may have run before the expiry; then the timer can still be taken.
        let taken_late = !taken && slot.take(generation);
        assert!(cancelled != (taken || taken_late), "ended not exactly once");
    });
}

fn two_cancels_against_a_taker<R: RawTimerState + 'static>() {
    loom::model(|| {
        let generation = Generation::FIRST;
        let slot = Arc::new(Slot::<R>::armed(generation));
        let cancellers: Vec<_> = (0..2)
            .map(|_| {
                let slot = slot.clone();
                thread::spawn(move || slot.cancel(generation).is_some())
            })
            .collect();
        let taken = slot.expire_and_take(generation);
        let wins = cancellers
            .into_iter()
            .map(|canceller| usize::from(canceller.join().expect("no panic")))
            .sum::<usize>();
        assert_eq!(usize::from(taken) + wins, 1, "ended not exactly once");
        let expected = if taken { State::Executing } else { State::Cancelled };
        assert_eq!(slot.state.state().0, expected);
    });
}

fn two_takers_run_a_timer_once<R: RawTimerState + 'static>() {
    loom::model(|| {
        let generation = Generation::FIRST;
        let slot = Arc::new(Slot::<R>::armed(generation));
        assert!(slot.state.expire(generation));
        let other = {
            let slot = slot.clone();
            thread::spawn(move || slot.take(generation))
        };
        let (here, there) = (slot.take(generation), other.join().expect("no panic"));
        assert!(here != there, "taken {} times", u8::from(here) + u8::from(there));
    });
}

fn a_stale_cancel_never_hits_the_next_generation<R: RawTimerState + 'static>(first: Generation) {
    loom::model(move || {
        let next = first.next();
        let slot = Arc::new(Slot::<R>::armed(first));
        let stale = {
            let slot = slot.clone();
            thread::spawn(move || slot.cancel(first).is_some())
        };
        let taken = slot.expire_and_take(first);
        if taken {
            slot.touch();
            assert!(slot.state.rearm(first, next), "only this thread leaves Executing");
        }
        let cancelled = stale.join().expect("no panic");
        assert!(taken != cancelled, "first use ended not exactly once");
        let expected =
            if taken { (State::Scheduled, Some(next)) } else { (State::Cancelled, None) };
        assert_eq!(slot.state.state(), expected, "the stale cancel hit the next use");
    });
}

/// The owner of a shard and a thread that reads an entry late: its expiry is for the generation
/// that it has read, never for the one that is in the slot by then.
fn a_stale_expiry_never_queues_the_next_generation<R: RawTimerState + 'static>() {
    loom::model(|| {
        let (first, next) = (Generation::FIRST, Generation::FIRST.next());
        let slot = Arc::new(Slot::<R>::armed(first));
        let expiry = {
            let slot = slot.clone();
            thread::spawn(move || slot.state.expire(first))
        };
        // A cancel wins, the slot is freed and armed again, while the expiry is on its way.
        let from = slot.cancel(first).expect("no thread takes it");
        if from == CancelledFrom::Scheduled {
            slot.state.release();
            slot.arm(next);
        }
        let expired = expiry.join().expect("no panic");
        assert_eq!(expired, from == CancelledFrom::Queued);
        let expected = match from {
            CancelledFrom::Scheduled => (State::Scheduled, Some(next)),
            _ => (State::Cancelled, None),
        };
        assert_eq!(slot.state.state(), expected, "the stale expiry hit the next use");
    });
}

/// A key from 2^29 uses ago has the same low part as the new use: its cancel must lose at every
/// moment of a re-arm that carries into the high part.
fn an_ancient_key_loses_while_the_high_part_changes<R: RawTimerState + 'static>() {
    loom::model(|| {
        let (last, next) = (low_end(), low_end().next());
        let ancient = Generation::new(1 << 29).expect("in range");
        assert_eq!(next.get() - ancient.get(), 1 << 29);
        let slot = Arc::new(Slot::<R>::armed(last));
        assert!(slot.expire_and_take(last));
        let stale = {
            let slot = slot.clone();
            thread::spawn(move || slot.cancel(ancient).is_some())
        };
        assert!(slot.state.rearm(last, next));
        assert!(!stale.join().expect("no panic"), "a key of 2^29 uses ago won");
        assert_eq!(slot.state.state(), (State::Scheduled, Some(next)));
    });
}

/// A thread that reads the state sees a generation that existed, even while both halves change.
fn a_reading_is_never_of_two_generations<R: RawTimerState + 'static>() {
    loom::model(|| {
        let (last, next) = (low_end(), low_end().next());
        let slot = Arc::new(Slot::<R>::armed(last));
        assert!(slot.state.fire(last));
        let reader = {
            let slot = slot.clone();
            thread::spawn(move || slot.state.state())
        };
        slot.arm(next);
        let seen = reader.join().expect("no panic");
        let legal = [
            (State::Completed, Some(last)),
            (State::Pending, None),
            (State::Scheduled, Some(next)),
        ];
        assert!(legal.contains(&seen), "a state that never was: {seen:?}");
    });
}

/// The winner of a cancel returns the slot by a list whose head publishes the link; the owner then
/// frees the slot and arms it again.
fn the_link_travels_with_the_head_of_the_list<R: RawTimerState + 'static>() {
    loom::model(|| {
        let (first, next) = (Generation::FIRST, Generation::FIRST.next());
        let slot = Arc::new(Slot::<R>::armed(first));
        let head = Arc::new(AtomicU32::new(0));
        let canceller = {
            let (slot, head) = (slot.clone(), head.clone());
            thread::spawn(move || {
                slot.cancel(first).expect("no other thread cancels it");
                slot.state.set_link(77);
                head.store(1, Ordering::Release);
            })
        };
        let mut drained = head.load(Ordering::Acquire) == 1;
        if !drained {
            canceller.join().expect("no panic");
            drained = head.load(Ordering::Acquire) == 1;
        }
        assert!(drained);
        assert_eq!(slot.state.link(), 77);
        assert_eq!(slot.state.cancel(first), None, "a second cancel won while the link is set");
        slot.state.release();
        slot.arm(next);
        assert_eq!(slot.state.state(), (State::Scheduled, Some(next)));
    });
}

macro_rules! for_each_width {
    ($($width:ident: $raw:ty),*) => {$(
        mod $width {
            #[test]
            fn cancel_against_expiry_and_take() {
                super::cancel_against_expiry_and_take::<$raw>();
            }
            #[test]
            fn two_cancels_against_a_taker() {
                super::two_cancels_against_a_taker::<$raw>();
            }
            #[test]
            fn two_takers_run_a_timer_once() {
                super::two_takers_run_a_timer_once::<$raw>();
            }
            #[test]
            fn a_stale_cancel_never_hits_the_next_generation() {
                super::a_stale_cancel_never_hits_the_next_generation::<$raw>(
                    clockjack_time::Generation::FIRST,
                );
            }
            #[test]
            fn a_stale_cancel_never_hits_the_next_generation_across_the_low_end() {
                super::a_stale_cancel_never_hits_the_next_generation::<$raw>(super::low_end());
            }
            #[test]
            fn a_stale_expiry_never_queues_the_next_generation() {
                super::a_stale_expiry_never_queues_the_next_generation::<$raw>();
            }
            #[test]
            fn an_ancient_key_loses_while_the_high_part_changes() {
                super::an_ancient_key_loses_while_the_high_part_changes::<$raw>();
            }
            #[test]
            fn a_reading_is_never_of_two_generations() {
                super::a_reading_is_never_of_two_generations::<$raw>();
            }
            #[test]
            fn the_link_travels_with_the_head_of_the_list() {
                super::the_link_travels_with_the_head_of_the_list::<$raw>();
            }
        }
    )*};
}

for_each_width!(
    bits_64: clockjack_time::timer_state_64::TimerState64,
    bits_32: clockjack_time::timer_state_32::TimerState32
);
