//! A model of how long calls take in simulated time, in which they take none otherwise.
//!
//! Ticks that take longer than their budget are then counted, traced and followed by what the
//! lane's policy says, as by the wall clock. The model depends on the component and the epoch
//! alone, so results do not depend on threads.

use core::{fmt, time::Duration};
use std::sync::Arc;

use super::epoch::{DomainState, RegionCell};

/// How long a call of a component takes in an epoch.
#[derive(Clone)]
pub(crate) struct CallCost(Arc<Model>);

/// From the id of a component and the number of an epoch.
type Model = dyn Fn(&str, u64) -> Duration + Send + Sync;

impl CallCost {
    pub(crate) fn new(model: impl Fn(&str, u64) -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(model))
    }

    /// How many nanoseconds a call takes.
    pub(super) fn of(&self, id: &str, epoch: u64) -> u64 {
        u64::try_from((self.0)(id, epoch).as_nanos()).unwrap_or(u64::MAX)
    }

    /// Adds up the costs of the calls of an epoch, by lane. A lane makes its calls one after the
    /// other.
    pub(super) fn add_up(&self, state: &mut DomainState, by_lane_ns: &mut Vec<u64>) {
        by_lane_ns.clear();
        by_lane_ns.resize(state.is_due.len(), 0);
        let epoch = state.env.epoch;
        for region in state.regions.iter_mut().map(RegionCell::get_mut) {
            for node in &mut region.nodes {
                let n_calls = node.counts.executions + node.counts.errors;
                let n_new = n_calls - core::mem::replace(&mut node.counts.costed, n_calls);
                if n_new > 0 {
                    let cost_ns = self.of(&node.id, epoch).saturating_mul(n_new);
                    let sum_ns = &mut by_lane_ns[region.lane];
                    *sum_ns = sum_ns.saturating_add(cost_ns);
                }
            }
        }
    }
}

impl fmt::Debug for CallCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallCost")
    }
}
