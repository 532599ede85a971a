//! The whole suite `jitter`, with few periods, on the real clock.

use super::program::{compare, lines, stdout};

#[test]
fn percentiles_rise_and_every_sleeper_has_them() {
    let lines = lines(&["jitter", "--quick", "--n", "60", "--json", "-"]);
    let cases: Vec<&str> = lines.iter().filter_map(|line| line["case"].as_str()).collect();
    assert_eq!(cases, ["p50", "p90", "p99", "max"]);
    for sleeper in ["tokio", "tokio-io", "clock_nanosleep"] {
        let late: Vec<f64> =
            lines.iter().filter_map(|line| line["peers"][sleeper].as_f64()).collect();
        assert_eq!(late.len(), 4, "{sleeper}: {lines:?}");
        assert!(late.is_sorted() && late[0] > 0.0, "{sleeper}: {late:?}");
    }
    for line in &lines {
        assert_eq!(line["unit"], "us");
        assert_eq!(line["n"], 60);
        assert_eq!(line["references"], serde_json::json!(["clock_nanosleep"]));
        let fields = line.as_object().expect("a line is an object");
        assert!(fields.contains_key("vs_nanosleep"), "{line}");
        assert!(fields.contains_key("vs_tokio"), "{line}");
    }
    assert_eq!(lines[0]["target_within"]["of"], "clock_nanosleep");
}

#[test]
fn the_table_shows_the_ratios_against_both() {
    let table = stdout(&compare(&["jitter", "--quick", "--n", "10", "--case", "p50"]));
    for expected in ["p50: vs_nanosleep", "vs_tokio", "tokio-io", "clock_nanosleep*"] {
        assert!(table.contains(expected), "no {expected} in:\n{table}");
    }
    assert!(!table.contains("p90"), "{table}");
}
