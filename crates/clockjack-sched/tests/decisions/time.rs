//! A1, A4, A7, A11, A22: delays, their limits, and whether runs are on time.

use alloc::vec::Vec;
use core::time::Duration;

use clockjack_sched::{
    DELAY_TICKS_MAX, FireContext, PERIOD_TICKS_MAX, ScheduleErrorKind, SchedulerConfig, Warning,
};
use clockjack_time::{ClockKind, MonotonicClock as _, Resolution, Tick, TickSpan};

use crate::bench::{Diary, HERE, Host, listen, manual, ms, plain, secs, warnings};

const INVALID: ScheduleErrorKind = ScheduleErrorKind::InvalidDelay;

#[test]
fn a01_no_delay_means_at_once() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let diary = Diary::default();
    let write = |name| diary.writer(name);
    manual.advance(ms(70));
    let once = scheduler.schedule_once_fn(ms(0), HERE, write("once")).unwrap();
    assert!(once.is_completed());
    scheduler.schedule_at_fixed_rate_fn(ms(0), ms(20), HERE, write("rate")).unwrap();
    scheduler.schedule_with_fixed_delay_fn(ms(0), ms(30), HERE, write("delay")).unwrap();
    assert_eq!(diary.entries(), [("once", 7, 1), ("rate", 7, 1), ("delay", 7, 1)]);
    manual.advance(ms(30));
    assert_eq!(diary.entries()[3..], [("rate", 9, 1), ("delay", 10, 1)]);
}

/// The same path as all others: behind the handler that asks for it, in order, and cancellable.
#[test]
fn a01_no_delay_within_a_handler_means_after_it() {
    let manual = plain();
    let diary = Diary::default();
    let (scheduler, write) = (manual.scheduler().clone(), diary.clone());
    let f = move |fire: &FireContext| {
        scheduler.schedule_once_fn(ms(0), HERE, write.writer("first")).unwrap();
        let never = scheduler.schedule_once_fn(ms(0), HERE, write.writer("never")).unwrap();
        scheduler.schedule_once_fn(ms(0), HERE, write.writer("second")).unwrap();
        assert!(never.cancel());
        write.note("outer", fire);
    };
    manual.scheduler().schedule_once_fn(ms(10), HERE, f).unwrap();
    assert_eq!(manual.advance(ms(10)), 3);
    assert_eq!(diary.names(), ["outer", "first", "second"]);
}

#[test]
fn a01_strict_delays_refuse_zero_and_nothing_else() {
    let manual = manual(SchedulerConfig { strict_delays: true, ..SchedulerConfig::DEFAULT });
    let scheduler = manual.scheduler();
    let kind = |refused: Option<ScheduleErrorKind>| refused;
    let once = scheduler.schedule_once_fn(ms(0), HERE, |_| ()).err().map(|it| it.kind());
    assert_eq!(kind(once), Some(INVALID));
    let rate = scheduler.schedule_at_fixed_rate_fn(ms(0), ms(10), HERE, |_| ());
    assert_eq!(kind(rate.err().map(|it| it.kind())), Some(INVALID));
    let delay = scheduler.schedule_with_fixed_delay_fn(ms(0), ms(10), HERE, |_| ());
    assert_eq!(kind(delay.err().map(|it| it.kind())), Some(INVALID));
    let least = Duration::from_nanos(1);
    scheduler.schedule_once_fn(least, HERE, |_| ()).unwrap();
    assert_eq!((manual.run_due(), manual.advance(ms(10))), (0, 1));
}

#[test]
fn a01_a_period_of_zero_is_always_refused() {
    for strict_delays in [false, true] {
        let manual = manual(SchedulerConfig { strict_delays, ..SchedulerConfig::DEFAULT });
        let scheduler = manual.scheduler();
        for initial in [ms(0), ms(10)] {
            let rate = scheduler.schedule_at_fixed_rate_fn(initial, ms(0), HERE, |_| ());
            assert_eq!(rate.unwrap_err().kind(), INVALID);
            let delay = scheduler.schedule_with_fixed_delay_fn(initial, ms(0), HERE, |_| ());
            assert_eq!(delay.unwrap_err().kind(), INVALID);
        }
        assert_eq!(scheduler.metrics().accepted_total, 0);
    }
}

#[test]
fn a04_the_longest_delay_is_exact_to_the_tick() {
    assert_eq!((DELAY_TICKS_MAX, PERIOD_TICKS_MAX), (1 << 48, 2_147_483_647));
    for (resolution, start) in [
        (Resolution::TEN_MILLIS, 0),
        (Resolution::MILLI, 12_345),
        (Resolution::TEN_MILLIS, u64::MAX / 4),
    ] {
        let start = Tick::new(start);
        let config = SchedulerConfig { resolution, start, ..SchedulerConfig::DEFAULT };
        let manual = manual(config);
        let scheduler = manual.scheduler();
        let longest = resolution.duration(TickSpan::new(DELAY_TICKS_MAX));
        let tick = resolution.duration(TickSpan::new(1));
        for over in [tick, Duration::from_nanos(1)] {
            let refused = scheduler.schedule_once_fn(longest + over, HERE, |_| ()).unwrap_err();
            assert_eq!(refused.kind(), INVALID);
            let period = resolution.duration(TickSpan::new(PERIOD_TICKS_MAX)) + over;
            let period = scheduler.schedule_at_fixed_rate_fn(tick, period, HERE, |_| ());
            assert_eq!(period.unwrap_err().kind(), INVALID);
        }
        let diary = Diary::default();
        let job = scheduler.schedule_once_fn(longest, HERE, diary.writer("longest")).unwrap();
        assert_eq!(scheduler.diagnostics().dump().shards[0].overflow, 1);
        manual.advance(longest - tick);
        assert_eq!(diary.len(), 0);
        manual.advance(tick);
        assert_eq!(diary.len(), 1);
        assert!(job.is_completed());
    }
}

#[test]
fn a04_the_longest_period_is_i32_max_ticks() {
    let manual = plain();
    let longest = Resolution::TEN_MILLIS.duration(TickSpan::new(PERIOD_TICKS_MAX));
    let diary = Diary::default();
    let (rate, delay) = (diary.writer("rate"), diary.writer("delay"));
    manual.scheduler().schedule_at_fixed_rate_fn(longest, longest, HERE, rate).unwrap();
    manual.scheduler().schedule_with_fixed_delay_fn(longest, longest, HERE, delay).unwrap();
    for _ in 0..3 {
        manual.advance(longest);
    }
    assert_eq!(diary.ticks(), [1, 1, 2, 2, 3, 3].map(|n| n * PERIOD_TICKS_MAX));
}

#[test]
fn a04_less_than_two_to_the_twenty_ticks_live_in_the_wheel() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let overflow = || {
        let shard = &scheduler.diagnostics().dump().shards[0];
        (shard.pending, shard.overflow)
    };
    let ticks = |n| Resolution::TEN_MILLIS.duration(TickSpan::new(n));
    scheduler.schedule_once_fn(ticks((1 << 20) - 1), HERE, |_| ()).unwrap();
    assert_eq!(overflow(), (1, 0));
    scheduler.schedule_once_fn(ticks(1 << 20), HERE, |_| ()).unwrap();
    assert_eq!(overflow(), (2, 1));
    assert_eq!(manual.advance(ticks((1 << 20) - 1)), 1);
    assert_eq!(manual.advance(ms(10)), 1);
}

/// At the resolution of a default runtime, where a year is more than `i32::MAX` ticks.
#[test]
fn a04_a_year_just_works() {
    let resolution = Resolution::MILLI;
    let manual = manual(SchedulerConfig { resolution, ..SchedulerConfig::DEFAULT });
    let year = secs(365 * 24 * 3600);
    let diary = Diary::default();
    manual.scheduler().schedule_once_fn(year, HERE, diary.writer("year")).unwrap();
    let mut days = Vec::new();
    for day in 1..=366 {
        if manual.advance(secs(24 * 3600)) > 0 {
            days.push(day);
        }
    }
    assert_eq!(days, [365]);
}

/// The clock is finer than a tick and is read at odd moments.
#[test]
fn a07_nothing_fires_early_and_lateness_is_reported() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
    let scheduler = host.scheduler(SchedulerConfig::DEFAULT);
    host.clock.advance(ms(7));
    let diary = Diary::default();
    let write = diary.clone();
    let f = move |fire: &FireContext| {
        // From 7 ms on 20 ms are over at 27, and the next edge is at 30.
        let (late, due) = (fire.late(), fire.due());
        if late == ms(5) && due == Tick::new(3) && fire.now().tick() == Tick::new(35) {
            write.note("well told", fire);
        }
    };
    scheduler.schedule_once_fn(ms(20), HERE, f).unwrap();
    host.clock.advance(ms(22));
    assert_eq!(scheduler.poll_shard(0, 0, usize::MAX).ran, 0, "29 ms are not 30");
    host.clock.advance(ms(6));
    assert_eq!(scheduler.poll_shard(0, 0, usize::MAX).ran, 1);
    assert_eq!(diary.len(), 1);
    let lateness = scheduler.metrics().lateness;
    assert_eq!(lateness.count, 1);
    // The histogram keeps its maximum to within a bucket.
    assert!((4_900_000..=5_100_000).contains(&lateness.max), "{lateness:?}");
}

#[test]
fn a11_ticks_that_nobody_took_up_are_made_up_for_and_counted() {
    let manual = plain();
    let scheduler = manual.scheduler();
    let mut stream = listen(scheduler);
    let diary = Diary::default();
    for delay in [10, 500, 1000, 3000] {
        scheduler.schedule_once_fn(ms(delay), HERE, diary.writer("job")).unwrap();
    }
    manual.clock().advance(secs(2));
    manual.run_due();
    assert_eq!(diary.ticks(), [200, 200, 200], "no tick is dropped");
    assert_eq!(scheduler.metrics().drift_compensations, 199);
    let told = warnings(&mut stream).into_iter().find_map(|warning| match warning {
        Warning::DriverCatchUpExceeded { ticks, limit, .. } => Some((ticks, limit)),
        _ => None,
    });
    assert_eq!(told, Some((199, 100)));
    manual.advance(secs(1));
    assert_eq!(diary.ticks()[3], 300);
    assert_eq!(scheduler.metrics().drift_compensations, 199);
}

fn drifts(warnings: &[Warning]) -> Vec<(Duration, Duration, u32)> {
    let drift = |warning: &Warning| match warning {
        Warning::DriftExceeded { observed, budget, fires, .. } => {
            Some((*observed, *budget, *fires))
        }
        _ => None,
    };
    warnings.iter().filter_map(drift).collect()
}

/// Fires `n` one-shots, each `late` after it was due, and returns the reported drifts.
fn fire_late(late: &[u64], jitter: Duration) -> Vec<(Duration, Duration, u32)> {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::from_nanos(100_000).unwrap());
    let config = SchedulerConfig { drift_floor: Duration::ZERO, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    scheduler.diagnostics().set_driver_jitter(jitter);
    let mut stream = listen(&scheduler);
    for late_us in late {
        scheduler.schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
        host.clock.advance(ms(10) + Duration::from_micros(*late_us));
        assert_eq!(scheduler.poll_shard(0, 0, usize::MAX).ran, 1);
        // To the next edge, so that the delay is counted from there.
        let into = host.clock.now().tick().get() % 100;
        host.clock.advance(Duration::from_micros(100 * (100 - into)));
    }
    assert_eq!(scheduler.diagnostics().driver_jitter(), jitter);
    drifts(&warnings(&mut stream))
}

#[test]
fn a22_a_window_of_64_fires_drifts_if_the_least_late_is_beyond_the_budget() {
    let budget = Duration::from_micros(500);
    let late = Duration::from_micros(600);
    assert_eq!(fire_late(&[600; 63], ms(0)), []);
    assert_eq!(fire_late(&[600; 64], ms(0)), [(late, budget, 64)]);
    assert_eq!(fire_late(&[600; 200], ms(0)), [(late, budget, 64)], "once a minute");
    assert_eq!(fire_late(&[500; 64], ms(0)), [], "as late as may be");
    let mut one_in_time = [5000; 64];
    one_in_time[40] = 400;
    assert_eq!(fire_late(&one_in_time, ms(0)), []);
}

#[test]
fn a22_what_the_driver_reports_of_itself_is_no_drift() {
    assert_eq!(fire_late(&[1500; 64], ms(1)), [], "1.5 ms late, 1 ms of it the driver's");
    let budget = Duration::from_micros(500);
    assert_eq!(fire_late(&[1600; 64], ms(1)), [(Duration::from_micros(600), budget, 64)]);
}

#[test]
fn a22_on_a_deterministic_clock_any_drift_is_told() {
    let manual = plain();
    let mut stream = listen(manual.scheduler());
    manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    manual.advance(ms(10));
    assert_eq!(drifts(&warnings(&mut stream)), []);
    manual.scheduler().schedule_once_fn(ms(10), HERE, |_| ()).unwrap();
    manual.clock().advance(ms(20));
    manual.run_due();
    assert_eq!(drifts(&warnings(&mut stream)), [(ms(10), ms(0), 2)], "of both fires");
    assert_eq!(manual.scheduler().metrics().drift.count, 1);
}

#[test]
fn a22_the_ticks_of_a_second_are_told() {
    use clockjack_sched::{DiagnosticEvent, EventKinds};
    let manual = plain();
    let mut stream = crate::bench::listen_to(manual.scheduler(), EventKinds::TICK_RATE);
    manual.scheduler().schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, |_| ()).unwrap();
    manual.advance(secs(5));
    let heard = crate::bench::events(&mut stream);
    assert!((4..=5).contains(&heard.len()), "{heard:?}");
    for event in heard {
        let DiagnosticEvent::TickRate { ticks, over } = event else { panic!("{event:?}") };
        assert_eq!(Resolution::TEN_MILLIS.duration(TickSpan::new(ticks)), over);
        assert!((100..=101).contains(&ticks), "{ticks}");
    }
}

/// Handlers that take longer than their period: every run is late, and later and later. All of them
/// are seen, and not only those that found the job idle.
#[test]
fn a22_lateness_and_drift_are_seen_under_overload() {
    let host = Host::new(ClockKind::RealtimeHost, Resolution::MILLI);
    let config = SchedulerConfig { resolution: Resolution::MILLI, ..SchedulerConfig::DEFAULT };
    let scheduler = host.scheduler(config);
    let mut stream = listen(&scheduler);
    let clock = host.clone();
    let slow = move |_: &FireContext| _ = clock.clock.advance(ms(20));
    let job = scheduler.schedule_at_fixed_rate_fn(ms(10), ms(10), HERE, slow).unwrap();
    for _ in 0..200 {
        scheduler.poll_shard(0, 0, 1);
        if host.clock.now().tick() < Tick::new(10) {
            host.clock.advance(ms(10));
        }
    }
    job.cancel();
    let metrics = scheduler.metrics();
    assert!(metrics.fired_total > 150, "{metrics:?}");
    assert_eq!(metrics.lateness.count, metrics.fired_total, "one sample for each run");
    assert!(metrics.lateness.max > 1_000_000_000, "the last ones are seconds late: {metrics:?}");
    let seen = drifts(&warnings(&mut stream));
    let windows = metrics.fired_total / 64;
    assert_eq!(metrics.drift.count, windows - 1, "only the first run was on time");
    assert_eq!(seen.len(), 1, "one warning for all of them");
    assert!(seen.last().is_some_and(|(least, ..)| *least > ms(500)), "{seen:?}");
}
