//! What a lane does with its fields. One table provides the plan's lists, the advice, and the lane
//! reports of a run, so that no field is overlooked: every field that differs from its default
//! either has an effect or is reported to have none.

use self::Requirement::{CallsTakeTime, Nothing, Os, Thread, WallClock};
use super::plan::LaneCapabilities;
use crate::describe::{LaneSpec, LaneType};

/// How a field is treated.
struct Field {
    name: &'static str,
    is_given: fn(&LaneSpec, &LaneSpec) -> bool,
    /// The reason why the field has no effect on this lane, if so.
    why_not: fn(&LaneSpec) -> Option<&'static str>,
    /// What a run must provide for the field to have an effect.
    needs: Requirement,
}

/// What a run must provide for a field to have an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requirement {
    /// Nothing.
    Nothing,
    /// The lane follows the wall clock.
    WallClock,
    /// Time passes in calls: the lane follows the wall clock, or the run has a model of how long
    /// calls take.
    CallsTakeTime,
    /// The host provides a thread for the lane.
    Thread,
    /// The operating system grants a setting of that thread.
    Os(OsRequest),
}

/// A setting that the operating system is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OsRequest {
    Cpus,
    Niceness,
    Realtime,
}

/// Whether the lane executes its components on a dedicated thread, if the host provides one.
pub(crate) fn has_own_thread(lane: &LaneSpec) -> bool {
    lane.lane_type == LaneType::IsolatedThread || has_own_epoch_domain(lane)
}

/// Whether the lane follows the wall clock and therefore has an epoch domain of its own.
pub(crate) fn has_own_epoch_domain(lane: &LaneSpec) -> bool {
    lane.lane_type == LaneType::FixedRate && lane.wall_clock_enabled
}

fn unless(has_effect: bool, why: &'static str) -> Option<&'static str> {
    if has_effect { None } else { Some(why) }
}

fn fixed_rate_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(lane.lane_type == LaneType::FixedRate, "only a `fixed_rate` lane has ticks")
}

fn pool_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(lane.lane_type == LaneType::ThreadPool, "only a `thread_pool` lane uses it")
}

fn own_thread_only(lane: &LaneSpec) -> Option<&'static str> {
    unless(has_own_thread(lane), "the lane has no dedicated thread")
}

fn never(_: &LaneSpec) -> Option<&'static str> {
    Some("the value only appears in the plan")
}

fn in_a_class(lane: &LaneSpec) -> Option<&'static str> {
    own_thread_only(lane).or_else(|| unless(lane.rt_policy != "none", "`rt_policy` is not set"))
}

fn period(lane: &LaneSpec) -> Option<&'static str> {
    fixed_rate_only(lane).or_else(|| unless(lane.period_ms == 0, "`period_ms` takes precedence"))
}

/// Declares the table: the field of a lane, why it may have no effect, and what it needs.
macro_rules! fields {
    ($( $field:ident: $why_not:expr, $needs:expr; )+) => {
        const FIELDS: &[Field] = &[$( Field {
            name: stringify!($field),
            is_given: |a, b| a.$field != b.$field,
            why_not: $why_not,
            needs: $needs,
        }, )+];
    };
}

fields! {
    hz: period, Nothing;
    period_ms: fixed_rate_only, Nothing;
    tick_budget_ms: fixed_rate_only, CallsTakeTime;
    wall_clock_enabled: fixed_rate_only, WallClock;
    overrun_policy: fixed_rate_only, CallsTakeTime;
    max_threads: pool_only, Nothing;
    queue_capacity: pool_only, Nothing;
    overflow: pool_only, Nothing;
    aging_picks: pool_only, Nothing;
    max_callback_ms: |_| None, Nothing;
    thread_name: own_thread_only, Thread;
    priority: never, Nothing;
    cpu_affinity: own_thread_only, Os(OsRequest::Cpus);
    nice_priority: own_thread_only, Os(OsRequest::Niceness);
    rt_policy: own_thread_only, Os(OsRequest::Realtime);
    rt_priority: in_a_class, Os(OsRequest::Realtime);
    isolation_intent: never, Nothing;
    on_policy_error: own_thread_only, Thread;
}

/// The fields that are set but have no effect, with the reason.
pub(crate) fn advice(lane: &LaneSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    let default = LaneSpec::new("", lane.lane_type);
    FIELDS
        .iter()
        .filter(move |field| (field.is_given)(lane, &default))
        .filter_map(|field| (field.why_not)(lane).map(|why| (field.name, why)))
}

/// The fields that are set and have an effect, if the run provides what they require.
pub(crate) fn effective(lane: &LaneSpec) -> impl Iterator<Item = (&'static str, Requirement)> {
    let default = LaneSpec::new("", lane.lane_type);
    FIELDS
        .iter()
        .filter(move |field| (field.is_given)(lane, &default))
        .filter(|field| (field.why_not)(lane).is_none())
        .map(|field| (field.name, field.needs))
}

/// What the plan says about a lane.
pub(super) fn of(lane: &LaneSpec) -> LaneCapabilities {
    // With every field set, the fields without an effect are those that this lane type never uses.
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

/// What a lane does by default.
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
