//! Runs that together produce every trace event and metric.

use clockjack_graph::{Clock, RunOptions};

use crate::doer::{Done, alone, alone_with, by, graph, reader, source};

/// The function that receives each scene with its run.
pub(crate) fn all() -> Vec<(&'static str, Done)> {
    vec![
        ("cell", cell(1)),
        ("cell of four", cell(4)),
        ("pool", pool()),
        ("late", late()),
        ("stopped", stopped()),
        ("stopped loop", stopped_loop()),
        ("changed", changed("publishes", 2)),
        ("changed back", changed_back()),
        ("failing loop", failing_loop()),
    ]
}

/// Edges of all kinds, three lanes, a loop that converges, one that does not, and a full queue.
pub(crate) fn cell_text() -> String {
    graph(
        &[
            "main: { type: event_loop }",
            "slow: { type: fixed_rate, period_ms: 2 }",
            "wide: { type: thread_pool, max_threads: 4, queue_capacity: 8 }",
        ],
        &[
            &source("src", "main", "publishes: 3, tasks: 1"),
            &reader("left", "wide", "spins_us: 200"),
            &reader("right", "wide", "spins_us: 200"),
            "id: join, type: doer, execution: { lane: wide }, \
             event_sources: [{ type: message, inputs: [a, b] }], \
             trigger_policy: { type: all_inputs, inputs: [a, b] }",
            &reader("x", "main", ""),
            &reader("y", "main", "converges_at: 2"),
            &reader("p", "main", "is_constant: true"),
            &reader("q", "main", "converges_at: 9"),
            &reader("after", "slow", ""),
        ],
        &[
            "id: e1, kind: immediate, from: src.out, to: left.a",
            "id: e2, kind: immediate, from: src.out, to: right.a, \
             policy: { mode: queue, capacity: 2, overflow: drop_oldest }",
            "id: e3, kind: immediate, from: left.out, to: join.a",
            "id: e4, kind: immediate, from: right.out, to: join.b",
            "id: e5, kind: delay, from: join.out, to: x.a, policy: { mode: queue, capacity: 4 }",
            "id: e6, kind: immediate, from: x.out, to: y.a",
            "id: e7, kind: immediate, from: y.out, to: x.a",
            "id: e8, kind: state, from: y.out, to: p.b",
            "id: e9, kind: async, from: y.out, to: p.a, \
             policy: { mode: queue, capacity: 4, max_inflight: 2, overflow: drop_oldest }",
            "id: e10, kind: immediate, from: p.out, to: q.a",
            "id: e11, kind: immediate, from: q.out, to: p.a",
            "id: e12, kind: async, from: q.out, to: after.a, \
             policy: { mode: queue, capacity: 4 }",
            "id: e13, kind: async, from: src.out, to: after.b",
            "id: e14, kind: immediate, from: p.out, to: after.a",
        ],
        &[
            "id: settles, components: [x, y], loop_policy: { type: solver_iteration, \
             max_iterations: 4 }",
            "id: gives_up, components: [p, q], loop_policy: { type: solver_iteration, \
             max_iterations: 3 }",
        ],
    )
}

/// The same on this many workers, in virtual time.
pub(crate) fn cell(workers: usize) -> Done {
    let options = RunOptions::steps(12).clock(Clock::Virtual);
    if workers == 1 { alone(&cell_text(), options) } else { by(workers, &cell_text(), options) }
}

/// Overlapping invocations of one component, more than its lane admits.
pub(crate) fn pool() -> Done {
    let text = graph(
        &["wide: { type: thread_pool, max_threads: 3, queue_capacity: 2, overflow: reject }"],
        &[
            &source("src", "wide", "publishes: 8"),
            &reader("many", "wide", "spins_us: 300")
                .replace("type: doer", "type: shared_doer")
                .replace("lane: wide", "lane: wide, reentrant: true, priority: low"),
        ],
        &["id: e, kind: immediate, from: src.out, to: many.a, \
           policy: { mode: queue, capacity: 8 }"],
        &[],
    );
    by(3, &text, RunOptions::steps(4).clock(Clock::Virtual))
}

/// By the wall clock, everything is late: a tick, an invocation, a loop. They wait for the clock,
/// so they take this long on any machine.
pub(crate) fn late() -> Done {
    let text = graph(
        &["beat: { type: fixed_rate, period_ms: 1, wall_clock_enabled: true, max_callback_ms: 1 }"],
        &[
            &source("slow", "beat", "spins_us: 3500")
                .replace("lane: beat", "lane: beat, budget_ms: 1"),
            &reader("x", "beat", "spins_us: 600, is_constant: false"),
            &reader("y", "beat", "spins_us: 600"),
        ],
        &[
            "id: e1, kind: immediate, from: slow.out, to: x.a",
            "id: e2, kind: immediate, from: x.out, to: y.a",
            "id: e3, kind: immediate, from: y.out, to: x.a",
        ],
        &["id: tired, components: [x, y], \
           loop_policy: { type: transaction, max_iterations: 9, budget_ms: 1 }"],
    );
    by(2, &text, RunOptions::steps(3).clock(Clock::Wall))
}

/// A component that sees that the run is stopping, and before it one that does not check.
pub(crate) fn stopped() -> Done {
    let text = graph(
        &["main: { type: event_loop }"],
        &[&source("looks", "main", "stops_at: 2, looks: true"), &source("never", "main", "")],
        &[],
        &[],
    );
    alone(&text, RunOptions::steps(9))
}

/// A component that does not check, and a loop that is executing when the run is stopped.
pub(crate) fn stopped_loop() -> Done {
    let text = graph(
        &["main: { type: event_loop }"],
        &[
            &source("src", "main", ""),
            &reader("x", "main", "stops_at: 1"),
            &reader("y", "main", ""),
        ],
        &[
            "id: e1, kind: immediate, from: src.out, to: x.a",
            "id: e2, kind: immediate, from: x.out, to: y.a",
            "id: e3, kind: immediate, from: y.out, to: x.a",
        ],
        &["id: l, components: [x, y], loop_policy: { type: transaction, max_iterations: 9 }"],
    );
    alone(&text, RunOptions::steps(9))
}

fn one_source() -> String {
    let parts = [source("src", "main", ""), source("other", "main", "")];
    graph(&["main: { type: event_loop }"], &[&parts[0], &parts[1]], &[], &[])
}

/// Settings that change before the first epoch.
pub(crate) fn changed(field: &'static str, value: i64) -> Done {
    alone_with(&one_source(), RunOptions::steps(3), |run| {
        drop(run.reconfigure().set("src", field, value).commit());
    })
}

/// Settings that the second component refuses.
pub(crate) fn changed_back() -> Done {
    alone_with(&one_source(), RunOptions::steps(3), |run| {
        let change = run.reconfigure().set("src", "publishes", 2_i64);
        drop(change.set("other", "publishes", -1_i64).commit());
    })
}

/// A loop member that stops the run.
pub(crate) fn failing_loop() -> Done {
    let text = graph(
        &["main: { type: event_loop }"],
        &[
            &source("src", "main", ""),
            &reader("x", "main", ""),
            &reader("y", "main", "fails_at: 2"),
        ],
        &[
            "id: e1, kind: immediate, from: src.out, to: x.a",
            "id: e2, kind: immediate, from: x.out, to: y.a",
            "id: e3, kind: delay, from: y.out, to: src.a",
            "id: e4, kind: immediate, from: y.out, to: x.a",
        ],
        &["id: l, components: [x, y], loop_policy: { type: transaction, max_iterations: 2 }"],
    );
    alone(&text, RunOptions::steps(9))
}
