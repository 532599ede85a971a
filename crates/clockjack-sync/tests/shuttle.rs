//! Tests that are too large for loom, under random schedules: run with `cargo xtask shuttle`.
#![cfg(shuttle)]
#![cfg(feature = "alloc")]

extern crate alloc;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clockjack_sync::{
    Injector,
    link::{Boxed, Node},
    primitive::{become_realtime, block_realtime, explore, explore_realtime, hint},
    ring::{Owner, Thief},
    spin_lock::SpinLock,
};
use shuttle::thread;

/// Small enough to overflow, large enough that half of it is a batch.
const CAPACITY: usize = 8;
/// The number of items that the submitter pushes.
const N_SUBMITTED: u32 = 12;
/// The number of items that the first worker pushes into its own ring: more than the ring holds.
const N_OWN: u32 = 14;
const N_ITEMS: usize = (N_SUBMITTED + N_OWN) as usize;

type Shared = Arc<Injector<Boxed<u32>>>;
type Ring = Owner<Box<Node<u32>>, CAPACITY>;
type Victim = Thief<Box<Node<u32>>, CAPACITY>;

/// One worker: pushes its own items in bursts, and takes from its ring, the injector and the other
/// worker until all items are taken. Returns the items that it took.
fn work(
    mut ring: Ring,
    victim: &Victim,
    injector: &Shared,
    own: core::ops::Range<u32>,
    n_taken: &AtomicUsize,
) -> Vec<u32> {
    let mut own = own.peekable();
    let mut seen = Vec::new();
    // Relaxed, and not an atomic of shuttle: it only stops the test and is not part of it.
    while own.peek().is_some() || n_taken.load(Relaxed) < N_ITEMS {
        for item in own.by_ref().take(CAPACITY + 1) {
            ring.push(Node::new(item), |rest| {
                assert!(injector.push_batch(rest.collect()).is_ok());
            });
        }
        let taken = ring
            .pop()
            .or_else(|| injector.take_into(3, &mut ring).item().map(|(first, _)| first))
            .or_else(|| victim.steal_into(&mut ring).item());
        match taken {
            Some(node) => {
                seen.push(node.into_value());
                n_taken.fetch_add(1, Relaxed);
            }
            None => hint::spin_loop(),
        }
    }
    assert!(ring.is_empty(), "all items are taken, and {} wait", ring.len());
    seen
}

/// On one processor: the real-time thread comes whenever it likes, also while another thread holds
/// the lock, which then does not run unless the real-time thread blocks.
#[test]
fn a_real_time_thread_gets_a_lock_whose_holder_it_has_preempted() {
    const ROUNDS: u32 = 3;
    explore_realtime(1, || {
        let lock = Arc::new(SpinLock::new(0_u32));
        let normal = [(); 2].map(|()| {
            let lock = Arc::clone(&lock);
            thread::spawn(move || (0..ROUNDS).for_each(|_| lock.with(|value| *value += 1)))
        });
        let realtime = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || {
                become_realtime();
                for _ in 0..ROUNDS {
                    block_realtime();
                    lock.with(|value| *value += 1);
                }
            })
        };
        normal.into_iter().chain([realtime]).for_each(|thread| thread.join().unwrap());
        assert_eq!(lock.with(|value| *value), 3 * ROUNDS);
    });
}

#[test]
fn two_workers_and_a_submitter_conserve_items_over_ring_and_injector() {
    explore(|| {
        let injector = Shared::default();
        let n_taken = Arc::new(AtomicUsize::new(0));
        let (one, two) = (Ring::new(), Ring::new());
        let victims = [two.thief(), one.thief()];
        let own = [N_SUBMITTED..N_SUBMITTED + N_OWN, 0..0];
        let workers: Vec<_> = [one, two]
            .into_iter()
            .zip(victims)
            .zip(own)
            .map(|((ring, victim), own)| {
                let (injector, n_taken) = (Arc::clone(&injector), Arc::clone(&n_taken));
                thread::spawn(move || work(ring, &victim, &injector, own, &n_taken))
            })
            .collect();
        for item in 0..N_SUBMITTED {
            assert!(injector.push(Node::new(item)).is_ok());
        }
        let mut seen: Vec<u32> = workers.into_iter().flat_map(|w| w.join().unwrap()).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..N_SUBMITTED + N_OWN), "{seen:?}");
        assert!(injector.is_empty());
    });
}
