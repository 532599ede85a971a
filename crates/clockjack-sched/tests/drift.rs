//! Drift is what all fires of a window have in common, and nothing else.
#![cfg(not(loom))]

use core::time::Duration;

use clockjack_sched::drift::{Drift, DriftMonitor, TickCount, TickRate, WINDOW_FIRES};
use clockjack_time::{ClockKind, Resolution, Tick};
use proptest::prelude::*;

const fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn realtime() -> DriftMonitor {
    DriftMonitor::new(Resolution::MILLI, 5, Duration::ZERO, ClockKind::RealtimeHost)
}

fn exact() -> DriftMonitor {
    DriftMonitor::new(Resolution::MILLI, 5, micros(1000), ClockKind::Deterministic)
}

/// Notes fires that are so many microseconds late; gives the index of each report.
fn reports(monitor: &mut DriftMonitor, late: impl IntoIterator<Item = u64>) -> Vec<(usize, Drift)> {
    let noted = late.into_iter().map(|late| monitor.note(micros(late), Duration::ZERO));
    noted.enumerate().filter_map(|(n, report)| Some((n, report?))).collect()
}

#[test]
fn a_window_above_the_budget_is_told_once_at_its_end() {
    let drift = |observed| Drift { observed: micros(observed), budget: micros(50), fires: 64 };
    let mut monitor = realtime();
    assert_eq!(monitor.budget(), micros(50));
    let late = (0..128).map(|n| if n < 64 { 51 + n } else { 200 });
    assert_eq!(reports(&mut monitor, late), [(63, drift(51)), (127, drift(200))]);
}

#[test]
fn one_fire_within_the_budget_excuses_its_window_and_no_other() {
    for punctual in [0, 31, 63] {
        let mut monitor = realtime();
        let late = (0..128).map(|n| if n == punctual { 50 } else { 900 });
        let told: Vec<_> = reports(&mut monitor, late).iter().map(|(n, _)| *n).collect();
        assert_eq!(told, [127]);
    }
}

#[test]
fn what_the_driver_reports_as_its_own_is_not_drift() {
    let mut monitor = realtime();
    let told = (0..64).filter_map(|_| monitor.note(micros(900), micros(850))).count();
    assert_eq!(told, 0);
    let told: Vec<_> = (0..64).filter_map(|_| monitor.note(micros(900), micros(849))).collect();
    assert_eq!(told, [Drift { observed: micros(51), budget: micros(50), fires: 64 }]);
    let told = (0..64).filter_map(|_| monitor.note(micros(10), micros(500))).count();
    assert_eq!(told, 0, "more jitter than lateness is no drift");
}

#[test]
fn on_a_clock_moved_by_hand_any_drift_is_told_at_once_and_once_a_window() {
    let drift = |observed, fires| Drift { observed: micros(observed), budget: micros(0), fires };
    let mut monitor = exact();
    assert_eq!(reports(&mut monitor, [0; 200]), []);
    let mut monitor = exact();
    let late = (0..192).map(|n| if n == 3 || n == 5 || n == 63 || n == 127 { n } else { 0 });
    assert_eq!(reports(&mut monitor, late), [(3, drift(3, 4)), (127, drift(127, 64))]);
    let mut monitor = exact();
    let told: Vec<_> = reports(&mut monitor, [7; 192]).iter().map(|(n, _)| *n).collect();
    assert_eq!(told, [0, 64, 128]);
}

#[test]
fn the_budget_is_a_part_of_the_tick() {
    let budget = |nanos, pct| {
        let resolution = Resolution::from_nanos(nanos).unwrap();
        DriftMonitor::new(resolution, pct, Duration::ZERO, ClockKind::RealtimeHardware).budget()
    };
    assert_eq!(budget(10_000_000, 5), micros(500));
    assert_eq!(budget(1_000, 0), Duration::ZERO);
    assert_eq!(budget(u32::MAX, 255), Duration::from_nanos(u64::from(u32::MAX) * 255 / 100));
}

#[test]
fn the_budget_is_not_below_the_floor() {
    let budget = |resolution, kind| DriftMonitor::new(resolution, 5, micros(1000), kind).budget();
    let host = ClockKind::RealtimeHost;
    assert_eq!(budget(Resolution::MILLI, host), micros(1000), "50 us of a tick");
    assert_eq!(budget(Resolution::from_nanos(100_000_000).unwrap(), host), micros(5000));
    assert_eq!(budget(Resolution::MILLI, ClockKind::Deterministic), Duration::ZERO);
}

proptest! {
    #[test]
    fn a_window_is_told_exactly_if_its_minimum_is_above_the_budget(
        late in proptest::collection::vec(40_u64..60, 0..400),
    ) {
        let told: Vec<_> = reports(&mut realtime(), late.iter().copied());
        let windows = late.chunks_exact(WINDOW_FIRES as usize).enumerate();
        let expected: Vec<_> = windows
            .map(|(n, window)| ((n + 1) * 64 - 1, micros(*window.iter().min().unwrap())))
            .filter(|(_, least)| *least > micros(50))
            .collect();
        let told: Vec<_> = told.iter().map(|(n, d)| (*n, d.observed)).collect();
        prop_assert_eq!(told, expected);
    }

    #[test]
    fn the_ticks_told_are_the_ticks_that_went(
        steps in proptest::collection::vec(0_u64..250, 0..60),
        start in 0_u64..1_000_000,
    ) {
        let mut rate = TickRate::new(Resolution::TEN_MILLIS, Tick::new(start));
        let (mut now, mut told) = (start, start);
        for step in steps {
            now += step;
            if let Some(TickCount { ticks, over }) = rate.note(Tick::new(now)) {
                told += ticks;
                prop_assert_eq!(told, now);
                prop_assert!(over >= Duration::from_secs(1));
                prop_assert_eq!(over, Duration::from_millis(10 * ticks));
            }
            prop_assert!(now - told < 100, "a second went by untold");
        }
    }
}

#[test]
fn a_second_that_is_no_whole_number_of_ticks_is_rounded_up() {
    let resolution = Resolution::from_nanos(300_000_000).unwrap();
    let mut rate = TickRate::new(resolution, Tick::new(10));
    assert_eq!(rate.note(Tick::new(13)), None);
    let over = Duration::from_millis(1_200);
    assert_eq!(rate.note(Tick::new(14)), Some(TickCount { ticks: 4, over }));
    assert_eq!(rate.note(Tick::new(14)), None);
    assert_eq!(rate.note(Tick::new(3)), None, "time that goes back is no time");
}
