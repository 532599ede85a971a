//! The actors of a run, and the actions that they perform.

use core::time::Duration;

use clockjack_actor::{Backoff, Mailbox, Overflow, Scope, Strategy};
use clockjack_sched::{Policy, PolicyRegistry, SchedulerConfig, TimerPriority};

use crate::{context::SimContext, random::Stream};

/// The shortest delay of a strategy with a backoff, in ticks.
pub(super) const BACKOFF_MIN: u64 = 2;

/// A reserve with a place for every job that a system of this workload needs for itself.
pub(super) const AMPLE_RESERVE: usize = 1 << 10;

/// Load of users on the scheduler, which must not affect jobs of the system itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserLoad {
    /// How many jobs of users the scheduler accepts.
    pub(super) quota: usize,
    /// How many jobs of the system itself have a place of their own. Those beyond it are refused
    /// while the quota is used up.
    pub(super) reserve: usize,
    /// The receive timeout of the actors without children, in ticks.
    pub(super) receive_timeout: u64,
    /// Whether a user closes the scheduler before the end of the run.
    pub(super) closes_early: bool,
}

impl UserLoad {
    /// One run of four is crowded.
    pub(super) fn draw(sim: &SimContext) -> Option<Self> {
        if sim.setting("crowd", 0, 3) != 3 {
            return None;
        }
        let size = |n| usize::try_from(n).unwrap_or(0);
        Some(Self {
            quota: size(sim.setting("crowd-quota", 2, 12)),
            reserve: match sim.setting("crowd-reserve", 0, 3) {
                3 => AMPLE_RESERVE,
                few => size(few),
            },
            receive_timeout: sim.setting("crowd-timeout", 20, 400),
            closes_early: sim.setting("crowd-closes", 0, 2) == 2,
        })
    }

    pub(super) fn config(self) -> SchedulerConfig {
        let Self { quota, reserve, .. } = self;
        // One class, so that no job of a user evicts another one: the oracle knows of no eviction.
        let policies = PolicyRegistry::new();
        let policies = policies.set_default(Policy::DEFAULT.priority(TimerPriority::High));
        SchedulerConfig {
            quota,
            capacity: quota,
            internal_reserve: reserve,
            policies,
            ..SchedulerConfig::DEFAULT
        }
    }
}

/// The plan of an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePlan {
    pub(super) above: Option<usize>,
    /// The strategy for its own failures.
    itself: u64,
    /// The strategy for failures of its children, and its scope.
    children: u64,
    scope: u64,
    /// The capacity of the mailbox; `None` means unbounded.
    capacity: Option<usize>,
    overflow: u64,
    /// Restarts within ticks, for actors whose restarts the oracle counts.
    pub(super) limit: Option<(u64, u64)>,
}

/// The action that an actor performs for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Work,
    Fail,
    Stop,
    Forward { to: usize, lane: u8, hops: u8 },
    Arm { key: u64, ticks: u64 },
    Rate { key: u64, ticks: u64 },
    Delay { key: u64, ticks: u64 },
    Disarm { key: u64 },
    Watch { to: usize },
    Unwatch { to: usize },
    Stash,
    Unstash,
    Schedule { to: usize, ticks: u64 },
}

impl Action {
    /// The code in traces.
    pub(super) fn code(self) -> u64 {
        match self {
            Self::Work => 0,
            Self::Fail => 1,
            Self::Stop => 2,
            Self::Forward { .. } => 3,
            Self::Arm { .. } => 4,
            Self::Rate { .. } => 5,
            Self::Delay { .. } => 6,
            Self::Disarm { .. } => 7,
            Self::Watch { .. } => 8,
            Self::Unwatch { .. } => 9,
            Self::Stash => 10,
            Self::Unstash => 11,
            Self::Schedule { .. } => 12,
        }
    }

    pub(super) fn draw(work: &mut Stream, n_nodes: usize, failing: u64) -> Self {
        let to = work.index(n_nodes);
        let (key, ticks) = (work.below(4), work.between(1, 300));
        match work.below(40 + failing) {
            0..10 => Self::Work,
            10..17 => {
                let lane = u8::from(work.chance(2_500));
                Self::Forward { to, lane, hops: u8::try_from(work.between(1, 3)).unwrap_or(1) }
            }
            17..21 => Self::Arm { key, ticks },
            21..23 => Self::Rate { key, ticks: ticks.max(20) },
            23..25 => Self::Delay { key, ticks: ticks.max(5) },
            25..28 => Self::Disarm { key },
            28..32 => Self::Watch { to },
            32 => Self::Unwatch { to },
            33 => Self::Stash,
            34 => Self::Unstash,
            35..38 => Self::Schedule { to, ticks },
            38 if work.chance(1_000) => Self::Stop,
            38..40 => Self::Work,
            _ => Self::Fail,
        }
    }
}

/// Draws the actors of a run: the first few are top-level actors without children and with a
/// restart limit, the others form a tree.
pub(super) fn draw(sim: &SimContext) -> Vec<NodePlan> {
    let mut shape = sim.stream("shape");
    let n_solo = sim.setting("solo", 1, 4);
    let n_tree = sim.setting("tree", 2, 14);
    let depth = sim.setting("bushy", 0, 2);
    let mut plans = Vec::new();
    for at in 0..n_solo + n_tree {
        let is_solo = at < n_solo;
        let above = match shape.below(4 + depth) {
            _ if is_solo || at == n_solo => None,
            0 => None,
            _ => Some(usize::try_from(shape.between(n_solo, at - 1)).unwrap_or(0)),
        };
        let capacity = shape.chance(3_000).then(|| shape.index(8) + 1);
        plans.push(NodePlan {
            above,
            itself: shape.below(8),
            children: shape.below(6),
            scope: shape.below(3),
            capacity,
            overflow: shape.below(3),
            limit: is_solo.then(|| (shape.below(4), shape.between(20, 1_500))),
        });
    }
    plans
}

impl NodePlan {
    pub(super) fn mailbox(&self) -> Mailbox {
        let Some(capacity) = self.capacity else { return Mailbox::unbounded() };
        let overflow = [Overflow::Fail, Overflow::DropNewest, Overflow::DropOldest];
        let at = usize::try_from(self.overflow).unwrap_or(0) % overflow.len();
        Mailbox::bounded(capacity).overflow(overflow[at])
    }

    pub(super) fn itself(&self) -> Option<Strategy> {
        if let Some((restarts, within)) = self.limit {
            let restarts = u32::try_from(restarts).unwrap_or(0);
            return Some(Strategy::restart().limit(restarts, Duration::from_millis(within)));
        }
        strategy(self.itself)
    }

    pub(super) fn children(&self) -> Option<(Scope, Strategy)> {
        let scopes = [Scope::OneForOne, Scope::AllForOne, Scope::RestForOne];
        let at = usize::try_from(self.scope).unwrap_or(0) % scopes.len();
        strategy(self.children).map(|strategy| (scopes[at], strategy))
    }
}

/// Whether the children of this actor restart by its decisions only, all of them that a decision
/// affects, and none is spawned while others restart: then the order of their restarts is checked.
pub(super) fn restarts_groups(plans: &[NodePlan], index: usize) -> bool {
    let plan = &plans[index];
    let above = plan.above.map(|above| &plans[above]);
    let is_kept = plan.itself == 5 || above.is_some_and(|above| above.children == 5);
    !plan.scope.is_multiple_of(3) && matches!(plan.children, 1 | 4 | 5) && !is_kept
}

/// Whether the actor restarts by its own strategy only, with a backoff.
pub(super) fn backs_off(plan: &NodePlan) -> bool {
    plan.above.is_none() && plan.limit.is_none() && plan.itself == 4
}

/// Whether the actor leaves its failures to its parent.
pub(super) fn has_no_strategy(plan: &NodePlan) -> bool {
    plan.limit.is_none() && matches!(plan.itself, 0 | 6 | 7)
}

fn strategy(kind: u64) -> Option<Strategy> {
    let ms = Duration::from_millis;
    Some(match kind {
        1 => Strategy::restart(),
        2 => Strategy::resume(),
        3 => Strategy::restart().limit(2, ms(50)),
        4 => {
            Strategy::restart().backoff(Backoff::new(ms(BACKOFF_MIN), ms(40)).jitter(0.5)).stash(3)
        }
        5 => Strategy::restart().keep_children(),
        6 => Strategy::escalate(),
        _ => return None,
    })
}

pub(super) fn name(index: usize) -> String {
    format!("n{index}")
}

pub(super) fn path(plans: &[NodePlan], index: usize) -> String {
    match plans[index].above {
        Some(above) => format!("{}/{}", path(plans, above), name(index)),
        None => format!("/user/{}", name(index)),
    }
}

/// Whether `below` is `above` or one of its descendants.
pub(super) fn is_below(plans: &[NodePlan], below: usize, above: usize) -> bool {
    below == above || plans[below].above.is_some_and(|next| is_below(plans, next, above))
}
