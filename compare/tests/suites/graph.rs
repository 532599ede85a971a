//! The whole suite `graph`, with few epochs: every case, every installed subject.

use std::path::Path;
use std::process::Command;

use super::program::{compare, lines, parse, program, refused, stdout};

const CASES: [&str; 9] = [
    "caterpillar",
    "chain",
    "fan_out",
    "fan_in",
    "parallel_10us",
    "parallel_1ms",
    "compile_4096",
    "trace",
    "allocs",
];

#[test]
fn the_quick_suite_writes_one_complete_line_a_case() {
    let args = ["graph", "--quick", "--rounds", "1", "--n", "20", "--json", "-"];
    let lines = lines(&args);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, CASES);
    for line in &lines {
        let case = line["case"].as_str().expect("a case has a name");
        assert_eq!(line["suite"], "graph");
        assert_eq!(line["n"], if case == "compile_4096" { 4_096 } else { 20 });
        assert!(line["ours"].is_number(), "{line}");
        assert!(line["met"].is_boolean(), "{line}");
        let by_hand = &line["peers"]["static_loop"];
        let (unit, is_compared) = match case {
            "parallel_10us" | "parallel_1ms" => ("us", true),
            "compile_4096" => ("ms", false),
            "trace" => ("ns", false),
            "allocs" => ("allocs", false),
            _ => ("ns", true),
        };
        assert_eq!(line["unit"], unit);
        assert_eq!(by_hand.is_number(), is_compared, "{line}");
        assert_eq!(line["peers"]["untraced"].is_number(), case == "trace", "{line}");
        let is_parallel = unit == "us";
        assert_eq!(line["ours_efficiency"].is_number(), is_parallel, "{line}");
        assert_eq!(line["over_static_loop"].is_number(), is_compared && !is_parallel, "{line}");
    }
}

#[test]
fn an_epoch_of_the_caterpillar_allocates_nothing() {
    let args = ["graph", "--quick", "--n", "1000", "--case", "allocs", "--json", "-"];
    let lines = lines(&args);
    assert_eq!(lines[0]["ours"], 0.0, "{}", lines[0]);
}

#[test]
fn a_millisecond_of_work_is_done_by_several_where_there_are_cores() {
    let args = ["graph", "--rounds", "1", "--n", "5", "--case", "parallel_1ms", "--json", "-"];
    let lines = lines(&args);
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get());
    let overlap = lines[0]["ours_overlap"].as_f64().expect("our figure is present");
    assert!(overlap >= cores.min(2) as f64, "{}", lines[0]);
}

/// The stand-in header calls tasks in the order of their creation. The test shows that the program
/// compiles and understands the shapes, and nothing about Taskflow.
#[test]
fn a_header_that_is_found_gives_its_subject_figures() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suites/header");
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(compiler).arg("--version").output().is_err() {
        return;
    }
    let args = ["graph", "--quick", "--rounds", "1", "--n", "20", "--json", "-"];
    let output = program().args(args).env("CPLUS_INCLUDE_PATH", &include).output();
    for line in parse(&stdout(&output.expect("the program was built with this test"))) {
        let case = line["case"].as_str().expect("a case has a name");
        let is_alone = ["compile_4096", "trace", "allocs"].contains(&case);
        assert_eq!(line["peers"]["taskflow"].is_number(), !is_alone, "{line}");
        assert_eq!(line["best_peer"] == "taskflow", !is_alone, "{line}");
        assert!(line["peers_allocs"]["taskflow"].is_null(), "{line}");
    }
}

#[test]
fn who_is_not_installed_is_left_out_with_the_reason() {
    let output = program()
        .args(["graph", "--quick", "--rounds", "1", "--n", "5", "--case", "chain"])
        .env("CXX", "no-such-compiler")
        .output()
        .expect("the program was built with this test");
    let table = stdout(&output);
    assert!(table.contains("left out: no C++ compiler"), "{table}");
    assert!(table.contains("static_loop*") && table.contains("<=static_loop+30"), "{table}");
}

#[test]
fn the_list_names_every_case_and_subject() {
    let list = stdout(&compare(&["graph", "--list"]));
    for name in CASES.iter().chain(&["clockjack-graph 0.", "static_loop: std", "taskflow"]) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
}

#[test]
fn a_wrong_call_exits_with_2() {
    refused(&["graph", "--only", "nobody"], "no subject is called `nobody`");
    refused(&["graph", "--case", "nothing"], "compile_4096");
}
