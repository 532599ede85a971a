//! Lanes: ticks by a clock that the test advances, what happens to late ones, budgets, and how much
//! a pool lane admits.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use clockjack_graph::{
    Clock, CommitLog, RunOptions, RunStopReason, TraceLog,
    describe::{LaneOverflow, OverrunPolicy},
    run::{HealthKind, TraceName},
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    clock::{Diary, Ran, ms, run, run_as_given},
    parts::{Seen, registry},
    teller::{graph, reader, runtime, source, tell_alone, tell_by},
    threads::records,
};

/// A slow component in a lane of ten milliseconds by the wall clock.
fn ticked(more: &str) -> String {
    let lane =
        format!("main: {{ type: fixed_rate, period_ms: 10, wall_clock_enabled: true{more} }}");
    slow(&lane, "")
}

fn slow(lane: &str, execution: &str) -> String {
    graph(lane, &[&format!("id: s, type: slow, execution: {{ lane: main{execution} }}")], &[])
}

/// Runs six ticks of which the first take so long.
fn late(policy: OverrunPolicy, takes_ms: &[u64]) -> (Ran, TraceLog) {
    let trace = TraceLog::new(1 << 12);
    let text = ticked(&format!(", overrun_policy: {}", policy.name()));
    let diary = Diary { takes_ms: takes_ms.iter().copied().collect(), ..Diary::default() };
    (run(&text, RunOptions::steps(6).trace(&trace), diary), trace)
}

/// Overruns, skipped ticks, the greatest lateness and the last jitter, in milliseconds.
fn counts(ran: &Ran) -> [u64; 4] {
    ["tick_overrun_count", "skipped_tick_count", "max_lateness_ms", "tick_jitter_ms"]
        .map(|name| ran.metric(&format!("runtime.scheduler.{name}"), "main"))
}

#[test]
fn a_tick_of_two_and_a_half_periods_is_followed_by_what_its_policy_says() {
    for (policy, begun_ms, n_skipped) in [
        // Those at 10 and 20 are gone; the next one is on time.
        (OverrunPolicy::DropTick, [0, 30, 40, 50, 60, 70], 2),
        // And one more is skipped.
        (OverrunPolicy::SkipNext, [0, 40, 50, 60, 70, 80], 3),
        // The last of those that are gone is made up for at once; 10 is lost.
        (OverrunPolicy::CatchUpOnce, [0, 25, 30, 40, 50, 60], 1),
    ] {
        let (ran, trace) = late(policy, &[25]);
        assert_eq!(ran.begun_ms(), begun_ms, "{policy}");
        assert_eq!(counts(&ran), [1, n_skipped, 15, 15], "{policy}");
        assert_eq!(ran.metric("runtime.scheduler.tick_count", "main"), 6);
        let records = trace.take();
        let of = |name| records.iter().filter(move |record| record.name == name);
        assert_eq!(of(TraceName::FixedRateOverrun).count(), 1, "{policy}");
        let skipped: Vec<u64> =
            of(TraceName::FixedRateSkippedTick).map(|record| record.value).collect();
        assert_eq!(skipped, [n_skipped], "{policy}");
    }
}

#[test]
fn in_virtual_time_ticks_are_late_as_a_model_of_costs_says() {
    for (policy, begun_ms, n_skipped) in [
        (OverrunPolicy::DropTick, [0, 30, 40, 50, 60, 70], 2),
        (OverrunPolicy::SkipNext, [0, 40, 50, 60, 70, 80], 3),
        (OverrunPolicy::CatchUpOnce, [0, 25, 30, 40, 50, 60], 1),
    ] {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&begun);
        let act: Act = Arc::new(move |cx, _, _| {
            noted.lock().unwrap().push(cx.now().as_millis());
            Ok(())
        });
        let lane = format!("main: {{ type: fixed_rate, period_ms: 10, overrun_policy: {policy} }}");
        let text = graph(&lane, &["id: s, type: acts, execution: { lane: main }"], &[]);
        let (time, trace) = (ManualTime::start(), TraceLog::new(1 << 10));
        let types = with_acts(registry(&Seen::default()), act);
        let cost = |component: &str, epoch: u64| {
            assert_eq!(component, "s");
            Duration::from_millis(if epoch == 1 { 25 } else { 1 })
        };
        let options = RunOptions::steps(6).clock(Clock::Virtual).trace(&trace).call_cost(cost);
        let run = compile(&text, &types).start(time.system(), options).expect("it starts");
        let report = time.block_on(run).expect("nothing fails");
        assert_eq!(*begun.lock().unwrap(), begun_ms, "{policy}");
        let metric = |name: &str| {
            report.metrics.get(&format!("runtime.scheduler.{name}"), "main").expect("it is there")
        };
        let names = ["tick_overrun_count", "skipped_tick_count", "max_lateness_ms"];
        assert_eq!(names.map(metric), [1.0, f64::from(n_skipped), 15.0], "{policy}");
        let overruns =
            trace.take().into_iter().filter(|one| one.name == TraceName::FixedRateOverrun);
        assert_eq!(overruns.count(), 1, "{policy}");
    }
}

#[test]
fn no_policy_moves_the_phase_however_often_ticks_are_late() {
    for policy in OverrunPolicy::ALL {
        let (ran, _) = late(*policy, &[25, 25, 13, 1]);
        let begun_ms = ran.begun_ms();
        let want = match policy {
            OverrunPolicy::DropTick => [0, 30, 60, 80, 90, 100],
            OverrunPolicy::SkipNext => [0, 40, 80, 110, 120, 130],
            // Made up for at 25; its successor of 40 at 50, and the one of 60 at 63.
            OverrunPolicy::CatchUpOnce => [0, 25, 50, 63, 70, 80],
        };
        assert_eq!(begun_ms, want, "{policy}");
        assert!(begun_ms[4..].iter().all(|at| at % 10 == 0), "{policy}: {begun_ms:?}");
    }
}

#[test]
fn a_tick_that_is_due_when_the_last_one_ends_is_not_late() {
    let (ran, _) = late(OverrunPolicy::DropTick, &[20, 10, 10]);
    // The first has missed the one at 10, and is followed by that at 20 right then.
    assert_eq!(ran.begun_ms(), [0, 20, 30, 40, 50, 60]);
    assert_eq!(counts(&ran), [1, 1, 10, 10]);
}

#[test]
fn a_tick_beyond_its_budget_is_counted_and_need_not_be_late() {
    let text = ticked(", tick_budget_ms: 3");
    let diary = Diary { takes_ms: [3, 5, 4].into(), ..Diary::default() };
    let ran = run(&text, RunOptions::steps(5), diary);
    assert_eq!(ran.begun_ms(), [0, 10, 20, 30, 40]);
    assert_eq!(counts(&ran), [2, 0, 0, 1]);
}

#[test]
fn times_of_less_than_a_millisecond_are_in_the_metrics() {
    let lane = "main: { type: fixed_rate, hz: 300, wall_clock_enabled: true }";
    let diary = Diary { takes_ms: [4, 4, 4].into(), ..Diary::default() };
    let ran = run(&slow(lane, ""), RunOptions::steps(3), diary);
    let metric = |name| ran.report().metrics.get(name, "main").expect("it is in the table");
    let jitter_ms = metric("runtime.scheduler.tick_jitter_ms");
    assert!((jitter_ms - 0.666_667).abs() < 1e-6, "4 ms in a period of 3.333333 ms: {jitter_ms}");
    let lateness_ms = metric("runtime.scheduler.max_lateness_ms");
    assert!(lateness_ms > 0.6 && lateness_ms.fract() > 0.1, "{lateness_ms}");
}

#[test]
fn a_rate_is_a_period_of_its_own() {
    let lane = "main: { type: fixed_rate, hz: 250, wall_clock_enabled: true }";
    let ran = run(&slow(lane, ""), RunOptions::steps(4), Diary::default());
    assert_eq!(ran.begun_ms(), [0, 4, 8, 12]);
}

#[test]
fn a_budget_is_told_of_after_the_call_and_nothing_is_cut_short() {
    let trace = TraceLog::new(1 << 10);
    let text = slow("main: { type: event_loop }", ", budget_ms: 10");
    let diary = Diary { takes_ms: [10, 25, 3].into(), ..Diary::default() };
    let ran = run(&text, RunOptions::steps(3).trace(&trace), diary);
    assert_eq!(ran.diary.calls, [(0, 10), (10, 35), (35, 38)], "each call went to its end");
    assert_eq!(ran.metric("runtime.component.budget_overrun_count", "s"), 1);
    assert_eq!(ran.metric("runtime.component.max_duration_ns", "s"), ms(25));
    let told: Vec<u64> = trace
        .take()
        .iter()
        .filter(|record| record.name == TraceName::ComponentTimeoutBudgetExceeded)
        .map(|record| record.start_ns)
        .collect();
    assert_eq!(told, [ms(35)], "not before its end");
}

#[test]
fn who_looks_sees_that_the_run_is_to_stop_and_who_does_not_goes_on() {
    let text = slow("main: { type: event_loop }", "");
    for is_attentive in [true, false] {
        let takes_ms = [2, 50].into();
        let diary = Diary { takes_ms, stops_in: Some(2), is_attentive, ..Diary::default() };
        let ran = run(&text, RunOptions::steps(9), diary);
        assert_eq!(ran.report().stop, RunStopReason::StopRequested);
        let ended_ms = if is_attentive { 3 } else { 52 };
        assert_eq!(ran.diary.calls, [(0, 2), (2, ended_ms)], "nobody is cut short");
        let n_seen = ran.metric("runtime.component.cancellation_observed_count", "s");
        assert_eq!(n_seen, u64::from(is_attentive));
    }
}

#[test]
fn a_loop_that_the_clock_has_ended_is_noted_in_the_log() {
    let on = "event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }";
    let member = |id| format!("id: {id}, type: slow, execution: {{ lane: main }}, {on}");
    let mut text = graph(
        "main: { type: event_loop }",
        &["id: src, type: slow, execution: { lane: main }", &member("x"), &member("y")],
        &[
            "id: e, kind: immediate, from: src.out, to: x.a",
            "id: f, kind: immediate, from: x.out, to: y.a",
            "id: g, kind: immediate, from: y.out, to: x.a",
        ],
    );
    text += "composite_loops: [{ id: l, components: [x, y], \
             loop_policy: { type: transaction, max_iterations: 9, budget_ms: 5 } }]\n";
    for (call_ms, n_iterations) in [(3, 1), (1, 3)] {
        let log = CommitLog::in_memory();
        let takes_ms = core::iter::once(0).chain([call_ms; 6]).collect();
        let diary = Diary { takes_ms, ..Diary::default() };
        let ran = run(&text, RunOptions::steps(1).commit_log(&log), diary);
        let (_, records) = records(&log.bytes());
        let ended: Vec<u64> =
            records.iter().filter(|record| record.0 == 'B').map(|record| record.1).collect();
        assert_eq!(ended, [n_iterations]);
        assert_eq!(ran.metric("runtime.loop.iterations", "l"), n_iterations);
        assert_eq!(ran.metric("runtime.loop.budget_overrun", "l"), 1);
    }
}

#[test]
fn a_callback_that_takes_longer_than_its_lane_allows_is_reported() {
    let text = slow("main: { type: event_loop, max_callback_ms: 5 }", "");
    let diary = Diary { takes_ms: [5, 6, 4, 60].into(), ..Diary::default() };
    let ran = run(&text, RunOptions::steps(5), diary);
    assert_eq!(ran.diary.calls.len(), 5);
    let n_over = ran.metric("runtime.component.timeout_budget_exceeded_count", "s");
    assert_eq!(n_over, 2);
}

#[test]
fn a_stepped_lane_is_called_as_often_as_the_host_asks() {
    let lanes = "main: { type: event_loop }, step: { type: manual_step }";
    let stepped = source("b", "").replace("lane: main", "lane: step");
    let text = graph(lanes, &[&source("a", ""), &stepped], &[]);
    for n_asked in [0, 1, 3] {
        let told = crate::teller::tell_stepped(&text, RunOptions::steps(6), n_asked);
        let begun = |id: &str| {
            let epochs = (1..=6).filter(|epoch| told.began(*epoch).contains(&id));
            epochs.collect::<Vec<u64>>()
        };
        assert_eq!(begun("a"), [1, 2, 3, 4, 5, 6], "{n_asked}");
        assert_eq!(begun("b"), (1..=n_asked).collect::<Vec<u64>>(), "one epoch for each");
    }
}

/// What a reader sees of five messages that are ready at once, and how many were rejected.
fn admitted(lane: &str, kind: &str, workers: Option<usize>) -> (Vec<(u64, f64)>, u64, bool) {
    let reads = reader("r", "").replace("type: teller", &format!("type: {kind}"));
    let reads = match kind {
        "shared_teller" => reads.replace("lane: main", "lane: main, reentrant: true"),
        _ => reads,
    };
    let text = graph(
        &format!("main: {{ type: thread_pool, {lane} }}"),
        &[&source("src", ", config: { n: 5 }"), &reads],
        &["id: e, kind: immediate, from: src.out, to: r.a, policy: { mode: queue, capacity: 5 }"],
    );
    let told = match workers {
        None => tell_alone(&text, RunOptions::steps(2)),
        Some(n) => tell_by(&runtime(), &text, RunOptions::steps(2), n),
    };
    let n_rejected = told.metric("runtime.scheduler.rejected_count", "main");
    let events = &told.report().health;
    let n_told: u64 = events
        .iter()
        .filter(|event| event.kind == HealthKind::SchedulerReject)
        .map(|event| event.occurrence_count)
        .sum();
    assert_eq!(n_told, n_rejected, "each is a health event");
    let mut seen = told.saw("r");
    seen.sort_by(|a, b| a.partial_cmp(b).expect("they are numbers"));
    (seen, n_rejected, told.result.is_ok())
}

#[test]
fn a_queue_of_zero_admits_the_active_width_and_overflow_decides_on_the_next() {
    for overflow in LaneOverflow::ALL {
        for (kind, threads, width) in
            [("teller", 3, 1), ("shared_teller", 0, 1), ("shared_teller", 2, 2)]
        {
            let lane =
                format!("max_threads: {threads}, queue_capacity: 0, overflow: {}", overflow.name());
            for workers in [None, Some(1), Some(4)] {
                let (seen, n_rejected, is_ok) = admitted(&lane, kind, workers);
                let whom = format!("{overflow} {kind} {threads} by {workers:?}");
                let kept: &[f64] = match (overflow, width) {
                    (LaneOverflow::FailFast, _) => {
                        assert!(!is_ok, "{whom}");
                        assert_eq!((seen, n_rejected), (vec![], 4 - (width - 1)), "{whom}");
                        continue;
                    }
                    (LaneOverflow::DropOldest | LaneOverflow::Overwrite, 1) => &[0.4],
                    (LaneOverflow::DropOldest | LaneOverflow::Overwrite, _) => &[0.3, 0.4],
                    (_, 1) => &[0.0],
                    (_, _) => &[0.0, 0.1],
                };
                let want: Vec<(u64, f64)> = [(1, 1.0), (2, 2.0)]
                    .into_iter()
                    .flat_map(|(epoch, base)| kept.iter().map(move |part| (epoch, base + part)))
                    .collect();
                assert_eq!(seen, want, "{whom}");
                assert_eq!((n_rejected, is_ok), (2 * (5 - width), true), "{whom}");
            }
        }
    }
}

#[test]
fn a_queue_takes_so_many_beyond_the_active_width() {
    let (seen, n_rejected, _) = admitted("max_threads: 1, queue_capacity: 2", "teller", None);
    assert_eq!((seen.len(), n_rejected), (6, 4));
    let (seen, n_rejected, _) = admitted("max_threads: 2, queue_capacity: 3", "teller", None);
    assert_eq!((seen.len(), n_rejected), (8, 2), "one at once, whatever the lane could do");
}

#[test]
fn in_simulated_time_a_wall_clock_lane_ticks_with_all_others() {
    let lanes = "main: { type: fixed_rate, period_ms: 4 }, \
                 own: { type: fixed_rate, period_ms: 6, wall_clock_enabled: true }";
    let own = source("b", "").replace("lane: main", "lane: own");
    let text = graph(lanes, &[&source("a", ""), &own], &[]);
    let told = tell_alone(&text, RunOptions::steps(5).clock(Clock::Virtual));
    let epochs: Vec<Vec<&str>> = (1..=5).map(|epoch| told.began(epoch)).collect();
    // At 0, 4, 6, 8 and 12 ms.
    let want: [&[&str]; 5] = [&["a", "b"], &["a"], &["b"], &["a"], &["a", "b"]];
    assert_eq!(epochs, want);
    assert_eq!(told.report().elapsed_ns, ms(12));
}

#[test]
fn what_is_due_at_the_end_of_time_never_comes_and_holds_nobody_up() {
    let huge = "9000000000000000000";
    let timer = |fields: &str| format!(", event_sources: [{{ type: timer, {fields} }}]");
    let paced = |fields: &str| format!("main: {{ type: fixed_rate, {fields} }}");
    for (lane, sources, n_calls) in [
        (paced(&format!("period_ms: {huge}")), String::new(), 1),
        (paced("hz: 1e-300"), String::new(), 1),
        ("main: { type: event_loop }".into(), timer(&format!("period_ms: {huge}")), 1),
        ("main: { type: event_loop }".into(), timer(&format!("period_ms: 1, phase_ms: {huge}")), 0),
        (
            "main: { type: event_loop }".into(),
            format!(", trigger_policy: {{ type: manual, min_interval_ms: {huge} }}"),
            1,
        ),
    ] {
        let text = graph(&lane, &[&source("s", &sources)], &[]);
        for options in [RunOptions::steps(4), RunOptions::until_idle()] {
            let told = tell_alone(&text, options.clock(Clock::Virtual));
            let report = told.result.as_ref().expect("nothing fails");
            assert_eq!((report.executions, report.elapsed_ns), (n_calls, 0), "{lane}{sources}");
        }
    }
}

#[test]
fn a_budget_and_a_policy_for_late_ticks_are_in_force_where_calls_take_time() {
    let more = "tick_budget_ms: 3, overrun_policy: skip_next";
    let simulated = |options: RunOptions| options.clock(Clock::Virtual);
    let costs = |options: RunOptions| options.call_cost(|_, _| Duration::from_millis(4));
    for (own_clock, options, is_in_force) in [
        (false, simulated(RunOptions::steps(3)), false),
        (true, simulated(RunOptions::steps(3)), false),
        (false, simulated(costs(RunOptions::steps(3))), true),
        (true, simulated(costs(RunOptions::steps(3))), true),
        (false, RunOptions::steps(3).clock(Clock::Wall), true),
        (true, RunOptions::steps(3).clock(Clock::Wall), true),
        // As described: a lane without a clock of its own is in simulated time in a counted run.
        (false, RunOptions::steps(3), false),
        (true, RunOptions::steps(3), true),
    ] {
        let lane = format!(
            "main: {{ type: fixed_rate, period_ms: 10, wall_clock_enabled: {own_clock}, {more} }}"
        );
        let case = format!("own clock: {own_clock}, {options:?}");
        let takes_ms = [4, 4, 4].into_iter().collect();
        let diary = Diary { takes_ms, ..Diary::default() };
        let ran = run_as_given(&slow(&lane, ""), options, diary);
        let lane = &ran.report().lanes[0];
        for field in ["tick_budget_ms", "overrun_policy"] {
            assert_eq!(lane.enforced.contains(&field), is_in_force, "{field}, {case}");
            let why = lane.advisory.iter().find(|advice| advice.field == field);
            let says = "the run is in simulated time without a model of how long calls take";
            assert_eq!(why.is_some_and(|one| one.why.starts_with(says)), !is_in_force, "{case}");
        }
        let n_over = ran.metric("runtime.scheduler.tick_overrun_count", "main");
        assert_eq!(n_over, if is_in_force { 3 } else { 0 }, "{case}: what the report says holds");
    }
}
