//! The plan: a graph with indices instead of names, in compiled order. A plan exists only if every
//! check has passed.

mod json;
mod text;

use std::sync::Arc;

use crate::{
    component::Descriptor,
    describe::{
        ComponentSpec, EdgeKind, EdgePolicy, GraphKind, HierarchyEntry, LaneSpec, LoopSpec,
    },
    diagnostic::Diagnostic,
};

/// The plan of a compiled graph: its regions in the order in which their results are committed.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the graph.
    pub name: String,
    /// Whether it runs by itself.
    #[doc(hidden)]
    pub kind: GraphKind,
    /// The lanes, in the order of the description.
    #[doc(hidden)]
    pub lanes: Vec<PlanLane>,
    /// The components, in the order of the description.
    #[doc(hidden)]
    pub components: Vec<PlanComponent>,
    /// The edges, in the order of the description.
    #[doc(hidden)]
    pub edges: Vec<PlanEdge>,
    /// The regions, in compiled order: the order in which their results are committed.
    #[doc(hidden)]
    pub regions: Vec<PlanRegion>,
    /// The chains, in the order of the description.
    #[doc(hidden)]
    pub chains: Vec<PlanChain>,
    /// The strongly connected components of the immediate edges, in the order in which they were
    /// found.
    #[doc(hidden)]
    pub immediate_sccs: Vec<Vec<usize>>,
    /// The components in the order of their activation. Deactivation uses the reverse order.
    #[doc(hidden)]
    pub lifecycle: Vec<usize>,
    /// The number of epoch domains if each wall-clock lane has its own. Domain zero contains all
    /// other lanes.
    #[doc(hidden)]
    pub n_domains: usize,
    /// The expanded subgraphs and instances.
    #[doc(hidden)]
    pub hierarchy: Vec<HierarchyEntry>,
    /// Warnings and advice.
    #[doc(hidden)]
    pub diagnostics: Vec<Diagnostic>,
    /// The settings of the graph.
    #[doc(hidden)]
    pub config: crate::describe::ConfigMap,
}

impl Plan {
    /// The index of the component with this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.components.iter().position(|one| one.spec.id == id)
    }
}

/// A lane.
#[derive(Clone, Debug)]
pub struct PlanLane {
    /// The description of the lane.
    pub spec: LaneSpec,
    /// The regions of the lane, in compiled order.
    pub regions: Vec<usize>,
    /// The lane's epoch domain if each wall-clock lane has its own.
    pub domain: usize,
    /// Which fields have an effect.
    pub capabilities: LaneCapabilities,
}

/// What a lane does with its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCapabilities {
    /// Features and fields that have an effect.
    pub implemented: Vec<String>,
    /// Fields that are set but have no effect.
    pub advisory_fields: Vec<String>,
    /// Possible future features.
    pub future_extensions: Vec<String>,
    /// What the lane does not guarantee.
    pub unsupported_claims: Vec<String>,
}

/// A component.
#[derive(Clone, Debug)]
pub struct PlanComponent {
    /// The description of the component.
    pub spec: ComponentSpec,
    /// The descriptor of its type.
    pub descriptor: Arc<Descriptor>,
    /// The index of its lane.
    pub lane: usize,
    /// The index of its region.
    pub region: usize,
    /// The inputs, in the order of the descriptor.
    pub inputs: Vec<PlanPort>,
    /// The outputs, in the order of the descriptor.
    pub outputs: Vec<PlanPort>,
    /// The inputs that its trigger waits for, in declared order: those of the policy, or else the
    /// union of those of its event sources.
    pub trigger_inputs: Vec<usize>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct PlanPort {
    /// The name of the port.
    pub name: String,
    /// The name of its payload type; empty means any.
    pub schema: String,
    /// The edges at this port, in the order of the description.
    pub edges: Vec<usize>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct PlanEdge {
    /// The id of the edge.
    pub id: String,
    /// When published values become visible.
    pub kind: EdgeKind,
    /// The policy of its channel.
    pub policy: EdgePolicy,
    /// The producer: the component and its output.
    pub from: (usize, usize),
    /// The consumer: the component and its input.
    pub to: (usize, usize),
    /// Whether its reader, if it is slower than other readers of the same output, loses messages
    /// that they get.
    pub slow_reader_drop_risk: bool,
    /// Fields that are set but have no effect.
    pub advisory_fields: Vec<String>,
}

/// A chain with a latency budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanChain {
    /// The id of the chain.
    pub id: String,
    /// The component in which the data begins.
    pub from: usize,
    /// The component that the data must reach.
    pub to: usize,
    /// The latency budget in milliseconds.
    pub max_ms: u64,
    /// The edges on which the data travels. They have no cycle.
    pub edges: Vec<usize>,
}

/// A region: one component, or the members of a loop.
#[derive(Clone, Debug)]
pub struct PlanRegion {
    /// The id of the component or of the loop.
    pub id: String,
    /// The components, in the order in which they are executed.
    pub components: Vec<usize>,
    /// The loop that owns it.
    pub loop_policy: Option<PlanLoop>,
    /// The regions whose immediate outputs it reads, in order.
    pub incoming: Vec<usize>,
    /// The regions that read its immediate outputs, in order.
    pub outgoing: Vec<usize>,
    /// The lane of its components.
    pub lane: usize,
    /// The highest rank of its components.
    pub rank: u8,
    /// Whether it contains an output boundary: then it starts only after all earlier regions have
    /// succeeded.
    pub is_output: bool,
}

/// A loop whose members are in order.
#[derive(Clone, Debug)]
pub struct PlanLoop {
    /// The description of the loop.
    pub spec: LoopSpec,
    /// Whether the order was declared; otherwise it was computed.
    pub order_is_declared: bool,
}
