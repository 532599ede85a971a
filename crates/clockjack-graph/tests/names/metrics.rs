//! Every metric is reported with its descriptor, a bounded label and a correct number.

use std::collections::{BTreeMap, BTreeSet};

use clockjack_graph::{
    Clock, RunOptions,
    component::Snapshot,
    describe::GraphFile,
    run::{Metric, MetricDescriptor, MetricScope},
};

use crate::{
    doer::{Done, alone, alone_keeping, alone_with, by, graph, reader, source},
    scenes,
};

/// The expected number.
#[derive(Clone, Copy, Debug)]
enum Fact {
    Is(u32),
    /// It depends on the machine, but is at least this.
    AtLeast(u32),
}
use Fact::{AtLeast, Is};

/// An expectation: the end of a metric's name, its owner (none for the run itself), and the
/// expected number.
type Facts = (&'static str, Done, Vec<(&'static str, &'static str, Fact)>);

/// The age from which a message is late or dropped: the reader is executed every ten milliseconds,
/// the source every millisecond.
fn ages() -> Facts {
    let text = graph(
        &["main: { type: event_loop }", "slow: { type: fixed_rate, period_ms: 10 }"],
        &[
            "id: src, type: doer, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
            &reader("late", "slow", ""),
            &reader("stale", "slow", ""),
            &reader("timely", "slow", "").replace("any_input", "any_input, max_latency_ms: 4"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: late.a, \
             policy: { mode: queue, capacity: 16, deadline_ms: 4 }",
            "id: f, kind: immediate, from: src.out, to: stale.a, \
             policy: { mode: queue, capacity: 16, lifespan_ms: 4 }",
            "id: g, kind: immediate, from: src.out, to: timely.a, \
             policy: { mode: queue, capacity: 16 }",
        ],
        &[],
    );
    // Epochs at 0, 1, .. 20 ms; the lane is due at 0, 10 and 20. Of the ten messages that wait at
    // 10 the ages are 9 .. 0: those of 5 and more are older than 4.
    let done = alone(&text, RunOptions::steps(21));
    let facts = vec![
        ("channel.deadline_miss_count", "e", Is(10)),
        ("channel.delivery_count", "e", Is(21)),
        ("channel.max_depth", "e", Is(10)),
        ("channel.stale_drop_count", "f", Is(10)),
        ("channel.delivery_count", "f", Is(11)),
        ("trigger.timeout_drop_count", "timely", Is(10)),
        ("trigger.ready_count", "timely", Is(11)),
        ("scheduler.tick_count", "slow", Is(3)),
        ("component.execution_count", "src", Is(21)),
    ];
    ("ages", done, facts)
}

/// A chain from a source that is executed every three milliseconds to a lane with a tick every ten,
/// and a reader that wants a message every two.
fn chains() -> Facts {
    let text = graph(
        &["main: { type: event_loop }", "slow: { type: fixed_rate, period_ms: 10 }"],
        &[
            "id: src, type: doer, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 3 }]",
            &reader("dst", "slow", ""),
        ],
        &["id: e, kind: immediate, from: src.out, to: dst.a, \
           policy: { mode: queue, capacity: 16, max_silence_ms: 2 }"],
        &[],
    );
    let text = format!("{text}chains: [{{ id: c, from: src, to: dst, max_ms: 4 }}]\n");
    // Epochs at 0, 3, 6, 9, 10, 12, 15, 18, 20 ms. The latencies are 0; 7, 4, 1; 8, 5, 2.
    let done = alone(&text, RunOptions::steps(9));
    let facts = vec![
        ("chain.sample_count", "c", Is(7)),
        ("chain.violation_count", "c", Is(3)),
        ("chain.latency_p50_ms", "c", Is(4)),
        ("chain.latency_p99_ms", "c", AtLeast(7)),
        ("chain.latency_max_ms", "c", Is(8)),
        ("channel.silence_count", "e", Is(6)),
        ("health.event_count", "", Is(9)),
    ];
    ("chains", done, facts)
}

/// Every way to lose a message, and every trigger that holds one back.
fn losses_text() -> String {
    let of = |id: &str, policy: &str| reader(id, "main", "").replace("type: any_input", policy);
    let queue = |id: &str, from: &str, to: &str, more: &str| {
        format!(
            "id: {id}, kind: immediate, from: {from}.out, to: {to}, \
             policy: {{ mode: queue, capacity: 2, overflow: {more} }}"
        )
    };
    let both = "event_sources: [{ type: message, inputs: [a, b] }]";
    graph(
        &["main: { type: event_loop }"],
        &[
            &source("src", "main", "publishes: 3"),
            &source("full", "main", "publishes: 3"),
            &source("once", "main", "publishes: 2"),
            &source("early", "main", "stamp_ms: 500, stamp_step_ms: 10"),
            &source("back", "main", "stamp_ms: 500, stamp_step_ms: -10"),
            &source("silent", "main", "publishes: 0"),
            &reader("dst", "main", ""),
            &reader("sees_latest", "main", ""),
            &reader("sees_few", "main", ""),
            &of("one", "type: any_input, coalesce: true"),
            &of("pairs", "type: batch, batch_size: 2"),
            &of("seldom", "type: rate_limit, min_interval_ms: 1000"),
            &of("stamped", "type: condition, condition: event_timestamp_present, input: a"),
            &of("forward", "type: watermark, watermark_lateness_ms: 5"),
            &format!(
                "id: matched, type: doer, execution: {{ lane: main }}, {both}, \
                 trigger_policy: {{ type: time_sync, inputs: [a, b], sync_slop_ms: 1 }}"
            ),
            &format!(
                "id: starved, type: doer, execution: {{ lane: main }}, {both}, \
                 trigger_policy: {{ type: all_inputs, inputs: [a, b] }}"
            ),
        ],
        &[
            &queue("e", "src", "dst.a", "drop_oldest"),
            "id: f, kind: immediate, from: src.out, to: sees_latest.a",
            &queue("g", "full", "sees_few.a", "reject"),
            &queue("h", "once", "one.a", "reject"),
            &queue("i", "once", "pairs.a", "reject"),
            &queue("j", "once", "seldom.a", "overwrite"),
            &queue("k", "once", "stamped.a", "reject"),
            &queue("l", "back", "forward.a", "reject"),
            &queue("m", "early", "matched.a", "reject"),
            &queue("n", "back", "matched.b", "reject"),
            &queue("o", "once", "starved.a", "drop_oldest"),
            &queue("p", "silent", "starved.b", "reject"),
        ],
        &[],
    )
}

fn losses() -> Facts {
    let done = alone(&losses_text(), RunOptions::steps(4));
    let facts = vec![
        // Three arrive, two have room: one is lost in each of four epochs.
        ("channel.publish_count", "e", Is(12)),
        ("channel.drop_count", "e", Is(4)),
        ("channel.delivery_count", "e", Is(8)),
        // Each loss, and the first time that the channel is full.
        ("channel.health_event_count", "e", Is(5)),
        ("channel.overwrite_count", "f", Is(8)),
        ("channel.reject_count", "g", Is(4)),
        ("channel.publish_count", "g", Is(8)),
        // Of two messages, the newer one is used.
        ("trigger.coalesced_count", "one", Is(4)),
        ("trigger.ready_count", "one", Is(4)),
        ("trigger.batch_flush_count", "pairs", Is(4)),
        // One in the first epoch; all later checks are too early.
        ("trigger.ready_count", "seldom", Is(1)),
        ("trigger.rate_limit_suppressed_count", "seldom", AtLeast(3)),
        ("trigger.suppressed_count", "seldom", AtLeast(3)),
        // None of the eight messages has a timestamp.
        ("trigger.condition_suppressed_count", "stamped", AtLeast(4)),
        // Timestamps go back by ten, and five are allowed: only the first is on time.
        ("trigger.late_drop_count", "forward", Is(3)),
        ("trigger.ready_count", "forward", Is(1)),
        // 510 and 490, then they diverge: the older one is dropped each time.
        ("trigger.time_sync_drop_count", "matched", AtLeast(3)),
        // Two per epoch, three are kept.
        ("trigger.pending_drop_count", "starved", Is(5)),
        ("component.execution_count", "starved", Is(0)),
        ("health.event_count", "", AtLeast(10)),
        ("health.coalesced_count", "", AtLeast(4)),
        ("scheduler.priority_normal_count", "main", AtLeast(24)),
        ("publication.staged", "", AtLeast(24)),
        ("publication.failed_commit", "", Is(0)),
    ];
    ("losses", done, facts)
}

/// All kinds of edges, a loop whose outputs are discarded, tasks.
fn kinds() -> Facts {
    let text = graph(
        &["main: { type: event_loop }"],
        &[
            &source("src", "main", "publishes: 3"),
            &source("busy", "main", "publishes: 0, tasks: 2"),
            &reader("p", "main", ""),
            &reader("q", "main", "converges_at: 9"),
            &reader("dst", "main", ""),
        ],
        &[
            "id: d, kind: delay, from: src.out, to: dst.a, policy: { mode: queue, capacity: 8 }",
            "id: s, kind: state, from: src.out, to: dst.b",
            "id: a, kind: async, from: src.out, to: p.b, \
             policy: { mode: queue, capacity: 8, max_inflight: 2, overflow: drop_oldest }",
            "id: t, kind: immediate, from: busy.out, to: p.a",
            "id: i, kind: immediate, from: p.out, to: q.a",
            "id: j, kind: immediate, from: q.out, to: p.a",
            "id: x, kind: async, from: q.out, to: dst.a, policy: { mode: queue, capacity: 8 }",
        ],
        &["id: l, components: [p, q], \
           loop_policy: { type: solver_iteration, max_iterations: 2 }"],
    );
    let done = alone(&text, RunOptions::steps(3).tasks_max(3));
    let facts = vec![
        ("publication.delayed", "", Is(9)),
        ("publication.state", "", Is(9)),
        // Those of the last epoch are in flight.
        ("publication.state_committed", "", Is(6)),
        // Nine of the source, and those of the loop.
        ("publication.async", "", AtLeast(9)),
        ("publication.composite_discarded", "", AtLeast(2)),
        ("publication.committed", "", AtLeast(12)),
        ("async.accepted_count", "", AtLeast(11)),
        ("async.completed_count", "", AtLeast(4)),
        // Two of three stay, twice.
        ("async.overwrite_count", "", Is(2)),
        ("async.cancelled_count", "", AtLeast(2)),
        ("async.in_flight_count", "", AtLeast(3)),
        ("async.max_in_flight_count", "", AtLeast(3)),
        ("async.rejected_count", "", Is(0)),
        ("loop.iterations", "l", AtLeast(2)),
        ("loop.max_iterations_hit", "l", AtLeast(1)),
        ("loop.output_discarded", "l", AtLeast(2)),
        ("loop.error", "l", Is(0)),
    ];
    ("kinds", done, facts)
}

/// Async edges that refuse, and more tasks than may be in flight.
fn refused() -> Facts {
    let edge = |id: &str, to: &str, overflow: &str| {
        format!(
            "id: {id}, kind: async, from: {id}_src.out, to: {to}.a, policy: {{ mode: queue, \
             capacity: 8, max_inflight: 2, overflow: {overflow} }}"
        )
    };
    let text = graph(
        &["main: { type: event_loop }"],
        &[
            &source("r_src", "main", "publishes: 3"),
            &source("d_src", "main", "publishes: 3"),
            &source("busy", "main", "publishes: 0, tasks: 5"),
            &reader("x", "main", ""),
            &reader("y", "main", ""),
        ],
        &[&edge("r", "x", "reject"), &edge("d", "y", "drop_newest")],
        &[],
    );
    let done = alone(&text, RunOptions::steps(2).tasks_max(4));
    let facts = vec![
        // One of three in each of two epochs, and one task of five in the first. In the second
        // epoch four have completed, and the four of the second are waited for at the end.
        ("async.rejected_count", "", Is(2 + 2)),
        ("async.dropped_count", "", Is(2)),
        ("async.accepted_count", "", Is(8 + 8)),
        ("async.completed_count", "", Is(4 + 4 + 4)),
        ("async.in_flight_count", "", Is(4)),
    ];
    ("refused", done, facts)
}

/// Settings, the blackboard, states.
fn stores() -> Facts {
    let text = graph(
        &["main: { type: event_loop }"],
        &[
            &source("owner", "main", "writes: true"),
            &source("other", "main", "writes: true"),
            &source("looks", "main", "reads: true"),
            &source("stubborn", "main", "is_stubborn: true"),
        ],
        &[],
        &[],
    );
    let state = Snapshot { component_type: "doer".into(), version: 1, payload: vec![1] };
    let done = alone(&text, RunOptions::steps(3).snapshots().restore("owner", state));
    let facts = vec![
        // Both write in the first epoch, but only the first of them is the owner; afterwards the
        // other is refused immediately. What is written in the last epoch is never committed.
        ("state.staged_write_count", "", Is(3)),
        ("state.committed_write_count", "", Is(2)),
        ("state.rejected_write_count", "", Is(1)),
        ("state.snapshot_read_count", "", Is(3)),
        ("state.current_value_count", "", Is(1)),
        ("config.snapshot_read_count", "", Is(4)),
        ("lifecycle.restore_count", "", Is(1)),
        ("lifecycle.snapshot_count", "", Is(3)),
        ("lifecycle.snapshot_failure_count", "", Is(1)),
        ("lifecycle.snapshot_size_bytes", "", Is(15)),
        ("lifecycle.reset_count", "", Is(0)),
    ];
    ("stores", done, facts)
}

/// A clock that advances from tick to tick: epochs at 0, 5 and 10 ms.
fn paced() -> Facts {
    let text = graph(
        &["beat: { type: fixed_rate, period_ms: 5, wall_clock_enabled: true }"],
        &[&source("src", "beat", ""), &reader("dst", "beat", "")],
        &["id: e, kind: delay, from: src.out, to: dst.a"],
        &[],
    );
    let done = alone(&text, RunOptions::steps(3).clock(Clock::Wall));
    let facts = vec![
        ("scheduler.blocked_duration_ms", "beat", Is(10)),
        ("scheduler.tick_count", "beat", Is(3)),
        ("scheduler.tick_overrun_count", "beat", Is(0)),
        ("channel.message_age_ms", "e", Is(5)),
        ("channel.delivery_count", "e", Is(2)),
    ];
    ("paced", done, facts)
}

/// A trace that is too small for its run.
fn forgetful() -> Facts {
    let parts = source("src", "main", "");
    let text = graph(&["main: { type: event_loop }"], &[&parts], &[], &[]);
    let done = alone_keeping(3, &text, RunOptions::steps(5));
    // One epoch and one invocation in each, of which three are kept.
    let facts =
        vec![("trace.event_count", "", Is(10)), ("observer.dropped_event_count", "", Is(7))];
    ("forgetful", done, facts)
}

fn set_up(id: &'static str) -> Done {
    let parts = [source("good", "main", ""), source("stubborn", "main", "is_stubborn: true")];
    let text = graph(&["main: { type: event_loop }"], &[&parts[0], &parts[1]], &[], &[]);
    let state = Snapshot { component_type: "doer".into(), version: 1, payload: vec![1] };
    let options = RunOptions::steps(1);
    alone(&text, if id == "reset" { options.reset() } else { options.restore("stubborn", state) })
}

/// Regions of a low rank that are repeatedly preceded by regions of a higher rank.
fn starving() -> Facts {
    let many: Vec<String> = (0..6)
        .map(|n| source(&format!("high{n}"), "wide", "spins_us: 50"))
        .map(|one| one.replace("lane: wide", "lane: wide, priority: high"))
        .chain(
            [source("low", "wide", "").replace("lane: wide", "lane: wide, priority: background")],
        )
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let lanes = [
        "calm: { type: event_loop }",
        "wide: { type: thread_pool, max_threads: 1, \
                  queue_capacity: 8, aging_picks: 2 }",
        "pair: { type: thread_pool, max_threads: 8 }",
    ];
    let others = [source("a", "pair", ""), source("b", "pair", "")];
    let all = [many, vec![others[0].as_str(), others[1].as_str()]].concat();
    let done = by(2, &graph(&lanes, &all, &[], &[]), RunOptions::steps(20).clock(Clock::Virtual));
    let facts = vec![
        ("scheduler.starvation_guard_count", "wide", AtLeast(1)),
        // Of the workers and the setting, the smaller one.
        ("scheduler.worker_count", "pair", Is(2)),
        ("scheduler.worker_count", "wide", Is(1)),
        ("scheduler.starvation_guard_count", "pair", Is(0)),
        ("scheduler.starvation_guard_count", "calm", Is(0)),
        ("scheduler.priority_high_count", "wide", Is(120)),
        ("scheduler.priority_background_count", "wide", Is(20)),
        ("scheduler.completed_count", "wide", Is(140)),
    ];
    ("starving", done, facts)
}

fn own() -> Vec<Facts> {
    let failures = |metric| vec![(metric, "", Is(1))];
    vec![
        ages(),
        chains(),
        losses(),
        kinds(),
        refused(),
        stores(),
        starving(),
        paced(),
        forgetful(),
        (
            "reset",
            set_up("reset"),
            [failures("lifecycle.reset_failure_count"), failures("lifecycle.reset_count")].concat(),
        ),
        ("restore", set_up("restore"), failures("lifecycle.restore_failure_count")),
    ]
}

/// Expectations for the scenes of the trace tests.
fn of_scenes() -> Vec<Facts> {
    vec![
        (
            "cell",
            scenes::cell(1),
            vec![
                ("loop.converged", "settles", AtLeast(1)),
                ("loop.residual", "settles", Is(2)),
                ("loop.max_iterations_hit", "gives_up", AtLeast(1)),
                ("trace.event_count", "", AtLeast(50)),
                ("observer.dropped_event_count", "", Is(0)),
                ("observer.failure_count", "", Is(0)),
            ],
        ),
        (
            "pool",
            scenes::pool(),
            vec![
                // Eight are ready in each of four epochs: three run concurrently, two wait, three
                // are refused.
                ("scheduler.worker_count", "wide", Is(3)),
                ("scheduler.queue_capacity", "wide", Is(2)),
                ("scheduler.queue_depth", "wide", Is(2)),
                ("scheduler.active_count", "wide", Is(3)),
                ("scheduler.in_flight_count", "wide", Is(5)),
                ("scheduler.rejected_count", "wide", Is(12)),
                ("scheduler.low_priority_rejected_count", "wide", Is(12)),
                ("scheduler.priority_low_count", "wide", Is(20)),
                ("component.max_in_flight_count", "many", Is(3)),
                ("component.max_in_flight_count", "src", Is(1)),
                ("component.last_duration_ns", "many", AtLeast(300_000)),
                ("component.max_duration_ns", "many", AtLeast(300_000)),
            ],
        ),
        (
            "late",
            scenes::late(),
            vec![
                ("scheduler.tick_count", "beat", Is(3)),
                ("scheduler.tick_overrun_count", "beat", Is(3)),
                ("scheduler.skipped_tick_count", "beat", AtLeast(9)),
                ("scheduler.max_lateness_ms", "beat", AtLeast(2)),
                ("scheduler.tick_jitter_ms", "beat", AtLeast(2)),
                ("scheduler.last_callback_duration_ms", "beat", AtLeast(3)),
                ("component.budget_overrun_count", "slow", Is(3)),
                ("component.timeout_budget_exceeded_count", "slow", Is(3)),
                ("loop.budget_overrun", "tired", AtLeast(1)),
            ],
        ),
    ]
}

/// Expectations for runs that stop early or are reconfigured.
fn of_ends() -> Vec<Facts> {
    vec![
        (
            "stopped",
            scenes::stopped(),
            vec![
                ("component.cancellation_requested_count", "looks", Is(1)),
                ("component.cancellation_observed_count", "looks", Is(1)),
                ("component.execution_count", "never", Is(1)),
            ],
        ),
        (
            "stopped loop",
            scenes::stopped_loop(),
            vec![
                ("loop.cancellation_requested", "l", Is(1)),
                ("loop.cancellation_observed", "l", Is(1)),
            ],
        ),
        (
            "changed",
            scenes::changed("publishes", 2),
            vec![
                ("config.version", "", Is(1)),
                ("config.last_transaction_id", "", Is(1)),
                ("config.staged_update_count", "", Is(1)),
                ("config.committed_update_count", "", Is(1)),
                ("config.immediate_update_count", "", Is(0)),
                ("config.snapshot_read_count", "", Is(3)),
            ],
        ),
        (
            "refused change",
            scenes::changed("publishes", 101),
            vec![("config.rejected_update_count", "", Is(1)), ("config.version", "", Is(0))],
        ),
        (
            "changed back",
            scenes::changed_back(),
            vec![
                ("config.rolled_back_update_count", "", Is(2)),
                ("config.committed_update_count", "", Is(0)),
            ],
        ),
        (
            "failing loop",
            scenes::failing_loop(),
            vec![("loop.error", "l", Is(1)), ("component.error_count", "y", Is(1))],
        ),
    ]
}

fn all() -> Vec<Facts> {
    own().into_iter().chain(of_scenes()).chain(of_ends()).collect()
}

fn find<'a>(done: &'a Done, name: &str, of: &str) -> Option<&'a Metric> {
    let whose = |one: &&Metric| one.label.as_ref().map_or("", |(_, whose)| whose.as_str()) == of;
    done.report().metrics.list.iter().filter(|one| one.name == name).find(whose)
}

/// Metrics that are zero in all runs of these tests, with the test that shows what they count, how
/// it reads them, and its file.
const ELSEWHERE: [(&str, &str, &str, &str); 4] = [
    (
        "runtime.channel.payload_copy_count",
        "a_copy_is_made_for_each_reader_but_one",
        "n_copied(&report",
        include_str!("../run/payloads.rs"),
    ),
    (
        "runtime.health.dropped_count",
        "a_full_sink_drops_its_oldest_record_and_counts_it",
        "counters().dropped_count",
        include_str!("../../src/run/observe/health/tests.rs"),
    ),
    (
        "runtime.observer.failure_count",
        "an_observer_that_fails_or_panics_harms_nobody_and_is_counted",
        "runtime.observer.failure_count",
        include_str!("../run/observers.rs"),
    ),
    // A publication that is admitted never fails to commit, so this one is always zero.
    (
        "runtime.publication.failed_commit",
        "what_a_loop_holds_has_its_room_in_the_channel",
        "runtime.publication.failed_commit",
        include_str!("../run/invariants.rs"),
    ),
];

#[test]
fn metrics_equal_facts_for_every_name_of_the_table() {
    let mut shown = BTreeSet::new();
    for (scene, done, facts) in all() {
        for (end, of, fact) in facts {
            let name = format!("runtime.{end}");
            let found = find(&done, &name, of);
            let value = found.unwrap_or_else(|| panic!("{scene}: no {name} of `{of}`")).value;
            let holds = match fact {
                Is(expected) => value == f64::from(expected),
                AtLeast(expected) => value >= f64::from(expected),
            };
            assert!(holds, "{scene}: {name} of `{of}` is {value}, and not {fact:?}");
            if value > 0.0 {
                shown.insert(name);
            }
        }
    }
    for one in MetricDescriptor::all() {
        let is_elsewhere = ELSEWHERE.iter().any(|(name, ..)| *name == one.name);
        let is_reserved = one.is_reserved;
        let is_shown = shown.contains(one.name);
        assert!(is_shown || is_elsewhere || is_reserved, "nothing is known of {}", one.name);
        assert!(!(is_shown && is_elsewhere), "{} is shown here: it needs no other test", one.name);
    }
    for (name, test, reads, file) in ELSEWHERE {
        let (_, body) = file.split_once(&format!("fn {test}()")).expect("there is such a test");
        let body = body.split("\n#[test]").next().expect("a text has a first part");
        assert!(body.contains(reads), "`{test}` does not look at {name}");
    }
}

#[test]
fn the_table_is_complete_and_each_row_says_all() {
    let mut names = BTreeSet::new();
    for one in MetricDescriptor::all() {
        assert!(names.insert(one.name), "{} is there twice", one.name);
        assert_eq!(MetricDescriptor::of(one.name), Some(one));
        assert!(one.description.ends_with('.') && one.name.starts_with("runtime."), "{one:?}");
        assert!(["1", "ms", "ns", "By"].contains(&one.unit), "{one:?}");
        for (suffix, unit) in [("_ms", "ms"), ("_ns", "ns"), ("_bytes", "By")] {
            assert_eq!(one.name.ends_with(suffix), one.unit == unit, "{one:?}");
        }
        assert!(!one.scope.cardinality().is_empty());
    }
}

#[test]
fn a_run_reports_the_names_of_the_table_once_for_each_of_whom_they_are() {
    for (scene, done, _) in all().into_iter().filter(|(_, done, _)| done.report().epochs > 0) {
        let plan = &done.plan;
        let mut seen: BTreeMap<&str, BTreeSet<Option<String>>> = BTreeMap::new();
        for one in &done.report().metrics.list {
            let row = MetricDescriptor::of(&one.name);
            let row = row.unwrap_or_else(|| panic!("{scene}: {} is in no table", one.name));
            assert_eq!(row.kind, one.kind, "{scene}: {}", one.name);
            assert_eq!(row.scope.label(), one.label.as_ref().map(|(label, _)| *label));
            assert!(one.value.is_finite() && one.value >= 0.0, "{scene}: {one:?}");
            let whose = one.label.as_ref().map(|(_, whose)| whose.clone());
            assert!(seen.entry(row.name).or_default().insert(whose), "{scene}: {one:?} twice");
        }
        for row in MetricDescriptor::all() {
            let all: BTreeSet<Option<String>> = match row.scope {
                MetricScope::Run => BTreeSet::from([None]),
                MetricScope::Lane => {
                    plan.lanes.iter().map(|one| Some(one.spec.id.clone())).collect()
                }
                MetricScope::Component => {
                    plan.components.iter().map(|one| Some(one.spec.id.clone())).collect()
                }
                MetricScope::Channel => plan.edges.iter().map(|one| Some(one.id.clone())).collect(),
                MetricScope::Loop => {
                    let loops = plan.regions.iter().filter(|one| one.loop_policy.is_some());
                    loops.map(|one| Some(one.id.clone())).collect()
                }
                MetricScope::Chain => plan.chains.iter().map(|one| Some(one.id.clone())).collect(),
            };
            let found = seen.get(row.name).cloned().unwrap_or_default();
            assert_eq!(found, all, "{scene}: {}", row.name);
        }
    }
}

#[test]
fn who_looks_at_a_run_sees_its_counts() {
    let mut stopper = None;
    let done = alone_with(&losses_text(), RunOptions::steps(4), |run| {
        // Nothing has happened yet; reading requests an update.
        assert!(run.metrics().list.is_empty());
        assert!(run.live().iter().all(|lane| lane.epochs == 0));
        stopper = Some(run.stopper());
    });
    let stopper = stopper.expect("it was started");
    let (seen, reported) = (stopper.metrics(), &done.report().metrics);
    let is_at_the_end = |one: &&Metric| !one.name.starts_with("runtime.lifecycle.");
    let of = |list: &[Metric]| list.iter().filter(is_at_the_end).cloned().collect::<Vec<_>>();
    assert_eq!(of(&seen.list), of(&reported.list), "of a run that has ended");
    let lane = &stopper.live()[0];
    assert_eq!((lane.lane.as_str(), lane.epochs), ("main", 4));
    let lost = ["drop_count", "overwrite_count", "stale_drop_count", "reject_count"];
    let lost = lost.map(|end| reported.total(&format!("runtime.channel.{end}")));
    let numbers = [lane.calls, lane.drops].map(|n| f64::from(u32::try_from(n).expect("few")));
    let calls = reported.total("runtime.component.execution_count");
    assert_eq!(numbers, [calls, lost.iter().sum()]);
}

#[test]
fn labels_are_ids_of_the_graph_however_hostile_they_are() {
    // The longest and strangest valid ids.
    let long = "a".repeat(128);
    let odd = "-:_.0.:.__proto__.lane";
    let parts = [source(&long, odd, ""), reader(odd, odd, "")];
    let edge = format!("id: \"{odd}\", kind: immediate, from: {long}.out, to: \"{odd}.a\"");
    let lanes = format!("\"{odd}\": {{ type: event_loop }}");
    let quoted = |part: &String| {
        part.replace(&format!("id: {odd}"), &format!("id: \"{odd}\""))
            .replace(&format!("lane: {odd}"), &format!("lane: \"{odd}\""))
    };
    let parts: Vec<String> = parts.iter().map(quoted).collect();
    let text = graph(&[&lanes], &[&parts[0], &parts[1]], &[&edge], &[]);
    let done = alone(&text, RunOptions::steps(2));
    let ids = BTreeSet::from([long.as_str(), odd]);
    for one in &done.report().metrics.list {
        if let Some((_, whose)) = &one.label {
            assert!(ids.contains(whose.as_str()), "{one:?}");
        }
    }
    // Characters that could break a line or a quote are rejected before they can become a label.
    for bad in ["a\\nb", "a\\\"b", "a{b}", "a b", "", "é"] {
        let text = graph(
            &["main: { type: event_loop }"],
            &[&source(&format!("\"{bad}\""), "main", "")],
            &[],
            &[],
        );
        assert!(GraphFile::parse("t.yaml", &text).is_err(), "{bad:?}");
    }
}

#[test]
fn call_times_are_kept_on_request() {
    let text = graph(
        &["main: { type: event_loop }"],
        // The budget makes another step measure the call.
        &[
            &source("src", "main", ""),
            &reader("quick", "main", ""),
            &reader("bounded", "main", "").replace("lane: main", "lane: main, budget_ms: 1000"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: quick.a",
            "id: f, kind: immediate, from: src.out, to: bounded.a",
        ],
        &[],
    );
    let of = |done: &Done, name: &str, id: &str| {
        done.report().metrics.get(&format!("runtime.component.{name}"), id)
    };
    // On a pool, whose clock goes on during a call.
    let kept = by(1, &text, RunOptions::steps(20).keep_call_times());
    for id in ["src", "quick", "bounded"] {
        let at = |name| of(&kept, name, id).expect("each call was measured");
        let (p50, p99) = (at("p50_duration_ns"), at("p99_duration_ns"));
        assert!(p50 <= p99 && p99 > 0.0, "{id}: {p50} {p99}");
        assert!(p99 <= at("max_duration_ns"), "{id}: {p99}");
    }
    let other = by(1, &text, RunOptions::steps(20));
    assert_eq!(of(&other, "p50_duration_ns", "src"), None, "nobody asked");
}
