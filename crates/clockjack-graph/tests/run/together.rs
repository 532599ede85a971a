//! The invariants that threads could break, on a pool of eight workers.

use std::thread;

use clockjack_graph::{RunOptions, RunStopReason};

use crate::teller::{Said, Told, graph, reader, runtime, source, tell_alone, tell_by};

const WORKERS: [usize; 4] = [1, 2, 4, 8];

/// A pool lane of so many threads.
fn pool(threads: u32) -> String {
    format!("main: {{ type: thread_pool, max_threads: {threads}, queue_capacity: 64 }}")
}

#[test]
fn independent_regions_overlap_up_to_the_width_of_their_lane() {
    let runtime = runtime();
    let parts: Vec<String> =
        (0..8).map(|at| source(&format!("c{at}"), ", config: { dawdles: 40 }")).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    for threads in [1, 2, 3] {
        let text = graph(&pool(threads), &parts, &[]);
        let (mut most, threads) = (0, threads as usize);
        // On a busy machine helpers may start when all is done: then try again.
        for _ in 0..200 {
            let told = tell_by(&runtime, &text, RunOptions::steps(50), 8);
            let seen = told.story.beside_others;
            assert!(seen <= threads, "{seen} of {threads}");
            assert!(told.report().overlap_max <= threads);
            most = most.max(seen);
            if most >= threads.min(2) {
                break;
            }
        }
        assert!(most >= threads.min(2), "{most} of {threads}");
    }
}

#[test]
fn a_component_that_is_not_reentrant_never_overlaps_itself() {
    let runtime = runtime();
    let text = graph(
        &pool(4),
        &[
            &source("src", ", config: { n: 8 }"),
            &reader("a", ", config: { dawdles: 5 }"),
            &reader("b", ", config: { dawdles: 5 }"),
        ],
        &[
            "id: e, kind: immediate, from: src.out, to: a.a, policy: { mode: queue, capacity: 8 }",
            "id: f, kind: immediate, from: src.out, to: b.a, policy: { mode: queue, capacity: 8 }",
        ],
    );
    let told = tell_by(&runtime, &text, RunOptions::steps(30), 8);
    assert_eq!(told.story.beside_itself, 1);
    assert_eq!(told.saw("a").len(), 30 * 8);
}

#[test]
fn an_output_boundary_starts_only_after_all_earlier_regions_succeeded() {
    let runtime = runtime();
    let text = graph(
        &pool(4),
        &[
            &source("slow", ", config: { dawdles: 5000, fails_at: 3 }"),
            &source("fast", ""),
            &source("out", ", boundary: { role: output }"),
            &source("rest", ""),
        ],
        &[],
    );
    for workers in WORKERS {
        let told = tell_by(&runtime, &text, RunOptions::steps(9), workers);
        let position = |epoch, id, is: fn(&Said) -> bool| {
            told.story
                .lines
                .iter()
                .position(|(at, who, said)| (*at, who.as_str()) == (epoch, id) && is(said))
        };
        for epoch in [1, 2] {
            let begun = position(epoch, "out", |said| *said == Said::Begins).unwrap();
            for id in ["slow", "fast"] {
                let ended = position(epoch, id, |said| matches!(said, Said::Ends(_))).unwrap();
                assert!(ended < begun, "{id} in epoch {epoch} with {workers}");
            }
        }
        let begun = position(3, "out", |said| *said == Said::Begins);
        assert_eq!(begun, None, "{workers}: not after a failure before it");
    }
}

#[test]
fn of_several_failures_the_first_in_compiled_order_is_told() {
    let runtime = runtime();
    // The later one fails at once, the earlier one takes its time.
    let text = graph(
        &pool(4),
        &[
            &source("first", ", config: { dawdles: 50, fails_at: 4 }"),
            &source("second", ", config: { fails_at: 4 }"),
            &source("third", ""),
            &reader("reads", ""),
        ],
        &["id: e, kind: immediate, from: third.out, to: reads.a"],
    );
    let alone = tell_alone(&text, RunOptions::steps(9));
    for workers in WORKERS {
        for _ in 0..10 {
            let told = tell_by(&runtime, &text, RunOptions::steps(9), workers);
            let fault = told.result.as_ref().unwrap_err().fault().unwrap();
            assert_eq!((fault.component.as_str(), fault.epoch), ("first", 4));
            assert_eq!(told.log, alone.log, "{workers}");
            assert_eq!(told.report().faults, []);
        }
    }
}

#[test]
fn a_failure_with_jobs_left_ends_the_run_and_nobody_sleeps_on() {
    let runtime = runtime();
    // The lane with a thread of its own has jobs that do not count any more when the other fails.
    let lanes = "main: { type: event_loop }, own: { type: isolated_thread }";
    let own = |id| source(id, "").replace("lane: main", "lane: own");
    let text = graph(
        lanes,
        &[&source("fails", ", config: { fails_at: 2 }"), &own("x"), &own("y"), &own("z")],
        &[],
    );
    for round in 0..50 {
        let told = tell_by(&runtime, &text, RunOptions::steps(9), WORKERS[round % 4]);
        assert_eq!(told.result.as_ref().unwrap_err().fault().unwrap().component, "fails");
    }
}

#[test]
fn an_isolated_lane_is_called_on_a_thread_of_its_own() {
    let runtime = runtime();
    let lanes = "main: { type: event_loop }, own: { type: isolated_thread }";
    let text = graph(
        lanes,
        &[
            &source("a", ""),
            &source("b", "").replace("lane: main", "lane: own"),
            &source("c", "").replace("lane: main", "lane: own"),
        ],
        &[],
    );
    for workers in WORKERS {
        let told = tell_by(&runtime, &text, RunOptions::steps(20), workers);
        let mut threads: Vec<_> = told
            .story
            .lines
            .iter()
            .filter_map(|(_, id, said)| match said {
                Said::Ends(thread) if id != "a" => Some(*thread),
                _ => None,
            })
            .collect();
        threads.dedup();
        assert_eq!(threads.len(), 1, "{workers}");
        assert_ne!(threads[0], thread::current().id());
        let of_a = told.story.lines.iter().any(
            |(_, id, said)| {
                matches!(said, Said::Ends(thread) if id == "a" && *thread == threads[0])
            },
        );
        assert!(!of_a, "it is nobody else's");
    }
}

#[test]
fn a_stop_is_seen_between_regions_by_all_who_work() {
    let runtime = runtime();
    let parts: Vec<String> = (0..12)
        .map(|at| match at {
            0 => source("stops", ", config: { stops_at: 3 }"),
            1 => reader("next", ""),
            _ => reader(&format!("c{at}"), ", config: { dawdles: 5 }"),
        })
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let edges: Vec<String> = (1..12)
        .map(|at| {
            let to = if at == 1 { "next".into() } else { format!("c{at}") };
            format!("id: e{at}, kind: immediate, from: stops.out, to: {to}.a")
        })
        .collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let text = graph(&pool(4), &parts, &edges);
    for workers in WORKERS {
        let told = tell_by(&runtime, &text, RunOptions::steps(50), workers);
        assert_eq!(told.result.as_ref().unwrap().stop, RunStopReason::StopRequested);
        assert_eq!(told.began(3), ["stops"], "{workers}: all others wait for it");
        assert_eq!(told.report().epochs, 3);
    }
}

#[test]
fn reentrant_invocations_overlap_up_to_the_width_and_commit_in_order() {
    let runtime = runtime();
    let shared = reader("many", ", config: { dawdles: 40 }")
        .replace("type: teller", "type: shared_teller")
        .replace("lane: main", "lane: main, reentrant: true");
    let text = graph(
        &pool(3),
        &[&source("src", ", config: { n: 8 }"), &shared, &reader("dst", "")],
        &[
            "id: e, kind: immediate, from: src.out, to: many.a, policy: {mode: queue, capacity: 8}",
            "id: f, kind: immediate, from: many.out, to: dst.a, \
             policy: { mode: queue, capacity: 4, overflow: reject }",
        ],
    );
    let alone = tell_alone(&text, RunOptions::steps(20));
    assert_eq!(alone.story.beside_itself, 1);
    let mut most = 0;
    for workers in WORKERS {
        let told = tell_by(&runtime, &text, RunOptions::steps(20), workers);
        assert!(told.story.beside_itself <= 3.min(workers), "{workers}");
        most = most.max(told.story.beside_itself);
        assert_eq!(told.log, alone.log, "{workers}");
        assert_eq!(told.saw("dst"), alone.saw("dst"), "{workers}");
        let refused = |one: &Told| one.count("many", &Said::Refused);
        assert_eq!(refused(&told), refused(&alone), "{workers}");
        let rejected = |one: &Told| one.metric("runtime.channel.reject_count", "f");
        assert_eq!(rejected(&told), rejected(&alone), "{workers}");
    }
    // On a busy machine helpers may start when all is done.
    for _ in 0..200 {
        if most > 1 {
            return;
        }
        let told = tell_by(&runtime, &text, RunOptions::steps(20), 8);
        most = most.max(told.story.beside_itself);
    }
    panic!("they never overlapped");
}

#[test]
fn what_a_failed_invocation_has_published_beside_others_is_never_seen() {
    let shared = reader("many", ", config: { fails_at: 2 }")
        .replace("type: teller", "type: shared_teller")
        .replace("lane: main", "lane: main, reentrant: true, on_error: continue");
    let text = graph(
        &pool(3),
        &[&source("src", ", config: { n: 2 }"), &shared, &reader("dst", "")],
        &[
            "id: e, kind: immediate, from: src.out, to: many.a, policy: {mode: queue, capacity: 8}",
            "id: f, kind: immediate, from: many.out, to: dst.a, policy: {mode: queue, capacity: 8}",
        ],
    );
    let told = tell_alone(&text, RunOptions::steps(3));
    assert_eq!(told.saw("dst"), [(1, 1.0), (1, 1.0), (3, 3.0), (3, 3.0)]);
}

#[test]
fn the_budget_of_a_loop_is_not_that_of_the_wall_in_virtual_time() {
    let runtime = runtime();
    let mut text = graph(
        "main: { type: event_loop }",
        &[&source("src", ""), &reader("x", ", config: { dawdles: 20000 }"), &reader("y", "")],
        &[
            "id: e1, kind: immediate, from: src.out, to: x.a",
            "id: e2, kind: immediate, from: x.out, to: y.a",
            "id: e3, kind: immediate, from: y.out, to: x.a",
        ],
    );
    text.push_str(
        "composite_loops: [{ id: l, components: [x, y], \
         loop_policy: { type: transaction, max_iterations: 6, budget_ms: 1 } }]\n",
    );
    let told = tell_by(&runtime, &text, RunOptions::steps(1), 2);
    assert_eq!(told.metric("runtime.loop.iterations", "l"), 6);
    assert_eq!(told.metric("runtime.loop.budget_overrun", "l"), 0);
}

#[test]
fn nobody_sleeps_on_a_job_and_nobody_keeps_what_is_not_theirs() {
    let runtime = runtime();
    let lanes = "main: { type: event_loop }, own: { type: isolated_thread }";
    // The job of the other lane becomes ready at many moments: while its thread searches for one,
    // while it goes to sleep, while it sleeps.
    for dawdles in (0..400).step_by(20) {
        let text = graph(
            lanes,
            &[
                &source("a", &format!(", config: {{ dawdles: {dawdles} }}")),
                &reader("b", "").replace("lane: main", "lane: own"),
            ],
            &["id: e, kind: immediate, from: a.out, to: b.a"],
        );
        let told = tell_by(&runtime, &text, RunOptions::steps(60), 2);
        assert!(told.result.is_ok(), "{:?}", told.result);
        assert_eq!(told.saw("b").len(), 60);
    }
}
