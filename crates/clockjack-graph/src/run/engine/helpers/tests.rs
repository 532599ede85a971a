//! Which job goes first, and what happens to a helper that does not run.

use core::{
    cmp::Reverse,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    ready_queue::ReadyQueue,
    shared::{Helper, run_helper},
    *,
};

/// One lane of independent jobs with these ranks.
fn independent(ranks: &[u8], aging: u32) -> Dependencies {
    let job = |rank: &u8| JobSpec {
        dependencies: Vec::new(),
        waits_for_all: false,
        lane: 0,
        rank: *rank,
    };
    let lane = LaneSpec { n_at_once: 1, is_isolated: false, aging };
    Dependencies::from_jobs(ranks.iter().map(job), vec![lane])
}

/// The order in which jobs are picked that are all ready from the start, and how often one ran
/// early because it had waited for long.
fn picked(ranks: &[u8], aging: u32) -> (Vec<usize>, u64) {
    let dependencies = independent(ranks, aging);
    let mut queue: ReadyQueue<Arc<DomainState>> = ReadyQueue::new(&dependencies, 0);
    let all = ranks.iter().enumerate();
    let all = all.map(|(at, rank)| (*rank, Reverse(u32::try_from(at).unwrap())));
    queue.ready[0] = all.collect();
    let mut order = Vec::new();
    while !queue.ready[0].is_empty() {
        order.push(queue.pick(&dependencies, 0));
        queue.n_picks += 1;
    }
    (order, queue.n_starvations.iter().sum())
}

#[test]
fn the_highest_rank_goes_first_and_equals_in_compiled_order() {
    assert_eq!(picked(&[1, 3, 2, 3, 0], 0), (vec![1, 3, 2, 0, 4], 0));
}

#[test]
fn what_was_passed_over_often_enough_goes_first_and_is_counted() {
    // The first job waits while two of a higher rank go; then it goes itself, then the rest.
    assert_eq!(picked(&[0, 3, 3, 3, 3], 2), (vec![1, 2, 0, 3, 4], 1));
}

#[test]
fn a_spawned_helper_that_does_not_run_is_idle_again_and_wakes_the_coordinator() {
    struct CountWakes(AtomicU64);
    impl std::task::Wake for CountWakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let time = clockjack_testkit::ManualTime::start();
    let wakes = Arc::new(CountWakes(AtomicU64::new(0)));
    let executor = time.system().executor();
    let shared = Arc::new(HelpersShared::new(independent(&[0], 0), executor, 0, 1));
    shared.lock().coordinator = Some(Arc::clone(&wakes).into());
    drop(run_helper(Helper { shared: Arc::clone(&shared), worker: 7 }));
    let idle: Vec<u16> = shared.lock().idle.iter().map(|one| one.worker).collect();
    assert_eq!(idle, [7]);
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
}
