//! The invariants of the runtime, on one thread: what is visible when, and what is counted where.

use clockjack_graph::{RunOptions, RunStopReason};

use crate::teller::{Said, Told, graph, reader, source, tell_alone};

const ONE_LANE: &str = "main: { type: event_loop }";

/// A source that publishes `n` at a time, an edge, and its reader.
fn pair(n: u64, edge: &str, epochs: u64) -> Told {
    let text = graph(
        ONE_LANE,
        &[&source("src", &format!(", config: {{ n: {n} }}")), &reader("dst", "")],
        &[&format!("id: e, from: src.out, to: dst.a, {edge}")],
    );
    tell_alone(&text, RunOptions::steps(epochs))
}

#[test]
fn publish_never_runs_downstream() {
    let told = pair(3, "kind: immediate, policy: { mode: queue, capacity: 3 }", 2);
    let mut at_work = None;
    for (_, id, said) in &told.story.lines {
        match said {
            Said::Begins => assert_eq!(at_work.replace(id), None, "nobody begins within a call"),
            Said::Ends(_) => assert_eq!(at_work.take(), Some(id)),
            _ => assert_eq!(at_work, Some(id)),
        }
    }
    assert_eq!(told.began(1), ["src", "dst", "dst", "dst"]);
}

#[test]
fn state_readers_keep_the_old_snapshot() {
    // Both read in every epoch, one before the writer and one after it.
    let text = graph(
        ONE_LANE,
        &[
            &source("before", "").replace("lane: main", "lane: main, priority: high"),
            &source("writer", ""),
            &source("after", "").replace("lane: main", "lane: main, priority: low"),
        ],
        &[
            "id: e, kind: state, from: writer.out, to: before.a",
            "id: f, kind: state, from: writer.out, to: after.a",
        ],
    );
    let told = tell_alone(&text, RunOptions::steps(4));
    assert_eq!(told.began(2), ["before", "writer", "after"]);
    for id in ["before", "after"] {
        let seen = told.story.lines.iter().filter(|(_, who, _)| who == id);
        let seen: Vec<Option<f64>> = seen
            .filter_map(|(_, _, said)| if let Said::Latest(x) = said { Some(*x) } else { None })
            .collect();
        assert_eq!(seen, [None, Some(1.0), Some(2.0), Some(3.0)], "{id}");
    }
}

#[test]
fn latest_never_backlogs() {
    let told = pair(3, "kind: immediate", 3);
    assert_eq!(told.saw("dst"), [(1, 1.2), (2, 2.2), (3, 3.2)]);
    assert_eq!(told.metric("runtime.channel.overwrite_count", "e"), 6);
    assert_eq!(told.metric("runtime.channel.max_depth", "e"), 1);
}

#[test]
fn previous_tick_wakes_once() {
    let text = graph(
        ONE_LANE,
        &[
            // Of three epochs one publishes.
            "id: src, type: teller, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 3 }]",
            "id: beat, type: teller, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
            &reader("dst", ""),
        ],
        &["id: e, kind: immediate, from: src.out, to: dst.a, policy: { mode: previous_tick }"],
    );
    let told = tell_alone(&text, RunOptions::steps(7));
    assert_eq!(told.saw("dst"), [(2, 1.0), (5, 4.0)]);
    assert_eq!(told.count("dst", &Said::Begins), 2);
}

#[test]
fn a_queue_honours_its_overflow() {
    for (overflow, seen, n_refused) in [
        ("overwrite", [1.2, 1.3], 0),
        ("drop_oldest", [1.2, 1.3], 0),
        ("drop_newest", [1.0, 1.1], 2),
        ("reject", [1.0, 1.1], 2),
    ] {
        let edge = format!(
            "kind: immediate, policy: {{ mode: queue, capacity: 2, overflow: {overflow} }}"
        );
        let told = pair(4, &edge, 1);
        assert_eq!(told.saw("dst"), seen.map(|value| (1, value)), "{overflow}");
        assert_eq!(told.count("src", &Said::Refused), n_refused, "{overflow}");
    }
}

#[test]
fn a_full_edge_that_fails_fast_ends_the_run() {
    let edge = "kind: immediate, policy: { mode: queue, capacity: 2, overflow: fail_fast }";
    let told = pair(4, edge, 3);
    assert_eq!(told.result.as_ref().unwrap_err().fault().unwrap().component, "src");
    assert_eq!((told.report().epochs, told.began(1)), (1, vec!["src"]));
}

#[test]
fn a_blocking_edge_keeps_its_producer_from_being_called() {
    // The reader takes three at a time, of a queue of three: the producer waits while it is full.
    let text = graph(
        "main: { type: event_loop }, slow: { type: fixed_rate, period_ms: 4 }",
        &[
            "id: src, type: teller, execution: { lane: main }, \
             event_sources: [{ type: timer, period_ms: 1 }]",
            &reader("dst", "").replace("lane: main", "lane: slow"),
        ],
        &["id: e, kind: immediate, from: src.out, to: dst.a, \
           policy: { mode: queue, capacity: 2, overflow: block }"],
    );
    let told = tell_alone(&text, RunOptions::steps(9));
    assert_eq!(told.count("src", &Said::Refused), 0, "nothing is refused");
    // Epoch n is at n - 1 ms; the lane of the reader is due in the first, the fifth and the ninth.
    let epochs: Vec<u64> = (1..=9).filter(|epoch| told.began(*epoch).contains(&"src")).collect();
    assert_eq!(epochs, [1, 2, 3, 6, 7]);
    assert_eq!(told.saw("dst"), [(1, 1.0), (5, 2.0), (5, 3.0), (9, 6.0), (9, 7.0)]);
}

#[test]
fn every_refused_or_dropped_message_is_in_exactly_one_counter() {
    for kind in ["immediate", "delay", "async", "async, MAX"] {
        for mode in ["latest", "queue", "ring_buffer", "latched", "barrier", "previous_tick"] {
            let is_slot = ["latest", "latched", "previous_tick"].contains(&mode);
            for overflow in ["overwrite", "drop_oldest", "drop_newest", "reject", "block"] {
                if is_slot && ["drop_newest", "block"].contains(&overflow) {
                    continue;
                }
                let (kind, max) = match kind.split_once(',') {
                    Some((kind, _)) => (kind, ", max_inflight: 2"),
                    None => (kind, ""),
                };
                let edge = format!(
                    "kind: {kind}, policy: {{mode: {mode}, capacity: 3, overflow: {overflow}{max}}}"
                );
                check_counters(&pair(5, &edge, 7), &edge);
            }
        }
    }
}

fn check_counters(told: &Told, edge: &str) {
    let of = |name: &str| told.metric(&format!("runtime.channel.{name}"), "e");
    let n_calls = told.count("src", &Said::Begins);
    let (offered, refused) = (5 * n_calls as u64, told.count("src", &Said::Refused) as u64);
    let evicted = told.report().metrics.total("runtime.async.overwrite_count");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let evicted = evicted as u64;
    let is_later = !edge.contains("immediate");
    // What the last epoch published on edges that are not immediate is still in flight.
    let under_way = if is_later { 5 } else { 0 };
    let counted = of("publish_count") + of("reject_count") + evicted;
    assert!(counted <= offered && offered <= counted + under_way, "{edge}: {counted} of {offered}");
    let in_channel = of("reject_count") + of("drop_count");
    assert!(refused <= in_channel, "{edge}: {refused} refused, {in_channel} counted");
    let gone =
        of("delivery_count") + of("drop_count") + of("overwrite_count") + of("stale_drop_count");
    let inside = of("publish_count") - gone;
    assert!(inside <= 3, "{edge}: {inside} inside");
    assert_eq!(told.saw("dst").len() as u64, of("delivery_count"), "{edge}");
    let expected = u64::from(edge.contains("reject") || edge.contains("block"));
    assert!(of("reject_count") == 0 || expected == 1, "{edge}: only these reject");
}

/// A loop of two, which reads from a source and is read from outside.
fn looped(policy: &str, config: &str) -> Told {
    let mut text = graph(
        ONE_LANE,
        &[
            &source("src", ""),
            &reader("x", ""),
            &reader("y", &format!(", config: {{ {config} }}")),
            &reader("dst", ""),
        ],
        &[
            "id: e1, kind: immediate, from: src.out, to: x.a",
            "id: e2, kind: immediate, from: x.out, to: y.a",
            "id: e3, kind: immediate, from: y.out, to: x.a",
            "id: e4, kind: immediate, from: y.out, to: dst.a, \
             policy: { mode: queue, capacity: 2, overflow: reject }",
            "id: e5, kind: delay, from: x.out, to: dst.a, policy: { mode: queue, capacity: 9 }",
        ],
    );
    text.push_str(&format!(
        "composite_loops: [{{ id: l, components: [x, y], loop_policy: {{ {policy} }} }}]\n"
    ));
    tell_alone(&text, RunOptions::steps(2))
}

#[test]
fn loop_outputs_only_on_success_or_explicit_policy() {
    let bound = "type: solver_iteration, max_iterations: 3";
    let told = looped(bound, "converges_at: 2");
    let seen = told.saw("dst");
    assert_eq!(seen.iter().filter(|(epoch, _)| *epoch == 1).count(), 2, "it has converged");

    let told = looped(bound, "converges_at: 4");
    assert_eq!(told.saw("dst"), [], "it has not, and nothing of it is seen, also not later");
    assert_eq!(told.metric("runtime.loop.output_discarded", "l"), 2 * (2 + 3));
    assert_eq!(told.metric("runtime.loop.max_iterations_hit", "l"), 2);

    let told = looped(&format!("{bound}, partial_success: commit_outputs"), "converges_at: 4");
    assert!(!told.saw("dst").is_empty());

    let told = looped(&format!("{bound}, partial_success: fail_run"), "converges_at: 4");
    assert_eq!(told.result.as_ref().unwrap_err().fault().unwrap().component, "l");
    assert_eq!(told.saw("dst"), []);

    let told = looped("type: fixed_point, max_iterations: 3", "fails_at: 1");
    assert_eq!(told.result.as_ref().unwrap_err().fault().unwrap().component, "y");
    assert_eq!((told.saw("dst"), told.metric("runtime.loop.error", "l")), (vec![], 1));
}

#[test]
fn what_a_loop_holds_has_its_room_in_the_channel() {
    let told = looped("type: transaction, max_iterations: 5", "n: 1");
    // Two have room in each epoch; the third is refused when it is published, on all of its edges,
    // so that the loop ends.
    assert_eq!(told.report().metrics.total("runtime.publication.failed_commit"), 0.0);
    assert_eq!(told.count("y", &Said::Refused), 2);
    assert_eq!(told.metric("runtime.channel.reject_count", "e4"), 2);
}

#[test]
fn metrics_equal_facts() {
    let text = graph(
        ONE_LANE,
        &[
            &source("src", ", config: { n: 2 }"),
            &reader("mid", ", config: { fails_at: 2 }")
                .replace("lane: main", "lane: main, on_error: continue"),
            &reader("dst", ""),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: mid.a, policy: {mode: queue, capacity: 2}",
            "id: f, kind: immediate, from: mid.out, to: dst.a, policy: {mode: queue, capacity: 2}",
        ],
    );
    let told = tell_alone(&text, RunOptions::steps(3));
    let report = told.result.as_ref().unwrap();
    let mut n_ended = 0;
    for (id, n_failed) in [("src", 0), ("mid", 2), ("dst", 0)] {
        let n_begun = told.count(id, &Said::Begins) as u64;
        let executions = told.metric("runtime.component.execution_count", id);
        assert_eq!(executions, n_begun - n_failed, "{id}");
        assert_eq!(told.metric("runtime.component.error_count", id), n_failed, "{id}");
        n_ended += executions;
    }
    assert_eq!(report.executions, n_ended);
    assert_eq!(told.metric("runtime.trigger.ready_count", "mid"), 6);
    assert_eq!(told.metric("runtime.channel.delivery_count", "f"), told.saw("dst").len() as u64);
    assert_eq!(told.metric("runtime.scheduler.completed_count", "main"), n_ended);
    assert_eq!(report.faults.len(), 2);
    let committed = report.metrics.total("runtime.publication.committed");
    assert!((committed - 10.0).abs() < 0.5, "six and four, without those of calls that failed");
}

#[test]
fn a_failure_throws_away_what_its_call_has_published() {
    let text = graph(
        ONE_LANE,
        &[
            &source("src", ", config: { fails_at: 2 }")
                .replace("lane: main", "lane: main, on_error: continue"),
            &reader("dst", ""),
        ],
        &["id: e, kind: immediate, from: src.out, to: dst.a"],
    );
    assert_eq!(tell_alone(&text, RunOptions::steps(3)).saw("dst"), [(1, 1.0), (3, 3.0)]);
}

#[test]
fn a_stop_is_seen_between_regions_and_between_epochs() {
    let text = graph(
        ONE_LANE,
        &[&source("a", ""), &source("b", ", config: { stops_at: 2 }"), &source("c", "")],
        &[],
    );
    let told = tell_alone(&text, RunOptions::steps(9));
    assert_eq!(told.result.as_ref().unwrap().stop, RunStopReason::StopRequested);
    assert_eq!(told.began(1), ["a", "b", "c"]);
    assert_eq!(told.began(2), ["a", "b"], "what is at work ends, nothing else begins");
    assert_eq!(told.report().epochs, 2);
}

#[test]
fn async_is_bounded_and_what_is_over_is_refused_or_makes_room() {
    let edge = |overflow| {
        format!(
            "kind: async, policy: {{ mode: queue, capacity: 9, overflow: {overflow}, \
             max_inflight: 2 }}"
        )
    };
    let told = pair(5, &edge("reject"), 2);
    assert_eq!(told.saw("dst"), [(2, 1.0), (2, 1.1)]);
    assert_eq!(told.count("src", &Said::Refused), 6);
    let told = pair(5, &edge("drop_oldest"), 2);
    assert_eq!(told.saw("dst"), [(2, 1.3), (2, 1.4)]);
    assert_eq!(told.count("src", &Said::Refused), 0);
}

#[test]
fn a_timer_on_a_slower_lane_waits_for_its_lane_and_time_goes_on() {
    let text = graph(
        "main: { type: fixed_rate, period_ms: 10 }",
        &["id: t, type: teller, execution: { lane: main }, \
           event_sources: [{ type: timer, period_ms: 3, phase_ms: 1 }]"],
        &[],
    );
    let told = tell_alone(&text, RunOptions::steps(4));
    assert_eq!(told.report().elapsed_ns, 30_000_000, "an epoch for each tick of the lane");
    assert_eq!(told.count("t", &Said::Begins), 3);
}

#[test]
fn who_is_refused_a_task_is_not_a_matter_of_who_came_first() {
    let text = graph(
        ONE_LANE,
        &[&source("a", ", config: { tasks: 3 }"), &source("b", ", config: { tasks: 3 }")],
        &[],
    );
    let told = tell_alone(&text, RunOptions::steps(1).tasks_max(2));
    // Each is counted for itself.
    assert_eq!((told.count("a", &Said::Refused), told.count("b", &Said::Refused)), (1, 1));
}
