//! Finds edges, lanes and triggers that lose messages by default, because messages come faster than
//! they are read.
//!
//! Rates are known where time drives a component: timers, lanes with a period, and what these feed.
//! A component that is called in every epoch has no rate. A policy that the file states is what its
//! author wants; only defaults are reported.

use std::collections::BTreeMap;

use super::Finding;
use crate::{
    describe::{
        ComponentSpec, EdgeMode, EdgeSpec, GraphSpec, LaneOverflow, LaneSpec, LaneType, SourceType,
        TriggerType,
    },
    diagnostic::Severity,
};

/// Calls or messages per second.
type Rate = f64;

/// Rates follow at most so many edges, so that cycles end.
const STEPS_MAX: usize = 64;

/// Adds all findings about messages that are lost by default.
pub(super) fn lint(
    spec: &GraphSpec,
    lane_of: &BTreeMap<&str, &LaneSpec>,
    findings: &mut Vec<Finding>,
) {
    let graph = Rates::new(spec, lane_of);
    for edge in &spec.edges {
        findings.extend(graph.slow_reader(edge));
    }
    for component in &spec.components {
        findings.extend(graph.narrow_lane(component));
        findings.extend(graph.uneven_inputs(component));
    }
}

struct Rates<'s> {
    lane_of: &'s BTreeMap<&'s str, &'s LaneSpec>,
    components: BTreeMap<&'s str, &'s ComponentSpec>,
    /// The edges that end at each endpoint.
    into: BTreeMap<&'s str, Vec<&'s EdgeSpec>>,
    /// How often each component is called, where that is known.
    calls: BTreeMap<&'s str, Rate>,
}

impl<'s> Rates<'s> {
    fn new(spec: &'s GraphSpec, lane_of: &'s BTreeMap<&'s str, &'s LaneSpec>) -> Self {
        let mut into: BTreeMap<&str, Vec<&EdgeSpec>> = BTreeMap::new();
        for edge in &spec.edges {
            into.entry(&edge.to).or_default().push(edge);
        }
        let components = spec.components.iter().map(|one| (&*one.id, one)).collect();
        let mut rates = Self { lane_of, components, into, calls: BTreeMap::new() };
        for _ in 0..STEPS_MAX.min(spec.components.len()) {
            let n_known = rates.calls.len();
            for component in &spec.components {
                if let Some(rate) = rates.calls_of(component) {
                    rates.calls.insert(&component.id, rate);
                }
            }
            if rates.calls.len() == n_known {
                break;
            }
        }
        rates
    }

    /// How often the lane of a component looks at it, if a period says so.
    fn ticks_of(&self, component: &ComponentSpec) -> Option<Rate> {
        let lane = self.lane_of.get(&*component.id)?;
        let is_paced = lane.lane_type == LaneType::FixedRate && lane.period_ns() > 0;
        is_paced.then(|| per_second(lane.period_ns()))
    }

    fn calls_of(&self, component: &ComponentSpec) -> Option<Rate> {
        let timers = component.event_sources.iter();
        let timers = timers.filter(|one| one.source_type == SourceType::Timer && one.period_ms > 0);
        let by_timer: Rate =
            timers.map(|one| per_second(one.period_ms.saturating_mul(1_000_000))).sum();
        let rate = if by_timer > 0.0 {
            by_timer
        } else if is_driven_by_messages(component) {
            let inputs = trigger_inputs(component);
            let mut each = inputs.map(|input| self.messages_at(&component.id, input));
            match component.trigger.trigger_type {
                TriggerType::AllInputs | TriggerType::TimeSync => {
                    each.try_fold(Rate::INFINITY, |least, one| Some(least.min(one?)))?
                }
                _ => each.try_fold(0.0, |sum, one| Some(sum + one?))?,
            }
        } else {
            self.ticks_of(component)?
        };
        let interval_ms = component.trigger.min_interval_ms;
        let limit = if interval_ms > 0 {
            per_second(interval_ms.saturating_mul(1_000_000))
        } else {
            Rate::INFINITY
        };
        Some(rate.min(limit)).filter(|rate| rate.is_finite())
    }

    /// How many messages come to an input, if that is known for all its edges.
    fn messages_at(&self, component: &str, input: &str) -> Option<Rate> {
        let edges = self.into.get(&*format!("{component}.{input}"))?;
        edges.iter().try_fold(0.0, |sum, edge| Some(sum + self.messages_on(edge)?))
    }

    fn messages_on(&self, edge: &EdgeSpec) -> Option<Rate> {
        let (producer, _) = EdgeSpec::split(&edge.from);
        let burst = self.components.get(producer)?.execution.burst.max(1);
        Some(self.calls.get(producer)? * Rate::from(burst))
    }

    /// An edge whose reader looks too seldom for what the edge holds.
    fn slow_reader(&self, edge: &EdgeSpec) -> Option<Finding> {
        let policy = &edge.policy;
        let evicts = policy.overflow.evicts();
        let is_chosen = ["policy.mode", "policy.overflow"].iter().any(|one| edge.spans.has(one));
        if !evicts || is_chosen {
            return None;
        }
        let (reader, _) = EdgeSpec::split(&edge.to);
        let component = self.components.get(reader)?;
        let is_polled = !is_driven_by_messages(component);
        let looks = self
            .ticks_of(component)
            .or_else(|| is_polled.then(|| self.calls.get(reader).copied())?)?;
        // Of a barrier that is not full, nothing is read.
        let places = if policy.mode == EdgeMode::Barrier { 1 } else { policy.n_places() };
        let messages = self.messages_on(edge)?;
        let (mode, overflow) = (policy.mode, policy.overflow);
        (messages > looks * Rate::from(places)).then(|| Finding {
            severity: Severity::Warning,
            rule: "lossy_default",
            message: format!(
                "`{}` sends {messages:.0} messages per second, `{reader}` reads {looks:.0} times \
                 per second, and the default `mode: {mode}`, `overflow: {overflow}` drops the \
                 rest; state a policy, or use `mode: queue` with enough `capacity`",
                edge.from
            ),
            id: edge.id.clone(),
        })
    }

    /// A pool lane that admits fewer invocations per step than can be ready.
    fn narrow_lane(&self, component: &ComponentSpec) -> Option<Finding> {
        let lane = *self.lane_of.get(&*component.id)?;
        let is_chosen = ["queue_capacity", "overflow"].iter().any(|one| lane.spans.has(one));
        let is_lossy = !matches!(lane.overflow, LaneOverflow::FailFast);
        if lane.lane_type != LaneType::ThreadPool
            || is_chosen
            || !is_lossy
            || !makes_call_per_message(component)
        {
            return None;
        }
        let is_wide = component.execution.reentrant;
        let width = if is_wide { lane.max_threads.max(1) } else { 1 };
        let admitted = u64::from(width) + u64::from(lane.queue_capacity);
        let edges = trigger_inputs(component)
            .filter_map(|input| self.into.get(&*format!("{}.{input}", component.id)));
        let ready: u64 = edges.flatten().map(|edge| u64::from(edge.policy.n_places())).sum();
        (ready > admitted).then(|| Finding {
            severity: Severity::Warning,
            rule: "lossy_default",
            message: format!(
                "up to {ready} messages can be ready at once, and the lane `{}` admits {admitted} \
                 and rejects the rest; set its `queue_capacity`",
                lane.id
            ),
            id: component.id.clone(),
        })
    }

    /// A trigger that needs a message of each input, while some inputs get more messages.
    fn uneven_inputs(&self, component: &'s ComponentSpec) -> Option<Finding> {
        let needs_all = matches!(
            component.trigger.trigger_type,
            TriggerType::AllInputs | TriggerType::TimeSync
        );
        if !needs_all || component.trigger.coalesce || !is_driven_by_messages(component) {
            return None;
        }
        let rate = |input: &'s str| Some((input, self.messages_at(&component.id, input)?));
        let rates: Vec<(&str, Rate)> =
            trigger_inputs(component).map(rate).collect::<Option<_>>()?;
        let by_rate = |a: &&(&str, Rate), b: &&(&str, Rate)| a.1.total_cmp(&b.1);
        let (most, least) = (rates.iter().max_by(by_rate)?, rates.iter().min_by(by_rate)?);
        (most.1 > least.1).then(|| Finding {
            severity: Severity::Warning,
            rule: "lossy_default",
            message: format!(
                "input `{}` gets {:.0} messages per second and `{}` gets {:.0}, and the trigger \
                 uses as many of each; state `coalesce: true` if the newest of each is enough",
                most.0, most.1, least.0, least.1
            ),
            id: component.id.clone(),
        })
    }
}

/// The inputs of a trigger: its own, or those of the event sources.
fn trigger_inputs(component: &ComponentSpec) -> impl Iterator<Item = &str> {
    let own = component.trigger.inputs.iter();
    let of_sources = component.event_sources.iter().flat_map(|source| &source.inputs);
    let is_own = !component.trigger.inputs.is_empty();
    own.chain(of_sources.filter(move |_| !is_own)).map(String::as_str)
}

fn is_driven_by_messages(component: &ComponentSpec) -> bool {
    let is_message = |one: SourceType| !matches!(one, SourceType::Manual | SourceType::Timer);
    component.event_sources.iter().any(|source| is_message(source.source_type))
}

/// Whether each message makes an invocation of its own.
fn makes_call_per_message(component: &ComponentSpec) -> bool {
    let trigger = &component.trigger;
    let is_each = !matches!(
        trigger.trigger_type,
        TriggerType::AllInputs
            | TriggerType::TimeSync
            | TriggerType::Batch
            | TriggerType::Debounce
            | TriggerType::Condition
            | TriggerType::RateLimit
    );
    is_driven_by_messages(component) && is_each && !trigger.coalesce
}

/// The rate of something with this period.
#[expect(clippy::cast_precision_loss, reason = "numbers for people; 2^53 is enough")]
fn per_second(period_ns: u64) -> Rate {
    1e9 / period_ns as Rate
}
