//! Both forms of the tick count, and the lock of the manual clock.

use core::time::Duration;

use clockjack_time::{
    ManualClock, MonotonicClock, Resolution, driver::MonotonicCount, ticks_32::Ticks32,
    ticks_64::Ticks64,
};
use loom::{sync::Arc, thread};

/// Two readers, one of which knows the other's reading; the writer passes an edge of the low half,
/// once step by step and once in a jump.
fn readings_only_rise<C: MonotonicCount + Send + 'static>(count: fn(u64) -> C, steps: [u64; 2]) {
    const EDGE: u64 = 1 << 32;
    loom::model(move || {
        let ticks = Arc::new(count(EDGE - 1));
        let reader = {
            let ticks = ticks.clone();
            thread::spawn(move || {
                let first = ticks.load();
                let second = ticks.load();
                assert!(first <= second, "time went back from {first:#x} to {second:#x}");
                (first, second)
            })
        };
        let mut now = EDGE - 1;
        for step in steps {
            now += step;
            ticks.raise(now);
            assert_eq!(ticks.load(), now, "the writer reads what it wrote");
        }
        let (first, second) = reader.join().expect("no panic");
        let legal = [EDGE - 1, EDGE, EDGE - 1 + steps[0], now];
        for reading in [first, second] {
            assert!(legal.contains(&reading), "{reading:#x} was never the time");
        }
    });
}

#[test]
fn readings_of_the_64_bit_count_only_rise() {
    readings_only_rise(Ticks64::new, [1, 1]);
    readings_only_rise(Ticks64::new, [7, 1]);
}

#[test]
fn readings_of_the_32_bit_count_only_rise() {
    readings_only_rise(Ticks32::new, [1, 1]);
    readings_only_rise(Ticks32::new, [7, 1]);
}

#[test]
fn a_32_bit_reading_that_heard_of_another_is_not_older() {
    loom::model(|| {
        let ticks = Arc::new(Ticks32::new((1 << 32) - 1));
        let writer = {
            let ticks = ticks.clone();
            thread::spawn(move || ticks.raise(1 << 32))
        };
        let first = ticks.load();
        let heir = {
            let ticks = ticks.clone();
            thread::spawn(move || ticks.load())
        };
        let second = heir.join().expect("no panic");
        assert!(first <= second, "time went back from {first:#x} to {second:#x}");
        writer.join().expect("no panic");
        assert_eq!(ticks.load(), 1 << 32);
    });
}

#[test]
fn two_who_advance_a_manual_clock_lose_nothing() {
    loom::model(|| {
        let clock = Arc::new(ManualClock::new(Resolution::MILLI));
        let other = {
            let clock = clock.clone();
            thread::spawn(move || clock.advance(Duration::from_micros(1_750)))
        };
        clock.advance(Duration::from_micros(1_250));
        other.join().expect("no panic");
        assert_eq!(clock.now().ticks, 3);
    });
}
