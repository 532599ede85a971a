//! Allocations are counted, and nothing else is.

use core::hint::black_box;

use clockjack_testing::allocation::{Counting, Counts};

#[global_allocator]
static COUNTING: Counting = Counting::new();

#[test]
fn an_allocation_is_counted_and_arithmetic_is_not() {
    let (_, counts) = COUNTING.during(|| black_box(1 + black_box(1)));
    assert_eq!(counts, Counts { allocations: 0, frees: 0, live_bytes: 0 });
    let (kept, counts) = COUNTING.during(|| black_box(Box::new(7_u64)));
    assert_eq!(counts, Counts { allocations: 1, frees: 0, live_bytes: 8 });
    let ((), counts) = COUNTING.during(|| drop(kept));
    assert_eq!(counts, Counts { allocations: 0, frees: 1, live_bytes: -8 });
}

#[test]
fn a_block_that_grows_is_given_out_once_more_and_given_back() {
    let mut bytes = black_box(Vec::<u8>::with_capacity(16));
    let ((), counts) = COUNTING.during(|| bytes.reserve_exact(40));
    assert_eq!(counts, Counts { allocations: 1, frees: 1, live_bytes: 24 });
    drop(bytes);
}

#[test]
fn a_thread_counts_for_itself_and_bytes_are_those_of_all() {
    const LARGE: usize = 1 << 24;
    let before = COUNTING.allocations();
    COUNTING.forget_most();
    let (first, n_first) = (COUNTING.used_bytes(), COUNTING.allocations_of_all());
    let large = std::thread::scope(|scope| {
        let large = || {
            let (large, counts) = COUNTING.during(|| black_box(vec![0_u8; LARGE]));
            assert_eq!((counts.allocations, counts.live_bytes), (1, LARGE.cast_signed()));
            large
        };
        scope.spawn(large).join().expect("no panic")
    });
    assert!(COUNTING.allocations_of_all() > n_first);
    // The harness and the other tests use less than half of this.
    assert!(COUNTING.used_bytes() > first + LARGE / 2);
    drop(large);
    assert!(COUNTING.used_bytes() < first + LARGE / 2);
    assert!(COUNTING.most_bytes() > first + LARGE / 2);
    // Starting a thread allocates, but this thread allocates no large vector.
    assert!(COUNTING.allocations() - before < 100);
}
