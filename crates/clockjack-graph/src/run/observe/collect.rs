//! Collects the metrics of a run.

use core::time::Duration;
use std::sync::MutexGuard;

use super::{
    metrics::{
        HistogramSummary, Metric, MetricDescriptor, MetricKind, Metrics,
        table::{
            ASYNC, CHAIN, CHAIN_LATENCY, CHANNEL, CHANNEL_AGE, COMPONENT, CONFIG, HEALTH,
            LIFECYCLE, LOOP, LOOP_RESIDUAL, OBSERVATION, PUBLICATION, SCHEDULER, SCHEDULER_LOAD,
            SCHEDULER_TIMES, STATE, TRIGGER,
        },
    },
    report::{ChainReport, SilentInput},
};
use crate::{
    compile::{Plan, PlanChain},
    describe::{ComponentPriority, EdgeKind, EdgeOverflow, LaneType},
    lock::lock,
    run::{
        engine::{
            domain::{Domain, silence::WatchedInput},
            epoch::RegionCell,
            region::{PublicationCounts, Region},
        },
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

impl List {
    /// Adds the values of one part of the table, in the order of the table, for the lane,
    /// component, loop or edge `of`.
    #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
    fn add<const N: usize>(
        &mut self,
        part: &'static [MetricDescriptor; N],
        of: &str,
        values: [u64; N],
    ) {
        self.add_f64(part, of, values.map(|value| value as f64));
    }

    fn add_f64<const N: usize>(
        &mut self,
        part: &'static [MetricDescriptor; N],
        of: &str,
        values: [f64; N],
    ) {
        for (MetricDescriptor { name, kind, scope, .. }, value) in part.iter().zip(values) {
            let label = scope.label().map(|label| (label, String::from(of)));
            self.0.push(Metric { name: (*name).into(), kind: *kind, label, value });
        }
    }
}

/// Nanoseconds as milliseconds, with their fraction.
#[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// The subject of the metrics of the whole run, which have no label.
const RUN: &str = "";

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
    chains(&mut list, &shared.plan, domains);
    lifecycle_counts(&mut list, lifecycle);
    observation_counts(&mut list, domains);
    let mut user = shared.user.collect(&shared.plan);
    restarts(&mut user, domains);
    call_times(&mut user, domains);
    Metrics { list: list.0, user }
}

/// The metrics of a run that did not start.
pub(crate) fn collect_set_up(lifecycle: &LifecycleCounts) -> Metrics {
    let mut list = List(Vec::new());
    lifecycle_counts(&mut list, lifecycle);
    Metrics { list: list.0, user: Vec::new() }
}

/// All regions, each locked while it is visited.
fn regions(domains: &[Domain]) -> impl Iterator<Item = MutexGuard<'_, Region>> {
    domains.iter().flat_map(|domain| &domain.state.regions).map(RegionCell::lock)
}

/// The number of restarts of each component that was restarted.
fn restarts(list: &mut Vec<Metric>, domains: &[Domain]) {
    for region in regions(domains) {
        for node in region.nodes.iter().filter(|node| node.counts.restarts > 0) {
            #[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
            let value = node.counts.restarts as f64;
            let (name, kind) = ("runtime.component.restart_count", MetricKind::Counter);
            list.push(Metric::of_component(name, kind, &node.id, value));
        }
    }
}

/// The median and the 99th percentile of the call times of each component, if the run keeps them.
fn call_times(list: &mut Vec<Metric>, domains: &[Domain]) {
    for region in regions(domains) {
        for node in &region.nodes {
            let Some(summary) = node.call_times.as_ref().map(|times| times.summary()) else {
                continue;
            };
            for (name, value) in [
                ("runtime.component.p50_duration_ns", summary.p50),
                ("runtime.component.p99_duration_ns", summary.p99),
            ] {
                // A component without a measured call has no call times.
                if summary.count > 0 {
                    list.push(Metric::of_component(name, MetricKind::Gauge, &node.id, value));
                }
            }
        }
    }
}

fn lanes(list: &mut List, shared: &RunShared, domains: &[Domain]) {
    for domain in domains {
        for lane in &domain.lanes.list {
            let spec = &shared.plan.lanes[lane.lane].spec;
            let mut by_priority = [0_u64; 4];
            let n_starved = domain.progress.n_starvations.get(lane.lane).copied().unwrap_or(0);
            let (mut rejected, mut low_rejected, mut last_ns) = (0, 0, 0);
            let (mut active, mut queued, mut in_flight) = (0, 0, 0);
            let domain_regions = regions(core::slice::from_ref(domain));
            for region in domain_regions.filter(|one| one.lane == lane.lane) {
                for node in &region.nodes {
                    by_priority[usize::from(node.priority.rank())] += node.counts.executions;
                    rejected += node.counts.rejected;
                    if matches!(
                        node.priority,
                        ComponentPriority::Low | ComponentPriority::Background
                    ) {
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
            let workers = u64::from(spec.max_threads.max(1)).min(shared.n_workers as u64);
            list.add(
                &SCHEDULER,
                &spec.id,
                [
                    lane.counts.ticks,
                    by_priority.iter().sum(),
                    lane.counts.overruns,
                    lane.counts.skipped,
                    rejected,
                    by_priority[3],
                    by_priority[2],
                    by_priority[1],
                    by_priority[0],
                    low_rejected,
                    n_starved,
                ],
            );
            list.add_f64(
                &SCHEDULER_TIMES,
                &spec.id,
                [
                    ms(lane.counts.lateness_max_ns),
                    ms(lane.counts.jitter_ns),
                    ms(domain.progress.blocked_ns),
                    ms(last_ns),
                ],
            );
            list.add(
                &SCHEDULER_LOAD,
                &spec.id,
                [capacity, queued, if is_pool { workers } else { 0 }, active, in_flight],
            );
        }
    }
}

fn components(list: &mut List, domains: &[Domain]) {
    for region in regions(domains) {
        for node in &region.nodes {
            let (of, counts) = (&node.id, &node.counts);
            let n_called = counts.executions + counts.errors;
            list.add(
                &COMPONENT,
                of,
                [
                    counts.executions,
                    counts.errors,
                    counts.budget_overruns,
                    counts.cancel_requested,
                    counts.cancel_observed,
                    counts.callback_overruns,
                    counts.last_ns,
                    counts.max_ns,
                    counts.in_flight_max.max(n_called.min(1)),
                ],
            );

            let counts = node.trigger.counters();
            list.add(
                &TRIGGER,
                of,
                [
                    counts.ready_count,
                    counts.suppressed_count,
                    counts.coalesced_count,
                    counts.timeout_drop_count,
                    counts.batch_flush_count,
                    counts.time_sync_drop_count,
                    counts.late_drop_count,
                    counts.pending_drop_count,
                    counts.condition_suppressed_count,
                    counts.rate_limit_suppressed_count,
                ],
            );
        }
    }
}

fn channels(list: &mut List, shared: &RunShared, domains: &[Domain]) {
    // A publication that the outbox refused never reached its channel.
    let mut refused = vec![0_u64; shared.plan.edges.len()];
    for region in regions(domains) {
        for edge in region.nodes.iter().flat_map(|node| node.outbox.edges()) {
            refused[edge.edge as usize] += edge.n_refused;
        }
    }
    for region in regions(domains) {
        for channel in &region.channels {
            let edge = &shared.plan.edges[channel.edge() as usize];
            let (of, counts) = (&edge.id, channel.counters());
            if edge.from.0 == OUTSIDE && counts.publish_count == 0 {
                // An edge that only exists for feeds, and that no feed used.
                continue;
            }
            let refused = refused[channel.edge() as usize];
            let copied = |domain: &Domain| lock(&domain.state.env.copied).of(channel.edge());
            let silences = |domain: &Domain| {
                let mut inputs = domain.progress.silence.iter();
                inputs.find(|one| one.edge == channel.edge()).map_or(0, |one| one.n_silences)
            };
            // Counted as the channel would have done.
            let (dropped, rejected) = match edge.policy.overflow {
                EdgeOverflow::DropNewest => (refused, 0),
                _ => (0, refused),
            };
            list.add(
                &CHANNEL,
                of,
                [
                    counts.publish_count + dropped,
                    counts.delivery_count,
                    counts.drop_count + dropped,
                    counts.deadline_miss_count,
                    counts.stale_drop_count,
                    counts.reject_count + rejected,
                    counts.overwrite_count,
                    counts.health_event_count,
                    domains.iter().map(copied).sum(),
                    domains.iter().map(silences).sum(),
                    counts.max_depth.into(),
                ],
            );
            list.add_f64(&CHANNEL_AGE, of, [ms(counts.message_age_ns)]);
        }
    }
}

fn publications(list: &mut List, domains: &[Domain]) {
    let mut sum = PublicationCounts::default();
    for region in regions(domains) {
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
    list.add(
        &PUBLICATION,
        RUN,
        [
            sum.staged,
            sum.committed,
            sum.delayed,
            sum.state,
            sum.state_committed,
            sum.asynchronous,
            sum.failed_commit,
            sum.composite_discarded,
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
        evicted += progress.async_evicted.total();
        most += progress.async_max;
        for region in domain.state.regions.iter().map(RegionCell::lock) {
            let counts = &region.n_published;
            accepted += counts.asynchronous;
            completed += counts.async_committed;
            cancelled += counts.async_discarded;
            for edge in region.nodes.iter().flat_map(|node| node.outbox.edges()) {
                match shared.plan.edges[edge.edge as usize].kind {
                    EdgeKind::Async if edge.overflow == EdgeOverflow::DropNewest => {
                        dropped += edge.n_refused;
                    }
                    EdgeKind::Async => rejected += edge.n_refused,
                    _ => {}
                }
            }
        }
    }

    let in_flight = accepted.saturating_sub(completed + evicted + cancelled);
    list.add(
        &ASYNC,
        RUN,
        [
            accepted,
            completed,
            rejected,
            dropped,
            evicted,
            cancelled,
            in_flight,
            most.max(in_flight),
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
    list.add(&HEALTH, RUN, [health.event_count, health.dropped_count, health.coalesced_count]);

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
    let n_state_reads = domains.iter().map(|domain| domain.state.env.n_state_reads()).sum();
    let config_reads = |region: MutexGuard<'_, Region>| -> u64 {
        region.nodes.iter().map(|node| node.counts.config_reads).sum()
    };
    let n_config_reads = regions(domains).map(config_reads).sum();
    let n_values = domains.iter().map(|domain| domain.state.env.blackboard.len() as u64).sum();
    list.add(
        &CONFIG,
        RUN,
        [
            config.staged,
            config.committed,
            0,
            config.rejected,
            config.rolled_back,
            n_config_reads,
            config.version,
            config.transaction,
        ],
    );
    list.add(
        &STATE,
        RUN,
        [
            state.committed + state.rejected,
            state.committed,
            state.rejected,
            n_state_reads,
            n_values,
        ],
    );
}

fn loops(list: &mut List, domains: &[Domain]) {
    for region in regions(domains) {
        let Some(looping) = &region.looping else { continue };
        let counts = &looping.counts;
        list.add(
            &LOOP,
            &looping.id,
            [
                counts.iterations,
                counts.converged,
                counts.budget_overrun,
                counts.max_iterations_hit,
                counts.error,
                counts.cancel_requested,
                counts.cancel_requested,
                counts.output_discarded,
            ],
        );

        let residual = counts.residual.unwrap_or(0.0);
        list.add_f64(&LOOP_RESIDUAL, &looping.id, [residual]);
    }
}

/// The latencies of all chains, in the order of the plan.
pub(crate) fn chain_reports(plan: &Plan, domains: &[Domain]) -> Vec<ChainReport> {
    let mut found: Vec<Option<(HistogramSummary, u64)>> = vec![None; plan.chains.len()];
    for region in regions(domains) {
        let nodes = region.nodes.iter().filter_map(|node| node.chains.as_ref());
        for at in nodes.flat_map(|chains| &chains.chains) {
            let summary = at.end.as_ref().map(|end| (end.samples_ms.summary(), end.n_violations));
            if summary.is_some() {
                found[at.chain] = summary;
            }
        }
    }
    let report = |(chain, found): (&PlanChain, Option<(HistogramSummary, u64)>)| {
        let (summary, violations) = found?;
        let [from, to] = [chain.from, chain.to].map(|at| plan.components[at].spec.id.clone());
        Some(ChainReport {
            id: chain.id.clone(),
            from,
            to,
            max: Duration::from_millis(chain.max_ms),
            samples: summary.count,
            violations,
            p50_ms: summary.p50,
            p99_ms: summary.p99,
            longest_ms: summary.max,
        })
    };
    plan.chains.iter().zip(found).filter_map(report).collect()
}

/// The inputs that were silent for too long, in the order of the plan.
pub(crate) fn silent_inputs(plan: &Plan, domains: &[Domain]) -> Vec<SilentInput> {
    let inputs = domains.iter().flat_map(|domain| &domain.progress.silence);
    let mut silent: Vec<_> = inputs.filter(|one| one.n_silences > 0).collect();
    silent.sort_by_key(|one| one.edge);
    let one = |input: &WatchedInput| {
        let edge = &plan.edges[input.edge as usize];
        SilentInput {
            edge: edge.id.clone(),
            component: plan.components[edge.to.0].spec.id.clone(),
            max: Duration::from_millis(edge.policy.max_silence_ms),
            count: input.n_silences,
            longest: Duration::from_nanos(input.longest_ns),
        }
    };
    silent.into_iter().map(one).collect()
}

fn chains(list: &mut List, plan: &Plan, domains: &[Domain]) {
    for chain in chain_reports(plan, domains) {
        let ChainReport { id, samples, violations, p50_ms, p99_ms, longest_ms, .. } = chain;
        list.add(&CHAIN, &id, [samples, violations]);
        list.add_f64(&CHAIN_LATENCY, &id, [p50_ms, p99_ms, longest_ms]);
    }
}

fn lifecycle_counts(list: &mut List, counts: &LifecycleCounts) {
    list.add(
        &LIFECYCLE,
        RUN,
        [
            counts.resets,
            counts.reset_failures,
            counts.restores,
            counts.restore_failures,
            counts.snapshots,
            counts.snapshot_failures,
            counts.snapshot_bytes,
        ],
    );
}

fn observation_counts(list: &mut List, domains: &[Domain]) {
    let n_events = domains.iter().map(|domain| domain.progress.n_trace_events).sum();
    // All domains write to one log.
    let log = domains.first().and_then(|domain| domain.trace.as_ref());
    let n_dropped = log.map_or(0, super::sinks::TraceLog::n_dropped);
    list.add(&OBSERVATION, RUN, [n_events, 0, n_dropped]);
}
