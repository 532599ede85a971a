//! Who goes first, and who comes.

use core::{
    cmp::Reverse,
    sync::atomic::{AtomicU64, Ordering},
};

use super::{
    board::Board,
    shared::{Called, help},
    *,
};

/// One lane of so many jobs, none of which waits for another.
fn waits(ranks: &[u8], aging: u32) -> Waits {
    let job = |rank: &u8| JobSpec { before: Vec::new(), is_gated: false, lane: 0, rank: *rank };
    let lane = LaneSpec { n_at_once: 1, is_isolated: false, aging };
    Waits::of(ranks.iter().map(job), vec![lane])
}

/// The order in which jobs are picked that can all be taken from the start, and how often one went
/// first because it had waited long.
fn picked(ranks: &[u8], aging: u32) -> (Vec<usize>, u64) {
    let waits = waits(ranks, aging);
    let mut board: Board<Arc<Core>> = Board::new(&waits, 0);
    let all = ranks.iter().enumerate();
    let all = all.map(|(at, rank)| (*rank, Reverse(u32::try_from(at).unwrap())));
    board.ready[0] = all.collect();
    let mut order = Vec::new();
    while !board.ready[0].is_empty() {
        order.push(board.pick(&waits, 0));
        board.n_picks += 1;
    }
    (order, board.n_starvations.iter().sum())
}

#[test]
fn the_highest_rank_goes_first_and_equals_in_compiled_order() {
    assert_eq!(picked(&[1, 3, 2, 3, 0], 0), (vec![1, 3, 2, 0, 4], 0));
}

#[test]
fn what_was_passed_over_often_enough_goes_first_and_is_counted() {
    // The first waits while two of a higher rank go; then it is its turn, then the rest.
    assert_eq!(picked(&[0, 3, 3, 3, 3], 2), (vec![1, 2, 0, 3, 4], 1));
}

#[test]
fn who_was_called_and_cannot_come_is_at_home_and_sends_the_coordinator() {
    struct Rung(AtomicU64);
    impl std::task::Wake for Rung {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let time = clockjack_testkit::ManualTime::start();
    let rung = Arc::new(Rung(AtomicU64::new(0)));
    let shared = Arc::new(Shared::new(waits(&[0], 0), time.system().executor(), 0, 1));
    shared.lock().coordinator = Some(Arc::clone(&rung).into());
    drop(help(Called { shared: Some(Arc::clone(&shared)), worker: 7 }));
    assert_eq!(shared.lock().home, [7]);
    assert_eq!(rung.0.load(Ordering::Relaxed), 1);
}
