//! From a description to a plan: all checks, regions, and the one order in which they commit.

pub mod plan;

pub use plan::{
    LaneCapabilities, Plan, PlanComponent, PlanEdge, PlanLane, PlanLoop, PlanPort, PlanRegion,
};
