//! How to change a loss: what is possible depends on the policy of the edge, the trigger of the
//! component, and its loop.

use super::{At, LossCause};
use crate::{
    compile::plan::Plan,
    describe::{EdgeOverflow, LoopType, TriggerType},
};

impl LossCause {
    /// How to lose fewer messages for this cause at the edge, the component, the lane or the loop
    /// of this id. For losses that are read from the metrics of a run; a [`Loss`](super::Loss) has
    /// its hint.
    #[must_use]
    pub fn hint(self, plan: &Plan, id: &str) -> &'static str {
        let edge = || plan.edges.iter().position(|edge| edge.id == id).map(At::Edge);
        let component = || plan.find(id).map(At::Component);
        let at = match self {
            Self::Overwritten | Self::EdgeFull | Self::Refused => edge(),
            _ => component(),
        };
        // For an id that the plan does not have, the hint that fits everywhere.
        of(plan, at.unwrap_or(At::Loop(0)), self)
    }
}

/// The way to lose fewer messages for a cause at a place.
pub(super) fn of(plan: &Plan, at: At, cause: LossCause) -> &'static str {
    match cause {
        LossCause::Overwritten | LossCause::EdgeFull | LossCause::Refused => match at {
            At::Edge(edge) => of_full_edge(plan, edge),
            At::Component(_) | At::Loop(_) => "give its edges more room",
        },
        LossCause::RefusedElsewhere => "see the full edge of the same output",
        LossCause::Stale => "raise `lifespan_ms`, or call the reader more often",
        LossCause::MaxInflight => "raise `max_inflight`",
        LossCause::PublisherFailed => "see the faults of the publisher",
        LossCause::LoopDiscarded => {
            "raise `max_iterations` of the loop, or set `partial_success: commit_outputs`"
        }
        LossCause::ReaderFailed => "see the faults of the component and its `on_error`",
        LossCause::LaneFull => {
            "raise `queue_capacity` of the lane, or make the component `reentrant` and raise \
             `max_threads`"
        }
        LossCause::Coalesced => match at {
            At::Component(component) => of_newest_only(plan, component),
            At::Edge(_) | At::Loop(_) => "get a call for every message",
        },
        LossCause::PendingFull => {
            "slow the producer, shorten `min_interval_ms`, or raise `capacity` of the edges"
        }
        LossCause::MaxLatency => "raise `max_latency_ms`",
        LossCause::NoMatch => "raise `sync_slop_ms`",
        LossCause::BehindWatermark => "raise `watermark_lateness_ms`",
        LossCause::NoTimestamp => "publish with a timestamp",
        LossCause::RunEnded => "run longer, or until idle",
    }
}

/// For an edge that was full.
fn of_full_edge(plan: &Plan, edge: usize) -> &'static str {
    let policy = &plan.edges[edge].policy;
    if policy.mode.is_slot() {
        // The capacity of a slot is one, and it cannot block.
        "use `mode: queue` with a larger `capacity` to keep every message"
    } else if policy.overflow == EdgeOverflow::Block {
        "raise `capacity`"
    } else {
        "raise `capacity`, or use `overflow: block` to slow the producer"
    }
}

/// For a component whose trigger keeps the newest message of each input.
fn of_newest_only(plan: &Plan, component: usize) -> &'static str {
    let planned = &plan.components[component];
    let owner = plan.regions[planned.region].loop_policy.as_ref();
    let trigger = &planned.spec.trigger;
    if trigger.coalesce {
        "remove `coalesce` to get every message"
    } else if trigger.trigger_type == TriggerType::Debounce {
        "use another trigger than `debounce` to get every message"
    } else if owner.is_some_and(|one| one.spec.loop_type == LoopType::CoalescedEvent) {
        "use another type of loop than `coalesced_event` to get every message"
    } else {
        "use `mode: queue` on the edges of the input to get every message"
    }
}
