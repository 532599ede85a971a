//! Each policy on a bench: a trigger, its channels, and messages put in by hand.

mod policies;
mod timing;

use std::sync::Arc;

use super::{EventKind, Invocations, Trigger};
use crate::{
    compile::plan::{PlanComponent, PlanEdge, PlanPort},
    component::Descriptor,
    data::Value,
    describe::{
        ClockDomain, ComponentSpec, EdgeKind, EdgeMode, EdgeOverflow, EdgePolicy, EventSourceSpec,
        SourceType, TriggerSpec, TriggerType,
    },
    run::flow::{
        channel::{Channel, Pushed},
        message::{Message, Meta, Stamp},
    },
};

pub(super) const MS: u64 = 1_000_000;

/// A queue that refuses what it has no room for.
pub(super) fn queue(capacity: u32) -> EdgePolicy {
    EdgePolicy {
        mode: EdgeMode::Queue,
        capacity,
        overflow: EdgeOverflow::Reject,
        ..EdgePolicy::default()
    }
}

pub(super) fn source(source_type: SourceType, inputs: &[&str]) -> EventSourceSpec {
    EventSourceSpec {
        source_type,
        inputs: inputs.iter().map(|input| (*input).into()).collect(),
        ..EventSourceSpec::default()
    }
}

pub(super) fn trigger(trigger_type: TriggerType) -> TriggerSpec {
    TriggerSpec { trigger_type, ..TriggerSpec::default() }
}

/// A trigger, its channels and what it has made.
pub(super) struct Bench {
    pub(super) trigger: Trigger,
    pub(super) channels: Vec<Channel>,
    pub(super) out: Invocations,
    ports: Vec<String>,
    /// The port of each channel.
    ends: Vec<usize>,
}

impl Bench {
    /// A component with these inputs, each with the channels of these edges; the trigger looks at
    /// all of them, in this order.
    pub(super) fn new(
        spec: TriggerSpec,
        sources: Vec<EventSourceSpec>,
        ports: &[(&str, &[EdgePolicy])],
    ) -> Self {
        let mut edges = Vec::new();
        let mut inputs = Vec::new();
        for (port, (name, policies)) in ports.iter().enumerate() {
            let first = edges.len();
            edges.extend(policies.iter().map(|policy| PlanEdge {
                id: format!("e{name}"),
                kind: EdgeKind::Immediate,
                policy: policy.clone(),
                from: (0, 0),
                to: (0, port),
                slow_reader_drop_risk: false,
                advisory_fields: Vec::new(),
            }));
            let edges = (first..edges.len()).collect();
            inputs.push(PlanPort { name: (*name).into(), schema: String::new(), edges });
        }
        let component = PlanComponent {
            spec: ComponentSpec {
                event_sources: sources,
                trigger: spec,
                ..ComponentSpec::default()
            },
            descriptor: Arc::new(Descriptor::new("bench")),
            lane: 0,
            region: 0,
            trigger_inputs: (0..inputs.len()).collect(),
            inputs,
            outputs: Vec::new(),
        };
        let in_edges: Vec<_> = Trigger::in_edges(&component).collect();
        let channel = |edge: &usize| Channel::new(0, &edges[*edge].policy);
        Self {
            trigger: Trigger::new(&component, &edges),
            channels: in_edges.iter().map(channel).collect(),
            out: Invocations::default(),
            ports: ports.iter().map(|(name, _)| (*name).into()).collect(),
            ends: in_edges.iter().map(|edge| edges[*edge].to.1).collect(),
        }
    }

    /// With a message source for these inputs, each with one queue of this capacity.
    pub(super) fn messages(spec: TriggerSpec, ports: &[&str], capacity: u32) -> Self {
        let policy = [queue(capacity)];
        let ports: Vec<_> = ports.iter().map(|name| (*name, &policy[..])).collect();
        let names: Vec<_> = ports.iter().map(|(name, _)| *name).collect();
        Self::new(spec, vec![source(SourceType::Message, &names)], &ports)
    }

    /// Puts messages into the first channel of an input.
    pub(super) fn put(&mut self, port: &str, now_ns: u64, numbers: &[u64]) {
        for number in numbers {
            self.put_stamped(port, now_ns, *number, None);
        }
    }

    pub(super) fn put_stamped(
        &mut self,
        port: &str,
        now_ns: u64,
        number: u64,
        stamp: Option<(ClockDomain, u64)>,
    ) {
        let is_port = |end: &usize| self.ports[*end] == port;
        let channel = self.ends.iter().position(is_port).expect("the input is there");
        self.put_in(channel, now_ns, number, stamp);
    }

    /// Puts a message into a channel; whether it was taken.
    pub(super) fn put_in(
        &mut self,
        channel: usize,
        now_ns: u64,
        number: u64,
        stamp: Option<(ClockDomain, u64)>,
    ) -> bool {
        let stamp = stamp.map(|(domain, ns)| Stamp { domain, ns });
        let meta = Meta { published_ns: now_ns, ..Meta::default() }.stamped(stamp);
        let message = Message { value: Value::new(number), meta };
        !matches!(self.channels[channel].push(now_ns, message), Pushed::Refused(..))
    }

    /// What the trigger makes now: for each invocation its messages, as `a1 b2`.
    pub(super) fn collect(&mut self, now_ns: u64) -> Vec<String> {
        self.collect_some(now_ns, usize::MAX)
    }

    pub(super) fn collect_some(&mut self, now_ns: u64, limit: usize) -> Vec<String> {
        self.out.clear();
        let n_made = self.trigger.collect(now_ns, &mut self.channels, limit, &mut self.out);
        assert_eq!(n_made, self.out.len());
        let ports = &self.ports;
        let told = |(_, arrivals): (_, &mut [Message])| {
            let each = arrivals.iter().map(|arrival| {
                let number = arrival.value.get::<u64>().expect("the tests send numbers");
                format!("{}{number}", ports[usize::from(arrival.meta.port)])
            });
            each.collect::<Vec<_>>().join(" ")
        };
        self.out.iter_mut().map(told).collect()
    }

    pub(super) fn kinds(&mut self) -> Vec<EventKind> {
        self.out.iter_mut().map(|(invocation, _)| invocation.kind).collect()
    }

    pub(super) fn might_be_ready(&self, now_ns: u64) -> bool {
        self.trigger.might_be_ready(now_ns, &self.channels)
    }
}
