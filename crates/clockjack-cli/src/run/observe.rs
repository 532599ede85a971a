//! The events of `observe`: built during the run from a bounded log of trace records and from
//! metrics.
//!
//! Observing does not change the run. If the log is full, it drops and counts its oldest records;
//! the drops are reported and make the summary `lossy`. Each event states its exactness:
//!
//! * `exact`: the event represents one occurrence;
//! * `aggregated`: the event represents all occurrences of its kind and source since the previous
//!   frame, with their number;
//! * `sampled`: the event represents the requested number of occurrences;
//! * `lossy`, `partial`: only for the summary, if records were lost.

pub(crate) mod artifact;
mod counts;

use std::collections::BTreeMap;

use clockjack_graph::{
    compile::Plan,
    run::{TraceName, TraceRecord},
};
pub(crate) use counts::Counts;
use serde_json::{Value, json};

use super::events;

/// How many events are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Level {
    /// The start and the end of the run.
    Off,
    /// Also counters per frame, and all problems.
    Summary,
    /// Also epochs, calls, iterations and admissions.
    Detailed,
    /// Also every message.
    Debug,
}

/// All kinds of events, with the lowest level that prints them.
#[rustfmt::skip]
pub(crate) const KINDS: &[(&str, Level)] = &[
    ("run_started", Level::Off),
    ("run_finished", Level::Off),
    ("observer_drop_summary", Level::Off),
    ("component_error", Level::Summary),
    ("component_timeout_budget_exceeded", Level::Summary),
    ("component_cancellation_requested", Level::Summary),
    ("component_cancellation_observed", Level::Summary),
    ("channel_publish_summary", Level::Summary),
    ("channel_commit_summary", Level::Summary),
    ("channel_drop", Level::Summary),
    ("channel_reject", Level::Summary),
    ("channel_overwrite", Level::Summary),
    ("channel_stale", Level::Summary),
    ("trigger_ready_summary", Level::Summary),
    ("trigger_suppressed_summary", Level::Summary),
    ("trigger_drop", Level::Summary),
    ("trigger_coalesced", Level::Summary),
    ("lane_reject", Level::Summary),
    ("async_reject", Level::Summary),
    ("async_drop", Level::Summary),
    ("fixed_rate_overrun", Level::Summary),
    ("fixed_rate_skipped_tick", Level::Summary),
    ("config_transaction_validate", Level::Summary),
    ("config_transaction_apply", Level::Summary),
    ("config_transaction_rollback", Level::Summary),
    ("config_transaction_commit", Level::Summary),
    ("loop_converged", Level::Summary),
    ("loop_budget_overrun", Level::Summary),
    ("loop_max_iterations_hit", Level::Summary),
    ("loop_output_discarded", Level::Summary),
    ("loop_error", Level::Summary),
    ("loop_cancellation_requested", Level::Summary),
    ("loop_cancellation_observed", Level::Summary),
    ("health_event", Level::Summary),
    ("runtime_error", Level::Summary),
    ("scheduler_epoch_begin", Level::Detailed),
    ("scheduler_epoch_end", Level::Detailed),
    ("component_begin", Level::Detailed),
    ("component_end", Level::Detailed),
    ("thread_pool_batch", Level::Detailed),
    ("fixed_rate_tick", Level::Detailed),
    ("async_admission", Level::Detailed),
    ("loop_iteration_begin", Level::Detailed),
    ("loop_iteration_end", Level::Detailed),
    ("component_input", Level::Debug),
    ("channel_publish", Level::Debug),
    ("channel_commit", Level::Debug),
    ("state_commit", Level::Debug),
];

/// The kind with this name.
pub(crate) fn find_kind(name: &str) -> Option<&'static str> {
    KINDS.iter().find(|(kind, _)| *kind == name).map(|(kind, _)| *kind)
}

/// The message for an unknown kind; it suggests kinds that start with the same word.
pub(crate) fn unknown_kind_message(name: &str) -> String {
    let word = |text: &str| text.split('_').next().map(str::to_owned);
    let near = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| word(kind) == word(name));
    let near: Vec<&str> = near.collect();
    match near.as_slice() {
        [] => format!("unknown event kind `{name}`"),
        near => format!("unknown event kind `{name}`; did you mean one of {}?", near.join(", ")),
    }
}

/// The event kind of a record; `None` for spans whose beginning and end are separate events.
pub(crate) const fn kind_of(name: TraceName) -> Option<&'static str> {
    Some(match name {
        TraceName::SchedulerIteration
        | TraceName::ComponentExecute
        | TraceName::LoopIteration
        | TraceName::FixedRateTickBegin
        | TraceName::FixedRateTickEnd => return None,
        TraceName::SchedulerIterationBegin => "scheduler_epoch_begin",
        TraceName::SchedulerIterationEnd => "scheduler_epoch_end",
        TraceName::ComponentExecuteBegin => "component_begin",
        TraceName::ComponentExecuteEnd => "component_end",
        other => other.name(),
    })
}

/// The event of a record, if it has one.
pub(crate) fn event(plan: &Plan, record: &TraceRecord) -> Option<Value> {
    let kind = kind_of(record.name)?;
    let event = events::event(plan, record);
    let mut ids = json!({"epoch_id": record.epoch});
    for name in ["component_id", "channel_id", "lane", "causation_id", "correlation_id"] {
        if let Some(id) = event.get(name) {
            ids[name] = id.clone();
        }
    }
    let mut attributes = json!({"worker_id": record.worker});
    for name in ["worker_ids", "health_kind"] {
        if let Some(value) = event["attributes"].get(name) {
            attributes[name] = value.clone();
        }
    }
    match record.name {
        TraceName::SchedulerIterationEnd
        | TraceName::ComponentExecuteEnd
        | TraceName::LoopIterationEnd => attributes["duration_ns"] = record.value.into(),
        TraceName::FixedRateTick | TraceName::ThreadPoolBatch => {
            attributes["duration_ns"] = record.duration_ns.into();
        }
        _ if record.value > 0 => attributes["value"] = record.value.into(),
        _ => {}
    }
    Some(json!({
        "stream_id": "trace",
        "kind": kind,
        "severity": event["severity"],
        "exactness": "exact",
        "mono_ns": record.start_ns,
        "ids": ids,
        "attributes": attributes,
    }))
}

/// An event that summarizes several records or has no record.
pub(crate) fn summary_event(
    stream: &str,
    (kind, severity, exactness): (&str, &str, &str),
    mono_ns: u64,
    ids: Value,
    attributes: Value,
) -> Value {
    json!({
        "stream_id": stream,
        "kind": kind,
        "severity": severity,
        "exactness": exactness,
        "mono_ns": mono_ns,
        "ids": ids,
        "attributes": attributes,
    })
}

/// A field of an event: at the top level, in `ids` or in `attributes`.
pub(crate) fn field<'e>(event: &'e Value, name: &str) -> &'e Value {
    let places = [&event[name], &event["ids"][name], &event["attributes"][name]];
    places.into_iter().find(|value| !value.is_null()).unwrap_or(&Value::Null)
}

/// Selects the events that are printed. Assertions see all events.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) level: Level,
    pub(crate) components: Vec<String>,
    pub(crate) channels: Vec<String>,
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    /// Kinds of which only every Nth event is printed.
    pub(crate) samples: BTreeMap<String, u64>,
    /// How many events of each sampled kind have occurred.
    pub(crate) n_seen: BTreeMap<String, u64>,
}

impl Filter {
    /// Whether any event of this kind is printed.
    pub(crate) fn may_pass(&self, kind: &str) -> bool {
        // A kind that is included by name is printed at every level.
        let is_in = if self.include.is_empty() {
            let known = KINDS.iter().find(|(name, _)| *name == kind);
            known.is_none_or(|(_, level)| *level <= self.level)
        } else {
            self.include.iter().any(|one| one == kind)
        };
        is_in && !self.exclude.iter().any(|one| one == kind)
    }

    /// Whether an event is printed. Marks a sampled event as such.
    pub(crate) fn pass(&mut self, event: &mut Value) -> bool {
        let kind = event["kind"].as_str().unwrap_or("");
        let is_in = |list: &[String], name: &str| {
            list.is_empty() || list.iter().any(|one| event["ids"][name] == one.as_str())
        };
        if !self.may_pass(kind)
            || !is_in(&self.components, "component_id")
            || !is_in(&self.channels, "channel_id")
        {
            return false;
        }
        let Some(every) = self.samples.get(kind) else { return true };
        let n_seen = self.n_seen.entry(kind.to_owned()).or_insert(0);
        *n_seen += 1;
        if !(*n_seen - 1).is_multiple_of(*every) {
            return false;
        }
        event["exactness"] = "sampled".into();
        event["attributes"]["one_of"] = (*every).into();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trace_name_is_an_event_or_has_its_beginning_and_end() {
        for name in TraceName::ALL {
            let Some(kind) = kind_of(*name) else { continue };
            assert!(find_kind(kind).is_some(), "`KINDS` does not contain {kind}");
        }
        let mut kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), KINDS.len(), "no kind occurs twice");
    }

    fn filter(level: Level) -> Filter {
        Filter {
            level,
            components: Vec::new(),
            channels: Vec::new(),
            include: Vec::new(),
            exclude: Vec::new(),
            samples: BTreeMap::new(),
            n_seen: BTreeMap::new(),
        }
    }

    fn of(kind: &str, component: &str) -> Value {
        let exact = (kind, "info", "exact");
        summary_event("trace", exact, 0, json!({"component_id": component}), json!({}))
    }

    #[test]
    fn a_level_tells_its_kinds_and_those_below_it() {
        for (level, kinds) in [
            (Level::Off, &["run_started"][..]),
            (Level::Summary, &["run_started", "health_event"]),
            (Level::Detailed, &["run_started", "health_event", "component_begin"]),
            (Level::Debug, &["run_started", "health_event", "component_begin", "channel_commit"]),
        ] {
            let all = ["run_started", "health_event", "component_begin", "channel_commit"];
            let mut filter = filter(level);
            let passed = all.into_iter().filter(|kind| filter.pass(&mut of(kind, "a")));
            assert_eq!(passed.collect::<Vec<_>>(), kinds);
        }
    }

    #[test]
    fn what_is_asked_for_by_name_passes_and_what_is_excluded_does_not() {
        let mut only = Filter { include: vec!["component_begin".into()], ..filter(Level::Summary) };
        assert!(only.pass(&mut of("component_begin", "a")));
        assert!(!only.pass(&mut of("health_event", "a")));
        let mut not = Filter { exclude: vec!["health_event".into()], ..filter(Level::Summary) };
        assert!(!not.pass(&mut of("health_event", "a")));
        let mut mine = Filter { components: vec!["a".into()], ..filter(Level::Debug) };
        assert!(mine.pass(&mut of("component_end", "a")));
        assert!(!mine.pass(&mut of("component_end", "b")));
    }

    #[test]
    fn a_sample_is_the_first_of_so_many_and_says_so() {
        let samples = BTreeMap::from([("component_end".into(), 3)]);
        let mut filter = Filter { samples, ..filter(Level::Debug) };
        let mut passed = Vec::new();
        for n in 0..7 {
            let mut event = of("component_end", "a");
            if filter.pass(&mut event) {
                assert_eq!(
                    (&event["exactness"], &event["attributes"]["one_of"]),
                    (&json!("sampled"), &json!(3))
                );
                passed.push(n);
            }
        }
        assert_eq!(passed, [0, 3, 6]);
    }
}
