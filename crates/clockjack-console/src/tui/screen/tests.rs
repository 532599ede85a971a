//! Tests of the screen: whole screens as text, of views as a program sends them.

use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use super::*;
use crate::{query::Params, view::Hello};

fn state() -> State {
    let hello = Hello {
        system: Some("house".into()),
        pid: Some(4711),
        started: Some(0),
        ..Hello::default()
    };
    State::of_hello(hello, &TopConfig::default())
}

fn text(state: &State, width: u16, height: u16) -> String {
    let lines = lines(state, width, height, Charset::Ascii, 8_047_000);
    let texts = lines.iter().map(|line| {
        let text: String = line.spans.iter().map(|span| span.content.as_ref()).collect();
        assert!(text.chars().count() <= usize::from(width), "too wide: {text}");
        format!("{}\n", text.trim_end())
    });
    assert_eq!(lines.len(), usize::from(height));
    texts.collect()
}

fn house() -> State {
    let mut state = state();
    state.last_frame_ms = 8_047_000;
    let stuck = "/user/shop/till has been handling a shop::TillMsg for 3.2 s on worker 1";
    state.put(
        "overview",
        &Params::new(),
        json!({
            "system": "house",
            "findings": [{ "code": "S01", "subject": "/user/shop/till", "text": stuck }],
            "clock": { "kind": "os", "resolution_ns": 1_000_000 },
            "workers": 4, "busy": { "v": 0.52, "sampled": 0.02 }, "queue": 12,
            "steals_rate": 310, "parks_rate": 1_200, "messages_rate": 1_310_000,
            "dead_rate": 0.2, "actors": 10_412,
        }),
    );
    let params = state.main_view().1;
    state.put(
        "actors",
        &params,
        json!({
            "rows": [
                {
                    "pid": "{0|1.1}", "path": "/user/shop/ledger", "type": "house::shop::Ledger",
                    "state": "queued", "depth": 940, "capacity": 1000, "rate": 82_000,
                    "wait_ns": 11_000_000, "share": { "v": 0.38, "sampled": 0.02 }, "restarts": 0,
                },
                {
                    "pid": "{0|2.1}", "path": "/user/shop/till", "type": "house::shop::Till",
                    "state": "stuck", "depth": 31, "capacity": 1000, "rate": 0,
                    "share": { "v": 1, "sampled": 0 }, "restarts": 2,
                },
            ],
            "total": 10_412, "matches": 2, "has_more": false, "sweep": { "age_ms": 300, "seen": 9 },
        }),
    );
    state
}

#[test]
fn a_narrow_screen_shows_what_is_wrong_first() {
    let expected = concat!(
        " house - pid 4711 - up 02:14:07 - clock os 1.0 ms - 10,412 actors  live [?] help\n",
        " ! S01 /user/shop/till has been handling a shop::TillMsg for 3.2 s on worker 1\n",
        " workers 4  busy [|||||     ] 52%~  queue 12         msgs 1.31 M/s  dead 0.2 /s\n",
        "  1 Overview [2 Actors] 3 Tree  4 Timers  5 Jobs  6 Graphs  7 Events  8 Workers\n",
        " PATH                    STATE            DEPTH      RATE    WAIT TIME% RESTARTS\n",
        ">/user/shop/ledger       queued       940/1,000    82 k/s   11 ms   38~        0\n",
        " /user/shop/till         STUCK         31/1,000      0 /s       -  100~        2\n",
        "\n",
        " 10,412 actors, swept 0.3 s ago   ~ sampled      / filter  enter detail  q quit\n",
    );
    assert_eq!(text(&house(), 80, 9), expected);
}

#[test]
fn a_terminal_shows_the_lines_of_the_screen() {
    let state = house();
    let mut terminal = Terminal::new(TestBackend::new(120, 40)).unwrap();
    for is_painted in [true, false] {
        let charset = Charset::Ascii;
        let config = TopConfig { is_painted, charset, ..TopConfig::default() };
        terminal.draw(|frame| draw(&state, &config, frame, 8_047_000)).unwrap();
        let buffer = terminal.backend().buffer();
        let rows = text(&state, 120, 40);
        for (y, line) in rows.lines().enumerate() {
            let y = u16::try_from(y).unwrap();
            let shown: String = (0..120).map(|x| buffer[(x, y)].symbol()).collect();
            assert_eq!(shown.trim_end(), line, "line {y}");
        }
        let has_colours = buffer.content().iter().any(|cell| cell.fg != Color::Reset);
        assert_eq!(has_colours, is_painted);
    }
}

#[test]
fn every_tab_fits_every_screen_also_before_the_first_frame() {
    for tab in Tab::ALL {
        let mut state = house();
        state.tab = tab;
        for (width, height) in [(80, 24), (120, 40), (40, 10), (20, 6)] {
            text(&state, width, height);
            let config = TopConfig { tab, ..TopConfig::default() };
            text(&State::of_hello(Hello::default(), &config), width, height);
        }
    }
}

#[test]
fn what_is_wrong_is_unknown_until_the_program_was_looked_at() {
    let line = |overview: serde_json::Value| {
        let mut state = state();
        state.put("overview", &Params::new(), overview);
        text(&state, 80, 24).lines().nth(1).unwrap().to_owned()
    };
    assert_eq!(line(json!({ "findings": [] })), " findings unknown");
    assert_eq!(line(json!({ "findings": [], "looked_ms": 0 })), " no findings");
    let undecided = json!([{ "code": "S04", "why": "" }, { "code": "S11", "why": "" }]);
    let young = json!({ "findings": [], "looked_ms": 3_000, "undecided": undecided });
    assert_eq!(line(young), " no findings, S04 S11 undecided");
}

#[test]
fn what_is_not_live_is_said() {
    let mut state = house();
    assert!(text(&state, 80, 24).contains(" live [?]"));
    assert!(text(&state, 40, 24).contains(".. live [?]"), "what is too long is cut before it");
    state.last_frame_ms = 8_030_000;
    assert!(text(&state, 120, 24).contains("stale since 17 s"));
    state.link = Link::Ended;
    assert!(text(&state, 120, 24).contains("program ended"));
    assert!(text(&state, 120, 24).contains("/user/shop/till"), "what was received stays");
}
