//! A graph next to the actors: a belt that moves what was sold.

use clockjack::{
    graph::{
        Component, Execute, GraphContext, GraphFile, GraphRun, Input, Output, Registry, RunOptions,
    },
    prelude::*,
};

use crate::illness::{self, Illness};

/// Two lanes: the camera looks, and the packer takes what it has seen.
const BELT: &str = "
schema_version: 1
graph: { name: belt }
lanes:
  fast: { type: fixed_rate, period_ms: FAST }
  slow: { type: fixed_rate, period_ms: SLOW }
components:
  - id: camera
    type: input
    execution: { lane: fast }
    boundary: { role: input }
    config: { pattern: ramp }
  - id: scan
    type: scanner
    event_sources: [{ type: message, input: seen }]
    trigger_policy: { type: any_input }
    execution: { lane: fast }
    config: { takes_ms: TAKES }
  - id: pack
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    execution: { lane: slow }
    boundary: { role: output }
edges:
  - { id: seen, kind: immediate, from: camera.out, to: scan.seen }
  - id: scanned
    kind: delay
    from: scan.out
    to: pack.in
    policy: { mode: queue, capacity: 2, overflow: drop_oldest }
";

/// Looks at each value for a while.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "scanner", title = "Scanner")]
struct Scanner {
    /// What the camera has seen.
    #[input]
    seen: Input<f64>,
    /// The same.
    #[output]
    out: Output<f64>,
    /// How long it takes.
    #[config(default = 0, min = 0)]
    takes_ms: u64,
}

impl Execute for Scanner {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        let Some(seen) = cx.update(self.seen).copied() else { return Ok(()) };
        if self.takes_ms > 0 {
            illness::take(Duration::from_millis(self.takes_ms));
        }
        cx.publish(self.out, seen)?;
        Ok(())
    }
}

/// Starts the belt.
pub(crate) fn start(system: &ActorSystem, illness: Option<Illness>) -> Result<GraphRun, Failure> {
    // The scanner takes longer than the period, or the packer comes too seldom: ten values come
    // meanwhile, and there is room for two.
    let [fast, slow, takes] = match illness {
        Some(Illness::Overrun) => ["10", "200", "25"],
        Some(Illness::Drops) => ["200", "2000", "0"],
        _ => ["200", "200", "0"],
    };
    let text = BELT.replace("FAST", fast).replace("SLOW", slow).replace("TAKES", takes);
    let types = Registry::standard().register::<Scanner>();
    let graph = GraphFile::parse("belt.yaml", &text)?.compile(&types)?;
    Ok(graph.start(system, RunOptions::until_stopped())?)
}
