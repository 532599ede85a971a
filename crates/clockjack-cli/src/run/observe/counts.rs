//! Counts of occurrences between two frames: messages from trace records, everything else from
//! metrics.

use std::collections::BTreeMap;

use clockjack_graph::{
    compile::Plan,
    run::{Metric, Metrics, TraceName, TraceRecord},
};
use serde_json::{Value, json};

use super::summary_event;
use crate::run::known_losses::{LossCounter, whole};

/// Further metrics whose growth is an event, with its kind and severity.
const GROWING: [(&str, &str, &str); 4] = [
    ("runtime.trigger.ready_count", "trigger_ready_summary", "info"),
    ("runtime.trigger.suppressed_count", "trigger_suppressed_summary", "info"),
    ("runtime.async.rejected_count", "async_reject", "warning"),
    ("runtime.async.dropped_count", "async_drop", "warning"),
];

/// The kind and the severity of the event for the growth of a metric, and the cause if the metric
/// counts lost messages.
fn event_of(metric: &Metric) -> Option<(&'static str, &'static str, Option<&'static str>)> {
    if let Some(counter) = LossCounter::of(metric) {
        return counter.event().map(|(kind, severity)| (kind, severity, Some(counter.cause())));
    }
    let other = GROWING.iter().find(|(name, ..)| *name == metric.name);
    other.map(|(_, kind, severity)| (*kind, *severity, None))
}

/// Counts since the previous frame.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Publications and commits per edge index.
    messages: BTreeMap<u32, (u64, u64)>,
    /// The previous value per metric and label.
    before: BTreeMap<(String, String), f64>,
    mono_ns: u64,
}

impl Counts {
    /// Counts a record.
    pub(crate) fn record(&mut self, record: &TraceRecord) {
        self.mono_ns = self.mono_ns.max(record.start_ns);
        let (published, committed) = match record.name {
            TraceName::ChannelPublish => (1, 0),
            TraceName::ChannelCommit | TraceName::StateCommit | TraceName::AsyncAdmission => (0, 1),
            _ => return,
        };
        let counts = self.messages.entry(record.edge).or_insert((0, 0));
        counts.0 += published;
        counts.1 += committed;
    }

    /// The time of the latest record.
    pub(crate) fn mono_ns(&self) -> u64 {
        self.mono_ns
    }

    /// The events for everything that has grown since the previous frame.
    pub(crate) fn events(&mut self, plan: &Plan, metrics: &Metrics) -> Vec<Value> {
        let (mut events, at_ns) = (Vec::new(), self.mono_ns);
        for (edge, (published, committed)) in core::mem::take(&mut self.messages) {
            let Some(edge) = plan.edges.get(edge as usize) else { continue };
            for (kind, n) in
                [("channel_publish_summary", published), ("channel_commit_summary", committed)]
            {
                if n > 0 {
                    let what = (kind, "info", "aggregated");
                    let ids = json!({"channel_id": edge.id});
                    events.push(summary_event("counts", what, at_ns, ids, json!({"count": n})));
                }
            }
        }
        for one in &metrics.list {
            let Some((kind, severity, cause)) = event_of(one) else { continue };
            let whose = one.label.as_ref().map_or("", |(_, whose)| whose.as_str());
            let key = (one.name.to_string(), whose.to_owned());
            let before = self.before.entry(key).or_insert(0.0);
            let grown = one.value - *before;
            if grown <= 0.0 {
                continue;
            }
            *before = one.value;
            let ids = match &one.label {
                Some((label, whose)) => json!({ *label: whose }),
                None => json!({}),
            };
            let mut attributes = json!({"count": whole(grown)});
            if let Some(cause) = cause {
                attributes["cause"] = cause.into();
            }
            let what = (kind, severity, "aggregated");
            events.push(summary_event("counts", what, at_ns, ids, attributes));
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use clockjack_graph::{GraphFile, Registry, run::MetricKind};

    use super::*;

    #[test]
    fn every_counter_of_lost_messages_is_an_event_with_its_cause_when_it_grows() {
        let counter = |name: &'static str, label, value| Metric {
            name: name.into(),
            kind: MetricKind::Counter,
            label: Some((label, "x".to_owned())),
            value,
        };
        let metrics = |value| {
            let list = vec![
                counter("runtime.channel.stale_drop_count", "channel_id", value),
                counter("runtime.trigger.timeout_drop_count", "component_id", value),
                counter("runtime.trigger.pending_drop_count", "component_id", value),
                counter("runtime.trigger.coalesced_count", "component_id", value),
                counter("runtime.scheduler.rejected_count", "lane", value),
                counter("runtime.channel.delivery_count", "channel_id", value),
            ];
            Metrics { list, ..Metrics::default() }
        };
        let text = include_str!("../../../tests/graphs/cell.yaml");
        let graph = GraphFile::parse("cell.yaml", text).expect("it is right");
        let graph = graph.compile(&Registry::standard()).expect("it is right");
        let mut counts = Counts::default();
        let mut seen = |value| {
            let events = counts.events(graph.plan(), &metrics(value));
            let seen = events.iter().map(|event| {
                let of = |at: &str| event[at].as_str().unwrap_or_default().to_owned();
                let attributes = &event["attributes"];
                let cause = attributes["cause"].as_str().unwrap_or_default().to_owned();
                (of("kind"), of("severity"), cause, attributes["count"].as_u64().unwrap_or(0))
            });
            seen.collect::<Vec<_>>()
        };
        let expected = |count| {
            let of = |(kind, severity, cause): (&str, &str, &str)| {
                (kind.to_owned(), severity.to_owned(), cause.to_owned(), count)
            };
            let all = [
                ("channel_stale", "warning", "stale"),
                ("trigger_drop", "warning", "max_latency"),
                ("trigger_drop", "warning", "pending_full"),
                ("trigger_coalesced", "info", "coalesced"),
                ("lane_reject", "warning", "lane_full"),
            ];
            all.map(of)
        };
        assert!(seen(0.0).is_empty());
        assert_eq!(seen(3.0), expected(3));
        assert!(seen(3.0).is_empty(), "nothing has grown");
        assert_eq!(seen(7.0), expected(4));
    }
}
