//! Every metric that a run reports, in one table: what it counts, in what unit, and of whom.
//!
//! Labels are bounded by construction: a value is the id of a lane, a component, a loop or an edge
//! of the compiled plan, and nothing else is ever put into one. Ids of messages and epochs are in
//! traces.

use super::MetricKind;
use crate::named::named;

named! {
    /// Of whom a metric is: its label, and how many of it there are.
    pub enum MetricScope {
        /// The run: one, without a label.
        Run = "run",
        /// Each lane.
        Lane = "lane",
        /// Each component.
        Component = "component",
        /// Each edge.
        Channel = "channel",
        /// Each composite loop.
        Loop = "loop",
    }
}

impl MetricScope {
    /// The name of its label.
    #[must_use]
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::Run => None,
            Self::Lane => Some("lane"),
            Self::Component | Self::Loop => Some("component_id"),
            Self::Channel => Some("channel_id"),
        }
    }

    /// How many there are at most.
    #[must_use]
    pub const fn cardinality(self) -> &'static str {
        match self {
            Self::Run => "one for a run",
            Self::Lane => "one for each lane of the plan",
            Self::Component => "one for each component of the plan",
            Self::Channel => "one for each edge of the plan",
            Self::Loop => "one for each composite loop of the plan",
        }
    }
}

named! {
    /// How far one may rely on a metric.
    pub enum MetricStability {
        /// Its name and its meaning stay.
        Stable = "stable",
        /// Its name stays; what it counts cannot happen in this version.
        Reserved = "reserved",
    }
}

/// What a metric tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDescriptor {
    /// Its name, as `runtime.scheduler.tick_count`.
    pub name: &'static str,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// `1` for a plain number, `ms`, `ns` or `By` for bytes.
    pub unit: &'static str,
    /// Of whom it is.
    pub scope: MetricScope,
    /// How far one may rely on it.
    pub stability: MetricStability,
    /// One sentence about it.
    pub description: &'static str,
}

impl MetricDescriptor {
    /// That of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|one| one.name == name)
    }
}

use MetricKind::{Counter, Gauge};
use MetricScope::{Channel, Component, Lane, Loop, Run};

const fn row(
    name: &'static str,
    kind: MetricKind,
    unit: &'static str,
    scope: MetricScope,
    description: &'static str,
) -> MetricDescriptor {
    let stability = MetricStability::Stable;
    MetricDescriptor { name, kind, unit, scope, stability, description }
}

const fn reserved(one: MetricDescriptor) -> MetricDescriptor {
    MetricDescriptor { stability: MetricStability::Reserved, ..one }
}

/// All metrics of a run, part by part. Histograms of components have names of their own.
#[rustfmt::skip]
pub static METRICS: &[MetricDescriptor] = &[
    row("runtime.scheduler.tick_count", Counter, "1", Lane, "Ticks of a fixed-rate lane."),
    row("runtime.scheduler.completed_count", Counter, "1", Lane, "Calls that have succeeded."),
    row("runtime.scheduler.tick_overrun_count", Counter, "1", Lane, "Ticks that took longer than their budget."),
    row("runtime.scheduler.skipped_tick_count", Counter, "1", Lane, "Ticks that were left out."),
    row("runtime.scheduler.rejected_count", Counter, "1", Lane, "Invocations that a pool lane did not admit."),
    row("runtime.scheduler.priority_high_count", Counter, "1", Lane, "Calls that have succeeded, of components of this priority."),
    row("runtime.scheduler.priority_normal_count", Counter, "1", Lane, "Calls that have succeeded, of components of this priority."),
    row("runtime.scheduler.priority_low_count", Counter, "1", Lane, "Calls that have succeeded, of components of this priority."),
    row("runtime.scheduler.priority_background_count", Counter, "1", Lane, "Calls that have succeeded, of components of this priority."),
    row("runtime.scheduler.low_priority_rejected_count", Counter, "1", Lane, "Invocations that were not admitted, of components of low and background priority."),
    row("runtime.scheduler.starvation_guard_count", Counter, "1", Lane, "Regions that went before others of a higher rank because they had waited long. It depends on threads."),
    row("runtime.scheduler.max_lateness_ms", Gauge, "ms", Lane, "How late a tick has ended, at most."),
    row("runtime.scheduler.tick_jitter_ms", Gauge, "ms", Lane, "By how much the last tick that took too long did so."),
    row("runtime.scheduler.blocked_duration_ms", Gauge, "ms", Lane, "How long its domain had nothing to do and slept."),
    row("runtime.scheduler.last_callback_duration_ms", Gauge, "ms", Lane, "The longest of the last measured calls of its components."),
    row("runtime.scheduler.queue_capacity", Gauge, "1", Lane, "Invocations of a component that may wait on a pool lane."),
    row("runtime.scheduler.queue_depth", Gauge, "1", Lane, "Invocations of a component that waited on a pool lane, at most."),
    row("runtime.scheduler.worker_count", Gauge, "1", Lane, "Calls at once that a pool lane allows."),
    row("runtime.scheduler.active_count", Gauge, "1", Lane, "Invocations of a component that a pool lane let go on at once, at most."),
    row("runtime.scheduler.in_flight_count", Gauge, "1", Lane, "Invocations of a component that were active or waited, at most."),
    row("runtime.component.execution_count", Counter, "1", Component, "Calls that have succeeded."),
    row("runtime.component.error_count", Counter, "1", Component, "Calls and tasks that have failed."),
    row("runtime.component.budget_overrun_count", Counter, "1", Component, "Calls that took longer than `budget_ms`."),
    row("runtime.component.cancellation_requested_count", Counter, "1", Component, "Calls that were under way when the run was to stop."),
    row("runtime.component.cancellation_observed_count", Counter, "1", Component, "Calls that have looked, and seen that the run is to stop."),
    row("runtime.component.timeout_budget_exceeded_count", Counter, "1", Component, "Calls that took longer than `max_callback_ms` of their lane."),
    row("runtime.component.last_duration_ns", Gauge, "ns", Component, "How long the last measured call took."),
    row("runtime.component.max_duration_ns", Gauge, "ns", Component, "How long a measured call took, at most."),
    row("runtime.component.max_in_flight_count", Gauge, "1", Component, "Invocations that were admitted to go on at once, at most."),
    row("runtime.trigger.ready_count", Counter, "1", Component, "Invocations that its trigger has made."),
    row("runtime.trigger.suppressed_count", Counter, "1", Component, "Looks at a trigger that had something and made no invocation of it."),
    row("runtime.trigger.coalesced_count", Counter, "1", Component, "Messages that a newer one has taken the place of."),
    row("runtime.trigger.timeout_drop_count", Counter, "1", Component, "Messages older than `max_latency_ms`."),
    row("runtime.trigger.batch_flush_count", Counter, "1", Component, "Batches."),
    row("runtime.trigger.time_sync_drop_count", Counter, "1", Component, "Messages for which there was no match in time."),
    row("runtime.trigger.late_drop_count", Counter, "1", Component, "Messages behind the watermark."),
    row("runtime.trigger.pending_drop_count", Counter, "1", Component, "Messages that there was no room for."),
    row("runtime.trigger.condition_suppressed_count", Counter, "1", Component, "Messages or looks that a condition has held back."),
    row("runtime.trigger.rate_limit_suppressed_count", Counter, "1", Component, "Looks that came too soon after the last invocation."),
    row("runtime.channel.publish_count", Counter, "1", Channel, "Messages that came to the channel and were not refused."),
    row("runtime.channel.delivery_count", Counter, "1", Channel, "Messages that were read."),
    row("runtime.channel.drop_count", Counter, "1", Channel, "Messages that were dropped because it was full."),
    row("runtime.channel.deadline_miss_count", Counter, "1", Channel, "Messages that were read later than `deadline_ms`."),
    row("runtime.channel.stale_drop_count", Counter, "1", Channel, "Messages older than `lifespan_ms`."),
    row("runtime.channel.reject_count", Counter, "1", Channel, "Messages that were refused."),
    row("runtime.channel.overwrite_count", Counter, "1", Channel, "Messages that nobody had read when a newer one took their place."),
    row("runtime.channel.health_event_count", Counter, "1", Channel, "Health events."),
    row("runtime.channel.payload_copy_count", Counter, "1", Channel, "Payloads that were copied."),
    row("runtime.channel.max_depth", Gauge, "1", Channel, "Messages that were in it at once, at most."),
    row("runtime.channel.message_age_ms", Gauge, "ms", Channel, "How old the last message was that was read."),
    row("runtime.publication.staged", Counter, "1", Run, "Messages that were published, one for each edge."),
    row("runtime.publication.committed", Counter, "1", Run, "Messages that became visible."),
    row("runtime.publication.delayed", Counter, "1", Run, "Messages that were published on `delay` edges."),
    row("runtime.publication.state", Counter, "1", Run, "Messages that were published on `state` edges."),
    row("runtime.publication.state_committed", Counter, "1", Run, "Messages that became visible on `state` edges."),
    row("runtime.publication.async", Counter, "1", Run, "Messages that were published on `async` edges."),
    row("runtime.publication.failed_commit", Counter, "1", Run, "Messages that a channel refused when they should have become visible."),
    row("runtime.publication.composite_discarded", Counter, "1", Run, "Messages of loops that were thrown away."),
    row("runtime.async.accepted_count", Counter, "1", Run, "Messages on `async` edges and tasks that were admitted."),
    row("runtime.async.completed_count", Counter, "1", Run, "Those that became visible, and tasks that have ended."),
    row("runtime.async.rejected_count", Counter, "1", Run, "Those that were refused."),
    row("runtime.async.dropped_count", Counter, "1", Run, "Those that were dropped because as many were under way as may be."),
    row("runtime.async.overwrite_count", Counter, "1", Run, "Those that made room for newer ones."),
    row("runtime.async.cancelled_count", Counter, "1", Run, "Those that were thrown away with the outputs of a loop, or cancelled."),
    row("runtime.async.in_flight_count", Gauge, "1", Run, "Those that were under way when the run ended."),
    row("runtime.async.max_in_flight_count", Gauge, "1", Run, "Those that were under way at once, at most."),
    row("runtime.health.event_count", Counter, "1", Run, "Health events."),
    row("runtime.health.dropped_count", Counter, "1", Run, "Records of health events that made room for newer ones."),
    row("runtime.health.coalesced_count", Counter, "1", Run, "Health events that went into a record which was there already."),
    row("runtime.config.staged_update_count", Counter, "1", Run, "Changes of a component's settings that were asked for."),
    row("runtime.config.committed_update_count", Counter, "1", Run, "Those that are in force."),
    reserved(row("runtime.config.immediate_update_count", Counter, "1", Run, "Those that did not wait for an epoch: none, all do.")),
    row("runtime.config.rejected_update_count", Counter, "1", Run, "Those that were refused before anything was changed."),
    row("runtime.config.rolled_back_update_count", Counter, "1", Run, "Those that were taken back."),
    row("runtime.config.snapshot_read_count", Counter, "1", Run, "How often a component was given its settings."),
    row("runtime.config.version", Gauge, "1", Run, "Transactions that are in force."),
    row("runtime.config.last_transaction_id", Gauge, "1", Run, "The number of the last transaction."),
    row("runtime.state.staged_write_count", Counter, "1", Run, "Writes to the blackboard."),
    row("runtime.state.committed_write_count", Counter, "1", Run, "Writes that became visible."),
    row("runtime.state.rejected_write_count", Counter, "1", Run, "Writes to what another component owns."),
    row("runtime.state.snapshot_read_count", Counter, "1", Run, "Looks at the blackboard."),
    row("runtime.state.current_value_count", Gauge, "1", Run, "Values on the blackboard."),
    row("runtime.loop.iterations", Counter, "1", Loop, "Iterations in which a member was called."),
    row("runtime.loop.converged", Counter, "1", Loop, "Epochs in which it has converged."),
    row("runtime.loop.budget_overrun", Counter, "1", Loop, "Epochs in which it took longer than its budget."),
    row("runtime.loop.max_iterations_hit", Counter, "1", Loop, "Epochs in which it made as many iterations as it may."),
    row("runtime.loop.error", Counter, "1", Loop, "Epochs in which a member has ended the run, or it had to converge and has not."),
    row("runtime.loop.cancellation_requested", Counter, "1", Loop, "Epochs in which it was at work when the run was to stop."),
    row("runtime.loop.cancellation_observed", Counter, "1", Loop, "Those in which it has stopped because of it."),
    row("runtime.loop.output_discarded", Counter, "1", Loop, "Messages that were thrown away."),
    row("runtime.loop.residual", Gauge, "1", Loop, "The last residual that a member has reported."),
    row("runtime.lifecycle.reset_count", Counter, "1", Run, "Components that were reset."),
    row("runtime.lifecycle.reset_failure_count", Counter, "1", Run, "Components that could not be."),
    row("runtime.lifecycle.restore_count", Counter, "1", Run, "Components that took a state."),
    row("runtime.lifecycle.restore_failure_count", Counter, "1", Run, "Components that did not take theirs."),
    row("runtime.lifecycle.snapshot_count", Counter, "1", Run, "Components that gave their state."),
    row("runtime.lifecycle.snapshot_failure_count", Counter, "1", Run, "Components that could not."),
    row("runtime.lifecycle.snapshot_size_bytes", Gauge, "By", Run, "The size of all states that were given."),
    row("runtime.trace.event_count", Counter, "1", Run, "Trace records that were made."),
    row("runtime.observer.failure_count", Counter, "1", Run, "Observers that have failed."),
    row("runtime.observer.dropped_event_count", Counter, "1", Run, "Trace records that there was no room for."),
];
