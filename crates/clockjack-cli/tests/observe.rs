//! Tests of `clockjack observe` as its user sees it: order of lines, levels, filters, samples,
//! assertions and recordings.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use clockjack_cli::{Streams, run};
use clockjack_graph::Registry;
use serde_json::Value;

struct Ran {
    code: u8,
    out: String,
    err: String,
}

fn observe(args: &[&str]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let all = [&["clockjack", "observe"], args].concat();
    let code = run(&Registry::standard(), all, &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    Ran { code, out: text(out), err: text(err) }
}

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs").join(name);
    path.to_str().expect("a path of text").to_owned()
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// The lines of a run of two epochs on one worker, all in one frame.
fn events(args: &[&str]) -> Vec<Value> {
    let cell = file("cell.yaml");
    let base = ["--steps", "2", "--workers", "1", "--ui-frame-ms", "600000"];
    let ran = observe(&[&[cell.as_str()], &base[..], args].concat());
    assert!(ran.err.is_empty(), "{}", ran.err);
    ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["kind"].as_str()).collect()
}

/// Masks times, which depend on the machine.
fn masked(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                if ["mono_ns", "duration_ns", "wall_ns"].contains(&name.as_str()) {
                    *value = "T".into();
                } else {
                    masked(value);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(masked),
        _ => {}
    }
}

#[test]
fn the_lines_of_a_run_are_those_of_the_golden_file() {
    let mut lines = events(&["--observe-level", "debug"]);
    lines.iter_mut().for_each(masked);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/observe.ndjson");
    // After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-cli` rewrites the file.
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, &text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} is not what is printed now:\n{text}", path.display());
}

#[test]
fn every_line_has_its_place_its_number_and_says_how_exact_it_is() {
    let path = scratch("place.yaml");
    let rule = "{id: a, type: eventually, event: component_end}";
    let text = format!("assertion_schema_version: \"1\"\nassertions:\n  - {rule}\n");
    fs::write(&path, text).expect("the file can be written");
    let lines = events(&["--observe-level", "debug", "--assert", path.to_str().expect("text")]);
    let kinds = kinds(&lines);
    assert_eq!(kinds[..4], ["symbol_table", "graph_validated", "plan_ready", "run_started"]);
    let last = ["run_finished", "assertion", "assertion_result", "final_summary"];
    assert_eq!(kinds[kinds.len() - 4..], last);
    let mut numbers = BTreeMap::new();
    for (n, line) in lines.iter().enumerate() {
        assert_eq!(line["display_seq"], n, "{line}");
        assert_eq!(line["observe_schema_version"], "1");
        assert_eq!(line["run_id"], lines[0]["run_id"]);
        let stream = line["stream_id"].as_str().expect("a stream");
        let number = numbers.entry(stream).or_insert(0);
        assert_eq!(line["local_seq"], *number, "{line}");
        *number += 1;
    }
    for event in &lines[3..lines.len() - 3] {
        assert!(event["severity"].is_string() && event["exactness"].is_string(), "{event}");
        assert!(event["mono_ns"].is_u64() && event["ids"].is_object(), "{event}");
    }
}

#[test]
fn lost_messages_are_in_every_result_by_place_and_cause_and_can_be_denied() {
    let lossy = file("lossy.yaml");
    let directory = scratch("observe-lossy");
    let _removed = fs::remove_dir_all(&directory);
    let record = directory.to_str().expect("text");
    let run = |args: &[&str]| observe(&[&[lossy.as_str(), "--steps", "10"], args].concat());
    let ran = run(&["--record", record]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let rejected = lines.iter().filter(|line| line["kind"] == "lane_reject");
    let rejected = rejected.map(|line| line["attributes"]["count"].as_u64().expect("a count"));
    assert_eq!(rejected.sum::<u64>(), 20);
    let summary = fs::read_to_string(directory.join("summary.json")).expect("it was written");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    let json: Value = serde_json::from_str(&run(&["--format", "json-summary"]).out).expect("JSON");
    for result in [lines.last().expect("a summary"), &summary, &json] {
        assert_eq!(result["n_lost"], 20, "{result}");
        let loss = &result["losses"][0];
        assert_eq!((&loss["place"], &loss["id"]), (&"component".into(), &"out".into()));
        assert_eq!((&loss["cause"], &loss["count"]), (&"lane_full".into(), &20.into()));
        assert!(loss["hint"].as_str().expect("text").contains("queue_capacity"), "{loss}");
    }
    assert_eq!(run(&["--deny-loss"]).code, 9);
    let cell = file("cell.yaml");
    assert_eq!(observe(&[&cell, "--steps", "10", "--deny-loss"]).code, 0);
}

#[test]
fn a_level_tells_more_than_the_one_below_it() {
    let all: Vec<Vec<Value>> = ["off", "summary", "detailed", "debug"]
        .iter()
        .map(|level| events(&["--observe-level", level]))
        .collect();
    assert!(all.is_sorted_by(|a, b| a.len() < b.len()));
    let has = |level: usize, kind: &str| kinds(&all[level]).contains(&kind);
    assert!(!has(0, "channel_commit_summary") && has(1, "channel_commit_summary"));
    assert!(!has(1, "component_begin") && has(2, "component_begin"));
    assert!(!has(2, "channel_commit") && has(3, "channel_commit"));
    let of = |event: &&Value| event["kind"] == "channel_commit_summary";
    let summary = all[1].iter().find(of).expect("the file exists");
    assert_eq!(
        (&summary["exactness"], &summary["attributes"]["count"]),
        (&"aggregated".into(), &2.into())
    );
    assert_eq!(all[0].last().expect("a summary")["exactness"], "partial", "nobody has looked");
    assert_eq!(all[3].last().expect("a summary")["exactness"], "exact");
}

#[test]
fn only_what_is_wanted_is_printed() {
    let only = events(&["--include-event", "component_end", "--include-component", "sensor"]);
    let body = &only[3..only.len() - 2];
    assert_eq!(body.len(), 2, "{body:?}");
    assert!(body.iter().all(|one| one["ids"]["component_id"] == "sensor"));
    let channel = events(&["--observe-level", "debug", "--include-channel", "sense"]);
    let body = &channel[3..channel.len() - 2];
    assert!(!body.is_empty() && body.iter().all(|one| one["ids"]["channel_id"] == "sense"));
    let without = events(&["--observe-level", "debug", "--exclude-event", "component_end"]);
    assert!(!kinds(&without).contains(&"component_end"));
    let sampled =
        events(&["--include-event", "component_end", "--sample-event", "component_end:4"]);
    let all = events(&["--include-event", "component_end"]);
    let n = |lines: &[Value]| kinds(lines).iter().filter(|kind| **kind == "component_end").count();
    assert_eq!(n(&sampled), n(&all).div_ceil(4));
    let of = |event: &&Value| event["kind"] == "component_end";
    assert_eq!(sampled.iter().find(of).expect("one")["exactness"], "sampled");
}

#[test]
fn a_kind_that_does_not_exist_is_refused_with_those_that_do() {
    let cell = file("cell.yaml");
    for option in ["--include-event", "--exclude-event", "--sample-event"] {
        let value = if option == "--sample-event" { "loop_convergd:2" } else { "loop_convergd" };
        let ran = observe(&[&cell, option, value]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{option}");
        assert!(ran.err.contains("loop_converged"), "{}", ran.err);
    }
    let ran = observe(&[&cell, "--sample-event", "component_end:0"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("above zero"), "{}", ran.err);
}

fn assertions(name: &str, rule: &str) -> String {
    let path = scratch(name);
    let text = format!("assertion_schema_version: \"1\"\nassertions:\n  - {rule}\n");
    fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("text").to_owned()
}

#[test]
fn every_form_of_assertion_holds_or_exits_with_9() {
    let cell = file("cell.yaml");
    let forms = [
        ("counter_equals, event: scheduler_epoch_end, value: 3", "value: 3", "value: 4"),
        (
            "metric_equals, metric: runtime.component.execution_count, label: sensor, value: 3",
            "value: 3",
            "value: 4",
        ),
        (
            "metric_lte, metric: runtime.component.execution_count, label: sensor, value: 3",
            "value: 3",
            "value: 2",
        ),
        (
            "metric_gte, metric: runtime.component.execution_count, label: sensor, value: 3",
            "value: 3",
            "value: 4",
        ),
        (
            "always, event: component_begin, where: {lane: control}",
            "lane: control",
            "epoch_id: \"1\"",
        ),
        ("never, event: loop_error", "loop_error", "component_end"),
        (
            "eventually, event: component_end, where: {component_id: actuator}",
            "component_end",
            "loop_error",
        ),
        ("within_events, event: component_end, n: 20", "n: 20", "n: 1"),
        (
            "within_epochs, event: component_end, where: {component_id: actuator}, n: 2",
            "component_end",
            "loop_error",
        ),
        (
            "sequence, events: \
             [component_begin, {event: component_end, where: {component_id: actuator}}]",
            "component_end",
            "loop_error",
        ),
    ];
    for (n, (rule, right, wrong)) in forms.into_iter().enumerate() {
        let args = |rule: &str, is_right: bool| {
            assertions(&format!("form-{n}-{is_right}.yaml"), &format!("{{id: a, type: {rule}}}"))
        };
        let good = args(rule, true);
        let ran = observe(&[&cell, "--steps", "3", "--assert", &good]);
        assert_eq!(ran.code, 0, "{rule}: {}{}", ran.out, ran.err);
        let bad = args(&rule.replacen(right, wrong, 1), false);
        let ran = observe(&[&cell, "--steps", "3", "--assert", &bad]);
        assert_eq!(ran.code, 9, "{rule}: {}{}", ran.out, ran.err);
        let ran =
            observe(&[&cell, "--steps", "3", "--assert", &bad, "--no-fail-on-assertion-fail"]);
        assert_eq!(ran.code, 0, "{rule}: told, and no failure");
        assert!(ran.out.contains("\"assertions_ok\":false"), "{}", ran.out);
    }
}

#[test]
fn a_name_that_the_graph_has_not_is_refused_before_the_run() {
    let cell = file("cell.yaml");
    let cases = [
        ("component_id: actuatr", "the graph has no component or loop `actuatr`"),
        ("channel_id: sens", "the graph has no edge `sens`"),
        ("lane: contrl", "the graph has no lane `contrl`"),
    ];
    for (n, (filter, why)) in cases.into_iter().enumerate() {
        // This assertion would always hold.
        let rule = format!("{{id: a, type: never, event: component_error, where: {{{filter}}}}}");
        let must = assertions(&format!("name-{n}.yaml"), &rule);
        let ran = observe(&[&cell, "--clock", "wall", "--assert", &must]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    for (option, name, why) in [
        ("--include-component", "actuatr", "the graph has no component or loop `actuatr`"),
        ("--include-channel", "sens", "the graph has no edge `sens`"),
    ] {
        let ran = observe(&[&cell, "--clock", "wall", option, name]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains(why), "{}", ran.err);
    }
}

#[test]
fn a_loop_goes_by_its_own_name() {
    let graph =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/graphs/loops/fixed_point.yaml");
    let rule = "{id: a, type: eventually, event: loop_converged, where: {component_id: solve}}";
    let must = assertions("loop.yaml", rule);
    let graph = graph.to_str().expect("text");
    let ran = observe(&[graph, "--steps", "3", "--assert", &must, "--include-component", "solve"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("\"kind\":\"loop_converged\""), "{}", ran.out);
}

#[test]
fn events_that_nobody_looks_at_count_like_others() {
    let n_events = |args: &[&str]| {
        let lines = events(args);
        lines.last().expect("a summary")["n_events"].as_u64().expect("a number")
    };
    let must = assertions("count.yaml", "{id: a, type: eventually, event: component_end}");
    let all = n_events(&["--observe-level", "debug"]);
    assert!(all > 20);
    assert_eq!(n_events(&["--observe-level", "summary"]), all);
    assert_eq!(n_events(&["--observe-level", "summary", "--assert", &must]), all);
    // The end of the first call comes after events that are not printed.
    let late = assertions("late.yaml", "{id: a, type: within_events, event: component_end, n: 3}");
    let lines = events(&["--assert", &late]);
    assert_eq!(lines.last().expect("a summary")["assertions_ok"], false);
}

#[test]
fn what_was_lost_is_counted_and_makes_the_rest_partial() {
    let cell = file("cell.yaml");
    let must = assertions("lost.yaml", "{id: a, type: never, event: loop_error}");
    let args = ["--steps", "50", "--event-buffer-capacity", "1", "--ui-frame-ms", "600000"];
    let ran = observe(&[&[cell.as_str(), "--assert", &must], &args[..]].concat());
    assert_eq!(ran.code, 9, "what was not seen may have happened");
    let lines: Vec<Value> =
        ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let last = lines.last().expect("a summary");
    assert_eq!(last["exactness"], "lossy", "{last}");
    assert!(last["n_dropped"].as_u64() > Some(0));
    assert!(kinds(&lines).contains(&"observer_drop_summary"));
    let is_partial = |one: &Value| one["kind"] == "assertion" && one["exactness"] == "partial";
    assert!(lines.iter().any(is_partial), "{}", ran.out);
    let ran = observe(&[&[cell.as_str(), "--fail-on-observer-drop"], &args[..]].concat());
    assert_eq!(ran.code, 9);
    let ran = observe(&[&[cell.as_str()], &args[..]].concat());
    assert_eq!(ran.code, 0);
}

#[test]
fn a_summary_is_one_object_with_the_results_of_assertions() {
    let must = assertions("summary.yaml", "{id: a, type: never, event: loop_error}");
    let cell = file("cell.yaml");
    let args = [&cell, "--steps", "3", "--format", "json-summary", "--assert", &must];
    let ran = observe(&args);
    assert_eq!((ran.code, ran.out.lines().count()), (0, 1), "{}", ran.out);
    let summary: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (&summary["kind"], &summary["exactness"]),
        (&"final_summary".into(), &"exact".into())
    );
    assert_eq!(summary["assertions"][0]["ok"], true);
    assert!(summary["n_events"].as_u64() > Some(10));
}

#[test]
fn events_come_while_the_run_goes_on() {
    /// Stops the run after the first call in the output.
    struct Reader(clockjack_cli::Interrupt, Vec<u8>);

    impl std::io::Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.1.extend_from_slice(bytes);
            if String::from_utf8_lossy(bytes).contains("component_end") {
                self.0.request();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let interrupt = clockjack_cli::Interrupt::new();
    let (mut out, mut err) = (Reader(interrupt.clone(), Vec::new()), Vec::new());
    let mut streams = Streams { interrupt, ..Streams::new(&mut out, &mut err) };
    let cell = file("cell.yaml");
    // The run has no bound: it stops because the reader requests that.
    let args = [
        "clockjack",
        "observe",
        &cell,
        "--clock",
        "wall",
        "--observe-level",
        "detailed",
        "--ui-frame-ms",
        "5",
    ];
    assert_eq!(run(&Registry::standard(), args, &mut streams), 130);
    assert!(String::from_utf8_lossy(&out.1).contains("final_summary"));
}

#[test]
fn a_recording_has_all_parts_and_is_not_overwritten() {
    let directory = scratch("recording");
    // Removes the directory that an earlier test run left.
    let _ = fs::remove_dir_all(&directory);
    let to = directory.to_str().expect("text");
    let must = assertions("record.yaml", "{id: a, type: never, event: loop_error}");
    let cell = file("cell.yaml");
    let args =
        [&cell, "--steps", "3", "--record", to, "--assert", &must, "--format", "json-summary"];
    let ran = observe(&args);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let read = |name: &str| {
        fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let manifest: Value = serde_json::from_str(&read("manifest.json")).expect("JSON");
    let mut names: Vec<&str> = manifest["files"]
        .as_array()
        .expect("files")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    names.sort_unstable();
    let expected = [
        "assertion_results.json",
        "assertions.yaml",
        "graph.mmd",
        "graph.normalized.json",
        "graph.yaml",
        "health.json",
        "metrics.json",
        "metrics.prom",
        "observe.ndjson",
        "plan.json",
        "summary.json",
        "trace.chrome.json",
        "trace.ndjson",
    ];
    assert_eq!(names, expected);
    assert_eq!(read("graph.yaml"), fs::read_to_string(&cell).expect("the file exists"));
    for name in names.iter().filter(|name| name.ends_with("json")) {
        for line in read(name).lines().filter(|_| name.ends_with("ndjson")) {
            assert!(serde_json::from_str::<Value>(line).expect("JSON").is_object(), "{name}");
        }
        if !name.ends_with("ndjson") {
            let _: Value = serde_json::from_str(&read(name)).expect(name);
        }
    }
    let lines = read("observe.ndjson");
    assert!(lines.starts_with('{') && lines.contains("final_summary"), "also if it is not printed");
    assert!(read("trace.ndjson").contains("component_execute_begin"));
    let again = observe(&args);
    assert_eq!((again.code, again.out.as_str()), (1, ""));
    assert!(again.err.contains("the directory already contains a recording"), "{}", again.err);
}

#[test]
fn a_recording_overwrites_no_file_of_somebody_else() {
    let directory = scratch("not-a-recording");
    // Removes the directory that an earlier test run left.
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir(&directory).expect("it is new");
    fs::write(directory.join("plan.json"), "mine").expect("it is written");
    let to = directory.to_str().expect("text");
    let ran = observe(&[&file("cell.yaml"), "--steps", "3", "--record", to]);
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("the directory contains other files"), "{}", ran.err);
    let names = fs::read_dir(&directory).expect("it exists").map(|one| one.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["plan.json"]);
    assert_eq!(fs::read_to_string(directory.join("plan.json")).expect("it exists"), "mine");
}
