//! The messages that no component saw, as counted while a run goes on. A run that has ended has an
//! exact list in its report; one that was abandoned has its last metrics only.

use core::fmt;

use clockjack_graph::{
    Plan,
    run::{LossCause, Metric, Metrics},
};
use serde_json::{Value, json};

/// A metric that counts messages that no component saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossCounter {
    metric: &'static str,
    place: &'static str,
    cause: LossCause,
    /// The kind and the severity of the event for its growth; `None` if the trace has records of
    /// the messages.
    event: Option<(&'static str, &'static str)>,
}

/// All counters that have a place. What they do not count, such as messages beyond `max_inflight`,
/// is in the report of a run only.
const COUNTERS: [LossCounter; 12] = {
    use LossCause::{
        BehindWatermark, Coalesced, EdgeFull, LaneFull, LoopDiscarded, MaxLatency, NoMatch,
        NoTimestamp, Overwritten, PendingFull, Refused, Stale,
    };
    const fn of(
        metric: &'static str,
        place: &'static str,
        cause: LossCause,
        event: Option<(&'static str, &'static str)>,
    ) -> LossCounter {
        LossCounter { metric, place, cause, event }
    }
    const TRIGGER_DROP: Option<(&str, &str)> = Some(("trigger_drop", "warning"));
    const COALESCED: Option<(&str, &str)> = Some(("trigger_coalesced", "info"));
    const OVERWRITE: Option<(&str, &str)> = Some(("channel_overwrite", "info"));
    const DROP: Option<(&str, &str)> = Some(("channel_drop", "warning"));
    const REJECT: Option<(&str, &str)> = Some(("channel_reject", "warning"));
    const STALE: Option<(&str, &str)> = Some(("channel_stale", "warning"));
    const LANE_REJECT: Option<(&str, &str)> = Some(("lane_reject", "warning"));
    [
        of("runtime.channel.overwrite_count", "edge", Overwritten, OVERWRITE),
        of("runtime.channel.drop_count", "edge", EdgeFull, DROP),
        of("runtime.channel.reject_count", "edge", Refused, REJECT),
        of("runtime.channel.stale_drop_count", "edge", Stale, STALE),
        of("runtime.trigger.coalesced_count", "component", Coalesced, COALESCED),
        of("runtime.trigger.timeout_drop_count", "component", MaxLatency, TRIGGER_DROP),
        of("runtime.trigger.time_sync_drop_count", "component", NoMatch, TRIGGER_DROP),
        of("runtime.trigger.late_drop_count", "component", BehindWatermark, TRIGGER_DROP),
        of("runtime.trigger.pending_drop_count", "component", PendingFull, TRIGGER_DROP),
        of("runtime.trigger.condition_suppressed_count", "component", NoTimestamp, TRIGGER_DROP),
        of("runtime.scheduler.rejected_count", "lane", LaneFull, LANE_REJECT),
        of("runtime.loop.output_discarded", "loop", LoopDiscarded, None),
    ]
};

impl LossCounter {
    /// The counter whose metric has this name.
    pub(crate) fn of(metric: &Metric) -> Option<&'static Self> {
        COUNTERS.iter().find(|one| one.metric == metric.name)
    }

    /// The kind and the severity of the event for its growth.
    pub(crate) const fn event(&self) -> Option<(&'static str, &'static str)> {
        self.event
    }

    /// The cause by name.
    pub(crate) const fn cause(&self) -> &'static str {
        self.cause.name()
    }
}

/// Messages that were lost for one cause at one place, as last counted.
#[derive(Debug)]
pub(crate) struct KnownLoss<'m> {
    of: &'static LossCounter,
    id: &'m str,
    pub(crate) count: u64,
    hint: &'static str,
}

/// All losses that these metrics of a run of the plan know.
pub(crate) fn known_losses<'m>(plan: &Plan, metrics: &'m Metrics) -> Vec<KnownLoss<'m>> {
    let known = metrics.list.iter().filter_map(|one| {
        let id = one.label.as_ref().map_or("", |(_, id)| id.as_str());
        let of = LossCounter::of(one)?;
        Some(KnownLoss { of, id, count: whole(one.value), hint: of.cause.hint(plan, id) })
    });
    known.filter(|one| one.count > 0).collect()
}

/// A count in a metric.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a count is a whole number"
)]
pub(crate) const fn whole(count: f64) -> u64 {
    count as u64
}

impl KnownLoss<'_> {
    pub(crate) fn json(&self) -> Value {
        let LossCounter { place, cause, .. } = self.of;
        json!({
            "place": place,
            "id": self.id,
            "cause": cause.name(),
            "count": self.count,
            "description": cause.description(),
            "hint": self.hint,
        })
    }
}

impl fmt::Display for KnownLoss<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LossCounter { place, cause, .. } = self.of;
        let noun = if self.count == 1 { "message" } else { "messages" };
        let (id, count, what) = (self.id, self.count, cause.description());
        write!(f, "{place} {id}: {count} {noun} {what}; {}", self.hint)
    }
}

#[cfg(test)]
mod tests {
    use clockjack_graph::run::MetricDescriptor;

    use super::*;

    #[test]
    fn every_counter_is_a_metric_of_its_place() {
        for one in COUNTERS {
            let metric = MetricDescriptor::of(one.metric);
            let metric = metric.unwrap_or_else(|| panic!("no metric {}", one.metric));
            let label = match one.place {
                "edge" => "channel_id",
                "lane" => "lane",
                _ => "component_id",
            };
            assert_eq!(metric.scope.label(), Some(label), "{}", one.metric);
        }
    }
}
