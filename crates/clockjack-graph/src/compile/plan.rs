//! The plan: a graph with numbers for names, in compiled order. Whoever has one knows that every
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

/// A graph that can run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the graph.
    pub name: String,
    /// What it is for.
    pub kind: GraphKind,
    /// Its lanes, in the order of the description.
    pub lanes: Vec<PlanLane>,
    /// Its components, in the order of the description.
    pub components: Vec<PlanComponent>,
    /// Its edges, in the order of the description.
    pub edges: Vec<PlanEdge>,
    /// Its regions, in compiled order: the order in which their results are committed.
    pub regions: Vec<PlanRegion>,
    /// The components of each strongly connected part of the immediate edges, as they were found.
    pub immediate_sccs: Vec<Vec<usize>>,
    /// The components in the order of their activation. Deactivation is its reverse.
    pub lifecycle: Vec<usize>,
    /// How many epoch domains there are if wall-clock lanes keep their own time. Domain zero has
    /// all other lanes.
    pub n_domains: usize,
    /// What subgraphs and instances have become.
    pub hierarchy: Vec<HierarchyEntry>,
    /// Warnings and advice.
    pub diagnostics: Vec<Diagnostic>,
    /// The graph's own settings.
    pub config: crate::describe::ConfigMap,
}

impl Plan {
    /// The component of this id.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.components.iter().position(|one| one.spec.id == id)
    }
}

/// A lane.
#[derive(Clone, Debug)]
pub struct PlanLane {
    /// What was described.
    pub spec: LaneSpec,
    /// Its regions, in compiled order.
    pub regions: Vec<usize>,
    /// Its epoch domain when wall-clock lanes keep their own time.
    pub domain: usize,
    /// What it does and what it only reads.
    pub capabilities: LaneCapabilities,
}

/// What a lane does with its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneCapabilities {
    /// What has an effect.
    pub implemented: Vec<String>,
    /// Fields that were given and have none.
    pub advisory_fields: Vec<String>,
    /// What may come.
    pub future_extensions: Vec<String>,
    /// What nobody should expect.
    pub unsupported_claims: Vec<String>,
}

/// A component.
#[derive(Clone, Debug)]
pub struct PlanComponent {
    /// What was described.
    pub spec: ComponentSpec,
    /// What its type says of itself.
    pub descriptor: Arc<Descriptor>,
    /// Its lane.
    pub lane: usize,
    /// Its region.
    pub region: usize,
    /// Its inputs, in the order of the descriptor.
    pub inputs: Vec<PlanPort>,
    /// Its outputs, in the order of the descriptor.
    pub outputs: Vec<PlanPort>,
    /// The inputs that its trigger looks at, in declared order: those of the policy, else the
    /// union of those of its sources.
    pub trigger_inputs: Vec<usize>,
}

/// A port.
#[derive(Clone, Debug)]
pub struct PlanPort {
    /// Its name.
    pub name: String,
    /// The name of its payload's type; empty: any.
    pub schema: String,
    /// The edges that begin or end there, in the order of the description.
    pub edges: Vec<usize>,
}

/// An edge.
#[derive(Clone, Debug)]
pub struct PlanEdge {
    /// Its id.
    pub id: String,
    /// When what is published becomes visible.
    pub kind: EdgeKind,
    /// What its channel keeps.
    pub policy: EdgePolicy,
    /// The component that publishes, and which of its outputs.
    pub from: (usize, usize),
    /// The component that reads, and which of its inputs.
    pub to: (usize, usize),
    /// A slow reader loses messages.
    pub slow_reader_drop_risk: bool,
    /// Fields that were given and have no effect.
    pub advisory_fields: Vec<String>,
}

/// A region: one component, or the members of a loop.
#[derive(Clone, Debug)]
pub struct PlanRegion {
    /// The id of the component or of the loop.
    pub id: String,
    /// Its components, in the order in which they are called.
    pub components: Vec<usize>,
    /// The loop that owns it.
    pub loop_policy: Option<PlanLoop>,
    /// Regions whose immediate outputs it reads, in order.
    pub incoming: Vec<usize>,
    /// Regions that read its immediate outputs, in order.
    pub outgoing: Vec<usize>,
    /// Its lane: that of its component; members of a loop share one.
    pub lane: usize,
    /// The highest rank of its members.
    pub rank: u8,
    /// It has an output boundary: it starts when all before it have succeeded.
    pub is_output: bool,
}

/// A loop, with its members in order.
#[derive(Clone, Debug)]
pub struct PlanLoop {
    /// What was described.
    pub spec: LoopSpec,
    /// Whether the order was declared, or found.
    pub order_is_declared: bool,
}
