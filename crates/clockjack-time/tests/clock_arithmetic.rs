//! Arithmetic of ticks and instants against plain 128-bit arithmetic, also at the end of time.

use core::{
    hash::{Hash, Hasher},
    time::Duration,
};
use std::collections::hash_map::DefaultHasher;

use clockjack_time::{Resolution, Tick, TickSpan, TimerInstant};
use proptest::prelude::*;

/// Counts near the interesting values: zero, the edges of words, the maximum.
fn count() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..1_000_u64,
        any::<u64>(),
        (u64::MAX - 1_000)..=u64::MAX,
        ((1_u64 << 32) - 500)..((1_u64 << 32) + 500),
        ((1_u64 << 63) - 500)..((1_u64 << 63) + 500),
    ]
}

fn resolution() -> impl Strategy<Value = Resolution> {
    prop_oneof![
        Just(1_u32),
        Just(3),
        Just(1_000),
        Just(1_000_000),
        Just(10_000_000),
        Just(u32::MAX),
        1..=u32::MAX
    ]
    .prop_map(|nanos| Resolution::from_nanos(nanos).expect("not zero"))
}

fn duration() -> impl Strategy<Value = Duration> {
    let short_edge = u64::MAX / 1_000_000_000;
    prop_oneof![
        (0..5_u64, 0..1_000_000_000_u32),
        (any::<u64>(), 0..1_000_000_000_u32),
        ((short_edge - 3)..(short_edge + 3), 0..1_000_000_000_u32),
        ((u64::MAX - 3)..=u64::MAX, 0..1_000_000_000_u32),
    ]
    .prop_map(|(secs, nanos)| Duration::new(secs, nanos))
}

fn nanos_of(instant: TimerInstant) -> u128 {
    u128::from(instant.ticks) * u128::from(instant.resolution_ns)
}

fn ns(resolution: Resolution) -> u128 {
    u128::from(resolution.nanos().get())
}

fn clamped(nanos: u128) -> Duration {
    match u64::try_from(nanos / 1_000_000_000) {
        Ok(secs) => Duration::new(secs, u32::try_from(nanos % 1_000_000_000).expect("a remainder")),
        Err(_) => Duration::MAX,
    }
}

fn hash_of(instant: TimerInstant) -> u64 {
    let mut hasher = DefaultHasher::new();
    instant.hash(&mut hasher);
    hasher.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn tick_sums_and_differences_agree_with_wide_arithmetic(a in count(), b in count()) {
        let sum = u128::from(a) + u128::from(b);
        prop_assert_eq!(
            Tick::new(a).checked_add(TickSpan::new(b)).map(|t| u128::from(t.get())),
            (sum <= u128::from(u64::MAX)).then_some(sum)
        );
        prop_assert_eq!(
            u128::from(Tick::new(a).saturating_add(TickSpan::new(b)).get()),
            sum.min(u128::from(u64::MAX))
        );
        let difference = i128::from(a) - i128::from(b);
        prop_assert_eq!(
            Tick::new(a).checked_since(Tick::new(b)).map(|s| i128::from(s.get())),
            (difference >= 0).then_some(difference)
        );
        prop_assert_eq!(
            i128::from(Tick::new(a).saturating_since(Tick::new(b)).get()),
            difference.max(0)
        );
        prop_assert_eq!(
            Tick::new(a).checked_sub(TickSpan::new(b)).map(Tick::get),
            a.checked_sub(b)
        );
    }

    #[test]
    fn a_delay_becomes_the_least_span_that_is_not_shorter(d in duration(), r in resolution()) {
        let exact = d.as_nanos().div_ceil(ns(r));
        let got = r.ticks_ceil(d).map(|s| u128::from(s.get()));
        prop_assert_eq!(got, (exact <= u128::from(u64::MAX)).then_some(exact));
    }

    #[test]
    fn a_span_lasts_its_ticks_or_the_longest_duration(t in count(), r in resolution()) {
        prop_assert_eq!(r.duration(TickSpan::new(t)), clamped(u128::from(t) * ns(r)));
    }

    #[test]
    fn a_deadline_is_never_early_and_less_than_a_tick_late(
        t in count(), d in duration(), r in resolution()
    ) {
        let now = TimerInstant::new(Tick::new(t), r);
        let due = nanos_of(now) + d.as_nanos();
        match now.checked_add(d) {
            Some(deadline) => {
                prop_assert!(nanos_of(deadline) >= due);
                prop_assert!(nanos_of(deadline) - due < ns(r));
                prop_assert_eq!(now + d, deadline);
            }
            None => {
                prop_assert!(due > u128::from(u64::MAX) * ns(r));
                prop_assert_eq!((now + d).ticks, u64::MAX);
                prop_assert_eq!((now + d).resolution_ns, now.resolution_ns);
            }
        }
    }

    #[test]
    fn instants_compare_by_the_time_they_mean(
        a in count(), b in count(), ra in resolution(), rb in resolution()
    ) {
        let (x, y) = (TimerInstant::new(Tick::new(a), ra), TimerInstant::new(Tick::new(b), rb));
        prop_assert_eq!(x.cmp(&y), nanos_of(x).cmp(&nanos_of(y)));
        prop_assert_eq!(x == y, nanos_of(x) == nanos_of(y));
        if x == y {
            prop_assert_eq!(hash_of(x), hash_of(y));
        }
        prop_assert_eq!(x.since(y), clamped(nanos_of(x).saturating_sub(nanos_of(y))));
    }

    #[test]
    fn deadlines_round_up_and_now_rounds_down_into_another_resolution(
        t in count(), from in resolution(), to in resolution()
    ) {
        let instant = TimerInstant::new(Tick::new(t), from);
        let (up, down) = (nanos_of(instant).div_ceil(ns(to)), nanos_of(instant) / ns(to));
        prop_assert_eq!(
            instant.deadline_tick(to).map(|tick| u128::from(tick.get())),
            (up <= u128::from(u64::MAX)).then_some(up)
        );
        prop_assert_eq!(
            u128::from(instant.elapsed_tick(to).get()),
            down.min(u128::from(u64::MAX))
        );
    }
}

#[test]
fn equal_times_in_two_resolutions_have_one_hash() {
    let milli = TimerInstant::new(Tick::new(5), Resolution::MILLI);
    let micro = TimerInstant::new(Tick::new(5_000), Resolution::MICRO);
    assert_eq!(milli, micro);
    assert_eq!(hash_of(milli), hash_of(micro));
}

#[test]
fn a_resolution_of_zero_written_by_hand_reads_as_one_nanosecond() {
    let odd = TimerInstant { ticks: 9, resolution_ns: 0 };
    assert_eq!(odd, TimerInstant { ticks: 9, resolution_ns: 1 });
    assert_eq!((odd + Duration::from_nanos(3)).ticks, 12);
    assert_eq!(odd.since(TimerInstant { ticks: 4, resolution_ns: 0 }), Duration::from_nanos(5));
}

#[test]
fn the_longest_delay_of_the_contract_fits_at_every_resolution() {
    for resolution in [Resolution::MICRO, Resolution::MILLI, Resolution::TEN_MILLIS] {
        let longest = resolution.duration(TickSpan::new(i32::MAX as u64));
        assert_eq!(resolution.ticks_ceil(longest), Some(TickSpan::new(i32::MAX as u64)));
    }
}

#[test]
fn everything_prints_what_it_is() {
    assert_eq!(Tick::new(12).to_string(), "12");
    assert_eq!(TickSpan::new(3).to_string(), "3");
    assert_eq!(Resolution::TEN_MILLIS.to_string(), "10ms");
    assert_eq!(TimerInstant::new(Tick::new(7), Resolution::MILLI).to_string(), "7 x 1ms");
    assert_eq!(Resolution::TEN_MILLIS.hertz(), 100);
}
