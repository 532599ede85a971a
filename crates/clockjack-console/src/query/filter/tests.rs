//! Tests of the filter language.

use super::*;
use crate::view::ActorState;

fn till() -> ActorRow {
    ActorRow {
        pid: "{0|3.1}".into(),
        path: "/user/shop/till".into(),
        type_name: "shop::Till".into(),
        state: ActorState::Stuck,
        depth: Number::count(940),
        wait_ns: Number::count(11_000_000),
        share: Number::sampled(0.38, 0.02),
        restarts: Number::count(2),
        ..ActorRow::default()
    }
}

fn matches(filter: &str) -> bool {
    Filter::parse(filter).unwrap().matches(&till())
}

#[test]
fn a_filter_wants_the_rows_for_which_all_terms_hold() {
    for yes in [
        "",
        "till",
        "SHOP",
        "state:stuck",
        "state:idle,stuck",
        "type:Till restarts>0 -path:/system",
        "depth>100 depth<=940 depth>=940 depth=940",
        "depth<1k",
        "wait>10ms wait<0.1s",
        "share>30% share<40%",
        "path:/user/shop",
        "path:/user/shop/",
        "-till2",
        "pid:3.1",
        "\"op/ti\"",
    ] {
        assert!(matches(yes), "{yes}");
    }
    for no in [
        "ledger",
        "-till",
        "state:idle",
        "state:stu",
        "type:Ledger",
        "restarts>2",
        "path:/user/sho",
        "-path:/user",
        "till depth>1k",
        "share>40%",
    ] {
        assert!(!matches(no), "{no}");
    }
}

#[test]
fn an_unknown_number_is_neither_large_nor_small() {
    assert!(!matches("rate>0"));
    assert!(!matches("rate<1"));
    assert!(!matches("rate=0"));
}

#[test]
fn what_is_no_filter_is_refused_with_its_place() {
    for (text, at, part) in [
        ("depth>x", 0, "`x` is no number"),
        ("till depth>", 5, "`` is no number"),
        ("size>3", 0, "`size` is no field with a number"),
        ("till colour:red", 5, "`colour` is no field with text"),
        ("state:", 0, "a text is missing"),
        ("till -", 6, "a term is missing"),
        ("a \"b", 2, "the quote is not closed"),
        ("depth>1e5", 0, "is no number"),
        ("depth>-1", 0, "is no number"),
    ] {
        let error = Filter::parse(text).unwrap_err();
        assert_eq!(error.at, at, "{text}");
        assert!(error.text.contains(part), "{text}: {error}");
    }
    assert!(Filter::parse(&"x".repeat(LENGTH_MAX + 1)).is_err());
}

#[test]
fn a_filter_is_printed_so_that_it_reads_back() {
    for text in [
        "till -path:/system state:stuck,idle",
        "depth>1k wait<=0.5ms share=3%",
        "\"a b\" type:\"x y\"",
        "\"-minus\"",
        "\"depth>3\"",
    ] {
        let filter = Filter::parse(text).unwrap();
        assert_eq!(Filter::parse(&filter.to_string()).as_ref(), Ok(&filter), "{text}");
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let parts = ["-", "\"", ":", ">", "=", "é", " ", "depth", "state", ",", "1", ".", "%", "ms"];
    let mut seed = 7_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.push_str(parts[usize::try_from(seed >> 40).unwrap() % parts.len()]);
        }
        if let Ok(filter) = Filter::parse(&text) {
            let again = Filter::parse(&filter.to_string());
            assert!(again.is_ok(), "{text} as {filter}: {again:?}");
            let _ = filter.matches(&till());
        }
    }
}
