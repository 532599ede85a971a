//! Counts of occurrences between two frames: messages from trace records, everything else from
//! metrics.

use std::collections::BTreeMap;

use clockjack_graph::{
    compile::Plan,
    run::{Metrics, TraceName, TraceRecord},
};
use serde_json::{Value, json};

use super::summary_event;

/// Metrics whose growth is an event, with its kind and severity.
const GROWING: [(&str, &str, &str); 7] = [
    ("runtime.channel.drop_count", "channel_drop", "warning"),
    ("runtime.channel.reject_count", "channel_reject", "warning"),
    ("runtime.channel.overwrite_count", "channel_overwrite", "info"),
    ("runtime.trigger.ready_count", "trigger_ready_summary", "info"),
    ("runtime.trigger.suppressed_count", "trigger_suppressed_summary", "info"),
    ("runtime.async.rejected_count", "async_reject", "warning"),
    ("runtime.async.dropped_count", "async_drop", "warning"),
];

/// Counts since the previous frame.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Publications and commits per edge index.
    messages: BTreeMap<u32, (u64, u64)>,
    /// The previous value per index in `GROWING` and label.
    before: BTreeMap<(usize, String), f64>,
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
            let Some(at) = GROWING.iter().position(|(name, ..)| *name == one.name) else {
                continue;
            };
            let whose = one.label.as_ref().map_or("", |(_, whose)| whose.as_str());
            let before = self.before.entry((at, whose.to_owned())).or_insert(0.0);
            let grown = one.value - *before;
            if grown <= 0.0 {
                continue;
            }
            *before = one.value;
            let ids = match &one.label {
                Some((label, whose)) => json!({ *label: whose }),
                None => json!({}),
            };
            let (_, kind, severity) = GROWING[at];
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the cast saturates, and a count is a whole number"
            )]
            let attributes = json!({"count": grown as u64});
            let what = (kind, severity, "aggregated");
            events.push(summary_event("counts", what, at_ns, ids, attributes));
        }
        events
    }
}
