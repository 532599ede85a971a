//! Random graphs for the simulation and for the tests of `clockjack-graph`. The same seed gives the
//! same text on every machine. Every graph is valid; interesting behaviour is left to chance and to
//! large numbers of graphs.
//!
//! The graphs use two component types, `mixer` and `pure`; the latter may be reentrant. The caller
//! implements their behaviour as a [`TestLogic`], and gets both types from [`registry`]. They have:
//!
//! * inputs `a`, `b` and `s` of type `u64` and `t` of type text, all optional; all except `s`
//!   accept several edges;
//! * outputs `out`, `side` and `done` of type `u64` and `text` of type text; `done` is for the
//!   results of tasks;
//! * settings `fails`, `panics`, `burst` and `tasks`, numbers, and `halves` and `reports`, flags.

mod components;

use core::fmt::Write as _;

pub use components::{
    BehaviorConfig, Ports, TestComponentConfig, TestLogic, is_multiple, registry, task,
};

use crate::random;

/// The next number of a sequence (SplitMix64).
#[must_use]
pub fn mix(state: u64, more: u64) -> u64 {
    random::mix(state ^ more.rotate_left(29))
}

/// Appends to a string, which cannot fail.
macro_rules! add {
    ($text:expr, $($format:tt)*) => {
        _ = write!($text, $($format)*)
    };
}

/// A pseudo-random number generator.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = mix(self.0, 1);
        self.0 % n
    }

    fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).unwrap_or(0)
    }

    /// Returns true with this probability in percent.
    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.index(of.len())]
    }
}

struct Node {
    lane: usize,
    /// The first and last member of its loop.
    looped: Option<(usize, usize)>,
    burst: u64,
}

struct Edge {
    kind: &'static str,
    from: (usize, &'static str),
    to: (usize, &'static str),
    policy: String,
}

/// Generates the text of a random graph.
#[must_use]
pub fn random_graph(seed: u64) -> String {
    text(seed, |_, _| None)
}

/// As [`random_graph`], but the last lane and some of the others have clocks of their own: by the
/// wall clock each of them is an epoch domain with its own thread. An edge between two domains is
/// never immediate.
#[must_use]
pub fn random_graph_with_clocks(seed: u64) -> String {
    // Not from the generator of the graph, so that the rest is as without clocks.
    text(seed, |lane, n_lanes| {
        let drawn = mix(seed, lane as u64);
        (lane + 1 == n_lanes || drawn.is_multiple_of(3)).then_some(1 + drawn / 3 % 3)
    })
}

/// `clock`: the period in milliseconds of one of so many lanes, if it has a clock of its own.
fn text(seed: u64, clock: impl Fn(usize, usize) -> Option<u64>) -> String {
    let mut rng = Rng(mix(seed, 0x6772_6170));
    let n_lanes = 2 + rng.index(4);
    let n = 5 + rng.index(16);
    let nodes = nodes(&mut rng, n, n_lanes);
    let mut edges = edges(&mut rng, &nodes);
    let clock = |lane: usize| clock(lane, n_lanes);
    for edge in &mut edges {
        let [from, to] = [edge.from.0, edge.to.0].map(|node| nodes[node].lane);
        let is_apart = from != to && (clock(from).is_some() || clock(to).is_some());
        if edge.kind == "immediate" && is_apart {
            edge.kind = "delay";
        }
    }
    let mut text = String::from("schema_version: 1\n");
    text.push_str("graph: { name: random, kind: internal_test }\nlanes:\n");
    for lane in 0..n_lanes {
        let drawn = self::lane(&mut rng);
        if let Some(period_ms) = clock(lane) {
            let own = format!("period_ms: {period_ms}, wall_clock_enabled: true");
            add!(text, "  l{lane}: {{ type: fixed_rate, {own} }}\n");
        } else {
            add!(text, "  l{lane}: {drawn}\n");
        }
    }
    text.push_str("components:\n");
    for at in 0..n {
        component(&mut rng, &nodes, &edges, at, &mut text);
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
        let policy = loop_policy(&mut rng);
        add!(
            text,
            "  - {{ id: loop{first}, components: [{members}], loop_policy: {{ {policy} }} }}\n"
        );
    }
    text
}

fn lane(rng: &mut Rng) -> String {
    match rng.below(10) {
        0..4 => {
            let threads = 1 + rng.below(4);
            let queue = [0, 1, 4, 64][rng.index(4)];
            let overflow = rng.one(&[
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
                rng.below(4)
            )
        }
        4..6 => "{ type: event_loop }".into(),
        6..8 => format!("{{ type: fixed_rate, period_ms: {} }}", [1, 2, 3, 7, 10][rng.index(5)]),
        8 => "{ type: fixed_rate, hz: 300 }".into(),
        _ => "{ type: isolated_thread, thread_name: own }".into(),
    }
}

fn nodes(rng: &mut Rng, n: usize, n_lanes: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::with_capacity(n);
    while nodes.len() < n {
        let (first, lane) = (nodes.len(), rng.index(n_lanes));
        let size = 1 + rng.index(3);
        let is_loop = rng.chance(15) && first + size <= n;
        let looped = is_loop.then_some((first, first + size - 1));
        for _ in 0..if is_loop { size } else { 1 } {
            let burst = if rng.chance(20) { 2 + rng.below(2) } else { 1 };
            nodes.push(Node { lane, looped, burst });
        }
    }
    nodes
}

fn edges(rng: &mut Rng, nodes: &[Node]) -> Vec<Edge> {
    let n = nodes.len();
    let mut edges = Vec::new();
    for at in 0..n {
        if let Some((first, last)) = nodes[at].looped {
            // The members form a ring.
            let next = if at == last { first } else { at + 1 };
            edges.push(edge(rng, nodes, "immediate", at, next, "a"));
        }
        for _ in 0..rng.below(4) {
            if at > 0 && rng.chance(70) {
                let from = rng.index(at);
                let to = rng.one(&["a", "a", "b", "t"]);
                edges.push(edge(rng, nodes, "immediate", from, at, to));
            }
        }
        if rng.chance(25) {
            let (from, to) = (rng.index(n), rng.one(&["a", "b", "t"]));
            edges.push(edge(rng, nodes, "delay", from, at, to));
        }
        if rng.chance(20) {
            let (from, to) = (rng.index(n), rng.one(&["a", "b", "t"]));
            edges.push(edge(rng, nodes, "async", from, at, to));
        }
        if rng.chance(25) {
            let from = rng.index(n);
            edges.push(edge(rng, nodes, "state", from, at, "s"));
        }
    }
    let is_alone = |edges: &[Edge], from| edges.iter().filter(|one| one.from == from).count() == 1;
    for at in 0..edges.len() {
        let from = edges[at].from;
        if from.1 == "text" && is_alone(&edges, from) && rng.chance(50) {
            edges[at].policy.push_str(", copy_policy: move_only");
        }
    }
    edges
}

fn edge(
    rng: &mut Rng,
    nodes: &[Node],
    kind: &'static str,
    from: usize,
    to: usize,
    input: &'static str,
) -> Edge {
    let output = match (input, kind) {
        ("t", _) => "text",
        (_, "async") => rng.one(&["out", "done", "done", "side"]),
        _ => rng.one(&["out", "out", "out", "side", "done"]),
    };
    // Edges inside a loop must use the output that its members publish.
    let is_ring = kind == "immediate" && from >= to;
    let is_member = nodes[from].looped.is_some_and(|(first, last)| (first..=last).contains(&to));
    let output = if is_ring || (is_member && input != "t") { "out" } else { output };
    Edge { kind, from: (from, output), to: (to, input), policy: policy(rng, nodes, kind, from, to) }
}

fn policy(rng: &mut Rng, nodes: &[Node], kind: &str, from: usize, to: usize) -> String {
    let mode = rng.one(&[
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
    let overflow = match rng.below(100) {
        0..30 => "overwrite",
        30..50 => "drop_oldest",
        50..65 => "reject",
        65..66 => "fail_fast",
        66..85 if !is_slot => "drop_newest",
        // Only forward edges block, so that blocking edges do not form a cycle.
        85.. if !is_slot && from < to => "block",
        _ => "overwrite",
    };
    let capacity = if is_slot { 1 } else { nodes[from].burst + rng.below(5) };
    let mut text = format!("mode: {mode}, overflow: {overflow}, capacity: {capacity}");
    if rng.chance(10) {
        add!(text, ", lifespan_ms: {}", 1 + rng.below(10));
    }
    if rng.chance(15) {
        add!(text, ", deadline_ms: {}", 1 + rng.below(5));
    }
    if kind == "async" && rng.chance(60) {
        add!(text, ", max_inflight: {}", 1 + rng.below(3));
    }
    text
}

fn component(rng: &mut Rng, nodes: &[Node], edges: &[Edge], at: usize, text: &mut String) {
    let node = &nodes[at];
    let is_pure = rng.chance(30);
    let kind = if is_pure { "pure" } else { "mixer" };
    let (sources, trigger) = trigger(rng, node, edges, at);
    let mut execution = format!("lane: l{}", node.lane);
    if is_pure && rng.chance(70) {
        execution.push_str(", reentrant: true");
    }
    if node.burst > 1 {
        add!(execution, ", burst: {}", node.burst);
    }
    let priority = rng.one(&["high", "normal", "normal", "low", "background"]);
    add!(execution, ", priority: {priority}, on_error: {}", on_error(rng));
    let mut config = format!("burst: {}", node.burst);
    if rng.chance(35) {
        add!(config, ", fails: {}", 5 + rng.below(40));
    }
    if rng.chance(10) {
        add!(config, ", panics: {}", 7 + rng.below(40));
    }
    if edges.iter().any(|one| one.from == (at, "done")) {
        add!(config, ", tasks: {}", 1 + rng.below(4));
    }
    if node.looped.is_some() {
        add!(config, ", halves: {}, reports: {}", rng.chance(50), rng.chance(50));
    }
    let is_last = !edges.iter().any(|one| one.from.0 == at);
    let role = if is_last && rng.chance(60) { "output" } else { "processing" };
    add!(
        text,
        "  - {{ id: c{at}, type: {kind}, {sources}, {trigger}, \
         execution: {{ {execution} }}, boundary: {{ role: {role} }}, config: {{ {config} }} }}\n"
    );
}

fn on_error(rng: &mut Rng) -> String {
    match rng.below(100) {
        0..6 => "fail_fast".into(),
        6..45 => "continue".into(),
        45..60 => "isolate".into(),
        _ => format!(
            "{{ policy: restart, max_restarts: {}, within_ms: {}, backoff_ms: {}, \
             backoff_max_ms: 20 }}",
            1 + rng.below(30),
            rng.below(3) * 10,
            rng.below(4)
        ),
    }
}

fn trigger(rng: &mut Rng, node: &Node, edges: &[Edge], at: usize) -> (String, String) {
    let mut inputs: Vec<&str> = Vec::new();
    for port in ["a", "b", "t", "s"] {
        let has_edge = edges.iter().any(|one| one.to == (at, port));
        if has_edge && (inputs.is_empty() || rng.chance(70)) {
            inputs.push(port);
        }
    }
    let never_by_input = inputs.is_empty();
    // Each graph has some sources, so that messages flow.
    let is_source = at < 3 || rng.chance(20);
    if never_by_input || (node.looped.is_none() && is_source) {
        return if rng.chance(30) {
            let (period, phase) = (1 + rng.below(4), rng.below(3));
            let source = format!("{{ type: timer, period_ms: {period}, phase_ms: {phase} }}");
            (format!("event_sources: [{source}]"), "trigger_policy: { type: manual }".into())
        } else {
            let text = if rng.chance(20) { ", min_interval_ms: 2" } else { "" };
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
    let mut policy: String = match rng.below(14) {
        0..3 => "type: any_input".into(),
        3 => "type: on_event".into(),
        4 | 5 => "type: all_inputs".into(),
        6 => format!("type: time_sync, sync_slop_ms: {}", rng.below(5)),
        7 => format!("type: batch, batch_size: {}", 2 + rng.below(3)),
        8 => format!("type: batch, batch_window_ms: {}", 1 + rng.below(6)),
        9 => format!("type: watermark, watermark_lateness_ms: {}", rng.below(3)),
        10 => {
            let names = ["all_inputs_ready", "any_input_ready", "event_timestamp_present"];
            format!("type: condition, condition: {}", rng.one(&names))
        }
        11 => "type: debounce".into(),
        12 => format!("type: rate_limit, min_interval_ms: {}", 1 + rng.below(6)),
        _ if is_async => {
            source = rng.one(&["task_ready", "future_ready"]);
            "type: task_ready".into()
        }
        _ => {
            source = "request";
            "type: request".into()
        }
    };
    if rng.chance(15) {
        policy.push_str(", coalesce: true");
    }
    if rng.chance(15) {
        add!(policy, ", max_latency_ms: {}", 1 + rng.below(8));
    }
    (
        format!("event_sources: [{{ type: {source}, inputs: [{list}] }}]"),
        format!("trigger_policy: {{ {policy}, inputs: [{list}] }}"),
    )
}

fn loop_policy(rng: &mut Rng) -> String {
    let kind = rng.one(&["fixed_point", "solver_iteration", "transaction"]);
    let mode = rng.one(&["gauss_seidel", "jacobi"]);
    let mut text = format!("type: {kind}, mode: {mode}, max_iterations: {}", 1 + rng.below(12));
    if rng.chance(20) {
        let convergence = rng.one(&["single_pass", "after_first_iteration", "stable_state"]);
        add!(text, ", convergence: {convergence}");
    }
    if rng.chance(40) {
        add!(text, ", residual_threshold: {}.0", rng.below(60));
    }
    if kind == "solver_iteration" && rng.chance(60) {
        let partial = rng.one(&[
            "commit_outputs",
            "commit_outputs",
            "discard_outputs",
            "discard_outputs",
            "fail_run",
        ]);
        add!(text, ", partial_success: {partial}");
    }
    if rng.chance(30) {
        // One millisecond: by the wall clock, some iterations would exceed it and others not.
        text.push_str(", budget_ms: 1");
    }
    text
}
