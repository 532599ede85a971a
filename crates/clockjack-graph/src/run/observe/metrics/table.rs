//! Every metric that a run reports, in one table: what it counts, its unit, and its label.
//!
//! Labels are bounded by construction: a value is the id of a lane, a component, a loop, a chain or
//! an edge of the compiled plan, and nothing else. Ids of messages and epochs are in
//! traces.

use super::MetricKind;
use crate::named::named;

named! {
    /// What a metric describes: its label, and how many values it has.
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
        /// Each chain.
        Chain = "chain",
    }
}

impl MetricScope {
    /// The name of its label.
    #[must_use]
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Self::Run => None,
            Self::Lane => Some("lane"),
            Self::Component | Self::Loop | Self::Chain => Some("component_id"),
            Self::Channel => Some("channel_id"),
        }
    }

    /// How many there are at most.
    #[must_use]
    pub const fn cardinality(self) -> &'static str {
        match self {
            Self::Run => "one per run",
            Self::Lane => "one per lane of the plan",
            Self::Component => "one per component of the plan",
            Self::Channel => "one per edge of the plan",
            Self::Loop => "one per composite loop of the plan",
            Self::Chain => "one per chain of the plan",
        }
    }
}

/// The description of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDescriptor {
    /// Its name, for example `runtime.scheduler.tick_count`.
    pub name: &'static str,
    /// How it changes.
    pub kind: MetricKind,
    /// `1` for a plain number, `ms`, `ns` or `By` for bytes.
    pub unit: &'static str,
    /// What it describes.
    pub scope: MetricScope,
    /// Whether it is always zero: what it counts cannot happen in this version.
    pub is_reserved: bool,
    /// One sentence about it.
    pub description: &'static str,
}

impl MetricDescriptor {
    /// All metrics of a run, part by part. Metrics of components have names of their own.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        PARTS.iter().copied().flatten()
    }

    /// The descriptor of a name.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        Self::all().find(|one| one.name == name)
    }
}

/// Declares the table: for each part of the runtime the scope of its metrics, and for each metric
/// its kind, the rest of its name, and what it means. The unit is what the name ends in. The values
/// of a part are collected in the order of the table.
macro_rules! metrics {
    (@reserved) => { true };
    ($(
        $part:ident: $prefix:literal of $scope:ident {
            $( $( [$reserved:ident] )? $kind:ident $name:literal: $description:literal; )+
        }
    )+) => {
        $(
            pub(in crate::run::observe) static $part: [MetricDescriptor; [$( $name ),+].len()] = [$(
                MetricDescriptor {
                    name: concat!($prefix, $name),
                    kind: MetricKind::$kind,
                    unit: unit_of($name),
                    scope: MetricScope::$scope,
                    is_reserved: false $( || metrics!(@$reserved) )?,
                    description: $description,
                },
            )+];
        )+

        static PARTS: &[&[MetricDescriptor]] = &[$( &$part ),+];
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
    SCHEDULER: "runtime.scheduler." of Lane {
        Counter "tick_count": "Ticks of a fixed-rate lane.";
        Counter "completed_count": "Successful calls.";
        Counter "tick_overrun_count": "Ticks that took longer than their budget.";
        Counter "skipped_tick_count": "Skipped ticks.";
        Counter "rejected_count": "Invocations that a pool lane refused.";
        Counter "priority_high_count": "Successful calls of components of this priority.";
        Counter "priority_normal_count":
            "Successful calls of components of this priority.";
        Counter "priority_low_count": "Successful calls of components of this priority.";
        Counter "priority_background_count":
            "Successful calls of components of this priority.";
        Counter "low_priority_rejected_count":
            "Refused invocations of components of low and background priority.";
        Counter "starvation_guard_count":
            "Regions that ran before others of a higher rank because they had waited for long. It \
             depends on threads.";
    }
    SCHEDULER_TIMES: "runtime.scheduler." of Lane {
        Gauge "max_lateness_ms": "The largest lateness of the end of a tick.";
        Gauge "tick_jitter_ms": "By how much the last overrun exceeded its budget.";
        Gauge "blocked_duration_ms": "How long its domain slept because it had nothing to do.";
        Gauge "last_callback_duration_ms":
            "The longest of the last measured calls of its components.";
    }
    SCHEDULER_LOAD: "runtime.scheduler." of Lane {
        Gauge "queue_capacity": "Invocations of a component that may wait on a pool lane.";
        Gauge "queue_depth": "The most invocations of a component that waited on a pool lane.";
        Gauge "worker_count": "Concurrent calls that a pool lane allows.";
        Gauge "active_count":
            "The most invocations of a component that a pool lane ran concurrently.";
        Gauge "in_flight_count": "The most invocations of a component that were active or waiting.";
    }
    COMPONENT: "runtime.component." of Component {
        Counter "execution_count": "Successful calls.";
        Counter "error_count": "Failed calls and tasks.";
        Counter "budget_overrun_count": "Calls that took longer than `budget_ms`.";
        Counter "cancellation_requested_count":
            "Calls that were running when a stop of the run was requested.";
        Counter "cancellation_observed_count":
            "Calls that observed the request to stop the run.";
        Counter "timeout_budget_exceeded_count":
            "Calls that took longer than `max_callback_ms` of their lane.";
        Gauge "last_duration_ns": "The duration of the last measured call.";
        Gauge "max_duration_ns": "The longest duration of a measured call.";
        Gauge "max_in_flight_count": "The most invocations that were admitted to run concurrently.";
    }
    TRIGGER: "runtime.trigger." of Component {
        Counter "ready_count": "Invocations that its trigger made.";
        Counter "suppressed_count":
            "Evaluations with something pending that made no invocation.";
        Counter "coalesced_count": "Messages that a newer one replaced.";
        Counter "timeout_drop_count": "Messages older than `max_latency_ms`.";
        Counter "batch_flush_count": "Batches.";
        Counter "time_sync_drop_count": "Messages without a match in time.";
        Counter "late_drop_count": "Messages behind the watermark.";
        Counter "pending_drop_count": "Messages that were dropped for lack of room.";
        Counter "condition_suppressed_count":
            "Messages or evaluations that a condition suppressed.";
        Counter "rate_limit_suppressed_count":
            "Evaluations too soon after the last invocation.";
    }
    CHANNEL: "runtime.channel." of Channel {
        Counter "publish_count": "Messages that the channel accepted.";
        Counter "delivery_count": "Messages that were read.";
        Counter "drop_count": "Messages that were dropped because the channel was full.";
        Counter "deadline_miss_count": "Messages that were read later than `deadline_ms`.";
        Counter "stale_drop_count": "Messages older than `lifespan_ms`.";
        Counter "reject_count": "Messages that were refused.";
        Counter "overwrite_count":
            "Unread messages that a newer one replaced.";
        Counter "health_event_count": "Health events.";
        Counter "payload_copy_count": "Payloads that were copied.";
        Counter "silence_count":
            "Times at which no message came for longer than `max_silence_ms`.";
        Gauge "max_depth": "The most messages in the channel at the same time.";
    }
    CHANNEL_AGE: "runtime.channel." of Channel {
        Gauge "message_age_ms": "The age of the last message when it was read.";
    }
    PUBLICATION: "runtime.publication." of Run {
        Counter "staged": "Published messages, one per edge.";
        Counter "committed": "Messages that became visible.";
        Counter "delayed": "Messages that were published on `delay` edges.";
        Counter "state": "Messages that were published on `state` edges.";
        Counter "state_committed": "Messages that became visible on `state` edges.";
        Counter "async": "Messages that were published on `async` edges.";
        Counter "failed_commit":
            "Messages that a channel refused when they should have become visible.";
        Counter "composite_discarded": "Discarded messages of loops.";
    }
    ASYNC: "runtime.async." of Run {
        Counter "accepted_count": "Messages on `async` edges and tasks that were admitted.";
        Counter "completed_count": "Those that became visible, and tasks that have ended.";
        Counter "rejected_count": "Those that were refused.";
        Counter "dropped_count":
            "Those that were dropped because the limit was reached.";
        Counter "overwrite_count": "Those that newer ones evicted.";
        Counter "cancelled_count":
            "Those that were discarded with the outputs of a loop, or cancelled.";
        Gauge "in_flight_count": "Those that were in flight when the run ended.";
        Gauge "max_in_flight_count": "The most that were in flight at the same time.";
    }
    HEALTH: "runtime.health." of Run {
        Counter "event_count": "Health events.";
        Counter "dropped_count": "Records of health events that were dropped for newer ones.";
        Counter "coalesced_count": "Health events that were merged into an existing record.";
    }
    CONFIG: "runtime.config." of Run {
        Counter "staged_update_count": "Requested changes of a component's settings.";
        Counter "committed_update_count": "Those that are in force.";
        [reserved] Counter "immediate_update_count":
            "Changes that did not wait for an epoch: none, all of them wait.";
        Counter "rejected_update_count": "Those that were refused before anything changed.";
        Counter "rolled_back_update_count": "Those that were rolled back.";
        Counter "snapshot_read_count": "How often a component was configured.";
        Gauge "version": "Transactions that are in force.";
        Gauge "last_transaction_id": "The number of the last transaction.";
    }
    STATE: "runtime.state." of Run {
        Counter "staged_write_count": "Writes to the blackboard.";
        Counter "committed_write_count": "Writes that became visible.";
        Counter "rejected_write_count": "Writes to names of other components.";
        Counter "snapshot_read_count": "Reads of the blackboard.";
        Gauge "current_value_count": "Values on the blackboard.";
    }
    LOOP: "runtime.loop." of Loop {
        Counter "iterations": "Iterations in which a member was called.";
        Counter "converged": "Epochs in which it converged.";
        Counter "budget_overrun": "Epochs in which it took longer than its budget.";
        Counter "max_iterations_hit":
            "Epochs in which it reached its largest number of iterations.";
        Counter "error":
            "Epochs in which a member ended the run, or the loop had to converge and did not.";
        Counter "cancellation_requested":
            "Epochs in which it was running when a stop of the run was requested.";
        Counter "cancellation_observed": "Epochs in which it stopped because of that request.";
        Counter "output_discarded": "Discarded messages.";
    }
    LOOP_RESIDUAL: "runtime.loop." of Loop {
        Gauge "residual": "The last residual that a member reported.";
    }
    CHAIN: "runtime.chain." of Chain {
        Counter "sample_count": "Calls at the end of the chain that its data reached.";
        Counter "violation_count": "Those of them that took longer than the budget.";
    }
    CHAIN_LATENCY: "runtime.chain." of Chain {
        Gauge "latency_p50_ms": "The median of the newest latencies.";
        Gauge "latency_p99_ms": "The 99th percentile of the newest latencies.";
        Gauge "latency_max_ms": "The longest latency.";
    }
    LIFECYCLE: "runtime.lifecycle." of Run {
        Counter "reset_count": "Components that were reset.";
        Counter "reset_failure_count": "Components that could not be reset.";
        Counter "restore_count": "Components that were restored from a snapshot.";
        Counter "restore_failure_count": "Components that could not be restored.";
        Counter "snapshot_count": "Components that made a snapshot.";
        Counter "snapshot_failure_count": "Components that could not make a snapshot.";
        Gauge "snapshot_size_bytes": "The size of all snapshots.";
    }
    OBSERVATION: "runtime." of Run {
        Counter "trace.event_count": "Trace records.";
        Counter "observer.failure_count": "Failed calls of observers.";
        Counter "observer.dropped_event_count": "Dropped trace records and observations.";
    }
}
