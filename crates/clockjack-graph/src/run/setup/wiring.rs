//! Builds the regions of a run's domains from its plan.

use std::sync::Arc;

use crate::{
    compile::{Plan, PlanComponent, PlanEdge},
    component::Config,
    describe::{
        BoundaryRole, CopyPolicy, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy, LaneSpec, LaneType,
        LoopType,
    },
    registry::{Factory, node::ErasedComponent},
    run::{
        engine::{
            chains::ChainTable,
            loops::LoopState,
            node::{Admission, NodeCounts, NodeState, Route, Status, Target},
            region::{PublicationCounts, Region},
            step_kind::StepKind,
        },
        flow::{
            channel::Channel,
            message::Message,
            outbox::{Carriage, Outbox},
            trigger::{Invocations, Trigger},
        },
        observe::trace::Recorder,
    },
};

/// The location of an edge's channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChannelLocation {
    pub(crate) domain: u32,
    pub(crate) region: u32,
    pub(crate) channel: u32,
}

/// The regions of all domains, and the location of everything in them.
pub(crate) struct Wired {
    /// For each domain its regions, in compiled order, with their numbers in the plan.
    pub(crate) domains: Vec<Vec<(usize, Region)>>,
    /// For each edge of the plan.
    pub(crate) channel_locations: Arc<[ChannelLocation]>,
    /// For each component: its domain, its region there, which of its nodes.
    pub(crate) nodes: Vec<(u32, u32, u32)>,
    /// For each domain.
    pub(crate) special_edges: Vec<SpecialEdges>,
}

/// Tables of edges and regions that need attention in every epoch, so that the coordinator need not
/// search for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpecialEdges {
    /// Channels with `previous_tick`, which show a message one epoch later: region and channel.
    pub(crate) previous_tick: Vec<(u32, u32)>,
    /// Those of them that trigger a component.
    pub(crate) triggering: Vec<(u32, u32)>,
    /// Edges that are not immediate and may refuse: region, node, index of the edge in the outbox.
    pub(crate) guarded: Vec<(u32, u32, u32)>,
    /// Regions that defer publications to the next epoch.
    pub(crate) deferring: Vec<u32>,
    /// Regions that may become ready by time alone.
    pub(crate) timed: Vec<u32>,
    /// Edges from other domains with credit, and the domains of their producers.
    pub(crate) credited: Vec<(u32, u32)>,
    /// Loops that make one iteration per epoch and need no tick for that.
    pub(crate) one_per_epoch: Vec<u32>,
    /// Edges with `max_silence_ms`, by their channels.
    pub(crate) watched: Vec<u32>,
}

impl SpecialEdges {
    /// Whether the beginning of every epoch has more to do than to take incoming items.
    pub(crate) fn has_boundary(&self) -> bool {
        !(self.previous_tick.is_empty() && self.guarded.is_empty() && self.deferring.is_empty())
    }
}

/// The source of an edge from a feed: no component.
pub(crate) const OUTSIDE: usize = usize::MAX;

/// The plan of a run: that of the graph, with an edge from outside to each unconnected input at the
/// boundary. These edges come last, so the numbers of the others do not change.
///
/// Fed values wait outside until such an edge has room, so no value is lost.
pub(crate) fn with_feeds(plan: &Arc<Plan>, feed_max: usize) -> Arc<Plan> {
    let mut found = Vec::new();
    for (component, planned) in plan.components.iter().enumerate() {
        if !matches!(planned.spec.boundary.role, BoundaryRole::Input | BoundaryRole::InputOutput) {
            continue;
        }
        let free = planned.inputs.iter().enumerate().filter(|(_, input)| input.edges.is_empty());
        found.extend(free.map(|(input, _)| (component, input)));
    }
    if found.is_empty() {
        return Arc::clone(plan);
    }
    let mut plan = Plan::clone(plan);
    for (component, input) in found {
        let planned = &mut plan.components[component];
        planned.inputs[input].edges.push(plan.edges.len());
        // Overlapping invocations all see the newest value; otherwise the only reader gets the
        // value itself.
        let is_shared = planned.descriptor.reentrant;
        plan.edges.push(PlanEdge {
            id: format!("feed:{}.{}", planned.spec.id, planned.inputs[input].name),
            kind: EdgeKind::Delay,
            policy: EdgePolicy {
                mode: EdgeMode::Queue,
                capacity: u32::try_from(feed_max).unwrap_or(u32::MAX).max(1),
                overflow: EdgeOverflow::Block,
                copy_policy: if is_shared { CopyPolicy::SharedView } else { CopyPolicy::MoveOnly },
                ..EdgePolicy::default()
            },
            from: (OUTSIDE, 0),
            to: (component, input),
            slow_reader_drop_risk: false,
            advisory_fields: Vec::new(),
        });
    }
    Arc::new(plan)
}

/// A component and its factory for restarts.
pub(crate) type Parts = (ErasedComponent, Option<Factory>);

/// Builds the regions. `domain_of`: the domain of each lane.
pub(crate) fn wire(
    plan: &Plan,
    domain_of: &[usize],
    made: Vec<Parts>,
    width: usize,
    chains: &ChainTable,
) -> Wired {
    let n_domains = domain_of.iter().max().map_or(1, |most| most + 1);
    let (locations, nodes) = locate(plan, domain_of, n_domains);
    let mut wired = Wired {
        domains: (0..n_domains).map(|_| Vec::new()).collect(),
        special_edges: vec![SpecialEdges::default(); n_domains],
        channel_locations: locations.into(),
        nodes,
    };
    let mut made: Vec<Option<Parts>> = made.into_iter().map(Some).collect();
    for (number, planned) in plan.regions.iter().enumerate() {
        let domain = domain_of[planned.lane];
        let mut region = Region {
            lane: planned.lane,
            is_paced: is_paced(&plan.lanes[planned.lane].spec),
            nodes: Vec::with_capacity(planned.components.len()),
            channels: Vec::new(),
            looping: planned.loop_policy.as_ref().map(|one| {
                let n_at_once = members_at_once(&plan.lanes[planned.lane].spec, width);
                LoopState::new(&one.spec, planned.components.len(), n_at_once)
            }),
            deferred: Vec::new(),
            log: Vec::new(),
            is_repeatable: false,
            writes: Vec::new(),
            recorder: Recorder { lane: count(planned.lane), ..Recorder::default() },
            invocations: Invocations::default(),
            faults: Vec::new(),
            n_published: PublicationCounts::default(),
            step_kind: StepKind::General,
        };
        let position = count(wired.domains[domain].len());
        for component in &planned.components {
            let body = made[*component].take().expect("a component is in one region");
            let first = region.channels.len();
            let mut node = node(plan, *component, body, &mut region, &wired, width);
            let on_chains = chains.node(plan, *component, first, &mut region.channels);
            node.chains = on_chains.map(Box::new);
            add_special_edges(&mut wired, plan, domain, position, count(region.nodes.len()), &node);
            region.nodes.push(node);
        }
        let defers =
            |node: &NodeState| node.routes.iter().any(|route| route.kind != EdgeKind::Immediate);
        if region.nodes.iter().any(defers) {
            wired.special_edges[domain].deferring.push(position);
        }
        if region.nodes.iter().any(NodeState::depends_on_time) {
            wired.special_edges[domain].timed.push(position);
        }
        if region.looping.as_ref().is_some_and(LoopState::is_one_per_epoch) && !region.is_paced {
            wired.special_edges[domain].one_per_epoch.push(position);
        }
        StepKind::choose(&mut region);
        wired.domains[domain].push((number, region));
    }
    wired
}

/// Whether only ticks make a lane due: its own, or those of the host.
fn is_paced(lane: &LaneSpec) -> bool {
    match lane.lane_type {
        LaneType::FixedRate => lane.period_ns() > 0,
        LaneType::ManualStep => true,
        _ => false,
    }
}

/// The locations of all channels and components: regions in compiled order, channels in the order
/// of components, inputs and edges.
fn locate(
    plan: &Plan,
    domain_of: &[usize],
    n_domains: usize,
) -> (Vec<ChannelLocation>, Vec<(u32, u32, u32)>) {
    let mut locations = vec![ChannelLocation::default(); plan.edges.len()];
    let mut nodes = vec![(0, 0, 0); plan.components.len()];
    let mut n_regions = vec![0_u32; n_domains];
    for planned in &plan.regions {
        let domain = domain_of[planned.lane];
        let region = n_regions[domain];
        n_regions[domain] += 1;
        let mut channel = 0;
        for (at, component) in planned.components.iter().enumerate() {
            nodes[*component] = (count(domain), region, count(at));
            for edge in plan.components[*component].inputs.iter().flat_map(|port| &port.edges) {
                locations[*edge] = ChannelLocation { domain: count(domain), region, channel };
                channel += 1;
            }
        }
    }
    (locations, nodes)
}

fn node(
    plan: &Plan,
    component: usize,
    (body, make): Parts,
    region: &mut Region,
    wired: &Wired,
    width: usize,
) -> NodeState {
    let planned = &plan.components[component];
    let first = region.channels.len();
    let mut untriggered = Vec::new();
    for (port, input) in planned.inputs.iter().enumerate() {
        for edge in &input.edges {
            if !planned.trigger_inputs.contains(&port) {
                untriggered.push((
                    u16::try_from(port).expect("the compiler bounds the number of ports"),
                    region.channels.len(),
                ));
            }
            let policy = &plan.edges[*edge].policy;
            let mut channel = Channel::new(count(*edge), policy);
            if policy.mode != EdgeMode::Latched {
                // The node keeps the last messages.
                channel.forget_read();
            }
            region.channels.push(channel);
        }
    }
    let (outbox, routes) = outputs(plan, planned, component, wired);
    let lane = &plan.lanes[planned.lane].spec;
    let admission =
        (lane.lane_type == LaneType::ThreadPool).then(|| admission(planned, lane, width));
    let trigger = started(planned, plan);
    let on_error = planned.spec.execution.on_error;
    NodeState {
        component,
        id: planned.spec.id.as_str().into(),
        lane: lane.id.as_str().into(),
        descriptor: Arc::clone(&planned.descriptor),
        body,
        make,
        config: Config::new(planned.spec.config.clone()),
        is_one_by_one: admission.is_none()
            && trigger.makes_several()
            && NodeState::may_stop_on_error(on_error.policy),
        waits_for_room: outbox.edges().iter().any(|edge| edge.overflow == EdgeOverflow::Block),
        trigger,
        channels: first..region.channels.len(),
        untriggered,
        last: planned.inputs.iter().map(|_| Message::none()).collect(),
        fresh: Vec::new(),
        outbox,
        spare: Vec::new(),
        jobs: Vec::new(),
        batch: None,
        is_fast: routes.iter().all(Route::is_fast),
        routes,
        priority: planned.spec.execution.priority,
        admission,
        on_error,
        budget_ns: planned.spec.execution.budget_ms.saturating_mul(1_000_000),
        callback_max_ns: lane.max_callback_ms.saturating_mul(1_000_000),
        watched: None,
        burst: planned.spec.execution.burst.max(1),
        status: Status::Active,
        is_activated: false,
        is_blocked: false,
        chains: None,
        call_times: None,
        counts: NodeCounts::default(),
    }
}

/// The trigger of a component, started.
fn started(planned: &PlanComponent, plan: &Plan) -> Trigger {
    let owner = plan.regions[planned.region].loop_policy.as_ref();
    let is_coalesced = owner.is_some_and(|one| one.spec.loop_type == LoopType::CoalescedEvent);
    let mut trigger = if is_coalesced {
        // One call for all messages.
        let mut planned = planned.clone();
        planned.spec.trigger.coalesce = true;
        Trigger::new(&planned, &plan.edges)
    } else {
        Trigger::new(planned, &plan.edges)
    };
    trigger.start(0);
    trigger
}

fn outputs(
    plan: &Plan,
    planned: &PlanComponent,
    component: usize,
    wired: &Wired,
) -> (Outbox, Vec<Route>) {
    let mut routes = Vec::new();
    let mut ports = Vec::with_capacity(planned.outputs.len());
    for output in &planned.outputs {
        let mut port = Vec::with_capacity(output.edges.len());
        for edge in &output.edges {
            let planned = &plan.edges[*edge];
            port.push((
                count(*edge),
                planned.policy.overflow,
                carriage(plan, &output.edges, *edge),
            ));
            routes.push(Route {
                edge: count(*edge),
                kind: planned.kind,
                to: to(wired, component, *edge),
                max_inflight: planned.policy.max_inflight,
                copies: copies(plan, &output.edges, *edge),
            });
        }
        ports.push(port);
    }
    let mut outbox = Outbox::new(&ports);
    for (index, route) in routes.iter().enumerate() {
        if may_refuse(plan, route) {
            // No room until the first epoch sets it.
            outbox.set_room(index, 0);
        }
    }
    (outbox, routes)
}

/// How an edge carries the payloads of its output, whose edges are `edges`.
fn carriage(plan: &Plan, edges: &[usize], edge: usize) -> Carriage {
    if plan.edges[edge].policy.copy_policy == CopyPolicy::MoveOnly {
        Carriage::Moved
    } else if edges.last() == Some(&edge) && has_one_reader(plan, edges) {
        Carriage::Single
    } else {
        Carriage::Shared
    }
}

/// Whether one reader sees the payloads of an output with these edges, one call at a time: there is
/// one edge, or all edges copy and the last one gets the payload itself.
pub(crate) fn has_one_reader(plan: &Plan, edges: &[usize]) -> bool {
    let is_copy = |one: &usize| plan.edges[*one].policy.copy_policy == CopyPolicy::Copy;
    let Some(last) = edges.last() else { return false };
    let reader = &plan.components[plan.edges[*last].to.0];
    (edges.len() == 1 || edges.iter().all(is_copy)) && !reader.descriptor.reentrant
}

/// Whether an edge gets a copy of each payload of its output, whose edges are `edges`. The last
/// edge gets the payload itself, unless another edge shares it, or several calls of its reader.
pub(crate) fn copies(plan: &Plan, edges: &[usize], edge: usize) -> bool {
    let is_copy = |one: &usize| plan.edges[*one].policy.copy_policy == CopyPolicy::Copy;
    let owns_payload =
        edges.last() == Some(&edge) && edges.iter().all(is_copy) && has_one_reader(plan, edges);
    is_copy(&edge) && !owns_payload
}

fn to(wired: &Wired, component: usize, edge: usize) -> Target {
    let (place, (domain, region, _)) = (wired.channel_locations[edge], wired.nodes[component]);
    if place.domain != domain {
        Target::Domain(place.domain)
    } else if place.region == region {
        Target::SameRegion(place.channel)
    } else {
        Target::Region(place.region, place.channel)
    }
}

fn may_refuse(plan: &Plan, route: &Route) -> bool {
    let overflow = plan.edges[route.edge as usize].policy.overflow;
    route.max_inflight > 0 || !overflow.evicts()
}

fn add_special_edges(
    wired: &mut Wired,
    plan: &Plan,
    domain: usize,
    position: u32,
    at: u32,
    node: &NodeState,
) {
    let planned = &plan.components[node.component];
    let is_paced = is_paced(&plan.lanes[planned.lane].spec);
    for (port, input) in planned.inputs.iter().enumerate() {
        let mode = |edge: &&usize| plan.edges[**edge].policy.mode;
        for edge in input.edges.iter().filter(|edge| mode(edge) == EdgeMode::PreviousTick) {
            let SpecialEdges { previous_tick, triggering, .. } = &mut wired.special_edges[domain];
            let place = (position, wired.channel_locations[*edge].channel);
            previous_tick.push(place);
            if planned.trigger_inputs.contains(&port) && !is_paced {
                triggering.push(place);
            }
        }
    }
    let edges = planned.inputs.iter().flat_map(|input| &input.edges);
    let watched = edges.filter(|edge| plan.edges[**edge].policy.max_silence_ms > 0);
    wired.special_edges[domain].watched.extend(watched.map(|edge| count(*edge)));
    for route in &node.routes {
        if let Target::Domain(to) = route.to
            && !plan.edges[route.edge as usize].policy.overflow.evicts()
        {
            wired.special_edges[to as usize].credited.push((route.edge, count(domain)));
        }
    }
    for (index, route) in node.routes.iter().enumerate() {
        if route.kind != EdgeKind::Immediate && may_refuse(plan, route) {
            wired.special_edges[domain].guarded.push((position, at, count(index)));
        }
    }
}

fn admission(planned: &PlanComponent, lane: &LaneSpec, width: usize) -> Admission {
    // Zero means one thread.
    let threads = lane.max_threads.max(1) as usize;
    let active = if planned.spec.execution.reentrant { threads } else { 1 };
    Admission {
        width: active.min(width.max(1)),
        overlaps: active > 1,
        capacity: active + lane.queue_capacity as usize,
        overflow: lane.overflow,
    }
}

/// How many members of a Jacobi loop may run at the same time; `None` if the lane calls one after
/// the other, which does not depend on the number of workers.
fn members_at_once(lane: &LaneSpec, width: usize) -> Option<usize> {
    let threads = lane.max_threads.max(1) as usize;
    let is_wide = lane.lane_type == LaneType::ThreadPool && threads > 1;
    is_wide.then(|| threads.min(width.max(1)))
}

/// The domain of each lane: one domain for all, or, if `is_split`, a further one for each lane with
/// its own clock.
pub(crate) fn domains(plan: &Plan, is_split: bool) -> Vec<usize> {
    plan.lanes.iter().map(|lane| if is_split { lane.domain } else { 0 }).collect()
}

pub(crate) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("the limits of a description bound all counts")
}

/// Finds the port of an endpoint `component.port`.
pub(crate) fn find_port(plan: &Plan, endpoint: &str) -> Result<Port, String> {
    let (id, port) = crate::describe::EdgeSpec::split(endpoint);
    let component = plan.find(id).ok_or_else(|| format!("there is no component `{id}`"))?;
    let planned = &plan.components[component];
    if let Some(index) = planned.inputs.iter().position(|one| one.name == port) {
        return match planned.inputs[index].edges.first() {
            Some(edge) => Ok(Port::Input { component, index, edge: count(*edge) }),
            None => Err(format!(
                "no edge ends at `{endpoint}`, and `{id}` is not at the input boundary"
            )),
        };
    }
    match planned.outputs.iter().position(|one| one.name == port) {
        Some(index) => Ok(Port::Output { component, index }),
        None => Err(format!("`{id}` has no port `{port}`")),
    }
}

/// A port of the plan.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Port {
    Input { component: usize, index: usize, edge: u32 },
    Output { component: usize, index: usize },
}
