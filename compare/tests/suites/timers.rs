//! The program as a whole, with few timers: every case, every subject, both forms of output.

use serde_json::Value;

use super::program::{compare, lines, parse, refused, stdout};

const CASES: [&str; 6] = ["insert", "cancel", "fire", "fire_1ms", "churn", "bytes"];
const REFERENCES: [&str; 3] = ["hash-wheel", "BTreeMap", "BinaryHeap"];
const RIVALS: [&str; 3] = ["nexus-timer", "DelayQueue", "tokio-Sleep"];

#[test]
fn the_quick_suite_writes_one_complete_line_a_case() {
    let args = ["timers", "--quick", "--rounds", "1", "--n", "1000", "--json", "-"];
    let lines = lines(&args);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, CASES);
    for line in &lines {
        let case = line["case"].as_str().expect("a case has a name");
        assert_eq!(line["suite"], "timers");
        assert_eq!(line["n"], 1_000);
        assert_eq!(line["rounds"], 1);
        assert_eq!(line["unit"], if case == "bytes" { "B" } else { "ns" });
        let peers = line["peers"].as_object().expect("peers are an object");
        for subject in RIVALS.iter().chain(&REFERENCES) {
            let figure = peers[*subject].as_f64();
            assert!(figure.is_some_and(|figure| figure > 0.0), "{case} {subject}: {figure:?}");
        }
        let best = line["best_peer"].as_str().expect("there are rivals");
        assert!(RIVALS.contains(&best), "{case}: {best}");
        for rival in RIVALS {
            assert!(peers[best].as_f64() <= peers[rival].as_f64(), "{case}: {best} over {rival}");
        }
        let extras: &[&str] = match case {
            "bytes" => &["after_cancel", "refilled", "key_bytes"],
            "insert" => &["wall", "quartiles", "allocs", "first_fill", "scattered"],
            _ => &["wall", "quartiles", "allocs"],
        };
        for extra in extras {
            assert!(line.get(format!("ours_{extra}")).is_some(), "{case} lacks ours_{extra}");
            let values = line[format!("peers_{extra}")].as_object();
            let values = values.unwrap_or_else(|| panic!("{case} lacks peers_{extra}"));
            assert!(values.values().all(|value| !value.is_null()), "{case} {extra}: {values:?}");
            assert_eq!(values.len(), peers.len(), "{case} {extra}");
        }
        check_ratio(line, peers[best].as_f64());
    }
}

/// Above 1 we win; without a figure of our own there is no ratio.
fn check_ratio(line: &Value, best: Option<f64>) {
    match (line["ours"].as_f64(), best) {
        (Some(ours), Some(best)) => {
            let ratio = line["ratio"].as_f64().expect("both figures are there");
            let off = (ratio - best / ours).abs() / ratio;
            assert!(off < 0.01, "{ratio} is not {best} / {ours}");
        }
        _ => assert_eq!(line["ratio"], Value::Null),
    }
}

#[test]
fn a_file_gets_the_lines_and_standard_output_the_table() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("timers.jsonl");
    let shown = path.to_str().expect("cargo's folder is UTF-8");
    let only = ["--only", "btreemap,nexus-timer", "--case", "insert", "--case", "bytes"];
    let args = [&["timers", "--quick", "--n", "200", "--json", shown], &only[..]].concat();
    let table = stdout(&compare(&args));
    let written = std::fs::read_to_string(&path).expect("the file was written");
    let lines = parse(&written);
    assert_eq!(lines.len(), 2);
    for line in &lines {
        let peers = line["peers"].as_object().expect("peers are an object");
        let names: Vec<&String> = peers.keys().collect();
        assert_eq!(names, ["nexus-timer", "BTreeMap"]);
        assert_eq!(line["references"], serde_json::json!(["BTreeMap"]));
    }
    for expected in ["rustc 1.", "insert", "bytes", "nexus-timer", "BTreeMap*", "verdict"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert!(!table.contains("DelayQueue"), "{table}");
}

#[test]
fn a_single_timer_can_be_measured() {
    let args = ["timers", "--quick", "--rounds", "1", "--n", "1", "--case", "bytes"];
    let table = stdout(&compare(&[&args[..], &["--case", "fire"]].concat()));
    assert!(table.contains("bytes"), "{table}");
}

#[test]
fn the_list_names_every_case_and_subject_with_its_version() {
    let list = stdout(&compare(&["timers", "--list"]));
    for name in CASES.iter().chain(&RIVALS).chain(&REFERENCES) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
    assert!(list.contains("nexus-timer 1.5"), "{list}");
}

#[test]
fn a_wrong_call_exits_with_2_and_says_what_there_is() {
    refused(&["timers", "--only", "nobody"], "no subject is called `nobody`; known: clockjack,");
    refused(&["timers", "--case", "nothing"], "fire_1ms");
    refused(&["timers", "--n", "0"], "0 is not in 1..");
    refused(&["gears"], "unrecognized subcommand");
}

#[test]
fn a_file_that_cannot_be_written_exits_with_1_before_any_work() {
    let output = compare(&["timers", "--json", env!("CARGO_TARGET_TMPDIR")]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write"), "{said}");
}
