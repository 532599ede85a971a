//! Loans, views and the statistics of the pool.

use proptest::prelude::*;

use super::*;

#[test]
fn a_buffer_comes_back_with_its_last_view_and_is_lent_again() {
    let pool = BufferPool::blocks(64, 64);
    let mut loan = pool.loan(10).unwrap();
    loan.copy_from_slice(b"0123456789");
    let blob = loan.freeze();
    let part = blob.slice(2..4).unwrap();
    drop(blob);
    assert_eq!(pool.stats().released, 0);
    assert_eq!(&*part, b"23");
    drop(part);
    assert_eq!(pool.stats().released, 1);
    let again = pool.loan(64).unwrap();
    let stats = pool.stats();
    assert_eq!((stats.allocated, stats.reused, stats.loaned), (1, 1, 2));
    drop(again);
}

#[test]
fn a_loan_is_zero_whoever_had_the_buffer_before() {
    let pool = BufferPool::blocks(8, 8);
    pool.loan(8).unwrap().fill(7);
    assert_eq!(*pool.loan(8).unwrap(), [0; 8]);
    assert_eq!(pool.stats().reused, 1);
}

#[test]
fn a_loan_that_is_dropped_goes_back() {
    let pool = BufferPool::blocks(8, 8);
    drop(pool.loan(3).unwrap());
    let stats = pool.stats();
    assert_eq!((stats.released, stats.bytes, stats.bytes_lent), (1, 8, 0));
}

#[test]
fn no_more_bytes_are_held_than_allowed() {
    let pool = BufferPool::blocks(100, 250);
    let both = [pool.loan(1).unwrap(), pool.loan(100).unwrap()];
    let refused = DataError(Kind::Exhausted { wanted: 50, lent: 200, max: 250 });
    assert_eq!(pool.loan(50).unwrap_err(), refused);
    assert_eq!(pool.stats().exhausted, 1);
    drop(both);
    assert!(pool.loan(50).is_ok());
    assert_eq!(pool.stats().high_water, 200);
}

#[test]
fn a_loan_gets_the_smallest_buffer_that_is_large_enough() {
    let pool = BufferPool::buckets(&[1000, 10, 100], 10_000);
    let loans = [pool.loan(10).unwrap(), pool.loan(11).unwrap(), pool.loan(0).unwrap()];
    assert_eq!(pool.stats().bytes, 120);
    let refused = DataError(Kind::TooLarge { wanted: 1001, largest: 1000 });
    assert_eq!(pool.loan(1001).unwrap_err(), refused);
    drop(loans);
}

#[test]
fn what_waits_in_another_size_makes_room() {
    let pool = BufferPool::buckets(&[10, 100], 100);
    drop(pool.loan(100).unwrap());
    let small = pool.loan(10).unwrap();
    assert_eq!(pool.stats().bytes, 10);
    assert!(matches!(pool.loan(100), Err(DataError(Kind::Exhausted { lent: 10, .. }))));
    drop(small);
    assert!(pool.loan(100).is_ok());
}

#[test]
fn a_detached_buffer_never_comes_back_and_no_longer_counts() {
    let pool = BufferPool::blocks(8, 8);
    let mut loan = pool.loan(8).unwrap();
    loan.fill(1);
    let kept = loan.freeze();
    let other = kept.clone();
    kept.detach();
    other.detach();
    let stats = pool.stats();
    assert_eq!((stats.detached, stats.bytes, stats.bytes_lent), (1, 0, 0));
    let next = pool.loan(8).unwrap();
    drop((other, kept.clone()));
    assert_eq!(*kept, [1; 8]);
    drop(kept);
    let stats = pool.stats();
    assert_eq!((stats.allocated, stats.released, stats.bytes), (2, 0, 8));
    drop(next);
}

#[test]
fn views_outlive_their_pool() {
    let pool = BufferPool::blocks(8, 8);
    let mut loan = pool.loan(2).unwrap();
    loan.copy_from_slice(b"ok");
    let blob = loan.freeze();
    drop(pool);
    blob.detach();
    assert_eq!(&*blob, b"ok");
}

#[test]
fn buffers_begin_where_they_are_asked_to() {
    for align in [1, 2, 16, 64, 4096] {
        let pool = BufferPool::aligned(&[100], 100_000, align);
        let loans: Vec<BufferLoan> = (0..5).map(|_| pool.loan(100).unwrap()).collect();
        for loan in &loans {
            assert_eq!(loan.as_ptr().align_offset(align), 0, "{align}");
            assert_eq!(loan.len(), 100);
        }
        assert_eq!(pool.stats().bytes, 5 * (99 + align));
    }
}

#[test]
fn views_dropped_on_many_threads_bring_back_each_buffer_once() {
    let pool = BufferPool::blocks(8, 8);
    for round in 1..=200 {
        let blob = pool.loan(8).unwrap().freeze();
        let copies: Vec<Blob> = (0..3).map(|_| blob.clone()).collect();
        std::thread::scope(|scope| {
            for copy in copies {
                scope.spawn(move || drop(copy));
            }
            drop(blob);
        });
        assert_eq!(pool.stats().released, round);
    }
    assert_eq!(pool.stats().allocated, 1);
}

proptest! {
    /// Whatever is lent, kept, detached and dropped, the statistics agree with the live buffers.
    #[test]
    fn the_books_agree_with_what_is_alive(
        steps in prop::collection::vec((0_u8..4, 0_usize..40), 0..60),
    ) {
        const MAX: usize = 200;
        let pool = BufferPool::buckets(&[10, 40], MAX);
        let mut alive: Vec<Blob> = Vec::new();
        let (mut lent, mut n_detached) = (0, 0);
        let mut costs: Vec<usize> = Vec::new();
        for (what, n) in steps {
            let at = n % alive.len().max(1);
            match what {
                0 | 1 => {
                    let cost = if n <= 10 { 10 } else { 40 };
                    match pool.loan(n) {
                        Ok(loan) => {
                            prop_assert!(loan.iter().all(|byte| *byte == 0));
                            let mut loan = loan;
                            loan.fill(0xff);
                            alive.push(loan.freeze());
                            costs.push(cost);
                            lent += cost;
                        }
                        Err(_) => prop_assert!(lent + cost > MAX),
                    }
                }
                2 if !alive.is_empty() => {
                    drop(alive.remove(at));
                    lent -= costs.remove(at);
                }
                3 if !alive.is_empty() => {
                    alive[at].detach();
                    n_detached += u64::from(costs[at] > 0);
                    lent -= core::mem::take(&mut costs[at]);
                }
                _ => (),
            }
            let stats = pool.stats();
            prop_assert_eq!((stats.bytes_lent, stats.detached), (lent, n_detached));
            prop_assert!(stats.bytes <= MAX && stats.bytes >= lent);
            prop_assert_eq!(stats.loaned, stats.allocated + stats.reused);
        }
    }
}

#[test]
fn an_unfilled_loan_has_what_was_left_in_it_and_any_other_is_zeroed() {
    let pool = BufferPool::blocks(64, 64);
    let mut first = pool.loan_unfilled(64).unwrap();
    assert!(first.iter().all(|byte| *byte == 0), "memory is never uninitialized");
    first.fill(7);
    drop(first);
    assert!(pool.loan_unfilled(64).unwrap().iter().all(|byte| *byte == 7));
    assert!(pool.loan(64).unwrap().iter().all(|byte| *byte == 0));
    assert_eq!((pool.stats().allocated, pool.stats().reused), (1, 2));
}
