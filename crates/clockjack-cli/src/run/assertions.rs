//! What must hold for a run, as a file says it. There are fixed kinds and no scripts.
//!
//! An assertion about events that were lost cannot hold: it is told as failed, with the reason.
//! What could never hold or never fail because a name in it is wrong or a part is missing is
//! refused before anything runs.

use alloc::collections::{BTreeMap, BTreeSet};

use clockjack_graph::compile::Plan;
use clockjack_graph::run::{MetricDescriptor, Metrics};
use serde::Deserialize;
use serde_json::{Value, json};

use super::observe::{field, kind_named, no_such_kind};

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
    event: Option<String>,
    #[serde(default)]
    events: Vec<Step>,
    #[serde(default, rename = "where")]
    filter: BTreeMap<String, String>,
    #[serde(default)]
    metric: Option<String>,
    #[serde(default)]
    label: Option<String>,
    #[serde(default)]
    value: Option<f64>,
    #[serde(default)]
    n: Option<u64>,
}

/// One event of a sequence: its kind, or with what it must have.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Step {
    Kind(String),
    Filtered {
        event: String,
        #[serde(default, rename = "where")]
        filter: BTreeMap<String, String>,
    },
}

impl Step {
    fn kind(&self) -> &str {
        match self {
            Self::Kind(kind) => kind,
            Self::Filtered { event, .. } => event,
        }
    }

    fn is(&self, kind: &str, event: &Value) -> bool {
        match self {
            Self::Kind(wanted) => wanted == kind,
            Self::Filtered { event: wanted, filter } => wanted == kind && passes(event, filter),
        }
    }
}

/// What `where` may look at.
const FIELDS: [&str; 13] = [
    "component_id",
    "channel_id",
    "lane",
    "epoch_id",
    "correlation_id",
    "causation_id",
    "severity",
    "exactness",
    "worker_id",
    "health_kind",
    "count",
    "value",
    "message",
];

fn passes(event: &Value, filter: &BTreeMap<String, String>) -> bool {
    filter.iter().all(|(name, wanted)| text(field(event, name)) == *wanted)
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
        let read: Self = serde_saphyr::from_str(text)
            .map_err(|error| error.to_string().trim_start_matches("error: ").to_owned())?;
        if read.assertion_schema_version != "1" {
            let version = &read.assertion_schema_version;
            return Err(format!("assertion_schema_version is {version}, and only 1 is known"));
        }
        let mut ids = BTreeSet::new();
        for one in &read.assertions {
            let is_new = ids.insert(&one.id);
            let checked = if is_new { one.check() } else { Err("its id stands twice".into()) };
            checked.map_err(|why| format!("assertion `{}`: {why}", one.id))?;
        }
        Ok(read)
    }

    /// Refuses names that this graph has not: nothing would ever happen to them.
    pub(crate) fn check_names(&self, plan: &Plan) -> Result<(), String> {
        for one in &self.assertions {
            for (field, name) in one.filters().flatten() {
                check_name(plan, field, name)
                    .map_err(|why| format!("assertion `{}`: {why}", one.id))?;
            }
        }
        Ok(())
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
        let epoch = field(event, "epoch_id").as_u64().unwrap_or(0);
        for (one, seen) in self.of.assertions.iter().zip(&mut self.state) {
            if one.events.get(seen.n_steps).is_some_and(|next| next.is(kind, event)) {
                seen.n_steps += 1;
            }
            if one.event.as_deref() != Some(kind) {
                continue;
            }
            if !passes(event, &one.filter) {
                seen.n_misses += 1;
                continue;
            }
            seen.n_hits += 1;
            seen.in_time |= match one.kind {
                Kind::WithinEvents => one.n.is_some_and(|n| self.n_events <= n),
                Kind::WithinEpochs => one.n.is_some_and(|n| epoch <= n),
                _ => false,
            };
        }
    }

    /// Whether an assertion is about events of this kind.
    pub(crate) fn is_about(&self, kind: &str) -> bool {
        self.of.assertions.iter().any(|one| {
            one.event.as_deref() == Some(kind) || one.events.iter().any(|step| step.kind() == kind)
        })
    }

    /// The next event, if none is about its kind.
    pub(crate) fn pass_over(&mut self) {
        self.n_events += 1;
    }

    /// How many events there were.
    pub(crate) fn n_events(&self) -> u64 {
        self.n_events
    }

    /// Whether all hold, and a record of each.
    ///
    /// `is_partial`: not all events were seen.
    pub(crate) fn results(&self, metrics: &Metrics, is_partial: bool) -> (bool, Vec<Value>) {
        let mut all = true;
        let mut records = Vec::new();
        for (one, seen) in self.of.assertions.iter().zip(&self.state) {
            let (holds, observed) = one.outcome(seen, metrics);
            let is_partial = is_partial && !one.kind.is_of_metrics();
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

/// Refuses a name that this graph has not. Of other fields nothing is known before the run.
pub(crate) fn check_name(plan: &Plan, field: &str, name: &str) -> Result<(), String> {
    let (what, is_there) = match field {
        // A loop goes by its own id, which is that of its region.
        "component_id" => {
            let is_component = plan.components.iter().any(|one| one.spec.id.as_str() == name);
            let is_loop = plan.regions.iter().any(|one| one.id.as_str() == name);
            ("component or loop", is_component || is_loop)
        }
        "channel_id" => ("edge", plan.edges.iter().any(|one| one.id.as_str() == name)),
        "lane" => ("lane", plan.lanes.iter().any(|one| one.spec.id.as_str() == name)),
        _ => return Ok(()),
    };
    if is_there { Ok(()) } else { Err(format!("the graph has no {what} `{name}`")) }
}

impl Kind {
    const fn is_of_metrics(self) -> bool {
        matches!(self, Self::MetricEquals | Self::MetricLte | Self::MetricGte)
    }
}

/// A part of an assertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Needed,
    /// It may be there or not.
    Free,
    /// It would say nothing.
    Idle,
}

impl Assertion {
    /// All that events are held against.
    fn filters(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        let of_steps = self.events.iter().filter_map(|step| match step {
            Step::Kind(_) => None,
            Step::Filtered { filter, .. } => Some(filter),
        });
        of_steps.chain([&self.filter])
    }

    /// Whether its names are names, and it has what its type needs and nothing else.
    fn check(&self) -> Result<(), String> {
        self.check_parts()?;
        for name in self.filters().flat_map(BTreeMap::keys) {
            if !FIELDS.contains(&name.as_str()) {
                return Err(format!("`where` knows no `{name}`; it knows {}", FIELDS.join(", ")));
            }
        }
        let kinds = self.events.iter().map(Step::kind).chain(self.event.as_deref());
        if let Some(kind) = kinds.into_iter().find(|kind| kind_named(kind).is_none()) {
            return Err(no_such_kind(kind));
        }
        // Others may be those of components, which name them as they run.
        if let Some(metric) = &self.metric
            && metric.starts_with("runtime.")
            && MetricDescriptor::of(metric).is_none()
        {
            return Err(format!("there is no metric `{metric}`"));
        }
        if self.value.is_some_and(|value| !value.is_finite()) {
            return Err("`value` is no number".into());
        }
        if self.n == Some(0) {
            return Err("`n` is 0, and nothing comes before the first".into());
        }
        Ok(())
    }

    fn check_parts(&self) -> Result<(), String> {
        use Part::{Free, Idle, Needed};

        let [event, events, filter, metric, label, value, n] = match self.kind {
            Kind::CounterEquals => [Needed, Idle, Free, Idle, Idle, Needed, Idle],
            Kind::MetricEquals | Kind::MetricLte | Kind::MetricGte => {
                [Idle, Idle, Idle, Needed, Free, Needed, Idle]
            }
            Kind::Always => [Needed, Idle, Needed, Idle, Idle, Idle, Idle],
            Kind::Never | Kind::Eventually => [Needed, Idle, Free, Idle, Idle, Idle, Idle],
            Kind::WithinEvents | Kind::WithinEpochs => {
                [Needed, Idle, Free, Idle, Idle, Idle, Needed]
            }
            Kind::Sequence => [Idle, Needed, Idle, Idle, Idle, Idle, Idle],
        };
        let parts = [
            ("event", event, self.event.is_some()),
            ("events", events, !self.events.is_empty()),
            ("where", filter, !self.filter.is_empty()),
            ("metric", metric, self.metric.is_some()),
            ("label", label, self.label.is_some()),
            ("value", value, self.value.is_some()),
            ("n", n, self.n.is_some()),
        ];
        for (name, part, is_there) in parts {
            match (part, is_there) {
                (Needed, false) => return Err(format!("it has no `{name}`")),
                (Idle, true) => return Err(format!("`{name}` says nothing for its type")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it holds, and what was found.
    #[expect(clippy::float_cmp, reason = "counts are whole numbers, which compare exactly")]
    #[expect(clippy::cast_precision_loss, reason = "no run has as many events as a float counts")]
    fn outcome(&self, seen: &Seen, metrics: &Metrics) -> (bool, Value) {
        let name = self.metric.as_deref().unwrap_or("");
        let metric = match &self.label {
            Some(label) => metrics.get(name, label),
            None => {
                let is_there = metrics.list.iter().any(|one| one.name == name)
                    || metrics.user.iter().any(|one| one.name == name);
                is_there.then(|| metrics.total(name))
            }
        };
        // Nothing compares with what is not there; it is, by the check.
        let wanted = self.value.unwrap_or(f64::NAN);
        match self.kind {
            Kind::CounterEquals => (seen.n_hits as f64 == wanted, json!(seen.n_hits)),
            Kind::MetricEquals => (metric == Some(wanted), json!(metric)),
            Kind::MetricLte => (metric.is_some_and(|value| value <= wanted), json!(metric)),
            Kind::MetricGte => (metric.is_some_and(|value| value >= wanted), json!(metric)),
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
  - id: order
    type: sequence
    events: [component_begin, {event: loop_converged, where: {epoch_id: \"1\"}}]
  - {id: early, type: within_events, event: health_event, n: 2}
  - {id: epoch, type: within_epochs, event: loop_converged, n: 1}
  - {id: none, type: never, event: health_event, where: {lane: slow}}
  - {id: all, type: always, event: health_event, where: {lane: fast}}
  - {id: one, type: eventually, event: loop_converged}
  - {id: count, type: counter_equals, event: component_begin, value: 1}
  - {id: metric, type: metric_lte, metric: runtime.trace.event_count, value: 3}
";

    fn failed(events: &[Value], is_partial: bool) -> Vec<String> {
        let assertions = Assertions::parse(TEXT).expect("they can be read");
        let mut watch = assertions.watch();
        events.iter().for_each(|event| watch.event(event));
        let kind = clockjack_graph::run::MetricKind::Counter;
        let name = "runtime.trace.event_count";
        let metric = clockjack_graph::run::Metric { name, kind, label: None, value: 3.0 };
        let metrics = Metrics { list: vec![metric], ..Metrics::default() };
        let (ok, records) = watch.results(&metrics, is_partial);
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
        let good = [
            event("component_begin", "", 0),
            event("health_event", "fast", 0),
            event("loop_converged", "", 1),
        ];
        assert!(failed(&good, false).is_empty());
        let bad = [
            event("loop_converged", "", 2),
            event("component_begin", "", 0),
            event("async_drop", "", 0),
            event("health_event", "slow", 9),
        ];
        assert_eq!(failed(&bad, false), ["order", "early", "epoch", "none", "all"]);
        assert_eq!(failed(&[], false), ["order", "early", "epoch", "one", "count"]);
    }

    #[test]
    fn nothing_about_events_holds_if_some_were_lost() {
        let good = [
            event("component_begin", "", 0),
            event("health_event", "fast", 0),
            event("loop_converged", "", 1),
        ];
        assert_eq!(failed(&good, true).len(), 7, "all but the one about a metric");
    }

    #[test]
    fn a_number_of_a_components_own_can_be_asserted() {
        let text = "\
assertion_schema_version: \"1\"
assertions:
  - {id: there, type: metric_lte, metric: solve_ms.p95, label: ctl, value: 2}
  - {id: total, type: metric_gte, metric: solve_ms.p95, value: 2}
  - {id: absent, type: metric_lte, metric: solve_ms.p96, value: 2}
";
        let assertions = Assertions::parse(text).expect("who knows what components count");
        let metric = clockjack_graph::run::UserMetric {
            name: "solve_ms.p95".into(),
            kind: clockjack_graph::run::MetricKind::Gauge,
            component: "ctl".into(),
            value: 1.5,
        };
        let metrics = Metrics { user: vec![metric], ..Metrics::default() };
        let (_, records) = assertions.watch().results(&metrics, false);
        let holds: Vec<bool> = records.iter().map(|one| one["ok"] == true).collect();
        assert_eq!(holds, [true, false, false]);
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        assert!(Assertions::parse("assertion_schema_version: \"2\"\nassertions: []\n").is_err());
        for (right, wrong, why) in [
            ("type: never", "type: nevr", "nevr"),
            ("event: component_begin", "event: component_bgin", "there is no event"),
            ("lane: slow", "lan: slow", "`where` knows no `lan`"),
            ("trace.event_count", "trace.events", "there is no metric"),
            (", where: {lane: fast}", "", "it has no `where`"),
            (", n: 2", "", "it has no `n`"),
            (", n: 2", ", n: 0", "`n` is 0"),
            (", event: loop_converged, n: 1", ", n: 1", "it has no `event`"),
            ("component_begin, value: 1", "component_begin", "it has no `value`"),
            (", value: 3", "", "it has no `value`"),
            (", value: 3", ", value: .nan", "`value` is no number"),
            (", value: 3", ", value: 3, n: 3", "`n` says nothing for its type"),
            ("id: early", "id: order", "its id stands twice"),
        ] {
            assert!(TEXT.contains(right), "{right}");
            let refused = Assertions::parse(&TEXT.replacen(right, wrong, 1));
            let said = refused.expect_err("it is wrong");
            assert!(said.contains(why), "{said}");
        }
    }
}
