//! The manual clock and the tick counts, one thread at a time and many.
#![cfg(not(loom))]

use core::time::Duration;

use clockjack_time::{
    ClockKind, ManualClock, MonotonicClock, Resolution, Tick, TickSpan, TimerInstant,
    driver::MonotonicCount, ticks_32::Ticks32, ticks_64::Ticks64,
};
use proptest::prelude::*;

#[test]
fn a_manual_clock_stands_still_until_it_is_advanced() {
    let clock = ManualClock::new(Resolution::MILLI);
    assert_eq!(clock.kind(), ClockKind::Deterministic);
    assert_eq!(clock.resolution(), Resolution::MILLI);
    assert_eq!(clock.now(), clock.now());
    let now = clock.advance(Duration::from_millis(3));
    assert_eq!(now, TimerInstant::new(Tick::new(3), Resolution::MILLI));
    assert_eq!(clock.now(), now);
    assert_eq!((&clock as &dyn MonotonicClock).now(), now);
    assert!(!clock.is_saturated());
}

#[test]
fn advancing_to_an_earlier_tick_changes_nothing() {
    let clock = ManualClock::starting_at(Tick::new(10), Resolution::MILLI);
    clock.advance(Duration::from_micros(900));
    assert_eq!(clock.advance_to(Tick::new(10)).ticks, 10);
    assert_eq!(clock.advance_to(Tick::new(3)).ticks, 10);
    // The kept fraction still counts.
    assert_eq!(clock.advance(Duration::from_micros(100)).ticks, 11);
    // A jump ends on the edge of its tick: the fraction is gone.
    clock.advance(Duration::from_micros(900));
    assert_eq!(clock.advance_to(Tick::new(20)).ticks, 20);
    assert_eq!(clock.advance(Duration::from_micros(900)).ticks, 20);
}

#[test]
fn whole_ticks_leave_the_kept_fraction_alone() {
    let clock = ManualClock::new(Resolution::MILLI);
    clock.advance(Duration::from_micros(600));
    assert_eq!(clock.advance_ticks(TickSpan::new(4)).ticks, 4);
    assert_eq!(clock.advance(Duration::from_micros(400)).ticks, 5);
}

#[test]
fn the_end_of_the_count_is_reached_exactly_and_never_passed() {
    let clock = ManualClock::starting_at(Tick::new(u64::MAX - 2), Resolution::MILLI);
    assert_eq!(clock.advance(Duration::from_millis(2)).ticks, u64::MAX);
    assert!(!clock.is_saturated(), "reaching the end is not passing it");
    assert_eq!(clock.advance(Duration::from_micros(1)).ticks, u64::MAX);
    assert!(!clock.is_saturated());
    assert_eq!(clock.advance(Duration::from_millis(1)).ticks, u64::MAX);
    assert!(clock.is_saturated());
    for advance in [Duration::MAX, Duration::ZERO] {
        assert_eq!(clock.advance(advance).ticks, u64::MAX);
    }
    let short = ManualClock::new(Resolution::from_nanos(1).expect("not zero"));
    assert_eq!(short.advance(Duration::MAX).ticks, u64::MAX);
    assert!(short.is_saturated());
    let jump = ManualClock::starting_at(Tick::new(1), Resolution::MILLI);
    assert_eq!(jump.advance_ticks(TickSpan::MAX).ticks, u64::MAX);
    assert!(jump.is_saturated());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn many_small_advances_add_up_exactly(
        start in prop_oneof![0..10_u64, ((1_u64 << 32) - 5)..((1_u64 << 32) + 5)],
        nanos in 1..=u32::MAX,
        steps in prop::collection::vec(0..5_000_000_000_u64, 0..60),
    ) {
        let resolution = Resolution::from_nanos(nanos).expect("not zero");
        let clock = ManualClock::starting_at(Tick::new(start), resolution);
        let mut total = 0_u128;
        for step in steps {
            total += u128::from(step);
            let now = clock.advance(Duration::from_nanos(step));
            let expected = u128::from(start) + total / u128::from(nanos);
            prop_assert_eq!(u128::from(now.ticks), expected);
        }
    }

    #[test]
    fn both_tick_counts_only_rise(
        start in prop_oneof![any::<u64>(), ((1_u64 << 32) - 5)..((1_u64 << 32) + 5)],
        targets in prop::collection::vec(
            prop_oneof![any::<u64>(), ((1_u64 << 32) - 5)..((1_u64 << 32) + 5)], 0..20),
    ) {
        let (bits_64, bits_32) = (Ticks64::new(start), Ticks32::new(start));
        let mut expected = start;
        for target in targets {
            bits_64.raise(target);
            bits_32.raise(target);
            expected = expected.max(target);
            prop_assert_eq!((bits_64.load(), bits_32.load()), (expected, expected));
        }
    }
}

#[test]
fn readers_of_a_32_bit_count_never_see_time_go_back() {
    const START: u64 = (5 << 32) - 50_000;
    const END: u64 = (5 << 32) + 50_000;
    let ticks = Ticks32::new(START);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = START;
                while last < END {
                    let now = ticks.load();
                    assert!(now >= last, "time went back from {last:#x} to {now:#x}");
                    assert!(now <= END, "{now:#x} was never the time");
                    last = now;
                }
            });
        }
        for now in START..=END {
            ticks.raise(now);
        }
    });
}

#[test]
fn a_manual_clock_advanced_by_many_threads_loses_nothing() {
    const EACH: u32 = 5_000;
    let clock = ManualClock::new(Resolution::MILLI);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    clock.advance(Duration::from_micros(700));
                }
            });
        }
    });
    assert_eq!(clock.now().ticks, u64::from(EACH) * 3 * 700 / 1_000);
}
