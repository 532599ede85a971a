//! What a run's handle, its feeds and its domains share.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::domain::Progress;
use super::env::Env;
use super::inbox::Inbox;
use super::lanes::Lanes;
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
    /// Whether anybody looks at `live`.
    pub(crate) is_watched: AtomicBool,
    pub(crate) live: Mutex<Vec<LiveLane>>,
}

/// Where a lane stands while the run goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LiveLane {
    /// Its id.
    pub lane: String,
    /// Epochs of its domain.
    pub epochs: u64,
    /// Nanoseconds of its domain's time.
    pub now_ns: u64,
    /// Calls of components in its domain.
    pub calls: u64,
    /// Its ticks.
    pub ticks: u64,
    /// Ticks that took too long.
    pub overruns: u64,
    /// Ticks that were left out.
    pub skipped: u64,
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

    /// Where the lanes stand; asks for it to be kept up to date.
    pub(crate) fn watch(&self) -> Vec<LiveLane> {
        // Relaxed: as in `live`.
        self.is_watched.store(true, Ordering::Relaxed);
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn live(&self, env: &Env, lanes: &Lanes, progress: &Progress) {
        // Relaxed: a wish that is seen an epoch later is soon enough.
        if !self.is_watched.load(Ordering::Relaxed) {
            return;
        }
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        for lane in &lanes.list {
            let shown = &mut live[lane.lane];
            shown.epochs = env.epoch;
            shown.now_ns = env.now_ns;
            shown.calls = progress.n_called;
            shown.ticks = lane.counts.ticks;
            shown.overruns = lane.counts.overruns;
            shown.skipped = lane.counts.skipped;
        }
    }
}
