//! Collects the metrics of a run.

use super::metrics::{Metric, MetricKind, Metrics, UserMetric};
use crate::{
    describe::{EdgeKind, LaneType, Overflow, Priority},
    run::{
        engine::{domain::Domain, epoch::RegionCell, region},
        flow::{blackboard::StateCounts, reconfigure::ConfigCounts},
        setup::{shared::RunShared, wiring::OUTSIDE},
    },
};

/// `runtime.lifecycle.*`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LifecycleCounts {
    pub(crate) resets: u64,
    pub(crate) reset_failures: u64,
    pub(crate) restores: u64,
    pub(crate) restore_failures: u64,
    pub(crate) snapshots: u64,
    pub(crate) snapshot_failures: u64,
    pub(crate) snapshot_bytes: u64,
}

/// A list of metrics.
struct List(Vec<Metric>);

/// What a metric describes.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Run,
    Lane(&'a str),
    Component(&'a str),
    Channel(&'a str),
}

impl List {
    fn add(&mut self, kind: MetricKind, name: &'static str, of: Subject<'_>, value: f64) {
        let label = match of {
            Subject::Run => None,
            Subject::Lane(id) => Some(("lane", String::from(id))),
            Subject::Component(id) => Some(("component_id", String::from(id))),
            Subject::Channel(id) => Some(("channel_id", String::from(id))),
        };
        self.0.push(Metric { name, kind, label, value });
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    fn counters(&mut self, of: Subject<'_>, list: &[(&'static str, u64)]) {
        for (name, value) in list {
            self.add(MetricKind::Counter, name, of, *value as f64);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    fn gauges(&mut self, of: Subject<'_>, list: &[(&'static str, u64)]) {
        for (name, value) in list {
            self.add(MetricKind::Gauge, name, of, *value as f64);
        }
    }
}

/// All metrics of a run.
pub(crate) fn collect(
    shared: &RunShared,
    domains: &[Domain],
    lifecycle: &LifecycleCounts,
) -> Metrics {
    let mut list = List(Vec::new());
    lanes(&mut list, shared, domains);
    components(&mut list, domains);
    channels(&mut list, shared, domains);
    publications(&mut list, domains);
    asynchronous(&mut list, shared, domains);
    config_and_state(&mut list, domains);
    loops(&mut list, domains);
    lifecycle_counts(&mut list, lifecycle);
    observation_counts(&mut list, domains);
    let mut user = shared.user.collect(&shared.plan);
    restarts(&mut user, domains);
    Metrics { list: list.0, user }
}

/// The metrics of a run that did not start.
pub(crate) fn collect_set_up(lifecycle: &LifecycleCounts) -> Metrics {
    let mut list = List(Vec::new());
    lifecycle_counts(&mut list, lifecycle);
    Metrics { list: list.0, user: Vec::new() }
}

/// The number of restarts of each component that was restarted.
fn restarts(list: &mut Vec<UserMetric>, domains: &[Domain]) {
    for region in domains.iter().flat_map(|domain| &domain.state.regions) {
        let region = region.lock();
        for node in region.nodes.iter().filter(|node| node.counts.restarts > 0) {
            #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
            let value = node.counts.restarts as f64;
            let name = String::from("runtime.component.restart_count");
            let (kind, component) = (MetricKind::Counter, String::from(&*node.id));
            list.push(UserMetric { name, kind, component, value });
        }
    }
}

fn lanes(list: &mut List, shared: &RunShared, domains: &[Domain]) {
    for domain in domains {
        for lane in &domain.lanes.list {
            let spec = &shared.plan.lanes[lane.lane].spec;
            let of = Subject::Lane(&spec.id);
            let mut by_priority = [0_u64; 4];
            let n_starved = domain.progress.n_starvations.get(lane.lane).copied().unwrap_or(0);
            let (mut rejected, mut low_rejected, mut last_ns) = (0, 0, 0);
            let (mut active, mut queued, mut in_flight) = (0, 0, 0);
            for region in domain
                .state
                .regions
                .iter()
                .map(RegionCell::lock)
                .filter(|one| one.lane == lane.lane)
            {
                for node in &region.nodes {
                    by_priority[usize::from(node.priority.rank())] += node.counts.executions;
                    rejected += node.counts.rejected;
                    if matches!(node.priority, Priority::Low | Priority::Background) {
                        low_rejected += node.counts.rejected;
                    }
                    let (n_active, n_queued) = (node.counts.in_flight_max, node.counts.queued_max);
                    active = active.max(n_active);
                    queued = queued.max(n_queued);
                    // If some wait, the largest allowed number is active.
                    in_flight = in_flight.max(n_active + n_queued);
                    last_ns = last_ns.max(node.counts.last_ns);
                }
            }
            let is_pool = spec.lane_type == LaneType::ThreadPool;
            let capacity = if is_pool { u64::from(spec.queue_capacity) } else { 0 };
            list.counters(
                of,
                &[
                    ("runtime.scheduler.tick_count", lane.counts.ticks),
                    ("runtime.scheduler.completed_count", by_priority.iter().sum()),
                    ("runtime.scheduler.tick_overrun_count", lane.counts.overruns),
                    ("runtime.scheduler.skipped_tick_count", lane.counts.skipped),
                    ("runtime.scheduler.rejected_count", rejected),
                    ("runtime.scheduler.priority_high_count", by_priority[3]),
                    ("runtime.scheduler.priority_normal_count", by_priority[2]),
                    ("runtime.scheduler.priority_low_count", by_priority[1]),
                    ("runtime.scheduler.priority_background_count", by_priority[0]),
                    ("runtime.scheduler.low_priority_rejected_count", low_rejected),
                    ("runtime.scheduler.starvation_guard_count", n_starved),
                ],
            );
            list.gauges(
                of,
                &[
                    ("runtime.scheduler.max_lateness_ms", lane.counts.lateness_max_ns / 1_000_000),
                    ("runtime.scheduler.tick_jitter_ms", lane.counts.jitter_ns / 1_000_000),
                    (
                        "runtime.scheduler.blocked_duration_ms",
                        domain.progress.blocked_ns / 1_000_000,
                    ),
                    ("runtime.scheduler.last_callback_duration_ms", last_ns / 1_000_000),
                    ("runtime.scheduler.queue_capacity", capacity),
                    ("runtime.scheduler.queue_depth", queued),
                    (
                        "runtime.scheduler.worker_count",
                        if is_pool { spec.max_threads.max(1).into() } else { 0 },
                    ),
                    ("runtime.scheduler.active_count", active),
                    ("runtime.scheduler.in_flight_count", in_flight),
                ],
            );
        }
    }
}

fn components(list: &mut List, domains: &[Domain]) {
    for region in domains.iter().flat_map(|domain| &domain.state.regions) {
        for node in &region.lock().nodes {
            let (of, counts) = (Subject::Component(&node.id), &node.counts);
            let n_called = counts.executions + counts.errors;
            list.counters(
                of,
                &[
                    ("runtime.component.execution_count", counts.executions),
                    ("runtime.component.error_count", counts.errors),
                    ("runtime.component.budget_overrun_count", counts.budget_overruns),
                    ("runtime.component.cancellation_requested_count", counts.cancel_requested),
                    ("runtime.component.cancellation_observed_count", counts.cancel_observed),
                    ("runtime.component.timeout_budget_exceeded_count", counts.callback_overruns),
                ],
            );
            list.gauges(
                of,
                &[
                    ("runtime.component.last_duration_ns", counts.last_ns),
                    ("runtime.component.max_duration_ns", counts.max_ns),
                    (
                        "runtime.component.max_in_flight_count",
                        counts.in_flight_max.max(n_called.min(1)),
                    ),
                ],
            );
            let counts = node.trigger.counters();
            list.counters(
                of,
                &[
                    ("runtime.trigger.ready_count", counts.ready_count),
                    ("runtime.trigger.suppressed_count", counts.suppressed_count),
                    ("runtime.trigger.coalesced_count", counts.coalesced_count),
                    ("runtime.trigger.timeout_drop_count", counts.timeout_drop_count),
                    ("runtime.trigger.batch_flush_count", counts.batch_flush_count),
                    ("runtime.trigger.time_sync_drop_count", counts.time_sync_drop_count),
                    ("runtime.trigger.late_drop_count", counts.late_drop_count),
                    ("runtime.trigger.pending_drop_count", counts.pending_drop_count),
                    (
                        "runtime.trigger.condition_suppressed_count",
                        counts.condition_suppressed_count,
                    ),
                    (
                        "runtime.trigger.rate_limit_suppressed_count",
                        counts.rate_limit_suppressed_count,
                    ),
                ],
            );
        }
    }
}

fn channels(list: &mut List, shared: &RunShared, domains: &[Domain]) {
    // A publication that the outbox refused never reached its channel.
    let mut refused = vec![0_u64; shared.plan.edges.len()];
    for region in domains.iter().flat_map(|domain| &domain.state.regions) {
        for edge in region.lock().nodes.iter().flat_map(|node| node.outbox.edges()) {
            refused[edge.edge as usize] += edge.n_refused;
        }
    }
    for region in domains.iter().flat_map(|domain| &domain.state.regions) {
        for channel in &region.lock().channels {
            let edge = &shared.plan.edges[channel.edge() as usize];
            let (of, counts) = (Subject::Channel(&edge.id), channel.counters());
            if edge.from.0 == OUTSIDE && counts.publish_count == 0 {
                // An edge that only exists for feeds, and that no feed used.
                continue;
            }
            let refused = refused[channel.edge() as usize];
            // Counted as the channel would have done.
            let (dropped, rejected) = match edge.policy.overflow {
                Overflow::DropNewest => (refused, 0),
                _ => (0, refused),
            };
            list.counters(
                of,
                &[
                    ("runtime.channel.publish_count", counts.publish_count + dropped),
                    ("runtime.channel.delivery_count", counts.delivery_count),
                    ("runtime.channel.drop_count", counts.drop_count + dropped),
                    ("runtime.channel.deadline_miss_count", counts.deadline_miss_count),
                    ("runtime.channel.stale_drop_count", counts.stale_drop_count),
                    ("runtime.channel.reject_count", counts.reject_count + rejected),
                    ("runtime.channel.overwrite_count", counts.overwrite_count),
                    ("runtime.channel.health_event_count", counts.health_event_count),
                    ("runtime.channel.payload_copy_count", counts.payload_copy_count),
                ],
            );
            list.gauges(
                of,
                &[
                    ("runtime.channel.max_depth", counts.max_depth.into()),
                    ("runtime.channel.message_age_ms", counts.message_age_ms()),
                ],
            );
        }
    }
}

fn publications(list: &mut List, domains: &[Domain]) {
    let mut sum = region::PublicationCounts::default();
    for domain in domains {
        for region in domain.state.regions.iter().map(RegionCell::lock) {
            let one = &region.n_published;
            sum.staged += one.staged + one.fast;
            sum.committed += one.committed + one.fast;
            sum.delayed += one.delayed;
            sum.state += one.state;
            sum.state_committed += one.state_committed;
            sum.asynchronous += one.asynchronous;
            sum.failed_commit += one.failed_commit;
            sum.composite_discarded += one.composite_discarded;
        }
    }
    list.counters(
        Subject::Run,
        &[
            ("runtime.publication.staged", sum.staged),
            ("runtime.publication.committed", sum.committed),
            ("runtime.publication.delayed", sum.delayed),
            ("runtime.publication.state", sum.state),
            ("runtime.publication.state_committed", sum.state_committed),
            ("runtime.publication.async", sum.asynchronous),
            ("runtime.publication.failed_commit", sum.failed_commit),
            ("runtime.publication.composite_discarded", sum.composite_discarded),
        ],
    );
}

/// What is in flight between epochs: messages on `async` edges, and tasks. Each admitted one is
/// counted once: `accepted = completed + overwrite + cancelled + in flight`.
fn asynchronous(list: &mut List, shared: &RunShared, domains: &[Domain]) {
    let (mut accepted, mut completed, mut rejected, mut dropped) = (0, 0, 0, 0);
    let (mut evicted, mut cancelled, mut most) = (0, 0, 0);
    for domain in domains {
        let progress = &domain.progress;
        accepted += progress.n_tasks;
        // Tasks that ended after the last epoch are completed, too, although no component sees
        // their results.
        completed += progress.n_tasks_completed + progress.tasks_at_end.unseen;
        cancelled += progress.tasks_at_end.cancelled;
        rejected += domain.state.env.tasks.n_rejected();
        evicted += progress.n_async_evicted;
        most += progress.async_max;
        for region in domain.state.regions.iter().map(RegionCell::lock) {
            let counts = &region.n_published;
            accepted += counts.asynchronous;
            completed += counts.async_committed;
            cancelled += counts.async_discarded;
            for edge in region.nodes.iter().flat_map(|node| node.outbox.edges()) {
                match shared.plan.edges[edge.edge as usize].kind {
                    EdgeKind::Async if edge.overflow == Overflow::DropNewest => {
                        dropped += edge.n_refused;
                    }
                    EdgeKind::Async => rejected += edge.n_refused,
                    _ => {}
                }
            }
        }
    }
    list.counters(
        Subject::Run,
        &[
            ("runtime.async.accepted_count", accepted),
            ("runtime.async.completed_count", completed),
            ("runtime.async.rejected_count", rejected),
            ("runtime.async.dropped_count", dropped),
            ("runtime.async.overwrite_count", evicted),
            ("runtime.async.cancelled_count", cancelled),
        ],
    );
    let in_flight = accepted.saturating_sub(completed + evicted + cancelled);
    list.gauges(
        Subject::Run,
        &[
            ("runtime.async.in_flight_count", in_flight),
            ("runtime.async.max_in_flight_count", most.max(in_flight)),
        ],
    );
}

fn config_and_state(list: &mut List, domains: &[Domain]) {
    let mut health = super::health::HealthCounters::default();
    for domain in domains {
        let counts = domain.progress.health.counters();
        health.event_count += counts.event_count;
        health.dropped_count += counts.dropped_count;
        health.coalesced_count += counts.coalesced_count;
    }
    list.counters(
        Subject::Run,
        &[
            ("runtime.health.event_count", health.event_count),
            ("runtime.health.dropped_count", health.dropped_count),
            ("runtime.health.coalesced_count", health.coalesced_count),
        ],
    );
    let mut config = ConfigCounts::default();
    let mut state = StateCounts::default();
    for progress in domains.iter().map(|domain| &domain.progress) {
        config.version += progress.config.version;
        config.transaction += progress.config.transaction;
        config.staged += progress.config.staged;
        config.committed += progress.config.committed;
        config.rejected += progress.config.rejected;
        config.rolled_back += progress.config.rolled_back;
        state.committed += progress.state.committed;
        state.rejected += progress.state.rejected;
    }
    let (mut n_config_reads, mut n_state_reads) = (0, 0);
    for state in domains.iter().map(|domain| &domain.state) {
        n_state_reads += state.env.n_state_reads();
        for region in state.regions.iter().map(RegionCell::lock) {
            n_config_reads += region.nodes.iter().map(|node| node.counts.config_reads).sum::<u64>();
        }
    }
    let n_values = domains.iter().map(|domain| domain.state.env.blackboard.len() as u64).sum();
    list.counters(
        Subject::Run,
        &[
            ("runtime.config.staged_update_count", config.staged),
            ("runtime.config.committed_update_count", config.committed),
            ("runtime.config.immediate_update_count", 0),
            ("runtime.config.rejected_update_count", config.rejected),
            ("runtime.config.rolled_back_update_count", config.rolled_back),
            ("runtime.config.snapshot_read_count", n_config_reads),
            ("runtime.state.staged_write_count", state.committed + state.rejected),
            ("runtime.state.committed_write_count", state.committed),
            ("runtime.state.rejected_write_count", state.rejected),
            ("runtime.state.snapshot_read_count", n_state_reads),
        ],
    );
    list.gauges(
        Subject::Run,
        &[
            ("runtime.config.version", config.version),
            ("runtime.config.last_transaction_id", config.transaction),
            ("runtime.state.current_value_count", n_values),
        ],
    );
}

fn loops(list: &mut List, domains: &[Domain]) {
    for region in domains.iter().flat_map(|domain| &domain.state.regions) {
        let region = region.lock();
        let Some(looping) = &region.looping else { continue };
        let (of, counts) = (Subject::Component(&looping.id), &looping.counts);
        list.counters(
            of,
            &[
                ("runtime.loop.iterations", counts.iterations),
                ("runtime.loop.converged", counts.converged),
                ("runtime.loop.budget_overrun", counts.budget_overrun),
                ("runtime.loop.max_iterations_hit", counts.max_iterations_hit),
                ("runtime.loop.error", counts.error),
                ("runtime.loop.cancellation_requested", counts.cancel_requested),
                ("runtime.loop.cancellation_observed", counts.cancel_requested),
                ("runtime.loop.output_discarded", counts.output_discarded),
            ],
        );
        let residual = counts.residual.unwrap_or(0.0);
        list.add(MetricKind::Gauge, "runtime.loop.residual", of, residual);
    }
}

fn lifecycle_counts(list: &mut List, counts: &LifecycleCounts) {
    list.counters(
        Subject::Run,
        &[
            ("runtime.lifecycle.reset_count", counts.resets),
            ("runtime.lifecycle.reset_failure_count", counts.reset_failures),
            ("runtime.lifecycle.restore_count", counts.restores),
            ("runtime.lifecycle.restore_failure_count", counts.restore_failures),
            ("runtime.lifecycle.snapshot_count", counts.snapshots),
            ("runtime.lifecycle.snapshot_failure_count", counts.snapshot_failures),
        ],
    );
    list.gauges(Subject::Run, &[("runtime.lifecycle.snapshot_size_bytes", counts.snapshot_bytes)]);
}

fn observation_counts(list: &mut List, domains: &[Domain]) {
    let n_events = domains.iter().map(|domain| domain.progress.n_trace_events).sum();
    // All domains write to one log.
    let log = domains.first().and_then(|domain| domain.trace.as_ref());
    let n_dropped = log.map_or(0, super::sinks::TraceLog::n_dropped);
    list.counters(
        Subject::Run,
        &[
            ("runtime.trace.event_count", n_events),
            ("runtime.observer.failure_count", 0),
            ("runtime.observer.dropped_event_count", n_dropped),
        ],
    );
}
