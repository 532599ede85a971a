//! A plan as JSON with exactly the keys of the contract, so that tools can rely on them.

use serde_json::{Map, Value, json};

use super::{Plan, PlanChain, PlanEdge, PlanLane, PlanLoop, PlanRegion};

/// The version of the file format.
const SCHEMA_VERSION: u32 = 1;

/// The version of the plan's semantics.
const CONTRACT_VERSION: &str = "0.2";

impl Plan {
    /// The plan as JSON. The same graph always gives the same text.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let components: Vec<Value> = self
            .components
            .iter()
            .map(|one| {
                json!({
                    "id": one.spec.id,
                    "type": one.spec.component_type,
                    "lane": self.lanes[one.lane].spec.id,
                    "boundary_role": one.spec.boundary.role.name(),
                    "boundary_descriptor": one.spec.boundary.descriptor,
                })
            })
            .collect();
        let hierarchy: Vec<Value> = self
            .hierarchy
            .iter()
            .map(|one| {
                json!({
                    "id": one.id,
                    "template": one.template,
                    "components": one.components,
                    "edges": one.edges,
                    "composite_loops": one.loops,
                })
            })
            .collect();
        let mut plan = json!({
            "graph": self.name,
            "kind": self.kind.name(),
            "schema_version": SCHEMA_VERSION,
            "scheduler_contract_version": CONTRACT_VERSION,
            "components": components,
            "edges": self.edges.iter().map(|one| self.edge_json(one)).collect::<Vec<_>>(),
            "compiled_regions":
                self.regions.iter().map(|one| self.region_json(one)).collect::<Vec<_>>(),
            "component_region": self.component_regions_json(),
            "region_order": self.regions.iter().map(|one| &*one.id).collect::<Vec<_>>(),
            "hierarchy": hierarchy,
            "lane_capabilities": self.lanes.iter().map(lane_json).collect::<Vec<_>>(),
        });
        if !self.chains.is_empty() {
            plan["chains"] = self.chains.iter().map(|one| self.chain_json(one)).collect();
        }
        plan
    }

    fn chain_json(&self, chain: &PlanChain) -> Value {
        let edges: Vec<&str> = chain.edges.iter().map(|at| self.edges[*at].id.as_str()).collect();
        json!({
            "id": chain.id,
            "from": self.components[chain.from].spec.id,
            "to": self.components[chain.to].spec.id,
            "max_ms": chain.max_ms,
            "edges": edges,
        })
    }

    /// The name `component.port` of an output.
    #[must_use]
    pub fn output_name(&self, (component, port): (usize, usize)) -> String {
        let one = &self.components[component];
        format!("{}.{}", one.spec.id, one.outputs[port].name)
    }

    /// The name `component.port` of an input.
    #[must_use]
    pub fn input_name(&self, (component, port): (usize, usize)) -> String {
        let one = &self.components[component];
        format!("{}.{}", one.spec.id, one.inputs[port].name)
    }

    /// The region of each component, by id.
    pub(in crate::compile) fn component_regions_json(&self) -> Value {
        let regions: Map<String, Value> = self
            .components
            .iter()
            .map(|one| (one.spec.id.clone(), self.regions[one.region].id.as_str().into()))
            .collect();
        regions.into()
    }

    fn edge_json(&self, edge: &PlanEdge) -> Value {
        let (policy, (from, port)) = (&edge.policy, edge.from);
        let n_readers = self.components[from].outputs[port].edges.len();
        json!({
            "id": edge.id,
            "from": self.output_name(edge.from),
            "to": self.input_name(edge.to),
            "kind": edge.kind.name(),
            "mode": policy.mode.name(),
            "capacity": policy.capacity,
            "overflow": policy.overflow.name(),
            "max_inflight": policy.max_inflight,
            "copy_policy": policy.copy_policy.name(),
            "readers": if n_readers > 1 { "multi" } else { "single" },
            "slow_reader_drop_risk": edge.slow_reader_drop_risk,
        })
    }

    fn region_json(&self, region: &PlanRegion) -> Value {
        let ids = |of: &[usize]| -> Vec<&str> {
            of.iter().map(|at| self.regions[*at].id.as_str()).collect()
        };
        let components: Vec<&str> =
            region.components.iter().map(|at| self.components[*at].spec.id.as_str()).collect();
        let kind = if region.loop_policy.is_some() { "composite_loop" } else { "component" };
        json!({
            "id": region.id,
            "kind": kind,
            "components": components,
            "loop_policy": region.loop_policy.as_ref().map(loop_json),
            "incoming_regions": ids(&region.incoming),
            "outgoing_regions": ids(&region.outgoing),
        })
    }
}

fn loop_json(one: &PlanLoop) -> Value {
    let spec = &one.spec;
    json!({
        "type": spec.loop_type.name(),
        "max_iterations": spec.max_iterations,
        "budget_ms": spec.budget_ms,
        "convergence": spec.convergence.map(|one| one.name()),
        "residual_threshold": spec.residual_threshold,
        "partial_success": spec.partial_success.map(|one| one.name()),
        "mode": spec.mode.name(),
        "order_is_declared": one.order_is_declared,
    })
}

fn lane_json(lane: &PlanLane) -> Value {
    json!({
        "id": lane.spec.id,
        "type": lane.spec.lane_type.name(),
        "max_threads": lane.spec.max_threads,
        "queue_capacity": lane.spec.queue_capacity,
        "overflow": lane.spec.overflow.name(),
        "implemented": lane.capabilities.implemented,
        "advisory_fields": lane.capabilities.advisory_fields,
        "future_extensions": lane.capabilities.future_extensions,
        "unsupported_claims": lane.capabilities.unsupported_claims,
    })
}
