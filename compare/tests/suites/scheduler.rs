//! The suite `scheduler` as a whole, with few timers: both cases, every subject. The clock of the
//! system is its subject.

use super::program::{compare, lines, refused, stdout, with_figure};

const PEERS: [&str; 3] = ["tokio-sleep", "DelayQueue", "heap_thread"];

#[test]
fn the_quick_suite_writes_one_complete_line_a_case() {
    let args = ["scheduler", "--quick", "--rounds", "1", "--n", "1000", "--json", "-"];
    let lines = lines(&args);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, ["schedule_cancel", "schedule_fire"]);
    for line in &lines {
        assert_eq!(line["suite"], "scheduler");
        assert_eq!(line["n"], 1_000);
        assert_eq!(line["unit"], "ns");
        assert_eq!(line["target_ratio_min"], 3.0);
        assert_eq!(line["references"], serde_json::json!(["heap_thread"]));
        for field in ["peers", "peers_schedule", "peers_behind", "peers_quartiles", "peers_allocs"]
        {
            assert_eq!(with_figure(line, field), PEERS, "{field}: {line}");
        }
        for field in ["ours", "ratio", "vs_sleep", "vs_delay_queue", "ours_schedule"] {
            assert!(line[field].as_f64() > Some(0.0), "{field}: {line}");
        }
        let cancels: &[&str] = if line["case"] == "schedule_cancel" { &PEERS } else { &[] };
        assert_eq!(with_figure(line, "peers_cancel"), cancels, "{line}");
        let best = line["best_peer"].as_str().expect("there are rivals");
        assert!(PEERS[..2].contains(&best), "{best}");
        // A task is at least one allocation, and so is a slot next to a queue.
        for name in &PEERS[..2] {
            assert!(line["peers_allocs"][*name].as_f64() >= Some(1.0), "{name}: {line}");
        }
    }
}

#[test]
fn the_table_shows_cpu_time_and_the_time_of_the_calls() {
    let args = ["scheduler", "--quick", "--rounds", "1", "--n", "50", "--case", "schedule_cancel"];
    let table = stdout(&compare(&args));
    for expected in ["CPU time", "call that schedules", "call that cancels", "heap_thread*"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert_eq!(table.matches("schedule_cancel ").count(), 3, "{table}");
    assert!(!table.contains("schedule_fire"), "{table}");
}

#[test]
fn the_list_names_every_case_and_subject_with_its_version() {
    let list = stdout(&compare(&["scheduler", "--list"]));
    let names = ["schedule_cancel", "schedule_fire", "tokio 1.", "tokio-util 0.7", "std"];
    for name in names.iter().chain(&PEERS) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
}

#[test]
fn a_wrong_call_exits_with_2() {
    refused(&["scheduler", "--only", "nobody"], "no subject is called `nobody`");
    refused(&["scheduler", "--case", "nothing"], "schedule_fire");
}
