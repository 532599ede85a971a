//! Tests of what `run` shows and of `plot`, as their user sees them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_graph::{Component, Data, Execute, Failure, GraphContext, Input, Output, Registry};
use serde_json::Value;

use super::overview::lasting;

struct Ran {
    code: u8,
    out: String,
    err: String,
}

/// A payload of a program.
#[derive(Data, Debug, PartialEq)]
#[data(schema = "house::track")]
struct Track {
    number: u32,
    label: String,
    height: f64,
}

/// `tracker`: publishes tracks that rise, and their heights as a sequence.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "tracker", title = "Tracker", role = "output")]
struct Tracker {
    /// What it sees.
    #[output]
    track: Output<Track>,
    /// Number and height.
    #[output]
    pair: Output<(u64, f64)>,
    n: u32,
}

impl Execute for Tracker {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.n += 1;
        let height = f64::from(self.n) * 0.5;
        cx.publish(self.track, Track { number: self.n, label: "x".repeat(9), height })?;
        cx.publish(self.pair, (u64::from(self.n), height))?;
        Ok(())
    }
}

/// `tracker_reader`: reads tracks.
#[derive(Component, Clone, Debug, Default)]
#[component(type = "tracker_reader", title = "Reader")]
struct TrackerReader {
    /// Tracks.
    #[input]
    track: Input<Track>,
    /// Number and height.
    #[input]
    pair: Input<(u64, f64)>,
}

impl Execute for TrackerReader {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        while cx.take(self.track).is_some() || cx.take(self.pair).is_some() {}
        Ok(())
    }
}

/// How the command is called.
#[derive(Clone, Copy, Debug, Default)]
struct Reader {
    is_terminal: bool,
    no_color: bool,
    is_ascii: bool,
    columns: Option<usize>,
}

fn clockjack_for(reader: Reader, args: &[&str]) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams {
        out_is_terminal: reader.is_terminal,
        out_columns: reader.columns,
        out_is_utf8: !reader.is_ascii,
        no_color: reader.no_color,
        ..Streams::new(&mut out, &mut err)
    };
    let registry = Registry::standard().register::<Tracker>().register::<TrackerReader>();
    let code = run(&registry, ["bin/clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    Ran { code, out: text(out), err: text(err) }
}

fn clockjack(args: &[&str]) -> Ran {
    clockjack_for(Reader::default(), args)
}

/// The path of a test file.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/graphs").join(name);
    path.to_str().expect("a path of text").to_owned()
}

/// A new directory for a test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("plot-{name}"));
    // Removes what an earlier run left.
    let _removed = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a directory can be made");
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// A file with a graph.
fn graph(folder: &Path, name: &str, body: &str) -> String {
    let path = folder.join(format!("{name}.yaml"));
    let body = format!("schema_version: 1\ngraph: {{ name: {name}, kind: internal_test }}\n{body}");
    fs::write(&path, body).expect("the file can be written");
    text(&path).to_owned()
}

/// The lines of the table, by component.
fn row<'o>(out: &'o str, component: &str) -> Vec<&'o str> {
    let line = out.lines().find(|line| line.split(' ').next() == Some(component));
    line.unwrap_or_else(|| panic!("no line of {component}: {out}")).split_whitespace().collect()
}

#[test]
fn a_run_shows_a_line_per_component_a_plot_and_what_to_try_next() {
    let cell = file("cell.yaml");
    let ran = clockjack(&["run", &cell]);
    assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{}", ran.out);
    let head = "cell: 1000 epochs, 5000 calls, 9.99 s of virtual time; ended by tick_bound\n";
    assert!(ran.out.starts_with(head), "{}", ran.out);
    for component in ["target", "sensor", "estimator", "controller", "actuator"] {
        let row = row(&ran.out, component);
        assert_eq!((row[1], row[2], row[4]), ("1000", "100.1", "0"), "{row:?}");
        // The last two columns are durations, each with a unit.
        assert!(row.len() == 9 && row[5].parse::<f64>().is_ok_and(|p50| p50 > 0.0), "{row:?}");
    }
    assert_eq!(row(&ran.out, "target")[3], "999", "the last value of the ramp");
    for shown in [
        "\ngoal (target.out): 1000 values\n   999 ┤",
        "\nposition (actuator.position): 999 values\n",
        "\n       └┬──",
        "\n        0 s ",
        "\nTry next: ",
        &format!("\n  bin/clockjack render {cell}\n"),
        &format!("\n  bin/clockjack run {cell} --clock wall --for 5s\n"),
        &format!("\n  bin/clockjack plot {cell} -o cell.svg\n"),
    ] {
        assert!(ran.out.contains(shown), "{shown:?} is not in\n{}", ran.out);
    }
    for line in ran.out.lines().filter(|line| !line.contains(&cell) && !line.starts_with("  edge"))
    {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn the_three_commands_to_try_next_work() {
    let cell = file("cell.yaml");
    let shown = clockjack(&["run", &cell]).out;
    let (_, list) = shown.split_once("\nTry next: ").expect("they are shown");
    let commands: Vec<&str> = list.lines().skip(1).collect();
    assert_eq!(commands.len(), 3, "{list}");
    let folder = scratch("next");
    for command in commands {
        // A picture in the directory of the test, and 50 milliseconds of real time.
        let picture = folder.join("cell.svg");
        let command = command.replace("cell.svg", text(&picture)).replace("--for 5s", "--for 50ms");
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let ran = clockjack(&words);
        assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{command}");
    }
    let picture = fs::read_to_string(folder.join("cell.svg")).expect("it was drawn");
    assert!(picture.starts_with("<svg xmlns="), "{picture}");
}

#[test]
fn nothing_is_suggested_to_who_gives_options_and_nothing_after_a_failure() {
    let ran = clockjack(&["run", &file("cell.yaml"), "--steps", "3"]);
    assert!(!ran.out.contains("Try next"), "{}", ran.out);
    let failed = clockjack(&["run", &file("failing.yaml")]);
    assert_eq!(failed.code, exit_code::RUN_FAILED);
    assert!(failed.out.contains("the run failed: "), "{}", failed.out);
    assert!(!failed.out.contains("Try next"), "{}", failed.out);
    assert!(failed.out.contains("component "), "the table shows what ran: {}", failed.out);
}

#[test]
fn only_what_depends_on_the_machine_differs_between_two_runs() {
    let cell = file("cell.yaml");
    let shown = |workers: &str| clockjack(&["run", &cell, "--workers", workers]).out;
    let (one, four) = (shown("1"), shown("4"));
    assert_eq!(lasting(&one), lasting(&four));
}

#[test]
fn the_user_chooses_the_plots() {
    let cell = file("cell.yaml");
    let plot = |edges: &str| clockjack(&["run", &cell, "--steps", "50", "--plot", edges]);
    let two = plot("command,sensor.out");
    assert_eq!(two.code, exit_code::OK, "{}", two.err);
    let at = |of: &str| two.out.find(of).unwrap_or_else(|| panic!("no {of}: {}", two.out));
    assert!(at("\ncommand (controller.out): 50 values") < at("\nsense (sensor.out): 50 values"));
    assert!(!two.out.contains("goal ("), "{}", two.out);
    let none = plot("none");
    assert!(!none.out.contains(" values"), "{}", none.out);
    assert_eq!(row(&none.out, "sensor")[3], "-", "no values were recorded");
    let wrong = plot("comand");
    assert_eq!((wrong.code, wrong.out.as_str()), (exit_code::USAGE, ""));
    let list = "clockjack: the graph has no edge `comand`; these edges carry numbers: sense \
                (sensor.out), state (estimator.out), goal (target.out), command (controller.out), \
                position (actuator.position)\n";
    assert_eq!(wrong.err, list);
    let many = plot(&["sense"; 20].join(","));
    assert_eq!(many.code, exit_code::OK, "one curve, named twenty times");
}

#[test]
fn output_for_programs_is_as_before() {
    let cell = file("cell.yaml");
    for format in ["json", "ndjson"] {
        let run = |more: &[&str]| {
            let ran =
                clockjack(&[&["run", &cell, "--steps", "5", "--format", format], more].concat());
            assert!(!ran.out.contains("p50_duration_ns"), "{}", ran.out);
            ran
        };
        assert_eq!(run(&[]).code, exit_code::OK);
        assert_eq!(run(&["--plot", "none"]).code, exit_code::OK);
        let refused = run(&["--plot", "sense"]);
        assert_eq!((refused.code, refused.out.as_str()), (exit_code::USAGE, ""));
        assert_eq!(refused.err, "clockjack: --plot needs --format human\n");
    }
}

#[test]
fn a_reader_without_utf_8_gets_ascii_and_one_without_a_terminal_no_colors() {
    let cell = file("cell.yaml");
    for args in [&["run", &cell][..], &["plot", &cell]] {
        let with = |reader: Reader| clockjack_for(reader, args).out;
        let ascii = with(Reader { is_ascii: true, ..Reader::default() });
        assert!(ascii.is_ascii(), "{ascii}");
        let is_painted = |reader: Reader| with(reader).contains('\x1b');
        let terminal = Reader { is_terminal: true, columns: Some(100), ..Reader::default() };
        assert!(is_painted(terminal), "{args:?}");
        assert!(!is_painted(Reader { no_color: true, ..terminal }), "{args:?}");
        assert!(!is_painted(Reader::default()), "{args:?}");
        let axis = |reader: Reader| {
            let out = with(reader);
            let axis = out.lines().find(|line| line.contains('└')).expect("an axis");
            axis.chars().count()
        };
        assert_eq!((axis(Reader::default()), axis(terminal)), (80, 100), "{args:?}");
        assert_eq!(axis(Reader { columns: Some(40), ..Reader::default() }), 40, "{args:?}");
    }
}

#[test]
fn the_plot_of_a_run_is_that_of_its_log() {
    let (cell, folder) = (file("cell.yaml"), scratch("log"));
    let log = folder.join("cell.log");
    let ran = clockjack(&["run", &cell, "--steps", "300", "--commit-log", text(&log)]);
    assert_eq!(ran.code, exit_code::OK, "{}", ran.err);
    // The log is the same whether values are shown or not.
    let other = folder.join("other.log");
    let args = ["run", &cell, "--steps", "300", "--commit-log", text(&other), "--plot", "none"];
    assert_eq!(clockjack(&args).code, exit_code::OK);
    assert!(fs::read(&log).expect("a log") == fs::read(&other).expect("a log"));
    for format in ["text", "svg"] {
        let same = ["--edges", "goal,actuator.position", "--format", format];
        let of_run = clockjack(&[&["plot", &cell, "--steps", "300"], &same[..]].concat());
        let of_log = clockjack(&[&["plot", text(&log), "--graph", &cell], &same[..]].concat());
        assert_eq!((of_log.code, of_log.err.as_str()), (exit_code::OK, ""));
        assert!(of_run.out == of_log.out && !of_log.out.is_empty(), "{}{}", of_run.out, of_log.out);
    }
    let whole = fs::read(&log).expect("a log");
    fs::write(&log, &whole[..whole.len() - 3]).expect("it can be written");
    let cut = clockjack(&["plot", text(&log), "--graph", &cell]);
    assert_eq!(cut.code, exit_code::OK);
    assert!(
        cut.err.contains("ends within an entry; the plot shows the part before it"),
        "{}",
        cut.err
    );
    assert!(cut.out.contains("goal (target.out): 300 values"), "{}", cut.out);
}

#[test]
fn a_log_of_another_graph_or_without_its_graph_is_refused() {
    let (cell, folder) = (file("cell.yaml"), scratch("refused"));
    let log = folder.join("cell.log");
    let log = text(&log);
    assert_eq!(clockjack(&["run", &cell, "--steps", "3", "--commit-log", log]).code, 0);
    let lossy = file("lossy.yaml");
    let cases: [(&[&str], &str); 6] = [
        (&[log], "a commit log does not contain the names of edges; add `--graph FILE`"),
        (&[log, "--graph", &lossy], "it is a log of the graph `cell`, not of `lossy`"),
        (&[log, "--graph", &cell, "--steps", "3"], "a commit log is not run"),
        (&[log, "--graph", &cell, "--edges", "x"], "the graph has no edge `x`"),
        (&[&cell, "--graph", &cell], "is not a commit log"),
        (&["no-such.log"], "cannot read the graph 'no-such.log'"),
    ];
    for (args, why) in cases {
        let ran = clockjack(&[&["plot"], args].concat());
        assert_eq!((ran.code, ran.out.as_str()), (exit_code::USAGE, ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains(why), "{args:?} says {}", ran.err);
    }
    let mut bytes = fs::read(log).expect("a log");
    bytes.extend_from_slice(b"Z");
    fs::write(log, bytes).expect("it can be written");
    let ran = clockjack(&["plot", log, "--graph", &cell]);
    assert_eq!(ran.code, exit_code::USAGE);
    assert!(ran.err.contains("there is no such kind of entry"), "{}", ran.err);
}

#[test]
fn a_picture_is_written_to_a_file_and_only_whole() {
    let (cell, folder) = (file("cell.yaml"), scratch("file"));
    let out = folder.join("cell.svg");
    let ran = clockjack(&["plot", &cell, "-o", text(&out)]);
    assert_eq!((ran.code, ran.out.as_str()), (exit_code::OK, ""), "{}", ran.err);
    let drawn = fs::read_to_string(&out).expect("it was written");
    assert_eq!(drawn, clockjack(&["plot", &cell, "--format", "svg"]).out);
    assert!(drawn.ends_with("</svg>\n"), "{drawn}");
    let refused = clockjack(&["plot", &cell, "-o", &cell]);
    assert_eq!(refused.code, exit_code::USAGE);
    assert!(refused.err.contains("would be overwritten"), "{}", refused.err);
}

#[test]
fn a_run_in_which_no_time_passes_is_plotted_over_epochs() {
    let lossy = file("lossy.yaml");
    let ran = clockjack(&["plot", &lossy, "--steps", "10", "--width", "60", "--edges", "ea"]);
    assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{}", ran.out);
    assert!(ran.out.starts_with("ea (a.out): 10 values\n     9 ┤"), "{}", ran.out);
    assert!(ran.out.ends_with(" epoch 10\n"), "{}", ran.out);
    let drawn = clockjack(&["plot", &lossy, "--steps", "10", "--format", "svg"]).out;
    assert!(drawn.contains(">number of the epoch<"), "{drawn}");
}

#[test]
fn a_failed_run_is_plotted_as_far_as_it_went() {
    let ran = clockjack(&["plot", &file("failing.yaml")]);
    assert_eq!(ran.code, exit_code::RUN_FAILED);
    assert!(ran.err.starts_with("clockjack: the run failed: "), "{}", ran.err);
    assert!(ran.out.contains(" value"), "{}", ran.out);
}

#[test]
fn values_of_lanes_with_clocks_of_their_own_are_seen() {
    let folder = scratch("clocks");
    let clocks = graph(
        &folder,
        "clocks",
        "\
lanes:
  fast: { type: fixed_rate, period_ms: 1, wall_clock_enabled: true }
  slow: { type: fixed_rate, period_ms: 2, wall_clock_enabled: true }
components:
  - { id: a, type: source, execution: { lane: fast }, boundary: { role: input } }
  - id: inner
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    boundary: { role: output }
    execution: { lane: fast }
  - id: outer
    type: output
    event_sources: [{ type: message, input: in }]
    trigger_policy: { type: any_input }
    boundary: { role: output }
    execution: { lane: slow }
edges:
  - { id: within, kind: immediate, from: a.out, to: inner.in }
  - { id: across, kind: delay, from: a.out, to: outer.in, policy: { mode: queue, capacity: 64 } }
",
    );
    let args = ["run", &clocks, "--clock", "wall", "--for", "200ms", "--plot", "within,across"];
    let ran = clockjack(&args);
    assert_eq!((ran.code, ran.err.as_str()), (exit_code::OK, ""), "{}", ran.out);
    for name in ["\nwithin (a.out): ", "\nacross (a.out): "] {
        let (_, rest) = ran.out.split_once(name).unwrap_or_else(|| panic!("{name}: {}", ran.out));
        let n: u32 = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(n > 1, "{name}{n}");
    }
    assert!(ran.out.contains("lane  "), "by the wall clock, lanes may be late: {}", ran.out);
    let values = fs::read_dir(&folder).expect("it exists").count();
    assert_eq!(values, 1, "no log was written");
}

#[test]
fn fields_of_payloads_are_plotted_by_position_and_type() {
    let folder = scratch("tracks");
    let tracks = graph(
        &folder,
        "tracks",
        "\
lanes: { main: { type: fixed_rate, period_ms: 10 } }
components:
  - { id: eye, type: tracker, boundary: { role: output }, execution: { lane: main } }
  - { id: far, type: tracker_reader, execution: { lane: main } }
edges:
  - { id: seen, kind: immediate, from: eye.track, to: far.track }
  - { id: pairs, kind: immediate, from: eye.pair, to: far.pair }
",
    );
    let plot = |edges: &str| {
        clockjack(&["plot", &tracks, "--steps", "40", "--edges", edges, "--width", "60"])
    };
    let fields = plot("seen[0]:u32,seen[2]:f64,seen[1]:u8,pairs");
    assert_eq!(fields.code, exit_code::OK, "{}", fields.err);
    for shown in [
        "seen[0] (eye.track): 40 values\n    40 ┤",
        "seen[2] (eye.track): 40 values\n    20 ┤",
        "seen[1] (eye.track): 40 values, 40 of them without this item\n",
        "pairs[0] (eye.pair): 40 values\n    40 ┤",
        "pairs[1] (eye.pair): 40 values\n    20 ┤",
    ] {
        assert!(fields.out.contains(shown), "{shown:?} is not in\n{}", fields.out);
    }
    let whole = plot("seen");
    assert_eq!(whole.code, exit_code::USAGE);
    let why = "edge `seen` carries house::track, which is not a number; name a field and its type, \
               for example `seen[0]:f64`";
    assert!(whole.err.contains(why), "{}", whole.err);
    let ran = clockjack(&["run", &tracks]);
    assert_eq!(row(&ran.out, "eye")[3..6], ["track,", "24", "B"], "{}", ran.out);
    assert!(!ran.out.contains("seen ("), "a track is not a number: {}", ran.out);
}

#[test]
fn a_metrics_file_and_json_have_what_they_had() {
    let cell = file("cell.yaml");
    let ran = clockjack(&["run", &cell, "--steps", "7", "--format", "json"]);
    let value: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(value["executions"], 35);
    assert!(value["timing"]["overlap_max"].is_u64(), "{value}");
}
