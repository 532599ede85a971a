//! The whole suite `actors`, with few operations: every case, every subject.

use super::program::{compare, lines, refused, stdout, with_figure};

const CASES: [&str; 24] = [
    "ping_pong",
    "tell",
    "tell_64",
    "tell_bounded",
    "mpsc4",
    "ask",
    "spawn",
    "stop",
    "ring",
    "skynet",
    "big",
    "memory",
    "allocs_tell",
    "allocs_tell_64",
    "ping_pong_2t",
    "tell_2t",
    "tell_bounded_2t",
    "mpsc4_2t",
    "ask_2t",
    "spawn_2t",
    "stop_2t",
    "ring_2t",
    "skynet_2t",
    "big_2t",
];
const CRATES: [&str; 4] = ["ractor", "kameo", "actix", "xtra"];

#[test]
fn the_suite_writes_one_complete_line_a_case() {
    let lines = lines(&["actors", "--quick", "--rounds", "1", "--n", "1", "--json", "-"]);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, CASES);
    for line in &lines {
        let case = line["case"].as_str().expect("a case has a name");
        assert_eq!(line["suite"], "actors");
        assert_eq!(line["references"], serde_json::json!(["tokio-mpsc"]));
        let mut able = CRATES.to_vec();
        // ractor has no bounded mailbox.
        able.retain(|name| *name != "ractor" || !case.starts_with("tell_bounded"));
        let best = line["best_peer"].as_str().expect("there are rivals");
        assert!(able.contains(&best), "{case}: {best}");
        able.push("tokio-mpsc");
        let is_counted = case == "memory" || case.starts_with("allocs_tell");
        let fields: &[&str] = if is_counted {
            &["peers"]
        } else {
            &["peers", "peers_wall_time", "peers_quartiles", "peers_allocs"]
        };
        for field in fields {
            assert_eq!(with_figure(line, field), able, "{case} {field}");
        }
    }
}

#[test]
fn bytes_and_allocations_are_those_of_the_actors_and_come_out_the_same_again() {
    let args = ["actors", "--quick", "--n", "2000", "--json", "-"];
    let counted = ["--case", "memory", "--case", "allocs_tell", "--case", "allocs_tell_64"];
    let args: Vec<&str> = args.into_iter().chain(counted).collect();
    let (first, second) = (lines(&args), lines(&args));
    assert_eq!(first.len(), 3);
    for (line, again) in first.iter().zip(&second) {
        for name in with_figure(line, "peers") {
            let figures = [line, again].map(|line| line["peers"][name].as_f64().expect("a number"));
            let off = (figures[0] - figures[1]).abs();
            assert!(off <= 0.02 * figures[0].max(1.0), "{name} {}: {figures:?}", line["case"]);
            if line["case"] == "memory" {
                // Less than a channel and a task would be a wrong count, and so would be far too
                // much.
                assert!((200.0..20_000.0).contains(&figures[0]), "{name}: {figures:?}");
            }
        }
    }
}

#[test]
fn the_table_shows_cpu_time_and_wall_time() {
    let args = ["actors", "--quick", "--rounds", "1", "--n", "50", "--case", "ask"];
    let table = stdout(&compare(&args));
    for expected in ["CPU time", "wall time", "tokio-mpsc*", "ractor", ">=2.0"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert_eq!(table.matches("\nask ").count(), 2, "{table}");
}

#[test]
fn a_tree_is_cut_to_full_levels() {
    let args = ["actors", "--quick", "--rounds", "1", "--case", "skynet", "--json", "-"];
    for (n, leaves) in [("1", 10), ("99", 10), ("100", 100), ("1234", 1_000)] {
        let args: Vec<&str> = args.into_iter().chain(["--n", n, "--only", "tokio-mpsc"]).collect();
        assert_eq!(lines(&args)[0]["n"], leaves, "{n}");
    }
}

#[test]
fn the_list_names_every_case_and_subject_with_its_version() {
    let list = stdout(&compare(&["actors", "--list"]));
    let versions = ["ractor 0.16", "kameo 0.22", "actix 0.13", "xtra 0.6", "tokio 1."];
    for name in CASES.iter().chain(&versions) {
        assert!(list.contains(name), "no {name} in:\n{list}");
    }
}

#[test]
fn a_wrong_call_exits_with_2() {
    refused(&["actors", "--only", "nobody"], "no subject is called `nobody`");
    refused(&["actors", "--case", "nothing"], "mpsc4_2t");
}
