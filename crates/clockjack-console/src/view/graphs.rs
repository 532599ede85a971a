//! Dataflow graphs.

use serde::{Deserialize, Serialize};

use super::Number;

/// One graph in the list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GraphRow {
    /// The name under which the program has shown it.
    pub name: String,
    /// Whether it runs.
    pub is_running: bool,
    /// How many components it has.
    pub components: Number,
    /// Epochs per second.
    pub epochs_rate: Number,
    /// Calls of components, per second.
    pub calls_rate: Number,
    /// Messages that edges have dropped, since the start.
    pub drops: Number,
    /// Ticks that took longer than their period, since the start.
    pub overruns: Number,
    /// Ticks that were skipped, since the start.
    pub skipped: Number,
}

/// All graphs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Graphs {
    /// The graphs, by name.
    pub rows: Vec<GraphRow>,
}

/// One graph in full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct GraphView {
    /// Its row.
    #[serde(flatten)]
    pub graph: GraphRow,
    /// Its lanes.
    pub lanes: Vec<LaneRow>,
    /// Its components.
    pub components: Vec<ComponentRow>,
    /// Its edges.
    pub edges: Vec<EdgeRow>,
    /// Its composite loops.
    pub loops: Vec<LoopRow>,
}

/// A lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LaneRow {
    /// Its name.
    pub lane: String,
    /// Ticks per second.
    pub ticks_rate: Number,
    /// Calls of components, per second.
    pub calls_rate: Number,
    /// Ticks that took longer than their period, since the start.
    pub overruns: Number,
    /// Ticks that were skipped, since the start.
    pub skipped: Number,
    /// Messages that its edges have dropped, since the start.
    pub drops: Number,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ComponentRow {
    /// Its name.
    pub component: String,
    /// Its lane.
    pub lane: String,
    /// Calls, since the start.
    pub calls: Number,
    /// Calls per second.
    pub calls_rate: Number,
    /// Half of its calls take less, in nanoseconds.
    pub p50_ns: Number,
    /// 99 of 100 calls take less, in nanoseconds.
    pub p99_ns: Number,
    /// Errors, since the start.
    pub errors: Number,
}

/// An edge.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct EdgeRow {
    /// Its name, like `wish.out -> mix.a`.
    pub edge: String,
    /// Messages that were delivered, since the start.
    pub delivered: Number,
    /// Messages per second.
    pub rate: Number,
    /// Messages that wait.
    pub depth: Number,
    /// Messages that it may hold.
    pub capacity: Number,
    /// Messages that were dropped, since the start.
    pub drops: Number,
    /// Messages that were rejected, since the start.
    pub rejected: Number,
    /// Messages that were too old, since the start.
    pub stale: Number,
    /// The age of the last message, in nanoseconds.
    pub age_ns: Number,
}

/// A composite loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct LoopRow {
    /// Its name.
    pub name: String,
    /// Iterations, since the start.
    pub iterations: Number,
    /// How often it reached its bound.
    pub exhausted: Number,
}
