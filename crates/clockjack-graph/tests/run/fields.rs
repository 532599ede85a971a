//! Every field of a lane and of an edge is enforced, and a test shows it, or the plan lists it as
//! advice. The list of fields is that of the file format, so that a new one cannot be forgotten.

use std::collections::BTreeSet;

use clockjack_graph::describe::{GraphFile, json_schema};

use crate::parts::{Seen, registry};

/// What is known about a field.
#[derive(Clone, Copy)]
enum Is {
    /// It names, places or joins: without it there is no lane or edge.
    Shape,
    /// A test shows what it does.
    Shown(&'static str),
    /// It never does anything; given like this, the plan says so.
    Advice(&'static str),
    /// The values that do something are shown; of this one the plan says that it does nothing.
    Both(&'static str, &'static str),
}

use Is::{Advice, Both, Shape, Shown};

const LANE: &[(&str, Is)] = &[
    ("type", Shown("every_lane_type_has_a_file_that_uses_it")),
    ("hz", Shown("a_rate_is_a_period_of_its_own")),
    ("period_ms", Shown("a_tick_of_two_and_a_half_periods_is_followed_by_what_its_policy_says")),
    ("tick_budget_ms", Shown("a_tick_beyond_its_budget_is_counted_and_need_not_be_late")),
    (
        "wall_clock_enabled",
        Shown("each_lane_of_the_wall_clock_has_a_thread_and_it_ends_with_the_run"),
    ),
    ("overrun_policy", Shown("no_policy_moves_the_phase_however_often_ticks_are_late")),
    ("max_threads", Shown("independent_regions_overlap_up_to_the_width_of_their_lane")),
    ("queue_capacity", Shown("a_queue_takes_so_many_beyond_the_active_width")),
    ("overflow", Shown("a_queue_of_zero_admits_the_active_width_and_overflow_decides_on_the_next")),
    ("aging_picks", Shown("metrics_equal_facts_for_every_name_of_the_table")),
    ("max_callback_ms", Shown("a_callback_that_takes_longer_than_its_lane_allows_is_reported")),
    ("thread_name", Shown("each_lane_of_the_wall_clock_has_a_thread_and_it_ends_with_the_run")),
    ("priority", Advice("priority: 1")),
    ("cpu_affinity", Shown("processors_and_niceness_are_those_of_the_lanes_thread_alone")),
    ("nice_priority", Shown("processors_and_niceness_are_those_of_the_lanes_thread_alone")),
    ("rt_policy", Shown("a_class_is_in_force_exactly_if_the_report_says_so")),
    ("rt_priority", Shown("a_class_that_may_not_be_had_is_advice_or_the_run_does_not_start")),
    ("isolation_intent", Advice("isolation_intent: strong")),
    ("on_policy_error", Shown("what_is_refused_is_advice_or_the_run_does_not_start")),
];

const EDGE: &[(&str, Is)] = &[
    ("id", Shape),
    ("kind", Shown("a_delay_a_state_and_an_async_edge_are_seen_an_epoch_later")),
    ("from", Shape),
    ("to", Shape),
    ("policy", Shape),
];

const POLICY: &[(&str, Is)] = &[
    ("mode", Shown("each_mode_with_each_overflow_keeps_what_the_table_says")),
    ("capacity", Both("a_queue_honours_its_overflow", "mode: latest, capacity: 2")),
    ("overflow", Shown("a_queue_honours_its_overflow")),
    ("lifespan_ms", Shown("what_is_older_than_its_lifespan_is_dropped_before_delivery")),
    ("deadline_ms", Shown("what_is_older_than_its_deadline_is_delivered_with_a_flag_and_counted")),
    ("max_silence_ms", Shown("an_input_that_stays_silent_is_reported_once_per_silence")),
    ("max_inflight", Shown("async_is_bounded_and_what_is_over_is_refused_or_makes_room")),
    ("preserve_order", Advice("preserve_order: false")),
    ("allow_drop", Shown("each_rule_is_told_once_and_at_its_field")),
    ("emit_health_events", Shown("a_muted_edge_counts_its_losses_and_makes_no_events")),
    ("timestamp_domain", Advice("timestamp_domain: device")),
    ("copy_policy", Both("a_copy_is_made_for_each_reader_but_one", "copy_policy: loaned_view")),
];

/// Where the tests are that are named here.
const TESTS: &[&str] = &[
    include_str!("basics.rs"),
    include_str!("chains.rs"),
    include_str!("lanes.rs"),
    include_str!("invariants.rs"),
    include_str!("linux.rs"),
    include_str!("payloads.rs"),
    include_str!("threads.rs"),
    include_str!("together.rs"),
    include_str!("../examples.rs"),
    include_str!("../names/metrics.rs"),
    include_str!("../../src/compile/tests/codes.rs"),
    include_str!("../../src/compile/tests/rules.rs"),
    include_str!("../../src/run/flow/channel/tests.rs"),
];

/// A graph with this in its lane and in the policy of its edge.
fn text(lane: &str, policy: &str) -> String {
    let on = "event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input }";
    let ends = "from: src.out, to: dst.in";
    format!(
        "schema_version: 1\ngraph: {{ name: fields, kind: internal_test }}\n\
         lanes:\n  main: {{ type: event_loop{lane} }}\n\
         components:\n  \
         - {{ id: src, type: count, execution: {{ lane: main }}, boundary: {{ role: input }} }}\n  \
         - {{ id: dst, type: keep, execution: {{ lane: main }}, \
         boundary: {{ role: output }}, {on} }}\n\
         edges:\n  - {{ id: e, kind: immediate, {ends}, policy: {{ {policy} }} }}\n"
    )
}

/// Whether a test, or a function, constant or macro of its file that it uses, names a field.
fn names(file: &str, test: &str, field: &str) -> bool {
    let is_part = |one: char| one.is_alphanumeric() || one == '_';
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|one| !is_part(one)).map(String::from).collect()
    };
    // An item begins and ends in the first column.
    let heads = ["fn ", "pub(crate) fn ", "const ", "pub(crate) const "];
    let mut items: Vec<(String, BTreeSet<String>)> = Vec::new();
    let mut is_open = false;
    for line in file.lines() {
        if let Some(rest) = heads.iter().find_map(|head| line.strip_prefix(head)) {
            let name = rest.split(|one| !is_part(one)).next().unwrap_or_default();
            items.push((name.into(), BTreeSet::new()));
            is_open = true;
        }
        if let (true, Some((_, used))) = (is_open, items.last_mut()) {
            used.extend(words(line));
        }
        let is_inside = line.starts_with(' ') || line.is_empty();
        is_open &= is_inside || !(line.ends_with(';') || line == "}");
    }
    let mut open = vec![String::from(test)];
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        for (_, words) in items.iter().filter(|(of, _)| *of == name) {
            if words.contains(field) {
                return true;
            }
            let used = items.iter().filter(|(of, _)| words.contains(of)).map(|(of, _)| of.clone());
            open.extend(used.filter(|one| !one.is_empty() && seen.insert(one.clone())));
        }
    }
    false
}

#[test]
fn a_test_that_does_not_name_a_field_does_not_show_it() {
    let file = [
        "const LANE: &str = \"hz: 3\";\n",
        "fn text() {\n    LANE\n}\n",
        "#[test]\nfn shows() {\n    text()\n}\n",
        "#[test]\nfn other() {\n    run(\"period_ms\")\n}\n",
    ]
    .join("\n");
    let names = |test, field| names(&file, test, field);
    assert!(names("shows", "hz"), "through a function and a constant");
    assert!(names("other", "period_ms"));
    assert!(!names("shows", "period_ms") && !names("other", "hz"));
    assert!(!names("other", "period"), "a part of a word is another one");
}

fn check(section: &str, known: &[(&str, Is)], advice: impl Fn(&str) -> Vec<String>) {
    let schema: serde_json::Value = serde_json::from_str(&json_schema()).unwrap();
    let fields = schema["$defs"][section]["properties"].as_object().unwrap();
    let fields: BTreeSet<&str> = fields.keys().map(String::as_str).collect();
    let listed: BTreeSet<&str> = known.iter().map(|(field, _)| *field).collect();
    assert_eq!(fields, listed, "{section}: each field is shown, or it is advice");
    for (field, is) in known {
        let (shown, given) = match is {
            Shape => continue,
            Shown(test) => (Some(test), None),
            Advice(given) => (None, Some(given)),
            Both(test, given) => (Some(test), Some(given)),
        };
        if let Some(test) = shown {
            let head = format!("fn {test}()");
            let file = TESTS.iter().find(|file| file.contains(&head));
            let file = file.unwrap_or_else(|| panic!("{section}.{field}: there is no `{test}`"));
            // In Rust the type of a lane is its `lane_type`.
            let in_rust = format!("{section}_{field}");
            let is_named = [*field, &in_rust].iter().any(|one| names(file, test, one));
            assert!(is_named, "{section}.{field}: `{test}` does not name it");
        }
        if let Some(given) = given {
            assert_eq!(advice(given), [*field], "{section}.{field}");
        }
    }
}

#[test]
fn every_field_of_a_lane_is_enforced_with_a_test_or_advice() {
    check("lane", LANE, |given| {
        let file = GraphFile::parse("t.yaml", &text(&format!(", {given}"), "")).unwrap();
        let graph = file.compile(&registry(&Seen::default())).unwrap();
        graph.plan().lanes[0].capabilities.advisory_fields.clone()
    });
}

#[test]
fn every_field_of_an_edge_is_enforced_with_a_test_or_advice() {
    check("edge", EDGE, |_| Vec::new());
    check("policy", POLICY, |given| {
        let file = GraphFile::parse("t.yaml", &text("", given)).unwrap();
        let graph = file.compile(&registry(&Seen::default())).unwrap();
        graph.plan().edges[0].advisory_fields.clone()
    });
}
