//! An owner against two thieves: the multiset of items is conserved.
//!
//! The model is written against a small trait, so that the same model runs on the ring, which
//! passes, and on a Chase-Lev deque with batch steal, which must fail.

use clockjack_sync::ring::{Owner, Steal, Thief};
use loom::thread;

use crate::{chase_lev, model_within, tracked::Live};

/// The operations that the model needs of a queue with an owner and thieves.
pub(crate) trait Stealing: 'static {
    type Owner: Send + 'static;
    type Thief: Send + 'static;

    fn new() -> Self::Owner;
    fn thief(owner: &Self::Owner) -> Self::Thief;
    /// Pushes; what overflows goes to `spilled`.
    fn push(owner: &mut Self::Owner, item: u32, spilled: &mut Vec<u32>);
    fn pop(owner: &mut Self::Owner) -> Option<u32>;
    /// Steals up to half.
    fn steal(thief: &Self::Thief) -> Vec<u32>;
}

struct Ring;

impl Stealing for Ring {
    type Owner = Owner<u32>;
    type Thief = Thief<u32>;

    fn new() -> Owner<u32> {
        // Just below the wrap-around of positions.
        Owner::starting_at(u32::MAX - 1)
    }

    fn thief(owner: &Owner<u32>) -> Thief<u32> {
        owner.thief()
    }

    fn push(owner: &mut Owner<u32>, item: u32, spilled: &mut Vec<u32>) {
        owner.push(item, |items| spilled.extend(items));
    }

    fn pop(owner: &mut Owner<u32>) -> Option<u32> {
        owner.pop()
    }

    fn steal(thief: &Thief<u32>) -> Vec<u32> {
        let mut own = Owner::new();
        let mut stolen = Vec::from_iter(thief.steal_into(&mut own).item());
        stolen.extend(core::iter::from_fn(|| own.pop()));
        stolen
    }
}

#[derive(Clone, Copy)]
enum Step {
    Push,
    Pop,
}
use Step::{Pop, Push};

/// Fills a queue, lets the owner run concurrently with the thieves, and counts everything.
fn conserves<S: Stealing>(preemptions: usize, filled: u32, steps: &'static [Step], thieves: usize) {
    model_within(preemptions, move || {
        let mut owner = S::new();
        let mut seen = Vec::new();
        for item in 0..filled {
            S::push(&mut owner, item, &mut seen);
        }
        let handles: Vec<_> = (0..thieves).map(|_| S::thief(&owner)).collect();
        let owner = thread::spawn(move || {
            let mut seen = Vec::new();
            let mut item = filled;
            for step in steps {
                match step {
                    Push => {
                        S::push(&mut owner, item, &mut seen);
                        item += 1;
                    }
                    Pop => seen.extend(S::pop(&mut owner)),
                }
            }
            (owner, seen, item)
        });
        let thieves: Vec<_> =
            handles.into_iter().map(|thief| thread::spawn(move || S::steal(&thief))).collect();

        let (mut owner, mut of_owner, pushed) = owner.join().unwrap();
        seen.append(&mut of_owner);
        for thief in thieves {
            seen.append(&mut thief.join().unwrap());
        }
        seen.extend(core::iter::from_fn(|| S::pop(&mut owner)));
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..pushed), "not each item once: {seen:?} of {pushed}");
    });
}

/// The schedule in which a batch steal by one compare-exchange goes wrong: see [`chase_lev`].
const POPS_AND_A_PUSH: &[Step] = &[Pop, Pop, Pop, Push];

#[test]
fn an_owner_that_pops_and_pushes_conserves_items_against_two_thieves() {
    conserves::<Ring>(2, 4, POPS_AND_A_PUSH, 2);
}

#[test]
fn an_owner_that_pops_and_pushes_conserves_items_against_one_thief() {
    conserves::<Ring>(3, 4, POPS_AND_A_PUSH, 1);
}

/// The model is able to see the fault for which the ring has a head of two parts.
#[test]
#[should_panic(expected = "not each item once")]
fn a_chase_lev_deque_with_one_exchange_batch_steal_fails_the_same_model() {
    conserves::<chase_lev::Deque>(3, 4, POPS_AND_A_PUSH, 1);
}

/// The fault is in the batch: stealing one item by one exchange is correct.
#[test]
fn a_chase_lev_deque_that_steals_single_items_passes_the_same_model() {
    conserves::<chase_lev::SingleSteal>(2, 4, POPS_AND_A_PUSH, 1);
}

#[test]
fn an_owner_that_overflows_conserves_items_against_two_thieves() {
    conserves::<Ring>(2, 4, &[Push, Pop, Push], 2);
}

#[test]
fn an_owner_that_laps_the_ring_conserves_items_against_a_thief() {
    conserves::<Ring>(3, 2, &[Push, Pop, Push, Pop, Push, Pop, Push], 1);
}

#[test]
fn two_thieves_share_the_ring_of_an_owner_that_only_pushes() {
    conserves::<Ring>(2, 0, &[Push, Push, Push], 2);
}

#[test]
fn items_are_readable_after_a_steal_and_dropped_once() {
    model_within(3, || {
        let live = Live::default();
        let mut owner = Owner::<_, 4>::new();
        assert!(owner.try_push(live.item(0)).is_ok());
        let thief = owner.thief();
        let items = [live.item(1), live.item(2)];
        let pusher = thread::spawn(move || {
            for item in items {
                assert!(owner.try_push(item).is_ok());
            }
            owner.pop().map(|item| item.id())
        });
        let stealer = thread::spawn(move || {
            let mut own = Owner::new();
            if let Steal::Item { item, moved } = thief.steal_into(&mut own) {
                assert_eq!(own.len(), moved);
                let first = item.id();
                if let Some(second) = own.pop() {
                    assert_eq!(second.id(), first + 1);
                }
            }
        });
        assert_ne!(pusher.join().unwrap(), None);
        stealer.join().unwrap();
        assert_eq!(live.count(), 0, "the last handle drops what is left");
    });
}

#[test]
fn two_workers_that_steal_from_each_other_conserve_items() {
    model_within(2, || {
        let (mut left, mut right) = (Owner::<u32, 4>::new(), Owner::<u32, 4>::new());
        for item in 0..2 {
            assert!(left.try_push(item).is_ok());
            assert!(right.try_push(item + 2).is_ok());
        }
        let (from_left, from_right) = (left.thief(), right.thief());
        let work = |mut own: Owner<u32, 4>, victim: Thief<u32, 4>| {
            thread::spawn(move || {
                let mut seen = Vec::from_iter(victim.steal_into(&mut own).item());
                seen.extend(own.pop());
                (own, seen)
            })
        };
        let (one, two) = (work(left, from_right), work(right, from_left));
        let mut seen = Vec::new();
        for worker in [one, two] {
            let (mut own, mut of_worker) = worker.join().unwrap();
            seen.append(&mut of_worker);
            seen.extend(core::iter::from_fn(|| own.pop()));
        }
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3]);
    });
}
