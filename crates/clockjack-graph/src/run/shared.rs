//! What a run's handle, its feeds and its domains share.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::Arc;

use super::{credit::Credits, inbox::Inbox, live::Live};
use crate::{compile::Plan, describe::CopyPolicy};

/// What a run's handle, its feeds and its domains share.
pub(crate) struct RunShared {
    pub(crate) plan: Arc<Plan>,
    /// For each component: its domain, its region there, which of its nodes.
    pub(crate) nodes: Vec<(u32, u32, u32)>,
    /// What components count for themselves.
    pub(crate) user: super::metrics::user::Registry,
    pub(crate) stop: Arc<AtomicBool>,
    /// Steps of `manual_step` lanes that were called for and have not begun.
    pub(crate) n_steps_called: AtomicU64,
    /// Domains beside the first that have not ended.
    pub(crate) n_lanes_left: AtomicUsize,
    /// What is in force of each lane.
    pub(crate) lanes: Vec<super::threads::LaneReport>,
    pub(crate) live: Live,
    /// Room on edges between domains.
    pub(crate) credits: Credits,
}

impl RunShared {
    /// Whether a step was called for.
    pub(crate) fn is_step_called(&self, domain: usize) -> bool {
        // Relaxed: who calls wakes through the inbox, whose lock orders it.
        domain == 0 && self.n_steps_called.load(Ordering::Relaxed) > 0
    }

    /// Takes a call for a step.
    pub(crate) fn take_step(&self, domain: usize) -> bool {
        let less = |n: u64| n.checked_sub(1);
        // Relaxed: as above.
        let order = Ordering::Relaxed;
        domain == 0 && self.n_steps_called.try_update(order, order, less).is_ok()
    }

    /// A lane that keeps its own time has ended.
    pub(crate) fn lane_ended(&self) {
        // Relaxed: who is told of it is called through an inbox, whose lock orders it.
        self.n_lanes_left.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a lane that keeps its own time goes on.
    pub(crate) fn has_lanes_left(&self) -> bool {
        // Relaxed: as above.
        self.n_lanes_left.load(Ordering::Relaxed) > 0
    }

    /// Lets all domains end.
    pub(crate) fn stop_all(&self, inboxes: &[Inbox]) {
        // Relaxed: the locks of the inboxes order it.
        self.stop.store(true, Ordering::Relaxed);
        for inbox in inboxes {
            inbox.call();
        }
    }

    /// Whether what is on an edge has one reader, who may take it.
    pub(crate) fn is_moved(&self, edge: u32) -> bool {
        self.plan.edges[edge as usize].policy.copy_policy == CopyPolicy::MoveOnly
    }

    pub(crate) fn component_of(&self, id: &str) -> usize {
        self.plan.find(id).unwrap_or(self.plan.components.len())
    }
}
