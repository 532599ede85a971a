//! Compares two plans. Only what determines the results is compared: the order of the regions, and
//! the region of each component.

use core::fmt;

use serde_json::{Value, json};

use super::plan::Plan;

/// The comparison of two plans.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanDiff {
    /// The order of regions of both plans.
    pub region_orders: [Vec<String>; 2],
    /// The region of each component in both plans, as pairs of ids sorted by the component's id.
    pub component_regions: [Vec<(String, String)>; 2],
}

impl PlanDiff {
    /// Compares two plans.
    #[must_use]
    pub fn new(a: &Plan, b: &Plan) -> Self {
        let order = |plan: &Plan| plan.regions.iter().map(|one| one.id.clone()).collect();
        let regions = |plan: &Plan| {
            let mut list: Vec<_> = plan
                .components
                .iter()
                .map(|one| (one.spec.id.clone(), plan.regions[one.region].id.clone()))
                .collect();
            list.sort_unstable();
            list
        };
        Self { region_orders: [order(a), order(b)], component_regions: [regions(a), regions(b)] }
    }

    /// Whether the regions commit in the same order.
    #[must_use]
    pub fn same_region_order(&self) -> bool {
        self.region_orders[0] == self.region_orders[1]
    }

    /// Whether the components are in the same regions.
    #[must_use]
    pub fn same_component_regions(&self) -> bool {
        self.component_regions[0] == self.component_regions[1]
    }

    /// The comparison as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let regions = |of: &[(String, String)]| -> Value {
            let map: serde_json::Map<String, Value> =
                of.iter().map(|(id, region)| (id.clone(), region.as_str().into())).collect();
            map.into()
        };
        json!({
            "same_region_order": self.same_region_order(),
            "same_component_regions": self.same_component_regions(),
            "left_region_order": self.region_orders[0],
            "right_region_order": self.region_orders[1],
            "left_component_regions": regions(&self.component_regions[0]),
            "right_component_regions": regions(&self.component_regions[1]),
        })
    }
}

/// Shows what is the same, and both sides of what differs.
impl fmt::Display for PlanDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |is_same: bool| if is_same { "same" } else { "different" };
        writeln!(f, "region order: {}", word(self.same_region_order()))?;
        for (side, order) in ["left", "right"].iter().zip(&self.region_orders) {
            writeln!(f, "  {side:<5}  {}", order.join(", "))?;
        }
        writeln!(f, "component regions: {}", word(self.same_component_regions()))?;
        let [left, right] = &self.component_regions;
        for (sign, these, others) in [('-', left, right), ('+', right, left)] {
            for pair in these.iter().filter(|pair| others.binary_search(pair).is_err()) {
                writeln!(f, "  {sign} {} in {}", pair.0, pair.1)?;
            }
        }
        Ok(())
    }
}
