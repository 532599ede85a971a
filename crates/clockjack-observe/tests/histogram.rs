//! Histograms: error bound, merging, and that concurrent records are all counted.
#![cfg(not(loom))]

use std::thread;

use clockjack_observe::{
    Counter, Histogram, Quantile, Shared, SingleWriter, Snapshot, histogram::Bucket, mode::Mode,
};
use clockjack_sync::primitive::atomic::{AtomicBool, Ordering};
use proptest::{collection::vec, prelude::*};

const QUANTILES: [Quantile; 8] = [
    Quantile::MIN,
    Quantile::P50,
    Quantile::P90,
    Quantile::P95,
    Quantile::P99,
    Quantile::P99_9,
    Quantile::P99_99,
    Quantile::MAX,
];

/// Values of every magnitude: uniform numbers would nearly all be huge.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        8 => (any::<u64>(), 0_u32..64).prop_map(|(word, shift)| word >> shift),
        1 => (0_u32..64).prop_map(|exponent| 1 << exponent),
        1 => (0_u32..64).prop_map(|exponent| (1 << exponent) - 1),
        1 => Just(u64::MAX),
    ]
}

fn check_against_sorted<const SUB: usize, M: Mode>(values: &[u64]) {
    let histogram = Histogram::<SUB, M>::new();
    values.iter().for_each(|value| histogram.record(*value));
    let snapshot = histogram.snapshot();
    let mut sorted = values.to_vec();
    sorted.sort_unstable();

    assert_eq!(snapshot.count(), sorted.len() as u64);
    check_extreme::<SUB>(snapshot.min(), sorted.first().copied());
    check_extreme::<SUB>(snapshot.max(), sorted.last().copied());
    let sum: u128 = sorted.iter().map(|value| u128::from(*value)).sum();
    if usize::BITS == 64 || sum < 1 << 64 {
        assert_eq!(snapshot.sum(), sum);
    }
    for quantile in QUANTILES {
        let rank = (sorted.len() as u128 * u128::from(quantile.millionths())).div_ceil(1_000_000);
        let exact = sorted.get(usize::try_from(rank).unwrap().saturating_sub(1)).copied();
        let Some(exact) = exact else {
            assert_eq!(snapshot.quantile(quantile), None);
            continue;
        };
        let found = snapshot.quantile(quantile).expect("there are values");
        assert!(found >= exact, "{quantile}: {found} is below {exact}");
        assert!(found - exact <= exact / SUB as u64, "{quantile}: {found} for {exact}");
    }

    let mut by_hand = Snapshot::<SUB>::new();
    values.iter().for_each(|value| by_hand.record(*value));
    if sorted.last().is_none_or(|max| *max < usize::MAX as u64) {
        assert_eq!(by_hand, snapshot);
    }
    assert!(by_hand.buckets().eq(snapshot.buckets()));
}

/// Exact where a word holds it, otherwise the border of a bucket.
fn check_extreme<const SUB: usize>(found: Option<u64>, exact: Option<u64>) {
    match (found, exact) {
        (Some(found), Some(exact)) if usize::BITS < 64 && exact >= usize::MAX as u64 => {
            assert!(found.abs_diff(exact) <= exact / SUB as u64, "{found} for {exact}");
        }
        _ => assert_eq!(found, exact),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn quantiles_are_never_below_and_at_most_a_bucket_above(values in vec(value(), 0..300)) {
        check_against_sorted::<2, Shared>(&values);
        check_against_sorted::<16, Shared>(&values);
        check_against_sorted::<16, SingleWriter>(&values);
        check_against_sorted::<32, SingleWriter>(&values);
    }

    #[test]
    fn a_merge_equals_recording_everything_in_one(
        left in vec(value(), 0..100),
        right in vec(value(), 0..100),
    ) {
        let of = |values: &[u64]| {
            let mut snapshot = Snapshot::<8>::new();
            values.iter().for_each(|value| snapshot.record(*value));
            snapshot
        };
        let mut merged = of(&left);
        merged.merge(&of(&right));
        prop_assert_eq!(&merged, &of(&[left.clone(), right.clone()].concat()));

        let (live_left, live_right) = (Histogram::<8>::new(), Histogram::<8, SingleWriter>::new());
        left.iter().for_each(|value| live_left.record(*value));
        right.iter().for_each(|value| live_right.record(*value));
        let mut added = live_left.snapshot();
        live_right.add_to(&mut added);
        if merged.max().is_none_or(|max| max < usize::MAX as u64) {
            prop_assert_eq!(&added, &merged);
        }
        prop_assert!(added.buckets().eq(merged.buckets()));
        prop_assert_eq!(added.buckets().map(|bucket| bucket.count).sum::<u64>(), added.count());
    }
}

#[test]
fn an_empty_histogram_has_no_quantiles() {
    let snapshot = Histogram::<4>::new().snapshot();
    assert!(snapshot.is_empty());
    assert_eq!((snapshot.min(), snapshot.max(), snapshot.mean()), (None, None, None));
    assert_eq!(snapshot.quantile(Quantile::P50), None);
    assert_eq!(snapshot.buckets().next(), None);
    assert_eq!(snapshot.summary().count, 0);
}

#[test]
fn the_sum_carries_beyond_one_word() {
    let (histogram, n) = (Histogram::<2>::new(), 5);
    for _ in 0..n {
        histogram.record(usize::MAX as u64);
    }
    let snapshot = histogram.snapshot();
    assert_eq!(snapshot.sum(), usize::MAX as u128 * n);
    assert_eq!(snapshot.mean(), Some(usize::MAX as u64));
}

#[test]
fn the_greatest_values_of_all_keep_their_bounds() {
    let histogram = Histogram::<2>::new();
    for _ in 0..5 {
        histogram.record(u64::MAX);
    }
    let snapshot = histogram.snapshot();
    check_extreme::<2>(snapshot.min(), Some(u64::MAX));
    assert_eq!(snapshot.max(), Some(u64::MAX));
    assert_eq!(snapshot.quantile(Quantile::P50), Some(u64::MAX));
    let mean = snapshot.mean().expect("there are values");
    assert!(mean >= u64::MAX - u64::MAX / 2, "{mean}");
}

#[test]
fn counts_saturate_instead_of_wrapping_in_a_snapshot() {
    let mut snapshot = Snapshot::<2>::new();
    snapshot.record_n(3, u64::MAX);
    snapshot.record_n(3, 7);
    snapshot.record_n(1, 0);
    assert_eq!(snapshot.count(), u64::MAX);
    assert_eq!(snapshot.min(), Some(3), "zero times one is no record");
    assert_eq!(snapshot.quantile(Quantile::MAX), Some(3));
    let bucket = Bucket { lowest: 3, highest: 3, count: u64::MAX };
    assert_eq!(snapshot.buckets().collect::<Vec<_>>(), [bucket]);
}

#[test]
fn a_static_takes_records_from_many_threads_and_loses_none() {
    static HISTOGRAM: Histogram<16> = Histogram::new();
    static COUNTER: Counter = Counter::new();
    const THREADS: u64 = 4;
    const EACH: u64 = 20_000;

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || {
                    for n in 0..EACH {
                        HISTOGRAM.record(thread << 40 | n);
                        COUNTER.increment();
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            let (mut seen, mut counted) = (0, 0);
            while !done.load(Ordering::Relaxed) {
                let snapshot = HISTOGRAM.snapshot();
                assert!(snapshot.count() >= seen, "the count of a snapshot went back");
                seen = snapshot.count();
                assert!(COUNTER.get() >= counted, "the counter went back");
                counted = COUNTER.get();
                if let (Some(min), Some(max)) = (snapshot.min(), snapshot.max()) {
                    let p50 = snapshot.quantile(Quantile::P50).unwrap();
                    assert!((min..=max).contains(&p50), "{min} {p50} {max}");
                    assert!((min..=max).contains(&snapshot.mean().unwrap()));
                }
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
    });

    let snapshot = HISTOGRAM.snapshot();
    assert_eq!(snapshot.count(), THREADS * EACH);
    assert_eq!(snapshot.min(), Some(0));
    check_extreme::<16>(snapshot.max(), Some((THREADS - 1) << 40 | (EACH - 1)));
    let sum: u128 = (0..THREADS).map(|t| u128::from(t << 40) * u128::from(EACH)).sum::<u128>()
        + u128::from(THREADS * (EACH * (EACH - 1) / 2));
    assert_eq!(snapshot.sum(), sum);
    assert_eq!(COUNTER.get() as u64, THREADS * EACH);
}

#[test]
fn a_counter_wraps_and_differences_stay_right() {
    let counter = Counter::<SingleWriter>::new();
    counter.add(usize::MAX - 1);
    let earlier = counter.get();
    counter.add(5);
    assert_eq!(counter.get(), 3);
    assert_eq!(counter.since(earlier), 5);
}
