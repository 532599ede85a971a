//! Tests of the parts of a plot together: logs, names of signals, numbers and drawings.

use clockjack_graph::{Registry, compile, describe::GraphFile};

use super::{
    Axis, Curve, Plot,
    log::{LogEntry, LogReader, NotALog, VALUE_HEAD},
    number::{NumberType, Shape, field, short},
    series::Series,
    signal::{Signal, at_boundary, choose},
    svg,
    text::{self, Charset, Style},
};

/// An entry, with the bytes that were kept.
#[derive(Debug, PartialEq)]
enum Read {
    Graph(String),
    Epoch(u64, u64),
    Value(u64, Vec<u8>, u64),
}

/// Reads a log in pieces of this size; returns the entries, and whether the log is complete.
fn read(log: &[u8], piece: usize) -> Result<(Vec<Read>, bool), NotALog> {
    let (mut reader, mut found) = (LogReader::default(), Vec::new());
    for piece in log.chunks(piece) {
        reader.push(piece, &mut |entry| {
            found.push(match entry {
                LogEntry::Graph(name) => Read::Graph(name.to_owned()),
                LogEntry::Epoch { number, at_ns } => Read::Epoch(number, at_ns),
                LogEntry::Value { edge, head, len } => Read::Value(edge, head.to_vec(), len),
            });
        })?;
    }
    Ok((found, reader.is_complete()))
}

/// A log with an entry of every kind, and what there is to see in it.
fn every_entry() -> (Vec<u8>, Vec<Read>) {
    let long = vec![7; VALUE_HEAD + 100];
    let mut log = b"CJCL\x01\x04cell".to_vec();
    log.extend_from_slice(b"L\x04lane");
    // Epoch 1 at 300 ns.
    log.extend_from_slice(b"E\x01\xac\x02");
    // Two components get settings of every kind.
    log.extend_from_slice(b"S\x02\x00\x03\x01an\x01bb\x01\x01ci");
    log.extend_from_slice(&[0; 8]);
    log.extend_from_slice(b"\x05\x03\x01df");
    log.extend_from_slice(&[0; 8]);
    log.extend_from_slice(b"\x01et\x02CE\x01fj\x02[]");
    log.extend_from_slice(b"C\x00\x02ab");
    // As long as `VALUE_HEAD + 100`, in LEB128.
    log.extend_from_slice(b"I\x81\x01\xe4\x20");
    log.extend_from_slice(&long);
    log.extend_from_slice(b"R\x03");
    log.extend_from_slice(b"B\x02\x05");
    log.extend_from_slice(b"E\x02\xad\x02");
    log.extend_from_slice(b"A\x04\x00");
    log.extend_from_slice(b"X\x01");
    let (head, len) = (long[..VALUE_HEAD].to_vec(), long.len() as u64);
    let seen = vec![
        Read::Graph("cell".into()),
        Read::Epoch(1, 300),
        Read::Value(0, b"ab".to_vec(), 2),
        Read::Value(129, head.clone(), len),
        Read::Value(3, head, len),
        Read::Epoch(2, 301),
        Read::Value(4, Vec::new(), 0),
    ];
    (log, seen)
}

#[test]
fn a_log_is_read_in_pieces_of_any_size() {
    let (log, seen) = every_entry();
    for piece in [1, 2, 3, 5, 64, 4096, log.len()] {
        assert_eq!(read(&log, piece).as_ref().map(|(read, _)| read), Ok(&seen), "{piece}");
    }
}

#[test]
fn a_log_that_is_cut_off_gives_what_is_before_the_cut() {
    let (log, seen) = every_entry();
    let mut n_complete = 0;
    for len in 0..=log.len() {
        let (found, is_complete) = read(&log[..len], 37).expect("the beginning of a log");
        assert!(seen.starts_with(&found), "{len}: {found:?}");
        n_complete += usize::from(is_complete);
    }
    // After the head and after each of the other ten entries.
    assert_eq!(n_complete, 11);
}

#[test]
fn what_is_no_log_is_refused() {
    let (log, _) = every_entry();
    let with = |at: usize, byte: u8| {
        let mut log = log.clone();
        log[at] = byte;
        read(&log, 16).map(|_| ())
    };
    assert!(with(0, b'X').is_err(), "another format");
    assert!(with(4, 2).is_err(), "another version");
    assert!(with(6, 0xff).is_err(), "a name that is not UTF-8");
    assert!(with(10, b'Z').is_err(), "an unknown entry");
    let long = [b"CJCL\x01\x04cellE".as_slice(), &[0xff; 11]].concat();
    assert!(read(&long, 1).is_err(), "a number of 71 bits");
    let endless = [b"CJCL\x01\x04cellL".as_slice(), b"\xff\xff\xff\xff\x7f"].concat();
    assert!(read(&endless, 1).is_err(), "a name of gigabytes is not waited for");
}

#[test]
fn values_are_shown_as_short_texts() {
    let check = |schema: &str, bytes: &[u8], expected: &str| {
        let found = Shape::of(schema).text(schema, bytes, bytes.len() as u64);
        assert_eq!(found, expected, "{schema}");
    };
    check("f64", &0.1_f64.to_le_bytes(), "0.1");
    check("f64", &f64::NAN.to_le_bytes(), "NaN");
    check("f32", &f32::NEG_INFINITY.to_le_bytes(), "-inf");
    check("bool", &[1], "true");
    check("u64", &u64::MAX.to_le_bytes(), "18446744073709551615");
    check("i32", &(-5_i32).to_le_bytes(), "-5");
    check("f64[2]", &[1.5_f64.to_le_bytes(), 2.0_f64.to_le_bytes()].concat(), "1.5, 2");
    check("(u64, f64)", &[7_u64.to_le_bytes(), 2.5_f64.to_le_bytes()].concat(), "7, 2.5");
    check("f64[]", &[1_f64.to_le_bytes(); 3].concat(), "1, 1, ..");
    check("f64[]", &[], "");
    check("text", "über\n".as_bytes(), "über ");
    check("house::Pose", &[0; 24], "Pose, 24 B");
    check("", &[0; 1500], "value, 1.5 kB");
    check("f64", &[0; 3], "f64, 3 B");
}

#[test]
fn numbers_have_few_digits() {
    let numbers = [0.0, -0.0, 1.0, 0.1 + 0.2, 123_456.7, -0.00001, 1e7, 1.23456e-9, f64::MAX];
    let shown = numbers.map(short);
    let expected = ["0", "0", "1", "0.3", "123457", "-1e-5", "1e7", "1.235e-9", "1.798e308"];
    assert_eq!(shown, expected);
}

#[test]
fn fields_of_a_payload_are_found_by_their_lengths() {
    let bytes = b"\x02ab\x00\x01c";
    let fields = [0, 1, 2, 3].map(|index| field(bytes, index));
    assert_eq!(fields, [Some(b"ab".as_slice()), Some(b""), Some(b"c"), None]);
    assert_eq!(field(b"\x05ab", 0), None, "cut off");
}

#[test]
fn numbers_of_another_length_are_none() {
    for (name, len) in [("bool", 1), ("u8", 1), ("u32", 4), ("f32", 4), ("i64", 8), ("f64", 8)] {
        let number = NumberType::named(name).expect("it is a type");
        assert_eq!(number.decode(&vec![0; len]), Some(0.0), "{name}");
        assert_eq!(number.decode(&vec![0; len + 1]), None, "{name}");
    }
}

/// A graph with these components and edges on one lane.
fn plan(components: &[&str], edges: &[&str]) -> compile::Plan {
    let list =
        |parts: &[&str]| parts.iter().map(|part| format!("  - {{ {part} }}\n")).collect::<String>();
    let text = format!(
        "schema_version: 1\ngraph: {{ name: g, kind: internal_test }}\nlanes: {{ main: {{ type: \
         event_loop }} }}\ncomponents:\n{}edges:\n{}",
        list(components),
        list(edges)
    );
    let file = GraphFile::parse("g.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let (plan, diagnostics) = compile::check(file.spec(), &Registry::standard());
    plan.unwrap_or_else(|| panic!("{diagnostics:?}"))
}

fn names(signals: &[Signal]) -> Vec<&str> {
    signals.iter().map(|signal| signal.name.as_str()).collect()
}

const SOURCE: &str = "id: src, type: source, execution: { lane: main }";
const SINK: &str = "id: out, type: output, execution: { lane: main }, boundary: { role: output }, \
                    event_sources: [{ type: message, input: in }], \
                    trigger_policy: { type: any_input }";

#[test]
fn an_edge_is_chosen_by_its_id_or_by_its_output() {
    let plan = plan(
        &[SOURCE, SINK],
        &[
            "id: \"a:f64\", kind: immediate, from: src.out, to: out.in",
            "id: b.c, kind: delay, from: src.out, to: out.in",
        ],
    );
    let found = |wanted: &[&str]| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        choose(&plan, &wanted).map(|found| names(&found).join(" "))
    };
    assert_eq!(found(&["a:f64", "b.c"]), Ok("a:f64 b.c".into()), "an id with a colon or a point");
    assert_eq!(found(&["src.out"]), Ok("a:f64".into()), "the first edge at the output");
    assert_eq!(found(&["src.out", "a:f64"]), Ok("a:f64".into()), "each once");
    let unknown = found(&["src.in"]).expect_err("there is no such output");
    assert_eq!(
        unknown,
        "the graph has no edge `src.in`; these edges carry numbers: a:f64 (src.out), b.c (src.out)"
    );
    assert!(found(&["b.c[0]"]).expect_err("a number").contains("no such item"));
    assert!(found(&["b.c[x]"]).expect_err("no number").contains("a whole number in the brackets"));
}

#[test]
fn the_boundary_is_shown_by_default() {
    let edges = ["id: a, kind: immediate, from: src.out, to: out.in"];
    let inner =
        SINK.replace("type: output", "type: estimator").replace("role: output", "role: processing");
    let plain = plan(&[SOURCE, &inner], &edges);
    assert_eq!(names(&at_boundary(&plain)), ["a"], "without a boundary: the first edges");
    let input = format!("{SOURCE}, boundary: {{ role: input }}");
    let whole = plan(&[&input, SINK], &edges);
    assert_eq!(names(&at_boundary(&whole)), ["a"], "once, although it is at both ends");
    let text = include_str!("../../../../examples/robot-cell.yaml");
    let file = GraphFile::parse("cell.yaml", text).expect("it is valid");
    let (cell, _) = compile::check(file.spec(), &Registry::standard());
    let cell = cell.expect("it is valid");
    assert_eq!(names(&at_boundary(&cell)), ["wanted", "feedback"]);
}

fn curve(name: &str, values: impl IntoIterator<Item = (u64, f64)>) -> Curve {
    let mut series = Series::default();
    values.into_iter().for_each(|(at_ns, value)| series.push(at_ns, value));
    Curve { name: name.into(), port: "src.out".into(), series }
}

fn plot(curves: Vec<Curve>, end: u64) -> Plot {
    Plot { graph: "g<&>".into(), curves, axis: Axis::Time, end }
}

const PLAIN: Style = Style { columns: 44, charset: Charset::Unicode, is_painted: false };

/// A ramp that jumps back once.
fn ramp() -> Curve {
    curve("ramp", (0..100).map(|n| (n * 1_000_000, f64::from(u32::try_from(n % 50).unwrap()))))
}

#[test]
fn a_drawing_has_dots_at_the_values() {
    let drawn = text::draw(&plot(vec![ramp()], 100_000_000), PLAIN);
    let expected = "\
ramp (src.out): 100 values
    49 ┤              ⣀⡤⠴⠋⡇             ⣀⡤⠴⠋
       │          ⢀⣠⠴⠚⠁   ⡇         ⢀⣠⠴⠚⠁
       │       ⣠⠤⠖⠋       ⡇      ⣠⠤⠖⠋
       │   ⢀⡤⠖⠋⠁          ⡇  ⢀⡤⠖⠋⠁
     0 ┤⣠⠖⠚⠉              ⣧⠖⠚⠉
       └┬─────────────────┬────────────────┬
        0 ms              50 ms       100 ms
";
    assert_eq!(drawn, expected);
    let style = Style { charset: Charset::Ascii, ..PLAIN };
    let expected = "\
ramp (src.out): 100 values
    49 +              _|-||             _|-|
       |          __||'   |         __||'
       |       _||'       |      _||'
       |   _||''          |  _||''
     0 +|-|'              |-|'
       ++-----------------+----------------+
        0 ms              50 ms       100 ms
";
    assert_eq!(text::draw(&plot(vec![ramp()], 100_000_000), style), expected);
}

#[test]
fn no_line_is_wider_than_the_terminal_and_none_ends_in_spaces() {
    let curves = vec![
        ramp(),
        curve("tiny", [(0, 1e-12), (50_000_000, 3e-12)]),
        curve("huge", [(0, f64::MIN), (50_000_000, f64::MAX)]),
        curve("constant", [(0, -7.25), (50_000_000, -7.25)]),
        curve("single", [(99_000_000, 1.0)]),
        curve("nothing", []),
        curve("broken", [(0, f64::NAN), (1, f64::INFINITY)]),
    ];
    for charset in [Charset::Unicode, Charset::Ascii] {
        for columns in [0, 30, 31, 79, 80, 132, 1000] {
            for end_ns in [0, 1, 99_000_000, 100_000_000, u64::MAX] {
                let style = Style { columns, charset, is_painted: false };
                let by_epoch = Plot { axis: Axis::Epoch, ..plot(curves.clone(), end_ns) };
                let drawn = text::draw(&plot(curves.clone(), end_ns), style);
                let drawn = drawn + &text::draw(&by_epoch, style);
                for line in drawn.lines().filter(|line| !line.contains("(src.out)")) {
                    assert!(line.chars().count() <= columns.clamp(30, 240), "{columns}: {line}");
                    assert_eq!(line, line.trim_end());
                    assert!(!line.contains('\x1b'), "no colors");
                }
            }
        }
    }
}

#[test]
fn each_curve_says_what_it_does_not_show() {
    let mut partial = Series::default();
    partial.push(0, 1.0);
    partial.skip();
    let notes = [
        curve("a", []).note(),
        curve("a", [(0, 1.0)]).note(),
        curve("a", [(0, 1.0), (1, f64::NAN)]).note(),
        Curve { series: partial, ..curve("a", []) }.note(),
    ];
    let expected = [
        "no values",
        "1 value",
        "2 values, 1 of them NaN or infinite",
        "2 values, 1 of them without this item",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn curves_have_colors_only_where_they_are_wanted() {
    let painted = text::draw(&plot(vec![ramp()], 100_000_000), Style { is_painted: true, ..PLAIN });
    let n_on = painted.matches("\x1b[36m").count();
    assert_eq!((n_on, painted.matches("\x1b[0m").count()), (5, 5), "each line ends its color");
    let plain = painted.replace("\x1b[36m", "").replace("\x1b[0m", "");
    assert_eq!(plain, text::draw(&plot(vec![ramp()], 100_000_000), PLAIN));
}

#[test]
fn a_picture_is_bounded_and_keeps_every_peak() {
    let noisy = (0..1_000_000_u64).map(|n| {
        let value = if n == 567_891 { 1000.0 } else { f64::from(u32::try_from(n % 7).unwrap()) };
        (n * 1000, value)
    });
    let drawn = svg::draw(&plot(vec![curve("noisy", noisy)], 1_000_000_000));
    assert!(drawn.len() < 60_000, "{} bytes", drawn.len());
    // The highest value is at the upper margin of the panel.
    let top = 40 + 20 + 10;
    let path = drawn.lines().rfind(|line| line.contains("class=\"curve c0\"")).expect("a curve");
    assert_eq!(
        path.matches(&format!("V{top}")).count(),
        1 + path.matches(&format!("V{top}.")).count()
    );
    assert!(drawn.contains("g&lt;&amp;&gt;") && !drawn.contains("g<"), "text is escaped");
}

#[test]
fn curves_of_similar_ranges_share_a_panel() {
    let panels =
        |curves: Vec<Curve>| svg::draw(&plot(curves, 100)).matches("<rect class=\"panel\"").count();
    let flat = |low: f64, high: f64| curve("x", [(0, low), (50, high)]);
    assert_eq!(panels(vec![flat(0.0, 1.0), flat(0.1, 0.9)]), 1);
    assert_eq!(panels(vec![flat(0.0, 1.0), flat(0.0, 100.0)]), 2);
    assert_eq!(panels(vec![flat(0.0, 1.0), flat(100.0, 101.0)]), 2, "far apart");
    assert_eq!(panels(vec![flat(0.0, 1.0), flat(0.5, 0.5)]), 1, "a constant within");
    assert_eq!(panels(vec![flat(0.0, 1.0), flat(50.0, 50.0)]), 2, "a constant far away");
    assert_eq!(panels(vec![flat(2.0, 2.0), flat(2.0, 2.0), flat(3.0, 3.0)]), 2);
    assert_eq!(panels(vec![flat(0.0, 1.0); 5]), 2, "four can be told apart");
    assert_eq!(panels(vec![curve("x", []), flat(0.0, 1.0)]), 2, "without a value");
    assert_eq!(panels(vec![flat(f64::MIN, f64::MAX), flat(0.0, 1.0)]), 2);
}

#[test]
fn a_gap_is_not_bridged() {
    let values = [(0, 1.0), (20, 2.0), (40, f64::NAN), (70, 3.0)];
    let drawn = svg::draw(&plot(vec![curve("x", values)], 100));
    let path = drawn.lines().rfind(|line| line.contains("class=\"curve c0\"")).expect("a curve");
    assert_eq!(path.matches('M').count(), 2, "{path}");
}
