//! What a lane does with its fields. The same table gives the plan's lists, the advice and what a
//! run reports of its lanes, so that no field is in neither: whatever differs from its default
//! either has an effect or is told to have none.

use super::plan::LaneCapabilities;
use crate::describe::{LaneSpec, LaneType};

/// How a field is treated: where it has an effect, and what it depends on.
struct Field {
    name: &'static str,
    is_given: fn(&LaneSpec, &LaneSpec) -> bool,
    /// Why it has none on this lane, if so.
    why_not: fn(&LaneSpec) -> Option<&'static str>,
    /// What a run must have for it.
    needs: Needs,
}

/// What a field needs of a run to have an effect, beside a lane that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// The lane follows the clock of the system.
    WallClock,
    /// The host gives the lane a thread.
    Thread,
    /// The operating system lets that thread have it.
    Granted(Wish),
}

/// What the operating system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Cpus,
    Niceness,
    Realtime,
}

/// A lane that calls its components on a thread of its own, where the host has one to give.
pub(crate) fn has_own_thread(lane: &LaneSpec) -> bool {
    lane.lane_type == LaneType::IsolatedThread || keeps_own_time(lane)
}

/// A lane whose ticks are those of the system's clock: an epoch domain of its own.
pub(crate) fn keeps_own_time(lane: &LaneSpec) -> bool {
    lane.lane_type == LaneType::FixedRate && lane.wall_clock_enabled
}

fn unless(has_effect: bool, why: &'static str) -> Option<&'static str> {
    if has_effect { None } else { Some(why) }
}

fn fixed_rate_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(lane.lane_type == LaneType::FixedRate, "only a `fixed_rate` lane has ticks")
}

fn pool_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(lane.lane_type == LaneType::ThreadPool, "only a `thread_pool` lane admits")
}

fn own_thread_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(has_own_thread(lane), "the lane has no thread of its own")
}

fn never(_: &LaneSpec) -> Option<&'static str> {
    Some("it is kept for readers of the plan")
}

fn in_a_class(lane: &LaneSpec) -> Option<&'static str> {
    own_thread_only(lane).or_else(|| unless(lane.rt_policy != "none", "there is no `rt_policy`"))
}

fn period(lane: &LaneSpec) -> Option<&'static str> {
    fixed_rate_only(lane).or_else(|| unless(lane.period_ms == 0, "`period_ms` goes before it"))
}

const FIELDS: &[Field] = &[
    Field { name: "hz", is_given: |a, b| a.hz != b.hz, why_not: period, needs: Needs::Nothing },
    Field {
        name: "period_ms",
        is_given: |a, b| a.period_ms != b.period_ms,
        why_not: fixed_rate_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "tick_budget_ms",
        is_given: |a, b| a.tick_budget_ms != b.tick_budget_ms,
        why_not: fixed_rate_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "wall_clock_enabled",
        is_given: |a, b| a.wall_clock_enabled != b.wall_clock_enabled,
        why_not: fixed_rate_only,
        needs: Needs::WallClock,
    },
    Field {
        name: "overrun_policy",
        is_given: |a, b| a.overrun_policy != b.overrun_policy,
        why_not: |lane| unless(keeps_own_time(lane), "only a tick of the wall clock can be late"),
        needs: Needs::WallClock,
    },
    Field {
        name: "max_threads",
        is_given: |a, b| a.max_threads != b.max_threads,
        why_not: pool_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "queue_capacity",
        is_given: |a, b| a.queue_capacity != b.queue_capacity,
        why_not: pool_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "overflow",
        is_given: |a, b| a.overflow != b.overflow,
        why_not: pool_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "aging_picks",
        is_given: |a, b| a.aging_picks != b.aging_picks,
        why_not: pool_only,
        needs: Needs::Nothing,
    },
    Field {
        name: "max_callback_ms",
        is_given: |a, b| a.max_callback_ms != b.max_callback_ms,
        why_not: |_| None,
        needs: Needs::Nothing,
    },
    Field {
        name: "thread_name",
        is_given: |a, b| a.thread_name != b.thread_name,
        why_not: own_thread_only,
        needs: Needs::Thread,
    },
    Field {
        name: "priority",
        is_given: |a, b| a.priority != b.priority,
        why_not: never,
        needs: Needs::Nothing,
    },
    Field {
        name: "cpu_affinity",
        is_given: |a, b| a.cpu_affinity != b.cpu_affinity,
        why_not: own_thread_only,
        needs: Needs::Granted(Wish::Cpus),
    },
    Field {
        name: "nice_priority",
        is_given: |a, b| a.nice_priority != b.nice_priority,
        why_not: own_thread_only,
        needs: Needs::Granted(Wish::Niceness),
    },
    Field {
        name: "rt_policy",
        is_given: |a, b| a.rt_policy != b.rt_policy,
        why_not: own_thread_only,
        needs: Needs::Granted(Wish::Realtime),
    },
    Field {
        name: "rt_priority",
        is_given: |a, b| a.rt_priority != b.rt_priority,
        why_not: in_a_class,
        needs: Needs::Granted(Wish::Realtime),
    },
    Field {
        name: "isolation_intent",
        is_given: |a, b| a.isolation_intent != b.isolation_intent,
        why_not: never,
        needs: Needs::Nothing,
    },
    Field {
        name: "on_policy_error",
        is_given: |a, b| a.on_policy_error != b.on_policy_error,
        why_not: own_thread_only,
        needs: Needs::Thread,
    },
];

/// The fields that were given and have no effect, and why.
pub(crate) fn advice(lane: &LaneSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    let default = LaneSpec::new("", lane.lane_type);
    FIELDS
        .iter()
        .filter(move |field| (field.is_given)(lane, &default))
        .filter_map(|field| (field.why_not)(lane).map(|why| (field.name, why)))
}

/// The fields that were given and have an effect if a run has what they need.
pub(crate) fn effective(lane: &LaneSpec) -> impl Iterator<Item = (&'static str, Needs)> {
    let default = LaneSpec::new("", lane.lane_type);
    FIELDS
        .iter()
        .filter(move |field| (field.is_given)(lane, &default))
        .filter(|field| (field.why_not)(lane).is_none())
        .map(|field| (field.name, field.needs))
}

/// What the plan says of a lane.
pub(super) fn of(lane: &LaneSpec) -> LaneCapabilities {
    // With every field set, what is left without an effect is what this type never does.
    let given = LaneSpec { period_ms: 0, rt_policy: "fifo".into(), ..lane.clone() };
    let mut implemented: Vec<String> = behaviour(lane).iter().map(|one| (*one).into()).collect();
    implemented.extend(
        FIELDS.iter().filter(|field| (field.why_not)(&given).is_none()).map(|one| one.name.into()),
    );
    let mut unsupported: Vec<String> =
        ["hard_preemption", "hard_real_time"].map(String::from).into();
    if !has_own_thread(lane) {
        unsupported.push("os_thread_policy".into());
    }
    LaneCapabilities {
        implemented,
        advisory_fields: advice(lane).map(|(name, _)| name.into()).collect(),
        future_extensions: ["lane_priority", "isolation_intent"].map(String::from).into(),
        unsupported_claims: unsupported,
    }
}

/// What a lane does without being told.
fn behaviour(lane: &LaneSpec) -> &'static [&'static str] {
    match lane.lane_type {
        LaneType::EventLoop => &["sequential", "compiled_order_commit"],
        LaneType::FixedRate if lane.wall_clock_enabled => &[
            "sequential",
            "compiled_order_commit",
            "wall_clock_ticks",
            "own_epoch_domain",
            "own_thread",
            "os_thread_policy",
        ],
        LaneType::FixedRate => &["sequential", "compiled_order_commit", "virtual_ticks"],
        LaneType::ThreadPool => &[
            "parallel_regions",
            "reentrant_invocations",
            "priority_queue",
            "compiled_order_commit",
        ],
        LaneType::IsolatedThread => {
            &["sequential", "compiled_order_commit", "own_thread", "os_thread_policy"]
        }
        LaneType::ManualStep => &["sequential", "compiled_order_commit", "stepped_by_host"],
    }
}
