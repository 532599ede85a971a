//! Random graphs, for tests of this crate and for the simulation: the same text for the same seed,
//! on every machine. Every graph is legal; whether anything of interest happens in it is left to
//! chance, and to there being many.
//!
//! Their components are of two types, `mixer` and `pure`, of which the second may be reentrant. Who
//! runs such a graph says what they do, by a [`Conduct`], and takes both from [`registry`]. They
//! have:
//!
//! * inputs `a`, `b` and `s` for `u64` and `t` for text, all optional; several edges may end at any
//!   of them but `s`;
//! * outputs `out`, `side` and `done` for `u64` and `text` for text; `done` is for what tasks give;
//! * settings `fails`, `panics`, `burst` and `tasks`, numbers, and `halves` and `reports`, flags.

mod parts;

use core::fmt::Write as _;

use clockjack_sync::splitmix;

pub use parts::{Conduct, Fittings, Habits, Ports, is_multiple, registry, task};

/// The next of a row of numbers (splitmix64).
#[must_use]
pub fn mix(state: u64, more: u64) -> u64 {
    splitmix::mix((state ^ more.rotate_left(29)).wrapping_add(splitmix::STEP))
}

/// Adds to a text, which takes everything.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {
        _ = write!($text, $($format)*)
    };
}

/// A row of numbers from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0, 1);
        self.0 % n
    }

    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// True so many times in a hundred.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.index(of.len())]
    }
}

struct Node {
    lane: usize,
    /// The first and last of its loop.
    looped: Option<(usize, usize)>,
    burst: u64,
}

struct Edge {
    kind: &'static str,
    from: (usize, &'static str),
    to: (usize, &'static str),
    policy: String,
}

/// The text of a random graph.
#[must_use]
pub fn random_graph(seed: u64) -> String {
    let mut draw = Draw(mix(seed, 0x6772_6170));
    let n_lanes = 2 + draw.index(4);
    let n = 5 + draw.index(16);
    let nodes = nodes(&mut draw, n, n_lanes);
    let edges = edges(&mut draw, &nodes);
    let mut text = String::from("schema_version: 1\n");
    text.push_str("graph: { name: random, kind: internal_test }\nlanes:\n");
    for lane in 0..n_lanes {
        add!(text, "  l{lane}: {}\n", self::lane(&mut draw));
    }
    text.push_str("components:\n");
    for at in 0..n {
        component(&mut draw, &nodes, &edges, at, &mut text);
    }
    text.push_str("edges:\n");
    for (at, edge) in edges.iter().enumerate() {
        let Edge { kind, from, to, policy } = edge;
        let (from, to) = (format!("c{}.{}", from.0, from.1), format!("c{}.{}", to.0, to.1));
        add!(
            text,
            "  - {{ id: e{at}, kind: {kind}, from: {from}, to: {to}, policy: {{ {policy} }} }}\n"
        );
    }
    let loops: Vec<(usize, usize)> =
        (0..n).filter_map(|at| nodes[at].looped.filter(|(first, _)| *first == at)).collect();
    if !loops.is_empty() {
        text.push_str("composite_loops:\n");
    }
    for (first, last) in loops {
        let members: Vec<String> = (first..=last).map(|at| format!("c{at}")).collect();
        let members = members.join(", ");
        let policy = loop_policy(&mut draw);
        add!(
            text,
            "  - {{ id: loop{first}, components: [{members}], loop_policy: {{ {policy} }} }}\n"
        );
    }
    text
}

fn lane(draw: &mut Draw) -> String {
    match draw.below(10) {
        0..4 => {
            let threads = 1 + draw.below(4);
            let queue = [0, 1, 4, 64][draw.index(4)];
            let overflow = draw.one(&[
                "reject",
                "reject_new",
                "drop_newest",
                "block",
                "drop_oldest",
                "overwrite",
            ]);
            format!(
                "{{ type: thread_pool, max_threads: {threads}, queue_capacity: {queue}, \
                 overflow: {overflow}, aging_picks: {} }}",
                draw.below(4)
            )
        }
        4..6 => "{ type: event_loop }".into(),
        6..8 => format!("{{ type: fixed_rate, period_ms: {} }}", [1, 2, 3, 7, 10][draw.index(5)]),
        8 => "{ type: fixed_rate, hz: 300 }".into(),
        _ => "{ type: isolated_thread, thread_name: own }".into(),
    }
}

fn nodes(draw: &mut Draw, n: usize, n_lanes: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(n);
    while nodes.len() < n {
        let (first, lane) = (nodes.len(), draw.index(n_lanes));
        let size = 1 + draw.index(3);
        let is_loop = draw.chance(15) && first + size <= n;
        let looped = is_loop.then_some((first, first + size - 1));
        for _ in 0..if is_loop { size } else { 1 } {
            let burst = if draw.chance(20) { 2 + draw.below(2) } else { 1 };
            nodes.push(Node { lane, looped, burst });
        }
    }
    nodes
}

fn edges(draw: &mut Draw, nodes: &[Node]) -> Vec<Edge> {
    let n = nodes.len();
    let mut edges = Vec::new();
    for at in 0..n {
        if let Some((first, last)) = nodes[at].looped {
            // The members in a ring.
            let next = if at == last { first } else { at + 1 };
            edges.push(edge(draw, nodes, "immediate", at, next, "a"));
        }
        for _ in 0..draw.below(4) {
            if at > 0 && draw.chance(70) {
                let from = draw.index(at);
                let to = draw.one(&["a", "a", "b", "t"]);
                edges.push(edge(draw, nodes, "immediate", from, at, to));
            }
        }
        if draw.chance(25) {
            let (from, to) = (draw.index(n), draw.one(&["a", "b", "t"]));
            edges.push(edge(draw, nodes, "delay", from, at, to));
        }
        if draw.chance(20) {
            let (from, to) = (draw.index(n), draw.one(&["a", "b", "t"]));
            edges.push(edge(draw, nodes, "async", from, at, to));
        }
        if draw.chance(25) {
            let from = draw.index(n);
            edges.push(edge(draw, nodes, "state", from, at, "s"));
        }
    }
    let is_alone = |edges: &[Edge], from| edges.iter().filter(|one| one.from == from).count() == 1;
    for at in 0..edges.len() {
        let from = edges[at].from;
        if from.1 == "text" && is_alone(&edges, from) && draw.chance(50) {
            edges[at].policy.push_str(", copy_policy: move_only");
        }
    }
    edges
}

fn edge(
    draw: &mut Draw,
    nodes: &[Node],
    kind: &'static str,
    from: usize,
    to: usize,
    input: &'static str,
) -> Edge {
    let output = match (input, kind) {
        ("t", _) => "text",
        (_, "async") => draw.one(&["out", "done", "done", "side"]),
        _ => draw.one(&["out", "out", "out", "side", "done"]),
    };
    // What goes round in a loop has to be what its members publish.
    let is_ring = kind == "immediate" && from >= to;
    let is_member = nodes[from].looped.is_some_and(|(first, last)| (first..=last).contains(&to));
    let output = if is_ring || (is_member && input != "t") { "out" } else { output };
    Edge {
        kind,
        from: (from, output),
        to: (to, input),
        policy: policy(draw, nodes, kind, from, to),
    }
}

fn policy(draw: &mut Draw, nodes: &[Node], kind: &str, from: usize, to: usize) -> String {
    let mode = draw.one(&[
        "latest",
        "latest",
        "queue",
        "queue",
        "ring_buffer",
        "latched",
        "barrier",
        "previous_tick",
    ]);
    let is_slot = matches!(mode, "latest" | "latched" | "previous_tick");
    let overflow = match draw.below(100) {
        0..30 => "overwrite",
        30..50 => "drop_oldest",
        50..65 => "reject",
        65..66 => "fail_fast",
        66..85 if !is_slot => "drop_newest",
        // Forward only, so that no blocking edges go round.
        85.. if !is_slot && from < to => "block",
        _ => "overwrite",
    };
    let capacity = if is_slot { 1 } else { nodes[from].burst + draw.below(5) };
    let mut text = format!("mode: {mode}, overflow: {overflow}, capacity: {capacity}");
    if draw.chance(10) {
        add!(text, ", lifespan_ms: {}", 1 + draw.below(10));
    }
    if draw.chance(15) {
        add!(text, ", deadline_ms: {}", 1 + draw.below(5));
    }
    if kind == "async" && draw.chance(60) {
        add!(text, ", max_inflight: {}", 1 + draw.below(3));
    }
    text
}

fn component(draw: &mut Draw, nodes: &[Node], edges: &[Edge], at: usize, text: &mut String) {
    let node = &nodes[at];
    let is_pure = draw.chance(30);
    let kind = if is_pure { "pure" } else { "mixer" };
    let (sources, trigger) = trigger(draw, node, edges, at);
    let mut execution = format!("lane: l{}", node.lane);
    if is_pure && draw.chance(70) {
        execution.push_str(", reentrant: true");
    }
    if node.burst > 1 {
        add!(execution, ", burst: {}", node.burst);
    }
    let priority = draw.one(&["high", "normal", "normal", "low", "background"]);
    add!(execution, ", priority: {priority}, on_error: {}", on_error(draw));
    let mut config = format!("burst: {}", node.burst);
    if draw.chance(35) {
        add!(config, ", fails: {}", 5 + draw.below(40));
    }
    if draw.chance(10) {
        add!(config, ", panics: {}", 7 + draw.below(40));
    }
    if edges.iter().any(|one| one.from == (at, "done")) {
        add!(config, ", tasks: {}", 1 + draw.below(4));
    }
    if node.looped.is_some() {
        add!(config, ", halves: {}, reports: {}", draw.chance(50), draw.chance(50));
    }
    let is_last = !edges.iter().any(|one| one.from.0 == at);
    let role = if is_last && draw.chance(60) { "output" } else { "processing" };
    add!(
        text,
        "  - {{ id: c{at}, type: {kind}, {sources}, {trigger}, \
         execution: {{ {execution} }}, boundary: {{ role: {role} }}, config: {{ {config} }} }}\n"
    );
}

fn on_error(draw: &mut Draw) -> String {
    match draw.below(100) {
        0..6 => "fail_fast".into(),
        6..45 => "continue".into(),
        45..60 => "isolate".into(),
        _ => format!(
            "{{ policy: restart, max_restarts: {}, within_ms: {}, backoff_ms: {}, \
             backoff_max_ms: 20 }}",
            1 + draw.below(30),
            draw.below(3) * 10,
            draw.below(4)
        ),
    }
}

fn trigger(draw: &mut Draw, node: &Node, edges: &[Edge], at: usize) -> (String, String) {
    let mut inputs: Vec<&str> = Vec::new();
    for port in ["a", "b", "t", "s"] {
        let has_edge = edges.iter().any(|one| one.to == (at, port));
        if has_edge && (inputs.is_empty() || draw.chance(70)) {
            inputs.push(port);
        }
    }
    let never_by_input = inputs.is_empty();
    // Some sources in each graph, so that something goes on in it.
    let is_source = at < 3 || draw.chance(20);
    if never_by_input || (node.looped.is_none() && is_source) {
        return if draw.chance(30) {
            let (period, phase) = (1 + draw.below(4), draw.below(3));
            let source = format!("{{ type: timer, period_ms: {period}, phase_ms: {phase} }}");
            (format!("event_sources: [{source}]"), "trigger_policy: { type: manual }".into())
        } else {
            let text = if draw.chance(20) { ", min_interval_ms: 2" } else { "" };
            (
                "event_sources: [{ type: manual }]".into(),
                format!("trigger_policy: {{ type: manual{text} }}"),
            )
        };
    }
    let is_async = inputs
        .iter()
        .all(|port| edges.iter().any(|one| one.to == (at, *port) && one.kind == "async"));
    let list = inputs.join(", ");
    let mut source = "message";
    let mut policy: String = match draw.below(14) {
        0..3 => "type: any_input".into(),
        3 => "type: on_event".into(),
        4 | 5 => "type: all_inputs".into(),
        6 => format!("type: time_sync, sync_slop_ms: {}", draw.below(5)),
        7 => format!("type: batch, batch_size: {}", 2 + draw.below(3)),
        8 => format!("type: batch, batch_window_ms: {}", 1 + draw.below(6)),
        9 => format!("type: watermark, watermark_lateness_ms: {}", draw.below(3)),
        10 => {
            let names = ["all_inputs_ready", "any_input_ready", "event_timestamp_present"];
            format!("type: condition, condition: {}", draw.one(&names))
        }
        11 => "type: debounce".into(),
        12 => format!("type: rate_limit, min_interval_ms: {}", 1 + draw.below(6)),
        _ if is_async => {
            source = draw.one(&["task_ready", "future_ready"]);
            "type: task_ready".into()
        }
        _ => {
            source = "request";
            "type: request".into()
        }
    };
    if draw.chance(15) {
        policy.push_str(", coalesce: true");
    }
    if draw.chance(15) {
        add!(policy, ", max_latency_ms: {}", 1 + draw.below(8));
    }
    (
        format!("event_sources: [{{ type: {source}, inputs: [{list}] }}]"),
        format!("trigger_policy: {{ {policy}, inputs: [{list}] }}"),
    )
}

fn loop_policy(draw: &mut Draw) -> String {
    let kind = draw.one(&["fixed_point", "solver_iteration", "transaction"]);
    let mode = draw.one(&["gauss_seidel", "jacobi"]);
    let mut text = format!("type: {kind}, mode: {mode}, max_iterations: {}", 1 + draw.below(12));
    if draw.chance(20) {
        let convergence = draw.one(&["single_pass", "after_first_iteration", "stable_state"]);
        add!(text, ", convergence: {convergence}");
    }
    if draw.chance(40) {
        add!(text, ", residual_threshold: {}.0", draw.below(60));
    }
    if kind == "solver_iteration" && draw.chance(60) {
        let partial = draw.one(&[
            "commit_outputs",
            "commit_outputs",
            "discard_outputs",
            "discard_outputs",
            "fail_run",
        ]);
        add!(text, ", partial_success: {partial}");
    }
    if draw.chance(30) {
        // A moment: by the wall clock some iterations would be over it, and others not.
        text.push_str(", budget_ms: 1");
    }
    text
}
