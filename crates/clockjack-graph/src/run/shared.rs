//! What a run's handle, its feeds and its domains share.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::inbox::Inbox;
use super::live::Live;
use crate::compile::Plan;
use crate::describe::CopyPolicy;

/// What a run's handle, its feeds and its domains share.
pub(crate) struct RunShared {
    pub(crate) plan: Arc<Plan>,
    /// For each component: its domain, its region there, which of its nodes.
    pub(crate) nodes: Vec<(u32, u32, u32)>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Steps of `manual_step` lanes that were called for and have not begun.
    pub(crate) n_steps_called: AtomicU64,
    pub(crate) live: Live,
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
        let found = self.plan.components.iter().position(|one| one.spec.id == id);
        found.unwrap_or(self.plan.components.len())
    }
}
