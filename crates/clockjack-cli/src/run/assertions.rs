//! What must hold for a run, as a file says it. There are fixed kinds and no scripts.
//!
//! An assertion about events that were lost cannot hold: it is told as failed, with the reason.

use alloc::collections::BTreeMap;

use clockjack_graph::run::Metrics;
use serde::Deserialize;
use serde_json::{Value, json};

/// A file of assertions; none, unless one is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assertions {
    assertion_schema_version: String,
    assertions: Vec<Assertion>,
}

/// One of them. Which fields it needs depends on its type.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Assertion {
    id: String,
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(default)]
    event: String,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default, rename = "where")]
    filter: BTreeMap<String, String>,
    #[serde(default)]
    metric: String,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    value: f64,
    #[serde(default)]
    n: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// As many events as `value`.
    CounterEquals,
    MetricEquals,
    MetricLte,
    MetricGte,
    /// All events of this name pass the filter.
    Always,
    /// None does.
    Never,
    /// One does.
    Eventually,
    /// One of the first `n` events does.
    WithinEvents,
    /// One of the first `n` epochs has one that does.
    WithinEpochs,
    /// These events come in this order, with any others between them.
    Sequence,
}

impl Assertions {
    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let read: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        if read.assertion_schema_version != "1" {
            let version = &read.assertion_schema_version;
            return Err(format!("assertion_schema_version is {version}, and only 1 is known"));
        }
        Ok(read)
    }

    /// Begins to watch.
    pub(crate) fn watch(&self) -> Watch<'_> {
        let state = self.assertions.iter().map(|_| Seen::default()).collect();
        Watch { of: self, state, n_events: 0 }
    }
}

/// What was seen of the events so far.
#[derive(Debug)]
pub(crate) struct Watch<'a> {
    of: &'a Assertions,
    state: Vec<Seen>,
    n_events: u64,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    /// Events that pass.
    n_hits: u64,
    /// Events of the name that do not pass the filter.
    n_misses: u64,
    /// Whether one passed in time.
    in_time: bool,
    /// How much of a sequence has come.
    n_steps: usize,
}

impl Watch<'_> {
    /// The next event.
    pub(crate) fn event(&mut self, event: &Value) {
        self.n_events += 1;
        let kind = event["kind"].as_str().unwrap_or("");
        let epoch = event["epoch_id"].as_u64().unwrap_or(0);
        for (one, seen) in self.of.assertions.iter().zip(&mut self.state) {
            if one.events.get(seen.n_steps).is_some_and(|next| next == kind) {
                seen.n_steps += 1;
            }
            if one.event != kind {
                continue;
            }
            if !one.filter.iter().all(|(name, wanted)| text(&event[name.as_str()]) == *wanted) {
                seen.n_misses += 1;
                continue;
            }
            seen.n_hits += 1;
            seen.in_time |= match one.kind {
                Kind::WithinEvents => self.n_events <= one.n,
                Kind::WithinEpochs => epoch <= one.n,
                _ => false,
            };
        }
    }

    /// Whether all hold, and a record of each.
    pub(crate) fn results(&self, metrics: &Metrics, n_dropped: u64) -> (bool, Vec<Value>) {
        let mut all = true;
        let mut records = Vec::new();
        for (one, seen) in self.of.assertions.iter().zip(&self.state) {
            let (holds, observed) = one.outcome(seen, metrics);
            let is_partial = n_dropped > 0 && !one.kind.is_of_metrics();
            let holds = holds && !is_partial;
            all &= holds;
            records.push(json!({
                "kind": "assertion",
                "id": one.id,
                "ok": holds,
                "observed": observed,
                "exactness": if is_partial { "partial" } else { "exact" },
            }));
        }
        (all, records)
    }
}

impl Kind {
    const fn is_of_metrics(self) -> bool {
        matches!(self, Self::MetricEquals | Self::MetricLte | Self::MetricGte)
    }
}

impl Assertion {
    /// Whether it holds, and what was found.
    #[expect(clippy::float_cmp, reason = "counts are whole numbers, which compare exactly")]
    #[expect(clippy::cast_precision_loss, reason = "no run has as many events as a float counts")]
    fn outcome(&self, seen: &Seen, metrics: &Metrics) -> (bool, Value) {
        let metric = match &self.label {
            Some(label) => metrics.get(&self.metric, label),
            None => {
                let is_there = metrics.list.iter().any(|one| one.name == self.metric)
                    || metrics.user.iter().any(|one| one.name == self.metric);
                is_there.then(|| metrics.total(&self.metric))
            }
        };
        match self.kind {
            Kind::CounterEquals => (seen.n_hits as f64 == self.value, json!(seen.n_hits)),
            Kind::MetricEquals => (metric == Some(self.value), json!(metric)),
            Kind::MetricLte => (metric.is_some_and(|value| value <= self.value), json!(metric)),
            Kind::MetricGte => (metric.is_some_and(|value| value >= self.value), json!(metric)),
            Kind::Always => (seen.n_misses == 0, json!(seen.n_misses)),
            Kind::Never => (seen.n_hits == 0, json!(seen.n_hits)),
            Kind::Eventually => (seen.n_hits > 0, json!(seen.n_hits)),
            Kind::WithinEvents | Kind::WithinEpochs => (seen.in_time, json!(seen.in_time)),
            Kind::Sequence => (seen.n_steps == self.events.len(), json!(seen.n_steps)),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
assertion_schema_version: \"1\"
assertions:
  - {id: order, type: sequence, events: [a, c]}
  - {id: early, type: within_events, event: b, n: 2}
  - {id: epoch, type: within_epochs, event: c, n: 1}
  - {id: none, type: never, event: b, where: {lane: slow}}
  - {id: all, type: always, event: b, where: {lane: fast}}
  - {id: one, type: eventually, event: c}
  - {id: count, type: counter_equals, event: a, value: 1}
  - {id: metric, type: metric_lte, metric: m, value: 3}
";

    fn failed(events: &[Value], n_dropped: u64) -> Vec<String> {
        let assertions = Assertions::parse(TEXT).expect("they can be read");
        let mut watch = assertions.watch();
        events.iter().for_each(|event| watch.event(event));
        let kind = clockjack_graph::run::MetricKind::Counter;
        let metric = clockjack_graph::run::Metric { name: "m", kind, label: None, value: 3.0 };
        let (ok, records) =
            watch.results(&Metrics { list: vec![metric], ..Metrics::default() }, n_dropped);
        let failed = records.iter().filter(|one| one["ok"] == false);
        let failed: Vec<String> = failed.map(|one| text(&one["id"])).collect();
        assert_eq!(ok, failed.is_empty());
        failed
    }

    fn event(kind: &str, lane: &str, epoch: u64) -> Value {
        json!({"kind": kind, "lane": lane, "epoch_id": epoch})
    }

    #[test]
    fn each_kind_holds_or_fails_by_what_was_seen() {
        let good = [event("a", "", 0), event("b", "fast", 0), event("c", "", 1)];
        assert!(failed(&good, 0).is_empty());
        let bad = [event("c", "", 2), event("a", "", 0), event("x", "", 0), event("b", "slow", 9)];
        assert_eq!(failed(&bad, 0), ["order", "early", "epoch", "none", "all"]);
        assert_eq!(failed(&[], 0), ["order", "early", "epoch", "one", "count"]);
    }

    #[test]
    fn nothing_about_events_holds_if_some_were_lost() {
        let good = [event("a", "", 0), event("b", "fast", 0), event("c", "", 1)];
        assert_eq!(failed(&good, 1).len(), 7, "all but the one about a metric");
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        assert!(Assertions::parse("assertion_schema_version: \"2\"\nassertions: []\n").is_err());
        let unknown = TEXT.replace("type: never", "type: nevr");
        assert!(Assertions::parse(&unknown).is_err());
    }
}
