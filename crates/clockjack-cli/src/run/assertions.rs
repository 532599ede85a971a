//! Assertions about a run, read from a file. The types of assertions are fixed; there are no
//! scripts.
//!
//! If records were lost, an assertion about events fails, because the lost events are unknown. An
//! assertion that could never hold or never fail because a name is wrong or a field is missing is
//! rejected before the run.

use std::collections::{BTreeMap, BTreeSet};

use clockjack_graph::{
    compile::Plan,
    run::{MetricDescriptor, Metrics},
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::observe::{field, find_kind, unknown_kind_message};

/// The contents of an assertion file; empty by default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Assertions {
    assertion_schema_version: String,
    assertions: Vec<Assertion>,
}

/// One assertion. Its type determines which fields it needs.
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

/// One event of a sequence: its kind, or its kind with a filter.
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

/// The fields that `where` can use.
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
    /// The number of matching events is `value`.
    CounterEquals,
    MetricEquals,
    MetricLte,
    MetricGte,
    /// All events of this kind match the filter.
    Always,
    /// No event matches.
    Never,
    /// At least one event matches.
    Eventually,
    /// One of the first `n` events matches.
    WithinEvents,
    /// An event within the first `n` epochs matches.
    WithinEpochs,
    /// These events occur in this order, with any other events between them.
    Sequence,
}

impl Assertions {
    /// Parses the text of an assertion file.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let read: Self = serde_saphyr::from_str(text)
            .map_err(|error| error.to_string().trim_start_matches("error: ").to_owned())?;
        if read.assertion_schema_version != "1" {
            let version = &read.assertion_schema_version;
            return Err(format!("assertion_schema_version is {version}, but only 1 is supported"));
        }
        let mut ids = BTreeSet::new();
        for one in &read.assertions {
            let is_new = ids.insert(&one.id);
            let checked = if is_new { one.check() } else { Err("the id occurs twice".into()) };
            checked.map_err(|why| format!("assertion `{}`: {why}", one.id))?;
        }
        Ok(read)
    }

    /// Rejects names that the graph does not contain: no event would ever match them.
    pub(crate) fn check_names(&self, plan: &Plan) -> Result<(), String> {
        for one in &self.assertions {
            for (field, name) in one.filters().flatten() {
                check_name(plan, field, name)
                    .map_err(|why| format!("assertion `{}`: {why}", one.id))?;
            }
        }
        Ok(())
    }

    /// Creates a checker for the events of one run.
    pub(crate) fn checker(&self) -> AssertionChecker<'_> {
        let state = self.assertions.iter().map(|_| AssertionState::default()).collect();
        AssertionChecker { assertions: self, state, n_events: 0 }
    }
}

/// Checks the assertions against the events of one run.
#[derive(Debug)]
pub(crate) struct AssertionChecker<'a> {
    assertions: &'a Assertions,
    state: Vec<AssertionState>,
    n_events: u64,
}

#[derive(Clone, Debug, Default)]
struct AssertionState {
    /// The number of events that match.
    n_hits: u64,
    /// The number of events of this kind that do not match the filter.
    n_misses: u64,
    /// Whether an event matched within the limit.
    in_time: bool,
    /// How many steps of the sequence have occurred.
    n_steps: usize,
}

impl AssertionChecker<'_> {
    /// Processes the next event.
    pub(crate) fn event(&mut self, event: &Value) {
        self.n_events += 1;
        let kind = event["kind"].as_str().unwrap_or("");
        let epoch = field(event, "epoch_id").as_u64().unwrap_or(0);
        for (one, state) in self.assertions.assertions.iter().zip(&mut self.state) {
            if one.events.get(state.n_steps).is_some_and(|next| next.is(kind, event)) {
                state.n_steps += 1;
            }
            if one.event.as_deref() != Some(kind) {
                continue;
            }
            if !passes(event, &one.filter) {
                state.n_misses += 1;
                continue;
            }
            state.n_hits += 1;
            state.in_time |= match one.kind {
                Kind::WithinEvents => one.n.is_some_and(|n| self.n_events <= n),
                Kind::WithinEpochs => one.n.is_some_and(|n| epoch <= n),
                _ => false,
            };
        }
    }

    /// Whether an assertion refers to events of this kind.
    pub(crate) fn is_about(&self, kind: &str) -> bool {
        self.assertions.assertions.iter().any(|one| {
            one.event.as_deref() == Some(kind) || one.events.iter().any(|step| step.kind() == kind)
        })
    }

    /// Counts an event that no assertion refers to.
    pub(crate) fn skip_event(&mut self) {
        self.n_events += 1;
    }

    /// The number of events so far.
    pub(crate) fn n_events(&self) -> u64 {
        self.n_events
    }

    /// Returns whether all assertions hold, and one record per assertion.
    ///
    /// `is_partial` means that some events were not seen.
    pub(crate) fn results(&self, metrics: &Metrics, is_partial: bool) -> (bool, Vec<Value>) {
        let mut all = true;
        let mut records = Vec::new();
        for (one, state) in self.assertions.assertions.iter().zip(&self.state) {
            let (holds, observed) = one.evaluate(state, metrics);
            let is_partial = is_partial && !one.kind.uses_metrics();
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

/// Rejects a name that the graph does not contain. The values of other fields are unknown before
/// the run.
pub(crate) fn check_name(plan: &Plan, field: &str, name: &str) -> Result<(), String> {
    let (what, exists) = match field {
        // A loop is identified by its own id, which is the id of its region.
        "component_id" => {
            let is_component = plan.components.iter().any(|one| one.spec.id.as_str() == name);
            let is_loop = plan.regions.iter().any(|one| one.id.as_str() == name);
            ("component or loop", is_component || is_loop)
        }
        "channel_id" => ("edge", plan.edges.iter().any(|one| one.id.as_str() == name)),
        "lane" => ("lane", plan.lanes.iter().any(|one| one.spec.id.as_str() == name)),
        _ => return Ok(()),
    };
    if exists { Ok(()) } else { Err(format!("the graph has no {what} `{name}`")) }
}

impl Kind {
    const fn uses_metrics(self) -> bool {
        matches!(self, Self::MetricEquals | Self::MetricLte | Self::MetricGte)
    }
}

/// Whether a type of assertion uses a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldUse {
    Required,
    /// The field is optional.
    Optional,
    /// The field would have no effect.
    Unused,
}

impl Assertion {
    /// All filters of the assertion.
    fn filters(&self) -> impl Iterator<Item = &BTreeMap<String, String>> {
        let of_steps = self.events.iter().filter_map(|step| match step {
            Step::Kind(_) => None,
            Step::Filtered { filter, .. } => Some(filter),
        });
        of_steps.chain([&self.filter])
    }

    /// Checks the names, and that the assertion has exactly the fields that its type needs.
    fn check(&self) -> Result<(), String> {
        self.check_fields()?;
        for name in self.filters().flat_map(BTreeMap::keys) {
            if !FIELDS.contains(&name.as_str()) {
                return Err(format!(
                    "unknown field `{name}` in `where`; expected one of {}",
                    FIELDS.join(", ")
                ));
            }
        }
        let kinds = self.events.iter().map(Step::kind).chain(self.event.as_deref());
        if let Some(kind) = kinds.into_iter().find(|kind| find_kind(kind).is_none()) {
            return Err(unknown_kind_message(kind));
        }
        // Other metrics may belong to components, which name them during the run.
        if let Some(metric) = &self.metric
            && metric.starts_with("runtime.")
            && MetricDescriptor::of(metric).is_none()
        {
            return Err(format!("unknown metric `{metric}`"));
        }
        if self.value.is_some_and(|value| !value.is_finite()) {
            return Err("`value` is not a finite number".into());
        }
        if self.n == Some(0) {
            return Err("`n` must be at least 1".into());
        }
        Ok(())
    }

    fn check_fields(&self) -> Result<(), String> {
        use FieldUse::{Optional, Required, Unused};

        let [event, events, filter, metric, label, value, n] = match self.kind {
            Kind::CounterEquals => [Required, Unused, Optional, Unused, Unused, Required, Unused],
            Kind::MetricEquals | Kind::MetricLte | Kind::MetricGte => {
                [Unused, Unused, Unused, Required, Optional, Required, Unused]
            }
            Kind::Always => [Required, Unused, Required, Unused, Unused, Unused, Unused],
            Kind::Never | Kind::Eventually => {
                [Required, Unused, Optional, Unused, Unused, Unused, Unused]
            }
            Kind::WithinEvents | Kind::WithinEpochs => {
                [Required, Unused, Optional, Unused, Unused, Unused, Required]
            }
            Kind::Sequence => [Unused, Required, Unused, Unused, Unused, Unused, Unused],
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
        for (name, part, exists) in parts {
            match (part, exists) {
                (Required, false) => return Err(format!("`{name}` is missing")),
                (Unused, true) => {
                    return Err(format!("`{name}` has no effect on this type of assertion"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether the assertion holds, and the observed value.
    #[expect(clippy::float_cmp, reason = "counts are whole numbers, which compare exactly")]
    #[expect(clippy::cast_precision_loss, reason = "no run has as many events as a float counts")]
    fn evaluate(&self, state: &AssertionState, metrics: &Metrics) -> (bool, Value) {
        let name = self.metric.as_deref().unwrap_or("");
        let metric = match &self.label {
            Some(label) => metrics.get(name, label),
            None => {
                let exists = metrics.iter().any(|one| one.name == name);
                exists.then(|| metrics.total(name))
            }
        };
        // `check` guarantees a value; NaN compares unequal to everything.
        let wanted = self.value.unwrap_or(f64::NAN);
        match self.kind {
            Kind::CounterEquals => (state.n_hits as f64 == wanted, json!(state.n_hits)),
            Kind::MetricEquals => (metric == Some(wanted), json!(metric)),
            Kind::MetricLte => (metric.is_some_and(|value| value <= wanted), json!(metric)),
            Kind::MetricGte => (metric.is_some_and(|value| value >= wanted), json!(metric)),
            Kind::Always => (state.n_misses == 0, json!(state.n_misses)),
            Kind::Never => (state.n_hits == 0, json!(state.n_hits)),
            Kind::Eventually => (state.n_hits > 0, json!(state.n_hits)),
            Kind::WithinEvents | Kind::WithinEpochs => (state.in_time, json!(state.in_time)),
            Kind::Sequence => (state.n_steps == self.events.len(), json!(state.n_steps)),
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
        let assertions = Assertions::parse(TEXT).expect("the file is valid");
        let mut checker = assertions.checker();
        events.iter().for_each(|event| checker.event(event));
        let kind = clockjack_graph::run::MetricKind::Counter;
        let name = "runtime.trace.event_count".into();
        let metric = clockjack_graph::run::Metric { name, kind, label: None, value: 3.0 };
        let metrics = Metrics { list: vec![metric], ..Metrics::default() };
        let (ok, records) = checker.results(&metrics, is_partial);
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
        assert_eq!(failed(&good, true).len(), 7, "all except the assertion about a metric");
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
        let assertions =
            Assertions::parse(text).expect("metrics of components are unknown before the run");
        let metric = clockjack_graph::run::Metric {
            name: "solve_ms.p95".into(),
            kind: clockjack_graph::run::MetricKind::Gauge,
            label: Some(("component_id", "ctl".into())),
            value: 1.5,
        };
        let metrics = Metrics { user: vec![metric], ..Metrics::default() };
        let (_, records) = assertions.checker().results(&metrics, false);
        let holds: Vec<bool> = records.iter().map(|one| one["ok"] == true).collect();
        assert_eq!(holds, [true, false, false]);
    }

    #[test]
    fn a_file_that_says_something_else_is_refused() {
        assert!(Assertions::parse("assertion_schema_version: \"2\"\nassertions: []\n").is_err());
        for (right, wrong, why) in [
            ("type: never", "type: nevr", "nevr"),
            ("event: component_begin", "event: component_bgin", "unknown event kind"),
            ("lane: slow", "lan: slow", "unknown field `lan` in `where`"),
            ("trace.event_count", "trace.events", "unknown metric"),
            (", where: {lane: fast}", "", "`where` is missing"),
            (", n: 2", "", "`n` is missing"),
            (", n: 2", ", n: 0", "`n` must be at least 1"),
            (", event: loop_converged, n: 1", ", n: 1", "`event` is missing"),
            ("component_begin, value: 1", "component_begin", "`value` is missing"),
            (", value: 3", "", "`value` is missing"),
            (", value: 3", ", value: .nan", "`value` is not a finite number"),
            (", value: 3", ", value: 3, n: 3", "`n` has no effect"),
            ("id: early", "id: order", "the id occurs twice"),
        ] {
            assert!(TEXT.contains(right), "{right}");
            let refused = Assertions::parse(&TEXT.replacen(right, wrong, 1));
            let message = refused.expect_err("the file is invalid");
            assert!(message.contains(why), "{message}");
        }
    }
}
