//! A plan as text. The order comes first, because it is what the compiler decides.

use core::fmt;

use super::{Plan, PlanEdge, PlanLane, PlanRegion};
use crate::describe::BoundaryRole;

/// The whole plan, with one line per region, lane and edge.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "graph {} ({}): {}, {}, {}, {}",
            self.name,
            self.kind,
            Count(self.components.len(), "component"),
            Count(self.edges.len(), "edge"),
            Count(self.regions.len(), "region"),
            Count(self.n_domains, "epoch domain"),
        )?;
        writeln!(f, "\norder")?;
        for (at, region) in self.regions.iter().enumerate() {
            self.write_region(f, at, region)?;
        }
        writeln!(f, "\nlanes")?;
        for lane in &self.lanes {
            write_lane(f, lane)?;
        }
        writeln!(f, "\nedges")?;
        for edge in &self.edges {
            self.write_edge(f, edge)?;
        }
        if !self.chains.is_empty() {
            writeln!(f, "\nchains")?;
        }
        for chain in &self.chains {
            let [from, to] = [chain.from, chain.to].map(|at| &self.components[at].spec.id);
            write!(f, "  {}  {from} -> {to}  within {} ms, by ", chain.id, chain.max_ms)?;
            write_list(f, chain.edges.iter().map(|at| self.edges[*at].id.as_str()))?;
            writeln!(f)?;
        }
        write!(f, "\nactivation\n  ")?;
        let ids = self.lifecycle.iter().map(|at| self.components[*at].spec.id.as_str());
        write_list(f, ids)?;
        writeln!(f)
    }
}

impl Plan {
    fn write_region(
        &self,
        f: &mut fmt::Formatter<'_>,
        at: usize,
        region: &PlanRegion,
    ) -> fmt::Result {
        let lane = &self.lanes[region.lane].spec.id;
        write!(f, "  {:>4}  {}  on {lane}", at + 1, region.id)?;
        if let Some(one) = &region.loop_policy {
            let found = if one.order_is_declared { "declared" } else { "computed" };
            write!(f, "  {} loop, order {found}: ", one.spec.loop_type)?;
            let ids = region.components.iter().map(|at| self.components[*at].spec.id.as_str());
            write_list(f, ids)?;
        } else {
            let component = &self.components[region.components[0]].spec;
            write!(f, "  {}", component.component_type)?;
            if component.boundary.role != BoundaryRole::Processing {
                write!(f, " ({})", component.boundary.role)?;
            }
        }
        if !region.incoming.is_empty() {
            write!(f, "  after ")?;
            write_list(f, region.incoming.iter().map(|at| self.regions[*at].id.as_str()))?;
        }
        writeln!(f)
    }

    fn write_edge(&self, f: &mut fmt::Formatter<'_>, edge: &PlanEdge) -> fmt::Result {
        let policy = &edge.policy;
        write!(
            f,
            "  {}  {} -> {}  {}  {} of {}, {}",
            edge.id,
            self.output_name(edge.from),
            self.input_name(edge.to),
            edge.kind,
            policy.mode,
            policy.capacity,
            policy.overflow,
        )?;
        write_advisory(f, &edge.advisory_fields)?;
        writeln!(f)
    }
}

fn write_lane(f: &mut fmt::Formatter<'_>, lane: &PlanLane) -> fmt::Result {
    let spec = &lane.spec;
    write!(f, "  {}  {}, {}", spec.id, spec.lane_type, Count(lane.regions.len(), "region"))?;
    if lane.domain > 0 {
        write!(f, ", has its own epoch domain")?;
    }
    write_advisory(f, &lane.capabilities.advisory_fields)?;
    writeln!(f)
}

fn write_advisory(f: &mut fmt::Formatter<'_>, fields: &[String]) -> fmt::Result {
    if fields.is_empty() {
        return Ok(());
    }
    write!(f, "  advisory: ")?;
    write_list(f, fields.iter().map(|one| one.as_str()))
}

fn write_list<'a>(f: &mut fmt::Formatter<'_>, list: impl Iterator<Item = &'a str>) -> fmt::Result {
    for (at, one) in list.enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{one}")?;
    }
    Ok(())
}

/// A count with its noun.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.0, self.1, if self.0 == 1 { "" } else { "s" })
    }
}
