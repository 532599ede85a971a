//! What a lane does with its fields. The same table gives the plan's lists and the advice, so
//! that no field is in neither: whatever differs from its default either has an effect or is told
//! to have none.

use alloc::string::String;
use alloc::vec::Vec;

use super::plan::LaneCapabilities;
use crate::describe::{LaneSpec, LaneType};

/// How a field is treated: where it has an effect, and what it depends on.
struct Field {
    name: &'static str,
    is_given: fn(&LaneSpec, &LaneSpec) -> bool,
    /// Why it has none on this lane, if so.
    why_not: fn(&LaneSpec) -> Option<&'static str>,
}

/// A lane that calls its components on a thread of its own.
pub(super) fn has_own_thread(lane: &LaneSpec) -> bool {
    lane.lane_type == LaneType::IsolatedThread
}

/// A lane whose ticks are those of the system's clock: an epoch domain of its own.
pub(super) fn keeps_own_time(lane: &LaneSpec) -> bool {
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

fn not_asked(_: &LaneSpec) -> Option<&'static str> {
    Some("nothing is asked of the operating system")
}

fn period(lane: &LaneSpec) -> Option<&'static str> {
    fixed_rate_only(lane).or_else(|| unless(lane.period_ms == 0, "`period_ms` goes before it"))
}

const FIELDS: &[Field] = &[
    Field { name: "hz", is_given: |a, b| a.hz != b.hz, why_not: period },
    Field {
        name: "period_ms",
        is_given: |a, b| a.period_ms != b.period_ms,
        why_not: fixed_rate_only,
    },
    Field {
        name: "tick_budget_ms",
        is_given: |a, b| a.tick_budget_ms != b.tick_budget_ms,
        why_not: fixed_rate_only,
    },
    Field {
        name: "wall_clock_enabled",
        is_given: |a, b| a.wall_clock_enabled != b.wall_clock_enabled,
        why_not: fixed_rate_only,
    },
    Field {
        name: "overrun_policy",
        is_given: |a, b| a.overrun_policy != b.overrun_policy,
        why_not: |lane| unless(keeps_own_time(lane), "only a tick of the wall clock can be late"),
    },
    Field {
        name: "max_threads",
        is_given: |a, b| a.max_threads != b.max_threads,
        why_not: pool_only,
    },
    Field {
        name: "queue_capacity",
        is_given: |a, b| a.queue_capacity != b.queue_capacity,
        why_not: pool_only,
    },
    Field { name: "overflow", is_given: |a, b| a.overflow != b.overflow, why_not: pool_only },
    Field {
        name: "aging_picks",
        is_given: |a, b| a.aging_picks != b.aging_picks,
        why_not: pool_only,
    },
    Field {
        name: "max_callback_ms",
        is_given: |a, b| a.max_callback_ms != b.max_callback_ms,
        why_not: |_| None,
    },
    Field {
        name: "thread_name",
        is_given: |a, b| a.thread_name != b.thread_name,
        why_not: own_thread_only,
    },
    Field { name: "priority", is_given: |a, b| a.priority != b.priority, why_not: never },
    Field {
        name: "cpu_affinity",
        is_given: |a, b| a.cpu_affinity != b.cpu_affinity,
        why_not: not_asked,
    },
    Field {
        name: "nice_priority",
        is_given: |a, b| a.nice_priority != b.nice_priority,
        why_not: not_asked,
    },
    Field { name: "rt_policy", is_given: |a, b| a.rt_policy != b.rt_policy, why_not: not_asked },
    Field {
        name: "rt_priority",
        is_given: |a, b| a.rt_priority != b.rt_priority,
        why_not: not_asked,
    },
    Field {
        name: "isolation_intent",
        is_given: |a, b| a.isolation_intent != b.isolation_intent,
        why_not: never,
    },
    Field {
        name: "on_policy_error",
        is_given: |a, b| a.on_policy_error != b.on_policy_error,
        why_not: own_thread_only,
    },
];

/// The fields that were given and have no effect, and why.
pub(super) fn advice(lane: &LaneSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    let default = LaneSpec::new("", lane.lane_type);
    FIELDS
        .iter()
        .filter(move |field| (field.is_given)(lane, &default))
        .filter_map(|field| (field.why_not)(lane).map(|why| (field.name, why)))
}

/// What the plan says of a lane.
pub(super) fn of(lane: &LaneSpec) -> LaneCapabilities {
    // With every field set, what is left without an effect is what this type never does.
    let given = LaneSpec { period_ms: 0, ..lane.clone() };
    let mut implemented: Vec<String> = behaviour(lane).iter().map(|one| (*one).into()).collect();
    implemented.extend(
        FIELDS.iter().filter(|field| (field.why_not)(&given).is_none()).map(|one| one.name.into()),
    );
    let unsupported =
        ["hard_preemption", "hard_real_time", "os_thread_policy"].map(String::from).into();
    LaneCapabilities {
        implemented,
        advisory_fields: advice(lane).map(|(name, _)| name.into()).collect(),
        future_extensions: ["lane_priority", "isolation_intent", "os_thread_policy"]
            .map(String::from)
            .into(),
        unsupported_claims: unsupported,
    }
}

/// What a lane does without being told.
fn behaviour(lane: &LaneSpec) -> &'static [&'static str] {
    match lane.lane_type {
        LaneType::EventLoop => &["sequential", "compiled_order_commit"],
        LaneType::FixedRate if lane.wall_clock_enabled => {
            &["sequential", "compiled_order_commit", "wall_clock_ticks", "own_epoch_domain"]
        }
        LaneType::FixedRate => &["sequential", "compiled_order_commit", "virtual_ticks"],
        LaneType::ThreadPool => &[
            "parallel_regions",
            "reentrant_invocations",
            "priority_queue",
            "compiled_order_commit",
        ],
        LaneType::IsolatedThread => &["sequential", "compiled_order_commit", "own_thread"],
        LaneType::ManualStep => &["sequential", "compiled_order_commit", "stepped_by_host"],
    }
}
