//! Latency budgets of chains, ages on edges, and inputs that stay silent.

use core::time::Duration;
use std::sync::Arc;

use clockjack_graph::{
    Clock, Component, ExecuteShared, Failure, GraphContext, Input, Output, Parallel, RunOptions,
    RunReport,
    run::{ChainReport, HealthKind, LossCause},
};
use clockjack_testkit::ManualTime;

use crate::{
    acts::{Act, compile, with_acts},
    clock::{self, Diary},
    parts::{Seen, registry, run, run_on_pool},
};

/// A graph of these lanes, components, edges and chains.
fn graph(lanes: &[&str], components: &[&str], edges: &[&str], chains: &[&str]) -> String {
    let list = |items: &[&str]| -> String {
        items.iter().map(|one| format!("  - {{ {one} }}\n")).collect()
    };
    let lanes: String = lanes.iter().map(|one| format!("  {one}\n")).collect();
    format!(
        "schema_version: 1\ngraph: {{ name: t, kind: internal_test }}\nlanes:\n{lanes}\
         components:\n{}edges:\n{}chains:\n{}",
        list(components),
        list(edges),
        list(chains)
    )
}

const MAIN: &str = "main: { type: event_loop }";

/// A source that is called every ten milliseconds.
const SRC: &str = "id: src, type: count, boundary: { role: input }, execution: { lane: main }, \
                   event_sources: [{ type: timer, period_ms: 10 }]";

/// A reader of one message at a time.
fn on_message(id: &str, component_type: &str, input: &str, lane: &str) -> String {
    let role = if component_type == "keep" { ", boundary: { role: output }" } else { "" };
    format!(
        "id: {id}, type: {component_type}, execution: {{ lane: {lane} }}{role}, \
         event_sources: [{{ type: message, input: {input} }}], \
         trigger_policy: {{ type: any_input }}"
    )
}

/// The report of a run for so many milliseconds of virtual time.
fn report(text: &str, for_ms: u64) -> RunReport {
    run(text, virtual_for(for_ms)).result.expect("nothing fails")
}

fn virtual_for(for_ms: u64) -> RunOptions {
    RunOptions::run_for(Duration::from_millis(for_ms)).clock(Clock::Virtual)
}

/// Samples, violations, median, 99th percentile and the longest of a chain.
fn facts(chain: &ChainReport) -> (u64, u64, f64, f64, f64) {
    let ChainReport { samples, violations, p50_ms, p99_ms, longest_ms, .. } = *chain;
    (samples, violations, p50_ms, p99_ms, longest_ms)
}

/// A source every 10 ms, read through a component by a lane with a tick every 25 ms.
fn sampled() -> String {
    graph(
        &[MAIN, "slow: { type: fixed_rate, period_ms: 25 }"],
        &[SRC, &on_message("mid", "add", "a", "main"), &on_message("out", "keep", "in", "slow")],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.a",
            "id: f, kind: immediate, from: mid.out, to: out.in, \
             policy: { mode: queue, capacity: 8 }",
        ],
        &["from: src, to: out, max_ms: 12", "id: half, from: src, to: mid, max_ms: 1"],
    )
}

#[test]
fn latencies_in_virtual_time_are_those_of_the_schedule() {
    // The source is called at 0, 10, 20 ..; the reader reads at 0: 0; at 25: 15, 5; at 50: 20, 10,
    // 0; and so on.
    let report = report(&sampled(), 101);
    let [whole, half] = &report.chains[..] else { panic!("{:?}", report.chains) };
    assert_eq!((&*whole.id, &*whole.from, &*whole.to), ("src:out", "src", "out"));
    assert_eq!(facts(whole), (11, 4, 10.0, 20.0, 20.0));
    assert_eq!(facts(half), (11, 0, 0.0, 0.0, 0.0));
    let of = |name: &str| report.metrics.get(&format!("runtime.chain.{name}"), "src:out");
    assert_eq!((of("sample_count"), of("violation_count")), (Some(11.0), Some(4.0)));
    assert_eq!((of("latency_p50_ms"), of("latency_p99_ms")), (Some(10.0), Some(20.0)));
    assert_eq!(of("latency_max_ms"), Some(20.0));
    let event = report.health.iter().find(|one| one.kind == HealthKind::ChainOverBudget);
    let event = event.expect("a violation is a health event");
    assert_eq!(
        (event.chain.as_deref(), event.component.as_deref()),
        (Some("src:out"), Some("out"))
    );
    assert_eq!((event.occurrence_count, event.observed_ns), (4, clock::ms(100)));
    assert_eq!(report.n_late(), 4);
    let line = "chain src:out: 4 of 11 over 12 ms; p50 10.000 ms, p99 20.000 ms, longest 20.000 ms";
    assert_eq!(format!("{whole}"), line);
}

#[test]
fn latencies_in_virtual_time_do_not_depend_on_the_workers() {
    let alone = report(&sampled(), 500).chains;
    for workers in [1, 2, 4] {
        let ran = run_on_pool(&sampled(), virtual_for(500), workers);
        assert_eq!(ran.result.expect("nothing fails").chains, alone, "{workers} workers");
    }
}

#[test]
fn a_cost_model_adds_up_along_the_chain() {
    for (max_ms, violations) in [(9, 0), (8, 11)] {
        let text = sampled()
            .replace("period_ms: 25", "period_ms: 10")
            .replace("max_ms: 12", &{ format!("max_ms: {max_ms}") });
        let options = virtual_for(101).call_cost(|id, _| {
            Duration::from_millis(match id {
                "src" => 3,
                "mid" => 4,
                _ => 2,
            })
        });
        let report = run(&text, options).result.expect("nothing fails");
        assert_eq!(facts(&report.chains[0]), (11, violations, 9.0, 9.0, 9.0));
    }
}

#[test]
fn the_oldest_of_two_paths_counts() {
    let join = "id: sum, type: add, execution: { lane: main }, \
                event_sources: [{ type: message, inputs: [a, b] }], \
                trigger_policy: { type: all_inputs }";
    let text = graph(
        &[MAIN],
        &[
            SRC,
            &on_message("slow", "add", "a", "main"),
            join,
            &on_message("out", "keep", "in", "main"),
        ],
        &[
            "id: fast, kind: immediate, from: src.out, to: sum.b",
            "id: there, kind: delay, from: src.out, to: slow.a",
            "id: back, kind: immediate, from: slow.out, to: sum.a",
            "id: f, kind: immediate, from: sum.out, to: out.in",
        ],
        &["from: src, to: out, max_ms: 5"],
    );
    // From the second call on, the slow path brings what was published ten milliseconds ago.
    assert_eq!(facts(&report(&text, 51).chains[0]), (5, 5, 10.0, 10.0, 10.0));
}

#[test]
fn feedback_inside_of_a_chain_does_not_grow_old() {
    let mid = "id: mid, type: add, execution: { lane: main }, \
               event_sources: [{ type: message, inputs: [a, b] }], \
               trigger_policy: { type: all_inputs }";
    let kick = SRC.replace("id: src", "id: kick").replace("period_ms: 10", "period_ms: 1000000");
    let text = graph(
        &[MAIN],
        &[SRC, &kick, mid, &on_message("out", "keep", "in", "main")],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.b",
            "id: first, kind: immediate, from: kick.out, to: mid.a",
            "id: again, kind: delay, from: mid.out, to: mid.a",
            "id: f, kind: immediate, from: mid.out, to: out.in",
        ],
        &["from: src, to: out, max_ms: 1"],
    );
    assert_eq!(facts(&report(&text, 101).chains[0]), (11, 0, 0.0, 0.0, 0.0));
    let file = clockjack_graph::GraphFile::parse("t.yaml", &text).expect("it is right");
    let compiled = file.compile(&registry(&Seen::default())).expect("it is right");
    let plan = compiled.plan();
    let edges = plan.chains[0].edges.iter().map(|edge| plan.edges[*edge].id.as_str());
    assert_eq!(edges.collect::<Vec<_>>(), ["e", "f"]);
}

#[test]
fn a_call_that_fails_and_a_message_that_is_lost_are_no_samples() {
    let failing = on_message("mid", "add", "a", "main")
        .replace("lane: main }", "lane: main, on_error: continue }, config: { fails_at: 3 }");
    let text = graph(
        &[MAIN, "slow: { type: fixed_rate, period_ms: 40 }"],
        &[SRC, &failing, &on_message("out", "keep", "in", "slow")],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.a",
            "id: f, kind: immediate, from: mid.out, to: out.in, \
             policy: { mode: queue, capacity: 8, lifespan_ms: 15 }",
        ],
        &["from: src, to: out, max_ms: 100"],
    );
    // Published at 0, 10, 30 ..; at 40 those of 30 and 40 are young enough, at 80 those of 70, 80.
    let report = report(&text, 81);
    assert_eq!(facts(&report.chains[0]), (5, 0, 0.0, 10.0, 10.0));
    let stale = report.losses.iter().find(|loss| loss.cause == LossCause::Stale);
    assert_eq!(stale.map(|loss| loss.count), Some(3), "{:?}", report.losses);
}

/// Passes on what comes; its invocations may overlap.
#[derive(Component, Default)]
#[component(type = "pass")]
struct Pass {
    #[input]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
}

impl ExecuteShared for Pass {
    fn execute(&self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let value = cx.latest(self.a).copied().unwrap_or_default();
        cx.publish(self.out, value)?;
        Ok(())
    }
}

#[test]
fn overlapping_calls_have_latencies_of_their_own() {
    let pass = "id: pass, type: pass, execution: { lane: pool, reentrant: true }, \
                event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }";
    let text = graph(
        &[
            MAIN,
            "pool: { type: thread_pool, max_threads: 4, queue_capacity: 8 }",
            "slow: { type: fixed_rate, period_ms: 40 }",
        ],
        &[
            SRC,
            &on_message("gate", "add", "a", "slow"),
            pass,
            &on_message("out", "keep", "in", "main"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: gate.a, \
             policy: { mode: queue, capacity: 8 }",
            "id: p, kind: immediate, from: gate.out, to: pass.a, \
             policy: { mode: queue, capacity: 8 }",
            "id: f, kind: immediate, from: pass.out, to: out.in, \
             policy: { mode: queue, capacity: 8 }",
        ],
        &["from: src, to: out, max_ms: 25"],
    );
    let time = ManualTime::start();
    let with_pass = || registry(&Seen::default()).register_shared::<Pass>();
    let alone = compile(&text, &with_pass()).start(time.system(), virtual_for(81));
    let alone = time.block_on(alone.expect("it starts")).expect("nothing fails").chains;
    // At 0: 0; at 40 and at 80: 30, 20, 10, 0.
    assert_eq!(facts(&alone[0]), (9, 2, 10.0, 30.0, 30.0));
    for workers in [2, 4] {
        let rt = crate::teller::runtime();
        let options = virtual_for(81).workers(workers).parallel(Parallel::Always);
        let ran = compile(&text, &with_pass()).start(rt.system(), options).expect("it starts");
        assert_eq!(rt.block_on(ran).expect("nothing fails").chains, alone, "{workers} workers");
    }
}

#[test]
fn the_result_of_a_task_continues_the_chain() {
    let text = graph(
        &[MAIN],
        &[
            SRC,
            "id: work, type: acts, execution: { lane: main }, \
             event_sources: [{ type: message, input: a }], trigger_policy: { type: any_input }",
            &on_message("out", "keep", "in", "main"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: work.a",
            "id: f, kind: async, from: work.out, to: out.in, policy: { mode: queue, capacity: 8 }",
        ],
        &["from: src, to: out, max_ms: 5"],
    );
    let time = ManualTime::start();
    let act: Act = Arc::new(move |cx, _, out| {
        cx.submit_task(out, async { Ok(1.0) })?;
        Ok(())
    });
    let types = with_acts(registry(&Seen::default()), act);
    let run = compile(&text, &types).start(time.system(), virtual_for(51)).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    // A task of one tick is seen at the next.
    assert_eq!(facts(&report.chains[0]), (5, 5, 10.0, 10.0, 10.0));
}

#[test]
fn a_chain_from_the_clock_of_the_system_to_simulated_time_is_refused() {
    let text = graph(
        &[MAIN, "fast: { type: fixed_rate, period_ms: 2, wall_clock_enabled: true }"],
        &[
            "id: src, type: count, boundary: { role: input }, execution: { lane: fast }",
            &on_message("out", "keep", "in", "main"),
        ],
        &["id: e, kind: delay, from: src.out, to: out.in"],
        &["from: src, to: out, max_ms: 10000"],
    );
    let refused = run(&text, RunOptions::steps(20)).result.expect_err("it has two clocks");
    let said = "chain `src:out` leads from simulated time to the clock of the system or back";
    assert!(refused.to_string().contains(said), "{refused}");
    // With one clock for all, it is measured.
    for clock in [Clock::Virtual, Clock::Wall] {
        let ran = run_on_pool(&text, RunOptions::steps(20).clock(clock), 2);
        let report = ran.result.expect("it has one clock");
        assert_eq!(report.chains[0].violations, 0, "{clock:?}");
        assert!(report.chains[0].samples > 0, "{clock:?}");
    }
}

#[test]
fn by_the_clock_of_the_system_the_duration_of_calls_counts() {
    let slow = |id: &str, source: &str| {
        format!("id: {id}, type: slow, execution: {{ lane: main }}, event_sources: [{source}]")
    };
    let text = graph(
        &[MAIN],
        &[
            &slow("src", "{ type: timer, period_ms: 20 }"),
            &format!(
                "{}, trigger_policy: {{ type: any_input }}",
                slow("out", "{ type: message, input: a }")
            ),
        ],
        &["id: e, kind: immediate, from: src.out, to: out.a"],
        &["from: src, to: out, max_ms: 6"],
    );
    let takes_ms = [3, 4, 1, 2].into();
    let options = RunOptions::run_for(Duration::from_millis(30));
    let ran = clock::run(&text, options, Diary { takes_ms, ..Diary::default() });
    assert_eq!(facts(&ran.report().chains[0]), (2, 1, 5.0, 6.96, 7.0));
}

/// A source that is called every ten milliseconds from `phase_ms` on, and its reader.
fn watched(phase_ms: u64, max_ms: u64) -> String {
    let source = SRC.replace("period_ms: 10", &format!("period_ms: 10, phase_ms: {phase_ms}"));
    let edge = format!(
        "id: e, kind: immediate, from: src.out, to: out.in, \
         policy: {{ max_silence_ms: {max_ms} }}"
    );
    graph(&[MAIN], &[&source, &on_message("out", "keep", "in", "main")], &[&edge], &[])
        .replace("chains:\n", "")
}

/// How often the input was silent, and for how long at most.
fn silences(report: &RunReport) -> Option<(u64, Duration)> {
    let input = report.silent_inputs.first()?;
    assert_eq!((&*input.edge, &*input.component), ("e", "out"));
    let counted = report.metrics.get("runtime.channel.silence_count", "e");
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let count = input.count as f64;
    assert_eq!(counted, Some(count));
    Some((input.count, input.longest))
}

#[test]
fn an_input_that_stays_silent_is_reported_once_per_silence() {
    let ms = Duration::from_millis;
    assert_eq!(silences(&report(&watched(0, 10), 101)), None, "ten are not more than ten");
    assert_eq!(silences(&report(&watched(0, 9), 101)), Some((10, ms(10))));
    let begins_late = report(&watched(50, 20), 101);
    assert_eq!(silences(&begins_late), Some((1, ms(50))));
    let event = &begins_late.health[0];
    assert_eq!((event.kind, event.edge.as_deref()), (HealthKind::InputSilent, Some("e")));
    assert_eq!((event.occurrence_count, event.observed_ns), (1, clock::ms(20)));
    assert_eq!(begins_late.n_late(), 1);
    let line = "edge e: nothing came to `out` for longer than 20 ms, once; \
                the longest silence was 50 ms";
    assert_eq!(format!("{}", begins_late.silent_inputs[0]), line);
    // Until the end of the run.
    assert_eq!(silences(&report(&watched(500, 20), 101)), Some((1, ms(101))));
}

#[test]
fn a_muted_edge_counts_its_silences_without_events() {
    let text =
        watched(50, 20).replace("max_silence_ms", "emit_health_events: false, max_silence_ms");
    let report = report(&text, 101);
    assert_eq!(silences(&report), Some((1, Duration::from_millis(50))));
    assert_eq!(report.health, []);
}

#[test]
fn by_the_clock_of_the_system_silence_is_noticed_without_an_epoch() {
    let source = |more: &str| {
        format!(
            "id: src, type: slow, execution: {{ lane: main }}, \
             event_sources: [{{ type: timer, period_ms: 50 }}]{more}"
        )
    };
    let reader = "id: out, type: slow, execution: { lane: main }, \
                  event_sources: [{ type: message, input: a }], \
                  trigger_policy: { type: any_input }";
    let run = |policy: &str| {
        let edge = format!("id: e, kind: immediate, from: src.out, to: out.a{policy}");
        let text = graph(&[MAIN], &[&source(""), reader], &[&edge], &[]).replace("chains:\n", "");
        clock::run(&text, RunOptions::run_for(Duration::from_millis(151)), Diary::default())
    };
    let (without, with) = (run(""), run(", policy: { max_silence_ms: 20 }"));
    assert_eq!(with.report().epochs, without.report().epochs, "it only observes");
    assert_eq!(with.diary.calls, without.diary.calls);
    assert_eq!(silences(with.report()).map(|(count, _)| count), Some(3));
    let event = &with.report().health[0];
    assert_eq!((event.kind, event.occurrence_count), (HealthKind::InputSilent, 3));
    assert_eq!(event.observed_ns, clock::ms(120));
}

#[test]
fn a_graph_without_chains_reports_none() {
    let text = watched(0, 100);
    let report = report(&text, 21);
    assert_eq!((report.chains.len(), report.n_late()), (0, 0));
    assert!(report.metrics.iter().all(|one| !one.name.starts_with("runtime.chain.")));
}

#[test]
fn the_result_of_a_task_counts_however_many_calls_there_were_meanwhile() {
    let text = graph(
        &[MAIN],
        &[
            "id: src, type: acts, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
            &on_message("out", "keep", "in", "main"),
        ],
        &["id: e, kind: immediate, from: src.out, to: out.in, \
           policy: { mode: queue, capacity: 8 }"],
        &["from: src, to: out, max_ms: 100"],
    );
    let time = ManualTime::start();
    let delays = time.system().scheduler().jobs().delays();
    let act: Act = Arc::new(move |cx, _, out| {
        if cx.epoch() > 1 {
            return Ok(cx.publish(out, 1.0)?);
        }
        // One result for each task of the call, and one task without.
        for result in [Some(2.0), None, Some(3.0)] {
            let delay = delays.delay(Duration::from_secs(3));
            let task = async move {
                delay.await.map_err(|_| Failure::msg("no timer"))?;
                result.ok_or_else(|| Failure::msg("told to fail"))
            };
            cx.submit_task(out, task)?;
        }
        Ok(())
    });
    let types = with_acts(registry(&Seen::default()), act);
    let text = text.replace(
        "type: acts, execution: { lane: main }",
        "type: acts, execution: { lane: main, on_error: continue }",
    );
    let options = RunOptions::run_for(Duration::from_millis(3_500)).clock(Clock::Wall);
    let run = compile(&text, &types).start(time.system(), options).expect("it starts");
    let report = time.block_on(run).expect("nothing fails");
    let chain = &report.chains[0];
    assert!(chain.samples > 3_000, "{chain}");
    assert_eq!((chain.violations, chain.longest_ms), (2, 3_000.0), "{chain}");
}
