//! The whole suite `executor`, with few operations: every case, every subject.

use super::program::{compare, lines, refused, stdout};

const CASES: [&str; 8] =
    ["spawn", "yield", "wake", "ping_pong", "fork_join", "steal", "timer_arm_drop", "idle_cpu"];

/// The other subjects that have a figure in a case.
fn able(case: &str) -> &'static [&'static str] {
    match case {
        "fork_join" => &["tokio", "smol", "rayon", "serial"],
        "steal" => &["tokio", "smol", "serial"],
        _ => &["tokio", "smol"],
    }
}

#[test]
fn the_quick_suite_writes_one_complete_line_a_case() {
    let args = ["executor", "--quick", "--rounds", "1", "--n", "100", "--json", "-"];
    let lines = lines(&args);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, CASES);
    for line in &lines {
        let case = line["case"].as_str().expect("a case has a name");
        let is_idle = case == "idle_cpu";
        assert_eq!(line["suite"], "executor");
        assert_eq!(line["n"], 100);
        assert_eq!(line["unit"], if is_idle { "switches + us" } else { "ns" });
        assert_eq!(line["references"], serde_json::json!(["serial"]));
        let extras: &[&str] =
            if is_idle { &["cpu_us", "switches"] } else { &["cpu", "quartiles", "allocs"] };
        for field in ["peers".to_owned()].into_iter().chain(extras.iter().map(|e| peers_of(e))) {
            let peers = line[&field].as_object().unwrap_or_else(|| panic!("{case} lacks {field}"));
            let with_figure: Vec<&str> = peers
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(with_figure, able(case), "{case} {field}");
        }
        let best = line["best_peer"].as_str().expect("there are rivals");
        assert!(able(case).contains(&best) && best != "serial", "{case}: {best}");
    }
    // A task is at least one allocation.
    let spawn = &lines[0]["peers_allocs"];
    for name in able("spawn") {
        assert!(spawn[*name].as_f64() >= Some(1.0), "{name}: {spawn}");
    }
}

fn peers_of(extra: &str) -> String {
    format!("peers_{extra}")
}

#[test]
fn the_table_shows_wall_time_and_cpu_time() {
    let args = ["executor", "--quick", "--rounds", "1", "--n", "50", "--case", "fork_join"];
    let table = stdout(&compare(&args));
    for expected in ["wall time", "CPU time", "rayon", "serial*", "fork_join"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert_eq!(table.matches("fork_join ").count(), 2, "{table}");
}

#[test]
fn the_list_names_every_case_and_subject_with_its_version() {
    let list = stdout(&compare(&["executor", "--list"]));
    for name in CASES.iter().chain(&["tokio 1.", "smol 2.", "rayon 1.", "serial: std"]) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
}

#[test]
fn a_wrong_call_exits_with_2() {
    refused(&["executor", "--only", "nobody"], "no subject is called `nobody`");
    refused(&["executor", "--case", "nothing"], "timer_arm_drop");
    refused(&["idle", "rayon", "1"], "no subject is called `rayon`");
}
