//! The start and the end of a run: sets components up in the order of their dependencies, starts
//! the domains, and when all domains have ended, takes everything down in reverse order.

use core::{
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize},
    task::{Context, Poll},
    time::Duration,
};
use std::sync::{Arc, Mutex};

use clockjack_actor::ActorSystem;
use clockjack_exec::{Failure, Handle, JoinHandle};

use super::{
    options::{Clock, Parallel, RunOptions},
    shared::RunShared,
    threads::LaneThreads,
    wiring::{self, Parts, SpecialEdges, Wired, wire},
};
use crate::{
    compile::Plan,
    component::Config,
    describe::{LaneType, LoopMode},
    graph::{ComponentSource, Graph},
    registry::node::ErasedComponent,
    run::{
        engine::{
            chains::ChainTable,
            domain::{Bounds, Domain, Pace, Progress, silence::WatchedInput},
            env::Env,
            epoch::{DomainState, RegionCell},
            helpers,
            helpers::{Dependencies, Helpers},
            lanes::Lanes,
            node::{NodeState, catch_panic},
            region::Region,
        },
        flow::{
            blackboard,
            credit::Credits,
            inbox::{CloseOnDrop, Inbox, InboxEdge},
            tasks::Tasks,
        },
        observe::{
            call_watch::{CallWatch, WatchedComponent},
            collect,
            collect::LifecycleCounts,
            component_log, health,
            health::HealthEvent,
            live::Live,
            losses, metrics, observer,
            report::{Fault, LoopResult, RunError, RunPhase, RunReport, RunStopReason},
            sinks::{CommitLog, LogPart},
        },
    },
};

/// A run that was started.
pub(crate) struct Started {
    pub(crate) shared: Arc<RunShared>,
    pub(crate) inboxes: Arc<[Inbox]>,
    pub(crate) ended: Ended,
}

/// Ready when a run has ended.
pub(crate) struct Ended(JoinHandle<Result<RunReport, RunError>>);

impl Future for Ended {
    type Output = Result<RunReport, RunError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let joined = Pin::new(&mut self.0).poll(cx);
        joined.map(|joined| joined.unwrap_or_else(|_| Err(RunError::stopped())))
    }
}

type DomainEnd = (Domain, RunStopReason, Option<Fault>);

/// Starts a run.
pub(crate) fn start(
    graph: Graph,
    system: &ActorSystem,
    options: RunOptions,
) -> Result<Started, RunError> {
    let executor = system.executor();
    let plan = wiring::with_feeds(&graph.plan, options.feed_max);
    let domain_of = wiring::domains(&plan, options.clock != Clock::Virtual && plan.n_domains > 1);
    check_chains(&plan, &domain_of, &options)?;
    let width = options.workers.unwrap_or_else(|| executor.n_workers()).max(1);
    let mut threads = LaneThreads::make(&plan, system, &options)?;
    let isolated = threads.isolated(&plan);
    let mut logs = domain_logs(&plan, &domain_of, options.commit_log.as_ref())?;
    let made = crate::bridge::subscribe(&plan, graph.sources, &options.subscriptions)?;
    let chains = ChainTable::new(&plan, options.call_cost.clone());
    let mut wired = wire(&plan, &domain_of, make_all(&plan, made)?, width, &chains);
    let counts = set_up(&plan, &mut wired, &options)?;

    let n_domains = wired.domains.len();
    let began_ns = beginning(&executor, options.clock);
    let calls = call_watch(&plan, &mut wired, &options, (executor.clone(), began_ns));
    let shared = Arc::new(RunShared {
        plan: Arc::clone(&plan),
        compiled: Arc::clone(&graph.plan),
        nodes: wired.nodes,
        user: metrics::user::Registry::new(plan.components.len()),
        settings: Mutex::new(settings(&plan)),
        stop: Arc::new(AtomicBool::new(false)),
        n_steps_requested: AtomicU64::new(0),
        call_cost: options.call_cost.clone(),
        n_workers: width.min(executor.n_workers()).max(1),
        n_lanes_left: AtomicUsize::new(n_domains - 1),
        lanes: core::mem::take(&mut threads.reports),
        live: Live::new(&plan, n_domains),
        calls,
        credits: Credits::new(&plan, &domain_of),
    });
    let inboxes = make_inboxes(&plan, &domain_of, n_domains, options.feed_max);
    let (shared_by_end, inboxes_of_end) = (Arc::clone(&shared), CloseOnDrop(Arc::clone(&inboxes)));
    let mut joins = Vec::with_capacity(n_domains);
    for (index, regions) in wired.domains.into_iter().enumerate() {
        let (numbers, regions): (Vec<usize>, Vec<Region>) = regions.into_iter().unzip();
        let helpers = helpers(&plan, &numbers, &isolated, &executor, width, options.parallel);
        let helpers_shared = helpers.as_ref().map(Helpers::shared);
        let env = env(index, &shared, &options, &executor, helpers_shared, began_ns);
        let special_edges = core::mem::take(&mut wired.special_edges[index]);
        let progress = progress(&plan, &special_edges);
        let domain = Domain {
            index,
            pace: pace(index, &options),
            state: domain_state(&plan, regions, env),
            lanes: Lanes::new(&plan, |lane| domain_of[lane] == index),
            helpers,
            channel_locations: Arc::clone(&wired.channel_locations),
            inboxes: Arc::clone(&inboxes),
            shared: Arc::clone(&shared),
            bounds: bounds(&options),
            timing_every: options.timing_every,
            commit_log: logs[index].take(),
            trace: options.trace.clone(),
            special_edges,
            progress,
        };
        let own = domain_of.iter().position(|of| *of == index && index > 0);
        let thread = own.and_then(|lane| threads.executor(lane)).unwrap_or(&executor);
        joins.push(thread.spawn_future(domain.run()));
    }
    let watcher = start_watcher(&shared, &executor);
    let end = async move {
        let ended = finish(joins, shared_by_end, inboxes_of_end, options, counts).await;
        drop(watcher);
        // No domain runs on these threads any more.
        drop(threads);
        ended
    };
    let ended = Ended(executor.spawn_future(end));
    Ok(Started { shared, inboxes, ended })
}

/// What arrives at each domain from outside and from other domains.
fn make_inboxes(
    plan: &Plan,
    domain_of: &[usize],
    n_domains: usize,
    feed_max: usize,
) -> Arc<[Inbox]> {
    let inbox = |domain| Inbox::new(feed_max, inbox_edges(plan, domain_of, domain));
    (0..n_domains).map(inbox).collect()
}

/// The edges to a domain from other ones.
fn inbox_edges(plan: &Plan, domain_of: &[usize], domain: usize) -> Vec<InboxEdge> {
    // The edges of feeds begin outside of the graph.
    let of = |component: usize| Some(domain_of[plan.components.get(component)?.lane]);
    let edges = plan.edges.iter().enumerate().filter(|(_, edge)| {
        of(edge.to.0) == Some(domain) && of(edge.from.0).is_some_and(|from| from != domain)
    });
    edges.map(|(at, edge)| InboxEdge::new(wiring::count(at), &edge.policy)).collect()
}

/// The state of a domain in which every lane is due.
fn domain_state(plan: &Plan, regions: Vec<Region>, env: Env) -> Arc<DomainState> {
    Arc::new(DomainState {
        regions: regions.into_iter().map(RegionCell::new).collect(),
        env,
        is_due: vec![true; plan.lanes.len()],
        lines: Box::default(),
    })
}

/// Makes the calls of components visible whose lane limits how long they take.
fn call_watch(
    plan: &Plan,
    wired: &mut Wired,
    options: &RunOptions,
    clock: (Handle, u64),
) -> CallWatch {
    let mut all = Vec::new();
    let regions = wired.domains.iter_mut().flatten().map(|(_, region)| region);
    for region in regions {
        let lane = wiring::count(region.lane);
        for node in region.nodes.iter_mut().filter(|node| node.callback_max_ns > 0) {
            let n_calls = node.admission.map_or(1, |admission| admission.width);
            let (component, lane) =
                ((node.component, Arc::clone(&node.id)), (lane, Arc::clone(&node.lane)));
            let limit_ns = node.callback_max_ns;
            let watched = Arc::new(WatchedComponent::new(component, lane, limit_ns, n_calls));
            node.watched = Some(Arc::clone(&watched));
            all.push(watched);
        }
    }
    let (log, trace) = (options.component_log.clone(), options.trace.clone());
    CallWatch::new(all, clock, plan.name.as_str().into(), log, trace)
}

/// Starts the timer that checks the calls in progress, if it has anything to check.
fn start_watcher(shared: &Arc<RunShared>, executor: &Handle) -> Option<CancelOnDrop> {
    let interval = shared.calls.interval()?;
    let watching = watch_calls(Arc::clone(shared), executor.clone(), interval);
    Some(CancelOnDrop(executor.spawn_future(watching)))
}

/// Checks the calls in progress from time to time. If the worker whose timer this is hangs in such
/// a call, the watchdog of the pool lets another worker fire the timer.
async fn watch_calls(shared: Arc<RunShared>, executor: Handle, interval: Duration) {
    // Without a timer the calls are visible to hosts only.
    while executor.sleep(interval).await.is_ok() {
        // The calls are reported by the check; the list is for hosts.
        let _ = shared.calls.check();
    }
}

/// Cancels a task when it is dropped.
struct CancelOnDrop(JoinHandle<()>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// What the components of a domain see of their first epoch.
fn env(
    domain: usize,
    shared: &RunShared,
    options: &RunOptions,
    executor: &Handle,
    helpers: Option<Arc<helpers::HelpersShared>>,
    began_ns: u64,
) -> Env {
    Env {
        epoch: 0,
        now_ns: 0,
        is_simulated: pace(domain, options) == Pace::Simulated,
        logs: options.commit_log.is_some(),
        measures: false,
        traces: options.trace.is_some(),
        tasks: Tasks::new(options.tasks_max),
        user: shared.user.clone(),
        component_log: options.component_log.clone().map(component_log::ComponentLogWriter::new),
        has_buffered_counts: AtomicBool::new(false),
        seed: options.seed,
        graph: shared.plan.name.as_str().into(),
        blackboard: blackboard::Snapshot::default(),
        is_written: AtomicBool::new(false),
        n_state_reads: AtomicU64::new(0),
        copied: Mutex::default(),
        stop: Arc::clone(&shared.stop),
        executor: executor.clone(),
        is_parallel: false,
        helpers,
        has_faults: AtomicBool::new(false),
        begun_ns: 0,
        began_ns,
    }
}

fn bounds(options: &RunOptions) -> Bounds {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    Bounds {
        steps: options.steps,
        duration_ns: options.duration.map(nanos),
        until_idle: options.until_idle,
        shutdown: (options.shutdown_policy, options.drain_max),
    }
}

/// When a run begins. With the clock of the system that is a clock edge of the executor, so that
/// ticks with a period of whole edges fall on edges, where timers can meet them.
fn beginning(executor: &Handle, clock: Clock) -> u64 {
    if clock == Clock::Virtual {
        return executor.nanos();
    }
    let now = executor.now();
    now.tick().get().saturating_mul(now.resolution().nanos().get().into())
}

/// A commit log part per domain, if the run has a commit log.
fn domain_logs(
    plan: &Plan,
    domain_of: &[usize],
    log: Option<&CommitLog>,
) -> Result<Vec<Option<LogPart>>, RunError> {
    let n_domains = domain_of.iter().max().map_or(1, |last| last + 1);
    let Some(log) = log else { return Ok(vec![None; n_domains]) };
    let part_of = |domain: usize| {
        let own = domain_of.iter().position(|of| *of == domain && domain > 0);
        let lane = own.map(|lane| plan.lanes[lane].spec.id.as_str());
        let part = log.part(lane).ok_or_else(|| {
            let lane = lane.unwrap_or_default();
            let text =
                format!("the commit log has no writer for lane `{lane}`, which has its own clock");
            RunError::refused(text)
        });
        part.map(Some)
    };
    (0..n_domains).map(part_of).collect()
}

/// Which clock a domain follows.
pub(super) fn pace(domain: usize, options: &RunOptions) -> Pace {
    let is_counted = options.steps.is_some() || options.until_idle;
    match options.clock {
        Clock::Virtual => Pace::Simulated,
        Clock::Described if domain == 0 && is_counted => Pace::Simulated,
        _ => Pace::System,
    }
}

fn helpers(
    plan: &Plan,
    regions: &[usize],
    isolated: &[Option<Handle>],
    executor: &Handle,
    width: usize,
    parallel: Parallel,
) -> Option<Helpers> {
    let is_isolated: Vec<bool> = isolated.iter().map(Option::is_some).collect();
    let dependencies = Dependencies::new(plan, regions, &is_isolated);
    let is_parallel = width > 1
        && parallel != Parallel::Never
        && !executor.is_local()
        && (dependencies.is_wide() || has_reentrant(plan, regions) || has_jacobi(plan, regions));
    if !is_parallel && !dependencies.has_isolated() {
        return None;
    }
    let own: Vec<(usize, Handle)> = isolated
        .iter()
        .enumerate()
        .filter(|(lane, _)| dependencies.has_lane(*lane))
        .filter_map(|(lane, thread)| Some((lane, thread.clone()?)))
        .collect();
    let n_helpers = if is_parallel { width - 1 } else { 0 };
    Some(Helpers::start(dependencies, parallel, executor, n_helpers, &own))
}

/// The settings of the components, as described.
fn settings(plan: &Plan) -> Vec<Config> {
    plan.components.iter().map(|one| Config::new(one.spec.config.clone())).collect()
}

/// The progress of a domain before its first epoch.
fn progress(plan: &Plan, special_edges: &SpecialEdges) -> Progress {
    let watched = special_edges.watched.iter().map(|edge| {
        let policy = &plan.edges[*edge as usize].policy;
        WatchedInput::new(*edge, policy.max_silence_ms, policy.emit_health_events)
    });
    let mut progress = Progress::new(health_capacity(plan));
    progress.silence = watched.collect();
    progress
}

/// How many health events are kept, by the settings of the graph.
fn health_capacity(plan: &Plan) -> usize {
    use crate::describe::ConfigValue;
    let is_off = plan.config.get("emit_health_events") == Some(&ConfigValue::Bool(false));
    match plan.config.get("health_event_capacity") {
        _ if is_off => 0,
        Some(ConfigValue::Int(n)) => usize::try_from(*n).unwrap_or(0),
        _ => health::SINK_CAPACITY,
    }
}

/// Whether invocations of one component may overlap.
fn has_reentrant(plan: &Plan, regions: &[usize]) -> bool {
    let members = regions.iter().flat_map(|region| &plan.regions[*region].components);
    members.map(|one| &plan.components[*one]).any(|one| {
        one.spec.execution.reentrant && plan.lanes[one.lane].spec.lane_type == LaneType::ThreadPool
    })
}

/// Refuses a chain from simulated time to the clock of the system or back: the time between the two
/// means nothing.
fn check_chains(plan: &Plan, domain_of: &[usize], options: &RunOptions) -> Result<(), RunError> {
    let pace_of = |component: usize| pace(domain_of[plan.components[component].lane], options);
    for chain in &plan.chains {
        let mut edges = chain.edges.iter().map(|edge| &plan.edges[*edge]);
        if edges.any(|edge| pace_of(edge.from.0) != pace_of(edge.to.0)) {
            return Err(RunError::refused(format!(
                "chain `{}` leads from simulated time to the clock of the system or back, so it \
                 has no latency: run all lanes with one clock, or end the chain where the clock \
                 changes",
                chain.id
            )));
        }
    }
    Ok(())
}

/// Whether the members of a loop may run at the same time.
fn has_jacobi(plan: &Plan, regions: &[usize]) -> bool {
    regions.iter().any(|one| {
        let region = &plan.regions[*one];
        let is_jacobi =
            region.loop_policy.as_ref().is_some_and(|one| one.spec.mode == LoopMode::Jacobi);
        is_jacobi && plan.lanes[region.lane].spec.lane_type == LaneType::ThreadPool
    })
}

/// Creates the components, each with its factory for restarts.
fn make_all(plan: &Plan, made: Vec<ComponentSource>) -> Result<Vec<Parts>, RunError> {
    let one = |(component, made): (usize, ComponentSource)| {
        let made = catch_panic(|| Ok(made.into_parts()));
        made.map_err(|failure| {
            let planned = &plan.components[component];
            let fault = Domain::runtime_fault(&format!("the component was not created: {failure}"));
            let (component, lane) = (&planned.spec.id, &plan.lanes[planned.lane].spec.id);
            let (component, lane) = (component.clone(), lane.clone());
            RunError::failed(Fault { component, lane, phase: RunPhase::Configure, ..fault }, None)
        })
    };
    made.into_iter().enumerate().map(one).collect()
}

/// Configures all components, then activates them in the order of their dependencies. If one fails,
/// deactivates those that are active.
fn set_up(
    plan: &Plan,
    wired: &mut Wired,
    options: &RunOptions,
) -> Result<LifecycleCounts, RunError> {
    let mut n_active = 0;
    let mut counts = LifecycleCounts::default();
    let result = set_up_until(plan, wired, options, &mut n_active, &mut counts);
    if let Err(fault) = result {
        for component in plan.lifecycle[..n_active].iter().rev() {
            // The first failure is reported; this one is ignored.
            let _ = node_of(wired, *component).deactivate();
        }
        let metrics = collect::collect_set_up(&counts);
        let report = RunReport { metrics, ..nothing_done(RunStopReason::NotStarted) };
        return Err(RunError::failed(fault, Some(report)));
    }
    Ok(counts)
}

fn set_up_until(
    plan: &Plan,
    wired: &mut Wired,
    options: &RunOptions,
    n_active: &mut usize,
    counts: &mut LifecycleCounts,
) -> Result<(), Fault> {
    for component in &plan.lifecycle {
        let node = node_of(wired, *component);
        node.call_times = options.keeps_call_times.then(|| Box::new(metrics::user::Samples::new()));
        let configured = node.bind_and_configure();
        configured.map_err(|failure| fault_of(node, RunPhase::Configure, &failure))?;
    }
    for component in &plan.lifecycle {
        let node = node_of(wired, *component);
        let activated = node.activate();
        activated.map_err(|failure| fault_of(node, RunPhase::Activate, &failure))?;
        *n_active += 1;
    }
    for (id, snapshot) in &options.restore {
        let Some(component) = plan.find(id) else {
            return Err(Domain::runtime_fault(&format!("there is no `{id}` to restore")));
        };
        let node = node_of(wired, component);
        let restored = if snapshot.component_type == plan.components[component].spec.component_type
        {
            node.with_body(|node| node.restore(snapshot))
        } else {
            let of = &snapshot.component_type;
            Err(Failure::msg(format!("the snapshot belongs to a component of type `{of}`")))
        };
        tally(&restored, &mut counts.restores, &mut counts.restore_failures);
        restored.map_err(|failure| fault_of(node, RunPhase::Restore, &failure))?;
    }
    if options.reset {
        for component in &plan.lifecycle {
            let node = node_of(wired, *component);
            let reset = node.with_body(|node| node.reset());
            tally(&reset, &mut counts.resets, &mut counts.reset_failures);
            reset.map_err(|failure| fault_of(node, RunPhase::Reset, &failure))?;
        }
    }
    Ok(())
}

/// Counts a success or a failure.
fn tally<T, E>(result: &Result<T, E>, n_done: &mut u64, n_failed: &mut u64) {
    *(if result.is_ok() { n_done } else { n_failed }) += 1;
}

fn node_of(wired: &mut Wired, component: usize) -> &mut NodeState {
    let (domain, region, at) = wired.nodes[component];
    &mut wired.domains[domain as usize][region as usize].1.nodes[at as usize]
}

fn fault_of(node: &NodeState, phase: RunPhase, failure: &Failure) -> Fault {
    node.fault(phase, format!("{failure}"), 0, true)
}

/// Waits for all domains, takes everything down, and reports.
async fn finish(
    joins: Vec<JoinHandle<DomainEnd>>,
    shared: Arc<RunShared>,
    inboxes: CloseOnDrop,
    options: RunOptions,
    lifecycle: LifecycleCounts,
) -> Result<RunReport, RunError> {
    let mut domains = Vec::with_capacity(joins.len());
    let (mut stop, mut fault) = (None, None);
    for join in joins {
        let Ok((domain, reason, failed)) = join.await else {
            shared.stop_all(&inboxes.0);
            return Err(RunError::stopped());
        };
        let is_worse = stop.is_none_or(|stop| severity(reason) > severity(stop));
        if is_worse {
            stop = Some(reason);
        }
        fault = fault.or(failed);
        domains.push(domain);
    }
    drop(inboxes);
    let stop = stop.unwrap_or(RunStopReason::NotStarted);
    let mut report = take_down(&shared, domains, stop, options.snapshots, lifecycle);
    observer::notify(&options.observers, &mut report, fault.as_ref(), options.trace.as_ref());
    match fault {
        Some(fault) => Err(RunError::failed(fault, Some(report))),
        None => Ok(report),
    }
}

/// The report gives the most severe reason of all domains.
fn severity(reason: RunStopReason) -> u8 {
    match reason {
        RunStopReason::Error => 3,
        RunStopReason::StopRequested => 2,
        RunStopReason::NotStarted => 0,
        _ => 1,
    }
}

fn take_down(
    shared: &RunShared,
    mut domains: Vec<Domain>,
    stop: RunStopReason,
    wants_snapshots: bool,
    mut lifecycle: LifecycleCounts,
) -> RunReport {
    let mut report = nothing_done(stop);
    report.lanes.clone_from(&shared.lanes);
    for domain in &mut domains {
        while let Some(event) = domain.progress.health.take() {
            report.health.push(HealthEvent::new(&shared.plan, &event));
        }
        let env = &domain.state.env;
        report.epochs += env.epoch;
        report.elapsed_ns = report.elapsed_ns.max(env.now_ns);
        report.faults.append(&mut domain.progress.faults);
        report.n_faults_dropped += domain.progress.n_faults_dropped;
        report.n_fed_dropped += domain.progress.n_fed_dropped;
        report.parallel_epochs += domain.progress.n_parallel;
        report.overlap_max = report.overlap_max.max(domain.progress.overlap_max);
    }
    let states = || domains.iter().map(|domain| &domain.state);
    for region in states().flat_map(|state| &state.regions).map(RegionCell::lock) {
        report.executions += region.nodes.iter().map(|node| node.counts.executions).sum::<u64>();
        if let Some(looping) = &region.looping {
            report.loops.push(LoopResult {
                id: String::from(&*looping.id),
                residual: looping.counts.residual,
                reason: looping.counts.reason.into(),
            });
        }
    }
    report.chains = collect::chain_reports(&shared.plan, &domains);
    report.silent_inputs = collect::silent_inputs(&shared.plan, &domains);
    for component in shared.plan.lifecycle.iter().rev() {
        let (domain, region, at) = shared.nodes[*component];
        let mut region = domains[domain as usize].state.regions[region as usize].lock();
        let node = &mut region.nodes[at as usize];
        if wants_snapshots {
            match node.with_body(|node| node.snapshot()) {
                Ok(Some(snapshot)) => {
                    lifecycle.snapshots += 1;
                    lifecycle.snapshot_bytes += snapshot.payload.len() as u64;
                    report.snapshots.push((String::from(&*node.id), snapshot));
                }
                Ok(None) => {}
                Err(failure) => {
                    lifecycle.snapshot_failures += 1;
                    let text = format!("{failure}");
                    report.faults.push(node.fault(RunPhase::Snapshot, text, 0, false));
                }
            }
        }
        if let Err(failure) = node.deactivate() {
            let text = format!("{failure}");
            report.faults.push(node.fault(RunPhase::Deactivate, text, 0, false));
        }
        if let Err(failure) = node.replace_body(ErasedComponent::Removed) {
            let text = format!("its drop {failure}");
            report.faults.push(node.fault(RunPhase::Deactivate, text, 0, false));
        }
    }
    report.losses = losses::collect(&shared.plan, &domains);
    report.metrics = collect::collect(shared, &domains, &lifecycle);
    report
}

/// An empty report.
fn nothing_done(stop: RunStopReason) -> RunReport {
    RunReport {
        stop,
        epochs: 0,
        executions: 0,
        elapsed_ns: 0,
        faults: Vec::new(),
        n_faults_dropped: 0,
        n_fed_dropped: 0,
        overlap_max: 0,
        parallel_epochs: 0,
        snapshots: Vec::new(),
        loops: Vec::new(),
        chains: Vec::new(),
        silent_inputs: Vec::new(),
        lanes: Vec::new(),
        health: Vec::new(),
        losses: Vec::new(),
        metrics: metrics::Metrics::default(),
    }
}
