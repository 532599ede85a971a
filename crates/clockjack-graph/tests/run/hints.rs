//! The hint of a loss works: each graph here loses messages, and with the change that its hint
//! names it is still valid and loses fewer of them.

use clockjack_graph::{
    Clock, Component, Execute, Failure, GraphContext, Input, Output, Registry, RunOptions,
    RunReport, Stamp, describe::ClockDomain, run::LossCause,
};
use clockjack_testkit::ManualTime;

use crate::{acts::compile, teller::graph};

/// Publishes its epoch, or reads what has come.
#[derive(Component, Default)]
#[component(type = "works")]
struct Works {
    #[input(optional)]
    a: Input<u64>,
    #[input(optional)]
    b: Input<u64>,
    #[output]
    out: Output<u64>,
    #[config(default = 1)]
    n: u64,
}

impl Execute for Works {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let (a, b) = (self.a, self.b);
        let n_read = cx.drain(a).count() + cx.drain(b).count();
        if n_read > 0 && cx.component_id() == "dst" {
            return Ok(());
        }
        let ms = cx.epoch();
        // Every second message of `src` is four milliseconds old, all of `late` are three.
        let old_ms = if cx.component_id() == "late" { 3 } else { 4 * (ms % 2) };
        for _ in 0..self.n {
            let ns = (10 + ms - old_ms) * 1_000_000;
            // A refusal is what some of the graphs are for.
            drop(cx.publish_stamped(self.out, ms, Stamp { domain: ClockDomain::Steady, ns }));
        }
        Ok(())
    }
}

fn run(text: &str) -> RunReport {
    let time = ManualTime::start();
    let options = RunOptions::steps(24).clock(Clock::Virtual);
    let run = compile(text, &Registry::new().register::<Works>()).start(time.system(), options);
    time.block_on(run.expect("it starts")).expect("nothing fails")
}

/// `src` publishes once per millisecond, `late` once per three, and `dst` reads in some lane.
fn text(dst: &str, kind: &str, policy: &str) -> String {
    let source = |id: &str, lane: &str, n: u32| {
        format!("id: {id}, type: works, execution: {{ lane: {lane} }}, config: {{ n: {n} }}")
    };
    let n = if kind == "async" { 3 } else { 1 };
    graph(
        "fast: { type: fixed_rate, period_ms: 1 }, slow: { type: fixed_rate, period_ms: 4 }, \
         third: { type: fixed_rate, period_ms: 3 }, \
         pool: { type: thread_pool, max_threads: 1, queue_capacity: 0 }",
        &[&source("src", "fast", n), &source("late", "third", 1), dst],
        &[
            &format!("id: e, kind: {kind}, from: src.out, to: dst.a, policy: {{ {policy} }}"),
            "id: f, kind: immediate, from: late.out, to: dst.b, \
             policy: { mode: queue, capacity: 64 }",
        ],
    )
}

/// A component `dst` in this lane, with this trigger for its inputs.
fn dst(lane: &str, trigger: &str) -> String {
    format!(
        "id: dst, type: works, execution: {{ lane: {lane} }}, \
         event_sources: [{{ type: message, inputs: [a, b] }}], \
         trigger_policy: {{ {trigger}, inputs: [a, b] }}"
    )
}

/// A part of a hint, and a change of the text: what is there, and what comes instead.
type Change = (&'static str, &'static str, &'static str);

/// The graph loses messages for this cause, and fewer with each change that its hint names.
#[track_caller]
fn check(text: &str, cause: LossCause, changes: &[Change]) {
    let of = |report: &RunReport| -> u64 {
        report.losses.iter().filter(|loss| !loss.is_run_ended()).map(|loss| loss.count).sum()
    };
    let report = run(text);
    let loss = report.losses.iter().find(|loss| loss.cause == cause);
    let loss = loss.unwrap_or_else(|| panic!("no {cause:?}: {:?}\n{text}", report.losses));
    for (says, what, instead) in changes {
        assert!(loss.hint().contains(says), "{cause:?}: `{}` does not say `{says}`", loss.hint());
        assert_eq!(text.matches(what).count(), 1, "{what} in\n{text}");
        let better = run(&text.replace(what, instead));
        let (before, after) = (of(&report), of(&better));
        assert!(after < before, "{cause:?}, {instead}: {before}, then {:?}", better.losses);
    }
}

#[test]
fn the_hint_for_a_full_edge_is_one_that_its_mode_allows() {
    let polls = "id: dst, type: works, execution: { lane: slow }";
    for (mode, overflow, cause) in [
        ("mode: latest", "overflow: overwrite", LossCause::Overwritten),
        ("mode: latched", "overflow: overwrite", LossCause::Overwritten),
        ("mode: previous_tick", "overflow: overwrite", LossCause::Overwritten),
        ("mode: latest", "overflow: drop_oldest", LossCause::EdgeFull),
        ("mode: previous_tick", "overflow: drop_oldest", LossCause::EdgeFull),
        ("mode: latest", "overflow: reject", LossCause::Refused),
        ("mode: latched", "overflow: reject", LossCause::Refused),
    ] {
        let keeps =
            ("use `mode: queue` with a larger `capacity`", mode, "mode: queue, capacity: 9");
        check(&text(polls, "immediate", &format!("{mode}, {overflow}")), cause, &[keeps]);
    }
    for (overflow, cause) in [
        ("overflow: overwrite", LossCause::Overwritten),
        ("overflow: drop_oldest", LossCause::EdgeFull),
        ("overflow: drop_newest", LossCause::EdgeFull),
        ("overflow: reject", LossCause::Refused),
    ] {
        let policy = format!("mode: queue, capacity: 2, {overflow}");
        let more = ("raise `capacity`", "capacity: 2", "capacity: 9");
        let slower = ("use `overflow: block`", overflow, "overflow: block");
        check(&text(polls, "immediate", &policy), cause, &[more, slower]);
    }
}

#[test]
fn the_hint_for_a_replaced_message_names_what_the_component_has() {
    let queue = "mode: queue, capacity: 9";
    check(
        &text(&dst("slow", "type: any_input, coalesce: true"), "immediate", queue),
        LossCause::Coalesced,
        &[("remove `coalesce`", ", coalesce: true", "")],
    );
    check(
        &text(&dst("slow", "type: debounce"), "immediate", queue),
        LossCause::Coalesced,
        &[("another trigger than `debounce`", "type: debounce", "type: any_input")],
    );
    // Both inputs keep the newest, as their edges do.
    let all = text(&dst("fast", "type: all_inputs"), "immediate", "mode: latest");
    check(
        &all.replace("mode: queue, capacity: 64", "capacity: 1"),
        LossCause::Coalesced,
        &[("use `mode: queue` on the edges", "mode: latest", "mode: queue, capacity: 32")],
    );
}

#[test]
fn the_other_hints_that_name_a_field_work() {
    let queue = "mode: queue, capacity: 9";
    let trigger = |lane: &str, more: &str| text(&dst(lane, more), "immediate", queue);
    check(
        &trigger("slow", "type: any_input, max_latency_ms: 1"),
        LossCause::MaxLatency,
        &[("raise `max_latency_ms`", "max_latency_ms: 1", "max_latency_ms: 9")],
    );
    check(
        &trigger("fast", "type: time_sync, sync_slop_ms: 1"),
        LossCause::NoMatch,
        &[("raise `sync_slop_ms`", "sync_slop_ms: 1", "sync_slop_ms: 40")],
    );
    check(
        &trigger("fast", "type: watermark, watermark_lateness_ms: 0"),
        LossCause::BehindWatermark,
        &[("raise `watermark_lateness_ms`", "lateness_ms: 0", "lateness_ms: 9")],
    );
    check(
        &text(&dst("fast", "type: any_input, min_interval_ms: 6"), "immediate", "mode: latest"),
        LossCause::PendingFull,
        &[
            ("shorten `min_interval_ms`", "min_interval_ms: 6", "min_interval_ms: 1"),
            ("raise `capacity` of the edges", "mode: latest", "mode: queue, capacity: 9"),
        ],
    );
    check(
        &text(&dst("pool", "type: any_input"), "async", "mode: queue, capacity: 9"),
        LossCause::LaneFull,
        &[("raise `queue_capacity`", "queue_capacity: 0", "queue_capacity: 9")],
    );
    let polls = "id: dst, type: works, execution: { lane: slow }";
    check(
        &text(polls, "immediate", &format!("{queue}, lifespan_ms: 2")),
        LossCause::Stale,
        &[("raise `lifespan_ms`", "lifespan_ms: 2", "lifespan_ms: 9")],
    );
    let polls = "id: dst, type: works, execution: { lane: fast }";
    check(
        &text(polls, "async", &format!("{queue}, max_inflight: 1")),
        LossCause::MaxInflight,
        &[("raise `max_inflight`", "max_inflight: 1", "max_inflight: 9")],
    );
}

#[test]
fn the_hint_for_outputs_that_a_loop_discards_works() {
    let member = |id: &str| {
        format!(
            "id: {id}, type: works, execution: {{ lane: fast }}, \
             event_sources: [{{ type: message, inputs: [a] }}], \
             trigger_policy: {{ type: any_input, inputs: [a] }}"
        )
    };
    let text = graph(
        "fast: { type: fixed_rate, period_ms: 1 }",
        &[
            "id: src, type: works, execution: { lane: fast }",
            &member("x").replace("inputs: [a]", "inputs: [a, b]"),
            &member("y"),
            "id: dst, type: works, execution: { lane: fast }",
        ],
        &[
            "id: into, kind: immediate, from: src.out, to: x.b",
            "id: there, kind: immediate, from: x.out, to: y.a",
            "id: back, kind: immediate, from: y.out, to: x.a",
            "id: out, kind: immediate, from: y.out, to: dst.a, \
             policy: { mode: queue, capacity: 64 }",
        ],
    );
    let looped = "composite_loops: [{ id: l, components: [x, y], loop_policy: \
                  { type: solver_iteration, max_iterations: 2 } }]\n";
    let commits = "max_iterations: 2, partial_success: commit_outputs";
    check(
        &format!("{text}{looped}"),
        LossCause::LoopDiscarded,
        &[("set `partial_success: commit_outputs`", "max_iterations: 2", commits)],
    );
}
