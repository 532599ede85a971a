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

/// Declares the table: for each part of the runtime of whom its metrics are, and for each of them
/// its kind, the rest of its name, and what it means. The unit is what the name ends in.
macro_rules! metrics {
    (@stability) => { MetricStability::Stable };
    (@stability reserved) => { MetricStability::Reserved };
    ($(
        $prefix:literal of $scope:ident {
            $( $( [$stability:ident] )? $kind:ident $name:literal: $description:literal; )+
        }
    )+) => {
        /// All metrics of a run, part by part. Histograms of components have names of their own.
        pub static METRICS: &[MetricDescriptor] = &[$( $(
            MetricDescriptor {
                name: concat!($prefix, $name),
                kind: MetricKind::$kind,
                unit: unit_of($name),
                scope: MetricScope::$scope,
                stability: metrics!(@stability $( $stability )?),
                description: $description,
            },
        )+ )+];
    };
}

/// The unit that a name ends in.
const fn unit_of(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'_', b'm', b's'] => "ms",
        [.., b'_', b'n', b's'] => "ns",
        [.., b'_', b'b', b'y', b't', b'e', b's'] => "By",
        _ => "1",
    }
}

metrics! {
    "runtime.scheduler." of Lane {
        Counter "tick_count": "Ticks of a fixed-rate lane.";
        Counter "completed_count": "Calls that have succeeded.";
        Counter "tick_overrun_count": "Ticks that took longer than their budget.";
        Counter "skipped_tick_count": "Ticks that were left out.";
        Counter "rejected_count": "Invocations that a pool lane did not admit.";
        Counter "priority_high_count": "Calls that have succeeded, of components of this priority.";
        Counter "priority_normal_count":
            "Calls that have succeeded, of components of this priority.";
        Counter "priority_low_count": "Calls that have succeeded, of components of this priority.";
        Counter "priority_background_count":
            "Calls that have succeeded, of components of this priority.";
        Counter "low_priority_rejected_count":
            "Invocations that were not admitted, of components of low and background priority.";
        Counter "starvation_guard_count":
            "Regions that went before others of a higher rank because they had waited long. It \
             depends on threads.";
        Gauge "max_lateness_ms": "How late a tick has ended, at most.";
        Gauge "tick_jitter_ms": "By how much the last tick that took too long did so.";
        Gauge "blocked_duration_ms": "How long its domain had nothing to do and slept.";
        Gauge "last_callback_duration_ms":
            "The longest of the last measured calls of its components.";
        Gauge "queue_capacity": "Invocations of a component that may wait on a pool lane.";
        Gauge "queue_depth": "Invocations of a component that waited on a pool lane, at most.";
        Gauge "worker_count": "Calls at once that a pool lane allows.";
        Gauge "active_count":
            "Invocations of a component that a pool lane let go on at once, at most.";
        Gauge "in_flight_count": "Invocations of a component that were active or waited, at most.";
    }
    "runtime.component." of Component {
        Counter "execution_count": "Calls that have succeeded.";
        Counter "error_count": "Calls and tasks that have failed.";
        Counter "budget_overrun_count": "Calls that took longer than `budget_ms`.";
        Counter "cancellation_requested_count":
            "Calls that were under way when the run was to stop.";
        Counter "cancellation_observed_count":
            "Calls that have looked, and seen that the run is to stop.";
        Counter "timeout_budget_exceeded_count":
            "Calls that took longer than `max_callback_ms` of their lane.";
        Gauge "last_duration_ns": "How long the last measured call took.";
        Gauge "max_duration_ns": "How long a measured call took, at most.";
        Gauge "max_in_flight_count": "Invocations that were admitted to go on at once, at most.";
    }
    "runtime.trigger." of Component {
        Counter "ready_count": "Invocations that its trigger has made.";
        Counter "suppressed_count":
            "Looks at a trigger that had something and made no invocation of it.";
        Counter "coalesced_count": "Messages that a newer one has taken the place of.";
        Counter "timeout_drop_count": "Messages older than `max_latency_ms`.";
        Counter "batch_flush_count": "Batches.";
        Counter "time_sync_drop_count": "Messages for which there was no match in time.";
        Counter "late_drop_count": "Messages behind the watermark.";
        Counter "pending_drop_count": "Messages that there was no room for.";
        Counter "condition_suppressed_count": "Messages or looks that a condition has held back.";
        Counter "rate_limit_suppressed_count":
            "Looks that came too soon after the last invocation.";
    }
    "runtime.channel." of Channel {
        Counter "publish_count": "Messages that came to the channel and were not refused.";
        Counter "delivery_count": "Messages that were read.";
        Counter "drop_count": "Messages that were dropped because it was full.";
        Counter "deadline_miss_count": "Messages that were read later than `deadline_ms`.";
        Counter "stale_drop_count": "Messages older than `lifespan_ms`.";
        Counter "reject_count": "Messages that were refused.";
        Counter "overwrite_count":
            "Messages that nobody had read when a newer one took their place.";
        Counter "health_event_count": "Health events.";
        Counter "payload_copy_count": "Payloads that were copied.";
        Gauge "max_depth": "Messages that were in it at once, at most.";
        Gauge "message_age_ms": "How old the last message was that was read.";
    }
    "runtime.publication." of Run {
        Counter "staged": "Messages that were published, one for each edge.";
        Counter "committed": "Messages that became visible.";
        Counter "delayed": "Messages that were published on `delay` edges.";
        Counter "state": "Messages that were published on `state` edges.";
        Counter "state_committed": "Messages that became visible on `state` edges.";
        Counter "async": "Messages that were published on `async` edges.";
        Counter "failed_commit":
            "Messages that a channel refused when they should have become visible.";
        Counter "composite_discarded": "Messages of loops that were thrown away.";
    }
    "runtime.async." of Run {
        Counter "accepted_count": "Messages on `async` edges and tasks that were admitted.";
        Counter "completed_count": "Those that became visible, and tasks that have ended.";
        Counter "rejected_count": "Those that were refused.";
        Counter "dropped_count":
            "Those that were dropped because as many were under way as may be.";
        Counter "overwrite_count": "Those that made room for newer ones.";
        Counter "cancelled_count":
            "Those that were thrown away with the outputs of a loop, or cancelled.";
        Gauge "in_flight_count": "Those that were under way when the run ended.";
        Gauge "max_in_flight_count": "Those that were under way at once, at most.";
    }
    "runtime.health." of Run {
        Counter "event_count": "Health events.";
        Counter "dropped_count": "Records of health events that made room for newer ones.";
        Counter "coalesced_count": "Health events that went into a record which was there already.";
    }
    "runtime.config." of Run {
        Counter "staged_update_count": "Changes of a component's settings that were asked for.";
        Counter "committed_update_count": "Those that are in force.";
        [reserved] Counter "immediate_update_count":
            "Those that did not wait for an epoch: none, all do.";
        Counter "rejected_update_count": "Those that were refused before anything was changed.";
        Counter "rolled_back_update_count": "Those that were taken back.";
        Counter "snapshot_read_count": "How often a component was given its settings.";
        Gauge "version": "Transactions that are in force.";
        Gauge "last_transaction_id": "The number of the last transaction.";
    }
    "runtime.state." of Run {
        Counter "staged_write_count": "Writes to the blackboard.";
        Counter "committed_write_count": "Writes that became visible.";
        Counter "rejected_write_count": "Writes to what another component owns.";
        Counter "snapshot_read_count": "Looks at the blackboard.";
        Gauge "current_value_count": "Values on the blackboard.";
    }
    "runtime.loop." of Loop {
        Counter "iterations": "Iterations in which a member was called.";
        Counter "converged": "Epochs in which it has converged.";
        Counter "budget_overrun": "Epochs in which it took longer than its budget.";
        Counter "max_iterations_hit": "Epochs in which it made as many iterations as it may.";
        Counter "error":
            "Epochs in which a member has ended the run, or it had to converge and has not.";
        Counter "cancellation_requested":
            "Epochs in which it was at work when the run was to stop.";
        Counter "cancellation_observed": "Those in which it has stopped because of it.";
        Counter "output_discarded": "Messages that were thrown away.";
        Gauge "residual": "The last residual that a member has reported.";
    }
    "runtime.lifecycle." of Run {
        Counter "reset_count": "Components that were reset.";
        Counter "reset_failure_count": "Components that could not be.";
        Counter "restore_count": "Components that took a state.";
        Counter "restore_failure_count": "Components that did not take theirs.";
        Counter "snapshot_count": "Components that gave their state.";
        Counter "snapshot_failure_count": "Components that could not.";
        Gauge "snapshot_size_bytes": "The size of all states that were given.";
    }
    "runtime.trace." of Run {
        Counter "event_count": "Trace records that were made.";
    }
    "runtime.observer." of Run {
        Counter "failure_count": "Observers that have failed.";
        Counter "dropped_event_count": "Trace records that there was no room for.";
    }
}
