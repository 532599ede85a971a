//! What a run's handle, its feeds and its domains share.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::{
    compile::Plan,
    component::Config,
    describe::{ConfigValue, CopyPolicy},
    lock::lock,
    run::{
        engine::call_cost::CallCost,
        flow::{credit::Credits, inbox::Inbox},
        observe::{call_watch::CallWatch, live::Live, metrics},
    },
};

/// What a run's handle, its feeds and its domains share.
pub(crate) struct RunShared {
    pub(crate) plan: Arc<Plan>,
    /// The same without the edges from feeds, as the graph was compiled.
    pub(crate) compiled: Arc<Plan>,
    /// For each component: its domain, its region there, which of its nodes.
    pub(crate) nodes: Vec<(u32, u32, u32)>,
    /// The components' own counters and histograms.
    pub(crate) user: metrics::user::Registry,
    /// The settings of each component that are in force.
    pub(crate) settings: Mutex<Vec<Config>>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Requested steps of `manual_step` lanes that have not begun.
    pub(crate) n_steps_requested: AtomicU64,
    /// How long calls take in simulated time.
    pub(crate) call_cost: Option<CallCost>,
    /// How many workers may run an epoch.
    pub(crate) n_workers: usize,
    /// Domains other than the first that have not ended.
    pub(crate) n_lanes_left: AtomicUsize,
    /// Which settings of each lane are in force.
    pub(crate) lanes: Vec<super::threads::LaneReport>,
    pub(crate) live: Live,
    /// Calls that are visible while they run.
    pub(crate) calls: CallWatch,
    /// Room on edges between domains.
    pub(crate) credits: Credits,
}

impl RunShared {
    /// The plan as the graph was compiled.
    pub(crate) fn compiled(&self) -> &Plan {
        &self.compiled
    }

    /// Whether a step was requested.
    pub(crate) fn is_step_requested(&self, domain: usize) -> bool {
        // Relaxed: the requester wakes the coordinator through the inbox, whose lock orders the
        // accesses.
        domain == 0 && self.n_steps_requested.load(Ordering::Relaxed) > 0
    }

    /// Takes one request for a step.
    pub(crate) fn take_step_request(&self, domain: usize) -> bool {
        let less = |n: u64| n.checked_sub(1);
        // Relaxed: as above.
        let order = Ordering::Relaxed;
        domain == 0 && self.n_steps_requested.try_update(order, order, less).is_ok()
    }

    /// A lane with its own clock has ended.
    pub(crate) fn lane_ended(&self) {
        // Relaxed: the first domain is woken through its inbox, whose lock orders the accesses.
        self.n_lanes_left.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether a lane with its own clock still runs.
    pub(crate) fn has_lanes_left(&self) -> bool {
        // Relaxed: as above.
        self.n_lanes_left.load(Ordering::Relaxed) > 0
    }

    /// Stops all domains.
    pub(crate) fn stop_all(&self, inboxes: &[Inbox]) {
        // Relaxed: the locks of the inboxes order the accesses.
        self.stop.store(true, Ordering::Relaxed);
        for inbox in inboxes {
            inbox.wake();
        }
    }

    /// Whether an edge moves its values: it has one reader, which may take them.
    pub(crate) fn is_moved(&self, edge: u32) -> bool {
        self.plan.edges[edge as usize].policy.copy_policy == CopyPolicy::MoveOnly
    }

    /// The value of a setting, written as `component.field`.
    pub(crate) fn setting(&self, setting: &str) -> Option<ConfigValue> {
        let (component, field) = split_setting(setting);
        let component = self.plan.find(component)?;
        lock(&self.settings)[component].map().get(field).cloned()
    }

    pub(crate) fn component_of(&self, id: &str) -> usize {
        self.plan.find(id).unwrap_or(self.plan.components.len())
    }
}

/// The component and the field of a setting. Ids of components may contain dots, names of settings
/// do not.
pub(crate) fn split_setting(setting: &str) -> (&str, &str) {
    setting.rsplit_once('.').unwrap_or((setting, ""))
}
