//! The whole suite `actor-timers`, with few timers: every case, every subject. The timers use the
//! real clock.

use super::program::{compare, lines, refused, stdout, with_figure};

const CASES: [&str; 3] = ["arm-cancel", "arm-fire", "keyed-100k"];
const RIVALS: [&str; 4] = ["actix", "ractor", "kameo", "tokio-mpsc"];

#[test]
fn the_quick_suite_writes_one_complete_line_per_case() {
    let args = ["actor-timers", "--quick", "--rounds", "1", "--n", "1000", "--json", "-"];
    let lines = lines(&args);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, CASES);
    for line in &lines {
        assert_eq!(line["suite"], "actor-timers");
        assert_eq!(line["n"], 1_000);
        assert_eq!(line["unit"], "ns");
        assert_eq!(line["references"], serde_json::json!([]));
        for field in ["peers", "peers_wall_time", "peers_quartiles", "peers_allocs"] {
            assert_eq!(with_figure(line, field), RIVALS, "{field}: {line}");
        }
        for field in ["ours", "ratio", "ours_wall_time"] {
            assert!(line[field].as_f64() > Some(0.0), "{field}: {line}");
        }
        let best = line["best_peer"].as_str().expect("there are rivals");
        assert!(RIVALS.contains(&best), "{best}");
        // A task or a boxed future per timer is at least one allocation.
        for name in RIVALS {
            assert!(line["peers_allocs"][name].as_f64() >= Some(1.0), "{name}: {line}");
        }
    }
}

#[test]
fn the_table_shows_cpu_time_and_wall_time() {
    let args = ["actor-timers", "--quick", "--rounds", "1", "--n", "50", "--case", "arm-cancel"];
    let table = stdout(&compare(&args));
    for expected in ["CPU time", "wall time", "tokio-mpsc", "`send_after`"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert_eq!(table.matches("\narm-cancel ").count(), 2, "{table}");
    assert!(!table.contains("arm-fire"), "{table}");
}

#[test]
fn the_list_names_every_case_and_subject_with_its_version() {
    let list = stdout(&compare(&["actor-timers", "--list"]));
    let versions = ["ractor 0.16", "kameo 0.22", "actix 0.13", "tokio 1."];
    for name in CASES.iter().chain(&versions) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
}

#[test]
fn a_wrong_call_exits_with_2() {
    refused(&["actor-timers", "--only", "nobody"], "no subject is called `nobody`");
    refused(&["actor-timers", "--case", "nothing"], "keyed-100k");
}
