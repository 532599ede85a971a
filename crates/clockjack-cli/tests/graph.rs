//! Tests of the graph commands as their user sees them: formats, exit codes, colors and help.

#[path = "graph/overview.rs"]
mod overview;
#[path = "graph/plot.rs"]
mod plot;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use clockjack_cli::{Interrupt, Streams, exit_code, run};
use clockjack_graph::Registry;
use overview::lasting;
use serde_json::Value;

struct Ran {
    code: u8,
    out: String,
    err: String,
}

/// The environment of a call of the command.
#[derive(Default)]
struct Setting {
    is_terminal: bool,
    no_color: bool,
    interrupt: Interrupt,
}

fn clockjack_in(setting: &Setting, args: &[&str]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out_is_terminal: setting.is_terminal,
        err_is_terminal: setting.is_terminal,
        no_color: setting.no_color,
        interrupt: setting.interrupt.clone(),
        ..Streams::new(&mut out, &mut err)
    };
    let code = run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    Ran { code, out: text(out), err: text(err) }
}

fn clockjack(args: &[&str]) -> Ran {
    clockjack_in(&Setting::default(), args)
}

/// The path of a test file.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs").join(name);
    path.to_str().expect("a path of text").to_owned()
}

/// A path for an output file.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

#[track_caller]
fn check_golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    // After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-cli` rewrites the file.
    if env::var_os("CLOCKJACK_BLESS").is_some() {
        fs::write(&path, text).expect("the file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} is not what is printed now:\n{text}", path.display());
}

/// The result as one JSON value.
#[track_caller]
fn json(args: &[&str]) -> Value {
    let ran = clockjack(args);
    assert_eq!(ran.out.lines().count(), 1, "{args:?} prints one line: {}{}", ran.out, ran.err);
    serde_json::from_str(&ran.out).expect("JSON")
}

/// The result as one JSON value per line.
#[track_caller]
fn lines(args: &[&str]) -> Vec<Value> {
    let ran = clockjack(args);
    let lines = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

const COMMANDS: [&str; 23] = [
    "check",
    "plan",
    "render",
    "run",
    "plot",
    "trace",
    "observe",
    "lint",
    "explain",
    "diff-plan",
    "bench",
    "schema",
    "init",
    "cluster",
    "ps",
    "top",
    "inspect",
    "get",
    "set",
    "doctor",
    "completions",
    "man",
    "demo",
];

/// The commands that the help of the program lists.
fn listed_commands(help: &str) -> Vec<&str> {
    let list = help.split("Commands:\n").nth(1).expect("there is a list of commands");
    let names = list.lines().map_while(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn the_whole_surface_is_that_of_the_golden_file() {
    let mut surface = clockjack(&["--help"]).out;
    assert_eq!(listed_commands(&surface), COMMANDS, "every command is tested below");
    for command in COMMANDS {
        let help = clockjack(&[command, "--help"]);
        assert_eq!((help.code, help.err.as_str()), (0, ""), "{command}");
        assert!(help.out.contains("Examples:\n"), "{command} has examples");
        assert!(help.out.contains("Exit codes:\n"), "{command} tells its exit codes");
        surface.push_str(&format!("\n==== {command} ====\n\n{}", help.out));
    }
    check_golden("surface.txt", &surface);
}

#[test]
fn all_that_print_do_so_for_people_and_for_programs() {
    let cell = file("cell.yaml");
    let cases: [&[&str]; 10] = [
        &["check", &cell],
        &["plan", &cell],
        &["render", &cell],
        &["run", &cell, "--steps", "3"],
        &["trace", &cell, "--steps", "3"],
        &["observe", &cell, "--steps", "3"],
        &["lint", &cell],
        &["diff-plan", &cell, &cell],
        &["explain", "unknown_lane"],
        &["bench", &cell, "--steps", "3", "--runs", "1"],
    ];
    let others: [&[&str]; 2] = [&["schema"], &["doctor"]];
    for args in cases.into_iter().chain(others) {
        let with = |format| [args, &["--format", format]].concat();
        let human = clockjack(&with("human"));
        assert_eq!((human.code, human.err.as_str()), (exit_code::OK, ""), "{args:?}");
        assert!(!human.out.is_empty(), "{args:?}");
        assert!(json(&with("json")).is_object(), "{args:?}");
        for line in lines(&with("ndjson")) {
            assert!(line.is_object(), "{args:?}: {line}");
        }
    }
}

#[test]
fn exit_code_0_is_a_graph_that_is_valid_and_runs() {
    let cell = file("cell.yaml");
    assert_eq!(clockjack(&["check", &cell]).code, 0);
    assert_eq!(clockjack(&["run", &cell, "--steps", "10"]).code, 0);
}

#[test]
fn exit_code_1_is_a_file_that_cannot_be_written() {
    let ran = clockjack(&["render", &file("cell.yaml"), "--output", "/no/such/place/x.svg"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("clockjack: cannot write '/no/such/place/x.svg': "), "{}", ran.err);
}

#[test]
fn render_draws_a_part_and_refuses_an_unknown_one() {
    let cell = file("cell.yaml");
    let all = clockjack(&["render", &cell]);
    let part = clockjack(&["render", &cell, "--only", "sensor"]);
    assert_eq!((all.code, part.code), (0, 0), "{}", part.err);
    assert!(part.out.starts_with("cell, sensor: 3 components, 2 edges\n"), "{}", part.out);
    let unknown = clockjack(&["render", &cell, "--only", "sensr"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.err.contains("did you mean `sensor`?"), "{}", unknown.err);
    let narrow = clockjack(&["render", &cell, "--width", "19"]);
    assert_eq!(narrow.code, 2);
    assert!(narrow.err.contains("19 is not in 20..=65535"), "{}", narrow.err);
}

#[test]
fn exit_code_2_is_a_file_that_cannot_be_read_or_a_wrong_argument() {
    let cases: [(&[&str], &str); 6] = [
        (&["check", "no-such.yaml"], "cannot read the graph 'no-such.yaml'"),
        (&["run", "no-such.yaml"], "cannot read the graph 'no-such.yaml'"),
        (&["run", "x.yaml", "--for", "7"], "expected a whole number with a unit"),
        (&["run", "x.yaml", "--workers", "0"], "0 is not in 1..=64"),
        (&["explain", "unknown_lan"], "did you mean"),
        (&["man", "fly"], "unknown command 'fly'"),
    ];
    for (args, message) in cases {
        let ran = clockjack(args);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{args:?}");
        assert!(ran.err.contains(message), "{args:?} says {}", ran.err);
    }
}

#[test]
fn exit_code_3_is_a_graph_that_is_not_valid_and_all_its_faults_are_told() {
    let bad = file("bad.yaml");
    for command in ["plan", "render", "run", "trace", "observe", "bench"] {
        let ran = clockjack(&[command, &bad, "--format", "human"]);
        assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{command}");
        for code in ["error[unknown_component]", "error[unknown_lane]"] {
            assert!(ran.err.contains(code), "{command} says {}", ran.err);
        }
    }
    let report = json(&["run", &bad, "--format", "json"]);
    assert_eq!((&report["ok"], &report["n_errors"]), (&false.into(), &2.into()));
    let checked = clockjack(&["check", &bad, "--format", "human"]);
    assert_eq!((checked.code, checked.err.as_str()), (3, ""), "the report is the result");
    assert!(checked.out.contains("^^^"), "{}", checked.out);
}

#[test]
fn exit_code_3_tells_faults_of_the_text_and_of_the_graph_in_one_report() {
    for command in ["check", "run"] {
        let report = json(&[command, &file("both.yaml"), "--format", "json"]);
        let codes = report["diagnostics"].as_array().expect("findings").iter();
        let codes: Vec<&str> = codes.filter_map(|one| one["code"].as_str()).collect();
        assert_eq!(codes, ["unknown_field", "unknown_lane"], "{command}");
    }
}

#[test]
fn exit_code_3_is_a_limit_that_is_exceeded_and_every_limit_has_an_option() {
    let cell = file("cell.yaml");
    let options = [
        "--max-graph-input-bytes",
        "--max-lanes",
        "--max-components",
        "--max-edges",
        "--max-identifier-bytes",
        "--max-string-bytes",
        "--max-config-value-bytes",
        "--max-config-depth",
        "--max-composite-loops",
    ];
    for option in options {
        let refused = json(&["plan", &file("all.yaml"), option, "0", "--format", "json"]);
        let codes: Vec<_> = refused["diagnostics"].as_array().expect("findings").iter().collect();
        assert!(codes.iter().any(|one| one["code"] == "limit_exceeded"), "{option}: {codes:?}");
        assert_eq!(clockjack(&["plan", &cell, option, "1000000"]).code, 0, "{option}");
    }
}

#[test]
fn exit_code_3_is_a_warning_only_if_checked_strictly() {
    let risky = file("risky.yaml");
    assert_eq!(clockjack(&["check", &risky]).code, 0);
    let strict = clockjack(&["check", &risky, "--strict"]);
    assert_eq!(strict.code, 3);
    assert!(strict.out.contains("warning[backpressure_risk]"), "{}", strict.out);
}

#[test]
fn exit_code_5_is_a_run_that_failed_and_the_part_that_ran_is_reported() {
    let ran = clockjack(&["run", &file("failing.yaml")]);
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("the run failed: "), "{}", ran.out);
    let report = json(&["run", &file("failing.yaml"), "--format", "json"]);
    assert_eq!(report["stop_reason"], "error");
    assert_eq!(report["faults"][0]["component"], "guard");
}

#[test]
fn a_dry_run_starts_every_component_and_calls_none() {
    let cell = file("cell.yaml");
    let ran = clockjack(&["check", &cell, "--dry-run"]);
    assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{}", ran.out);
    assert_eq!(ran.out, clockjack(&["check", &cell]).out);
    // Valid as text and as a graph, but no value is from 5 to 1.
    let text = fs::read_to_string(file("lossy.yaml")).expect("it can be read");
    let v = "  - { id: v, type: validator, execution: { lane: main }, \
             config: { min: 5.0, max: 1.0 } }\n";
    let text = text
        .replace("components:\n", &format!("components:\n{v}"))
        .replace("from: a.out, to: out.in", "from: a.out, to: v.in");
    let wrong = scratch("wrong-settings.yaml");
    fs::write(&wrong, text).expect("it can be written");
    let wrong = wrong.to_str().expect("a path of text");
    assert_eq!(clockjack(&["check", wrong]).code, exit_code::OK);
    let ran = clockjack(&["check", wrong, "--dry-run"]);
    assert_eq!(ran.code, exit_code::RUN_FAILED);
    assert!(ran.err.contains("the dry run failed: `v` failed in configure"), "{}", ran.err);
}

#[test]
fn the_help_lists_every_exit_code() {
    let help = clockjack(&["--help"]).out;
    for (code, meaning) in exit_code::ALL {
        assert!(help.contains(&format!("  {code:<3}  {meaning}\n")), "{code} is in the help");
    }
}

#[test]
fn exit_code_9_is_an_assertion_that_does_not_hold() {
    let cell = file("cell.yaml");
    let observe = |text: &str, name: &str| {
        let path = scratch(name);
        fs::write(&path, text).expect("the file can be written");
        let path = path.to_str().expect("text");
        clockjack(&["observe", &cell, "--steps", "5", "--assert", path])
    };
    let with = |rule: &str| format!("assertion_schema_version: \"1\"\nassertions:\n  - {rule}\n");
    let holds = observe(&with("{id: a, type: eventually, event: component_end}"), "holds.yaml");
    assert_eq!(holds.code, 0, "{}{}", holds.out, holds.err);
    let fails = observe(&with("{id: a, type: never, event: component_end}"), "fails.yaml");
    assert_eq!(fails.code, 9);
    let wrong = observe(&with("{id: a, type: nevr}"), "wrong.yaml");
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""));
    let differ = ["diff-plan", &cell, &file("risky.yaml")];
    assert_eq!(clockjack(&differ).code, 0, "a difference is no failure unless told so");
    assert_eq!(clockjack(&[&differ[..], &["--expect-same"]].concat()).code, 9);
}

/// A source every 10 ms and a reader every 25 ms, whose data may take this long.
fn late_graph(name: &str, chain_ms: u64, silence_ms: u64) -> String {
    let path = scratch(name);
    let text = format!(
        "schema_version: 1
graph: {{ name: late }}
lanes:
  main: {{ type: event_loop }}
  slow: {{ type: fixed_rate, period_ms: 25 }}
components:
  - id: src
    type: counter
    event_sources: [{{ type: timer, period_ms: 10 }}]
    execution: {{ lane: main }}
    boundary: {{ role: input }}
  - {{ id: out, type: output, execution: {{ lane: slow }}, boundary: {{ role: output }} }}
edges:
  - id: e
    kind: immediate
    from: src.out
    to: out.in
    policy: {{ mode: queue, capacity: 8, max_silence_ms: {silence_ms}, deadline_ms: 18 }}
chains:
  - {{ from: src, to: out, max_ms: {chain_ms} }}
"
    );
    fs::write(&path, text).expect("it can be written");
    path.to_str().expect("a path of text").into()
}

#[test]
fn late_data_is_in_the_summary_and_exit_code_7_if_it_is_denied() {
    let late = late_graph("late.yaml", 12, 9);
    let ran = clockjack(&["run", &late, "--for", "101ms"]);
    assert_eq!(ran.code, exit_code::OK, "{}", ran.err);
    let chain = "chain src:out: 4 of 11 over 12 ms; p50 10.000 ms, p99 20.000 ms, \
                 longest 20.000 ms\n";
    let deadline = "edge e: 2 messages were read later than 18 ms\n";
    let silence = "edge e: nothing came to `out` for longer than 9 ms, 10 times; the longest \
                   silence was 10 ms\n";
    assert!(ran.out.contains(&[chain, deadline, silence].concat()), "{}", ran.out);
    let denied = clockjack(&["run", &late, "--for", "101ms", "--deny-late"]);
    assert_eq!(denied.code, exit_code::OVERRUN);
    assert_eq!(lasting(&denied.out), lasting(&ran.out));
    let result = json(&["run", &late, "--for", "101ms", "--format", "json"]);
    assert_eq!((&result["n_late"], &result["chains"][0]["violations"]), (&16.into(), &4.into()));
    assert_eq!(result["chains"][0]["p99_ms"], 20.0);
    assert_eq!(result["silent_inputs"][0]["count"], 10);
    let timely = late_graph("timely.yaml", 20, 10);
    let text = fs::read_to_string(&timely).expect("it is there");
    let text = text.replace("deadline_ms: 18", "deadline_ms: 20");
    fs::write(&timely, text).expect("it can be written");
    let ran = clockjack(&["run", &timely, "--for", "101ms", "--deny-late"]);
    assert_eq!(ran.code, exit_code::OK, "{}", ran.out);
}

#[test]
fn every_clock_and_every_kind_of_overlap_can_be_chosen() {
    let text = |path: &str, clock: &str| {
        let run = ["run", path, "--steps", "3", "--clock", clock, "--format", "json"];
        json(&run)
    };
    let late = late_graph("clocks.yaml", 50, 50);
    let own = fs::read_to_string(&late).expect("it is there");
    let own = own
        .replace("period_ms: 25 }", "period_ms: 5, wall_clock_enabled: true }")
        .replace("kind: immediate", "kind: delay");
    fs::write(&late, &own).expect("it can be written");
    // A chain must not lead from one clock to the other.
    let refused = clockjack(&["run", &late, "--steps", "3", "--clock", "described"]);
    assert_eq!(refused.code, exit_code::RUN_FAILED, "{}", refused.err);
    assert!(refused.out.contains("chain `src:out` leads from simulated time"), "{}", refused.out);
    let (own, _) = own.split_once("chains:").expect("it has a chain");
    fs::write(&late, own).expect("it can be written");
    // Three epochs of the main lane at 0, 10 and 20 ms of simulated time, and three ticks of the
    // other by the clock of the system: two domains. In virtual time there is one.
    assert_eq!(text(&late, "described")["epochs"], 6);
    assert_eq!(text(&late, "virtual")["epochs"], 3);
    let cell = file("cell.yaml");
    let log = |when: &str| {
        let path = scratch(&format!("parallel-{when}.log"));
        let name = path.to_str().expect("a path of text");
        let run = ["run", &cell, "--parallel", when, "--workers", "4", "--commit-log", name];
        assert_eq!(clockjack(&run).code, exit_code::OK);
        fs::read(&path).expect("it was written")
    };
    let always = log("always");
    assert!(!always.is_empty() && always == log("never") && always == log("auto"));
}

#[test]
fn lost_messages_are_in_the_summary_and_exit_code_9_if_loss_is_denied() {
    let lossy = file("lossy.yaml");
    let ran = clockjack(&["run", &lossy, "--steps", "10"]);
    assert_eq!(ran.code, exit_code::OK, "{}", ran.err);
    let expected = "messages lost: 20, not read at the end: 0\n  \
                    component out: 20 messages rejected because the lane was full; \
                    raise `queue_capacity` of the lane, or make the component `reentrant` and \
                    raise `max_threads`\n";
    assert!(ran.out.contains(expected), "{}", ran.out);
    let denied = clockjack(&["run", &lossy, "--steps", "10", "--deny-loss"]);
    assert_eq!(denied.code, exit_code::ASSERTION_FAILED);
    assert_eq!(lasting(&denied.out), lasting(&ran.out));

    let result = json(&["run", &lossy, "--steps", "10", "--format", "json"]);
    assert_eq!(result["n_lost"], 20);
    let loss = &result["losses"][0];
    assert_eq!((&loss["place"], &loss["id"]), (&"component".into(), &"out".into()));
    assert_eq!((&loss["cause"], &loss["count"]), (&"lane_full".into(), &20.into()));
    let records = lines(&["run", &lossy, "--steps", "10", "--format", "ndjson"]);
    assert_eq!(records.iter().filter(|one| one["record"] == "loss").count(), 1);

    let found = json(&["lint", &lossy, "--format", "json"]);
    let found: Vec<&Value> = found["findings"].as_array().expect("a list").iter().collect();
    let is_about_out = |one: &&&Value| one["rule"] == "lossy_default" && one["id"] == "out";
    assert_eq!(found.iter().filter(is_about_out).count(), 1, "{found:?}");

    let text = fs::read_to_string(&lossy).expect("it can be read");
    let kept = scratch("kept.yaml");
    let text = text.replace("type: thread_pool }", "type: thread_pool, queue_capacity: 2 }");
    fs::write(&kept, text).expect("it can be written");
    let kept = kept.to_str().expect("a path of text");
    let ran = clockjack(&["run", kept, "--steps", "10", "--deny-loss"]);
    assert_eq!(ran.code, exit_code::OK, "{}{}", ran.out, ran.err);
    assert!(!ran.out.contains("lost"), "{}", ran.out);
}

#[test]
fn exit_code_130_is_an_interrupt_and_the_run_is_drained_and_reported() {
    let interrupt = Interrupt::new();
    interrupt.request();
    let setting = Setting { interrupt, ..Setting::default() };
    let ran = clockjack_in(&setting, &["run", &file("cell.yaml"), "--clock", "wall"]);
    assert_eq!(ran.code, 130, "{}", ran.err);
    assert!(ran.out.contains("; ended by stop_requested\n"), "{}", ran.out);
    assert!(ran.out.ends_with("interrupted: the work in progress was completed\n"), "{}", ran.out);
}

#[test]
fn the_commit_log_is_the_same_for_any_number_of_workers() {
    let log = |workers: &str| {
        let path = scratch(&format!("commits.{workers}"));
        let to = path.to_str().expect("text");
        let cell = file("cell.yaml");
        let args = ["run", &cell, "--steps", "200", "--workers", workers, "--commit-log", to];
        assert_eq!(clockjack(&args).code, 0);
        fs::read(&path).expect("it was written")
    };
    let one = log("1");
    assert!(!one.is_empty());
    assert!(one == log("2") && one == log("4"), "commit logs differ");
}

/// A graph with a lane that has its own time domain and requests a processor that does not exist.
fn own_time(name: &str) -> String {
    let path = scratch(name);
    let text = "schema_version: 1\ngraph: { name: own_time }\n\
        lanes:\n  main: { type: event_loop }\n  \
        tick: { type: fixed_rate, period_ms: 1, wall_clock_enabled: true, cpu_affinity: [1023] }\n\
        components:\n  \
        - { id: src, type: input, execution: { lane: tick }, boundary: { role: input } }\n  \
        - { id: out, type: output, execution: { lane: main }, boundary: { role: output }, \
        event_sources: [{ type: message, input: in }], trigger_policy: { type: any_input } }\n\
        edges:\n  - { id: e, kind: delay, from: src.out, to: out.in }\n";
    fs::write(&path, text).expect("the file can be written");
    path.to_str().expect("text").to_owned()
}

#[test]
fn by_the_wall_clock_a_lane_that_keeps_its_own_time_has_its_own_commit_log() {
    let (graph, path) = (own_time("own-log.yaml"), scratch("own-time.log"));
    let (log, lane) = (path.to_str().expect("text"), format!("{}.tick", path.display()));
    let ran = clockjack(&["run", &graph, "--steps", "5", "--commit-log", log]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(!fs::exists(&lane).expect("it can be looked for"), "in simulated time there is one");
    let args = ["run", &graph, "--steps", "5", "--clock", "wall", "--commit-log", log];
    let ran = clockjack(&args);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let [one, other] = [log, &lane].map(|path| fs::read(path).expect("it was written"));
    assert!(one.starts_with(b"CJCL\x01") && other.starts_with(b"CJCL\x01"));
    assert!(other[5..].starts_with(b"\x08own_timeL\x04tickE"), "{other:?}");
    fs::remove_file(lane).expect("the file exists");
}

#[test]
fn what_the_operating_system_refuses_is_advisory_in_the_plan_and_in_the_report() {
    let graph = own_time("own-plan.yaml");
    let ran = clockjack(&["plan", &graph]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains("advisory: cpu_affinity"), "{}", ran.out);
    let ran = clockjack(&["run", &graph, "--steps", "2", "--clock", "wall", "--format", "json"]);
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    let lane = &report["lanes"][1];
    assert_eq!(lane["id"], "tick");
    assert_eq!(lane["own_thread"], true);
    assert_eq!(lane["enforced"], serde_json::json!(["period_ms", "wall_clock_enabled"]));
    assert_eq!(lane["advisory"][0]["field"], "cpu_affinity");
    let ran = clockjack(&["run", &graph, "--steps", "2"]);
    let says = "lane tick: `cpu_affinity` has no effect: the run is in simulated time\n";
    assert!(ran.out.contains(says), "{}", ran.out);
}

#[test]
fn a_run_writes_its_trace_and_its_metrics() {
    let (chrome, perfetto, metrics) = (scratch("t.json"), scratch("t.pftrace"), scratch("m.prom"));
    let path = |path: &Path| path.to_str().expect("text").to_owned();
    let cell = file("cell.yaml");
    for trace in [&chrome, &perfetto] {
        let (trace, metrics) = (path(trace), path(&metrics));
        let args = ["run", &cell, "--steps", "5", "--trace", &trace, "--metrics", &metrics];
        assert_eq!(clockjack(&args).code, 0);
    }
    let text = fs::read_to_string(&chrome).expect("it was written");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 20), "{trace}");
    assert!(fs::read(&perfetto).expect("it was written").len() > 200);
    let metrics = fs::read_to_string(&metrics).expect("it was written");
    let ticks = "clockjack_runtime_scheduler_tick_count_total{lane=\"control\"} 5\n";
    assert!(metrics.contains(ticks), "{metrics}");
    let help = "# HELP clockjack_runtime_scheduler_tick_count_total Ticks of a fixed-rate lane.\n";
    assert!(metrics.contains(help), "{metrics}");
    // The metrics of the graph, and those of the runtime.
    for name in ["executor_polls_total{pool=", "scheduler_jobs_accepted_total ", "actors_live "] {
        assert!(metrics.contains(&format!("\nclockjack_{name}")), "{name}: {metrics}");
    }
}

#[test]
fn a_trace_by_the_wall_clock_also_shows_the_workers() {
    let cell = file("cell.yaml");
    let args = ["trace", &cell, "--steps", "5", "--workers", "2", "--format", "chrome"];
    let traced = |clock: &str| -> (Vec<String>, usize) {
        let ran = clockjack(&[&args[..], &["--clock", clock]].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let trace: Value = serde_json::from_str(&ran.out).expect("JSON");
        let events = trace["traceEvents"].as_array().expect("a list");
        let names = events.iter().flat_map(|event| [&event["name"], &event["args"]["name"]]);
        let n_polls = events.iter().filter(|event| event["args"]["messages"].is_u64()).count();
        (names.filter_map(|name| name.as_str().map(str::to_owned)).collect(), n_polls)
    };
    let (names, n_polls) = traced("wall");
    for name in ["epochs", "worker 0", "task_spawned"] {
        assert!(names.iter().any(|other| other == name), "no {name} in {names:?}");
    }
    assert!(n_polls > 0, "no poll of a task in {names:?}");
    let (names, n_polls) = traced("virtual");
    assert!(!names.iter().any(|name| name.starts_with("worker")), "{names:?}");
    assert_eq!(n_polls, 0, "a run in virtual time is reproducible, and so is its trace");
}

#[test]
fn a_trace_has_every_name_of_a_span_and_its_ids() {
    let records = lines(&["trace", &file("cell.yaml"), "--steps", "3", "--format", "ndjson"]);
    for name in ["component_execute", "component_execute_begin", "component_execute_end"] {
        let mine = |one: &&Value| one["name"] == name && one["component_id"] == "actuator";
        let calls: Vec<&Value> = records.iter().filter(mine).collect();
        assert_eq!(calls.len(), 3, "{name}");
        for call in calls {
            assert!(call["causation_id"].as_str().is_some_and(|id| id.starts_with("command#")));
            assert_eq!(call["trace_id"], call["correlation_id"], "{call}");
            assert!(call["start_offset_ns"].is_u64() && call["attributes"].is_object(), "{call}");
        }
    }
    let starts: Vec<u64> =
        records.iter().filter_map(|one| one["start_offset_ns"].as_u64()).collect();
    assert!(starts.is_sorted() && starts.len() == records.len());
}

#[test]
fn events_come_numbered_between_what_introduces_and_what_ends_them() {
    let events = lines(&["observe", &file("cell.yaml"), "--steps", "2"]);
    let kinds: Vec<&str> = events.iter().filter_map(|one| one["kind"].as_str()).collect();
    assert_eq!(kinds[..4], ["symbol_table", "graph_validated", "plan_ready", "run_started"]);
    assert_eq!(kinds[kinds.len() - 2..], ["assertion_result", "final_summary"]);
    let numbers: Vec<_> = events.iter().filter_map(|one| one["display_seq"].as_u64()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let few =
        lines(&["observe", &file("cell.yaml"), "--steps", "50", "--event-buffer-capacity", "1"]);
    let last = few.last().expect("a summary");
    assert_eq!(last["exactness"], "lossy", "{last}");
    assert!(last["n_dropped"].as_u64() > Some(0));
}

#[test]
fn colours_are_used_on_a_terminal_unless_somebody_does_not_want_them() {
    let painted = |is_terminal, no_color, mode| {
        let setting = Setting { is_terminal, no_color, ..Setting::default() };
        let ran = clockjack_in(&setting, &["check", &file("bad.yaml"), "--color", mode]);
        ran.out.contains('\x1b')
    };
    assert!(painted(true, false, "auto"));
    assert!(!painted(false, false, "auto"), "no terminal");
    assert!(!painted(true, true, "auto"), "NO_COLOR");
    assert!(painted(false, true, "always"), "an option says more than the environment");
    assert!(!painted(true, false, "never"));
}

#[test]
fn a_live_line_is_drawn_on_a_terminal_and_wiped() {
    let with = |mode, is_terminal| {
        let setting = Setting { is_terminal, ..Setting::default() };
        clockjack_in(&setting, &["run", &file("cell.yaml"), "--progress", mode]).err
    };
    let line = with("auto", true);
    assert!(line.contains("control ") && line.ends_with('\r'), "{line:?}");
    assert!(line.contains("/s  0 overruns, 0 skipped, "), "{line:?}");
    assert_eq!((with("none", true), with("auto", false)), (String::new(), String::new()));
}

#[test]
fn sarif_has_a_run_for_each_file() {
    let log = json(&["check", &file("bad.yaml"), &file("cell.yaml"), "--format", "sarif"]);
    assert_eq!(log["version"], "2.1.0");
    let runs = log["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[0]["results"].as_array().map(Vec::len), Some(2));
    assert_eq!(runs[1]["results"].as_array().map(Vec::len), Some(0));
}

#[test]
fn completions_and_pages_are_there_for_every_shell_and_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        assert!(clockjack(&["completions", shell]).out.contains("diff-plan"), "{shell}");
    }
    for command in COMMANDS {
        let page = clockjack(&["man", command]);
        assert!(page.code == 0 && page.out.contains(".SH NAME"), "{command}");
    }
}

/// A stream whose reader has closed the pipe.
struct Gone;

impl io::Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_reader_that_went_away_is_success_for_every_command() {
    let cell = file("cell.yaml");
    for command in ["check", "plan", "render", "run", "trace", "observe", "lint", "bench"] {
        let (mut out, mut err) = (Gone, Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let code = run(&Registry::standard(), ["clockjack", command, &cell], &mut streams);
        assert_eq!((code, err.as_slice()), (0, &b""[..]), "{command}");
    }
}

#[test]
fn the_process_runs_a_graph_and_survives_a_closed_pipe() {
    let mut process = Command::new(env!("CARGO_BIN_EXE_clockjack"));
    process.args(["observe", &file("cell.yaml")]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn().expect("it starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}
