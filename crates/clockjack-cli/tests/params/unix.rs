//! `clockjack get` and `clockjack set` on a graph that runs in real time, over a unix socket.

#![cfg(unix)]

use std::{fs, os::unix::fs::DirBuilderExt as _, path::PathBuf};

use clockjack_cli::{Streams, exit_code, run};
use clockjack_console::{
    client::Client,
    query::EventsQuery,
    server::{Bind, Console, Control, Opened},
    view::Events,
};
use clockjack_graph::{Clock, CommitLog, GraphFile, GraphRun, Registry, RunOptions};
use clockjack_rt::Runtime;
use serde_json::{Value, json};

fn clockjack(args: &[&str]) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut streams = Streams::new(&mut out, &mut err);
    let code = run(&Registry::standard(), ["clockjack"].iter().chain(args), &mut streams);
    let text = |bytes| String::from_utf8(bytes).expect("the command writes text");
    (code, text(out), text(err))
}

/// A program that runs the robot cell and shows it on a socket of its own.
struct Program {
    runtime: Runtime,
    run: GraphRun,
    console: Opened,
    log: CommitLog,
    directory: PathBuf,
}

impl Program {
    fn start(name: &str, control: Control) -> Self {
        let directory = std::env::temp_dir().join(format!("cj-set-{}-{name}", std::process::id()));
        let _removed = fs::remove_dir_all(&directory);
        fs::DirBuilder::new().mode(0o700).create(&directory).unwrap();
        let runtime = Runtime::new("house").unwrap();
        let graph = GraphFile::parse("cell.yaml", include_str!("../graphs/cell.yaml")).unwrap();
        let graph = graph.compile(&Registry::standard()).unwrap();
        let log = CommitLog::in_memory();
        let options = RunOptions::until_stopped().clock(Clock::Wall).commit_log(&log);
        let run = graph.start(runtime.system(), options).unwrap();
        let bind = Bind::SocketAt(directory.join("house.sock"));
        let console = Console::of(&runtime).bind(bind).control(control).graph("cell", &run);
        Self { console: console.open().unwrap(), runtime, run, log, directory }
    }

    fn name(&self) -> String {
        self.console.address().to_string()
    }

    fn ask(&self, command: &str, args: &[&str]) -> (u8, String, String) {
        clockjack(&[&[command, &self.name()], args].concat())
    }

    /// The actions that were told.
    fn events(&self) -> Vec<String> {
        let client = Client::connect(self.console.address()).unwrap();
        let query = EventsQuery { since: 0, kinds: vec!["action".into()] };
        let events: Events = client.get(&query).unwrap();
        events.rows.into_iter().map(|row| row.text).collect()
    }

    /// Stops the run; returns its commit log.
    fn end(self) -> Vec<u8> {
        self.run.stop();
        self.runtime.block_on(self.run).unwrap();
        self.console.close();
        fs::remove_dir(self.directory).unwrap();
        self.log.bytes()
    }
}

fn contains(log: &[u8], part: &[u8]) -> bool {
    log.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_setting_is_read_and_changed_and_the_change_is_in_the_commit_log() {
    let program = Program::start("set", Control::GRAPHS);
    let value = || program.ask("get", &["controller.kp"]).1;
    assert_eq!(value(), "default\n");
    let (code, out, err) = program.ask("set", &["controller.kp=2.5"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "controller.kp: default -> 2.5\n", ""));
    assert_eq!(value(), "2.5\n");
    let args = ["controller.kp=3", "--graph", "cell", "--format", "json"];
    let (code, out, _) = program.ask("set", &args);
    let told: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({
        "graph": "cell", "setting": "controller.kp", "old": 2.5, "new": 3, "version": 2,
    });
    assert_eq!((code, told), (0, expected));
    let (_, out, _) = program.ask("get", &["controller.kp", "--format", "json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    let expected =
        json!({ "graph": "cell", "setting": "controller.kp", "value": 3, "is_default": false });
    assert_eq!(told, expected);

    let pid = std::process::id();
    let who = |event: &String| event.starts_with("uid ") && event.contains(&format!("pid {pid}: "));
    let events = program.events();
    assert!(events.iter().all(who), "{events:?}");
    let what = |event: &String| event.split_once(&format!("pid {pid}: ")).unwrap().1.to_owned();
    let what: Vec<String> = events.iter().map(what).collect();
    let expected =
        ["set controller.kp = 2.5: done, was null", "set controller.kp = 3 of cell: done, was 2.5"];
    assert_eq!(what, expected);

    let log = program.end();
    // One change of the fourth component: a text of two letters, and a number.
    let first = [&b"S\x01\x03\x01\x02kpf"[..], &2.5_f64.to_le_bytes()].concat();
    let second = [&b"S\x01\x03\x01\x02kpi"[..], &3_i64.to_le_bytes()].concat();
    let never = [&b"S\x01\x03\x01\x02kpi"[..], &4_i64.to_le_bytes()].concat();
    assert!(contains(&log, &first) && contains(&log, &second));
    assert!(!contains(&log, &never));
}

#[test]
fn a_change_that_the_program_does_not_allow_exits_with_not_allowed_and_is_told() {
    let program = Program::start("forbidden", Control::INSPECT);
    let (code, out, err) = program.ask("set", &["controller.kp=2.5"]);
    assert_eq!((code, out.as_str()), (exit_code::NOT_ALLOWED, ""));
    assert_eq!(err, "clockjack: the program does not allow the class GRAPHS\n");
    let (code, out, _) = program.ask("get", &["controller.kp"]);
    assert_eq!((code, out.as_str()), (0, "default\n"), "whoever may look may read");
    let events = program.events();
    assert_eq!(events.len(), 1, "{events:?}");
    let end = "set controller.kp = 2.5: refused: the program does not allow the class GRAPHS";
    assert!(events[0].ends_with(end), "{events:?}");
    assert!(!contains(&program.end(), b"\x02kp"));
}

#[test]
fn what_does_not_exist_and_what_a_component_refuses_is_a_usage_error_with_its_reason() {
    let program = Program::start("wrong", Control::GRAPHS);
    let all = "`target`, `sensor`, `estimator`, `controller`, `actuator`";
    let fields = "`setpoint`, `kp`, `ki`, `dt`, `min`, `max`";
    let cases: [(&[&str], String); 6] = [
        (&["nobody.kp=1"], format!("there is no component `nobody`; the graph has: {all}")),
        (&["controller.z=1"], format!("`controller` has no setting `z`; it has: {fields}")),
        (
            &["controller.kp=1", "--graph", "arm"],
            "there is no graph `arm`; the program shows the graphs: `cell`".into(),
        ),
        (&["controller.kp=fast"], "`controller`: `kp` must be of the type `double`".into()),
        (&["controller.ki=-1"], "`controller`: `ki` is -1, but must be not less than 0".into()),
        (
            &["controller.kp=18446744073709551615"],
            "18446744073709551615 is larger than any setting".into(),
        ),
    ];
    for (args, why) in &cases {
        let (code, out, err) = program.ask("set", args);
        assert_eq!((code, out.as_str()), (exit_code::USAGE, ""), "{args:?}: {err}");
        assert_eq!(err, format!("clockjack: {why}\n"), "{args:?}");
    }
    // What only the component knows: its least command is above its greatest one.
    let (code, _, err) = program.ask("set", &["controller.min=2"]);
    assert_eq!(code, exit_code::USAGE, "{err}");
    assert!(err.starts_with("clockjack: `controller`: "), "{err}");
    let told = program.events();
    assert_eq!(told.len(), cases.len() + 1, "{told:?}");
    assert!(told.iter().all(|event| event.contains(": refused: ")), "{told:?}");

    for args in [["nobody.kp"], ["controller.z"]] {
        let (code, _, err) = program.ask("get", &args);
        assert_eq!(code, exit_code::USAGE, "{err}");
        assert!(err.contains("there is no component `nobody`") || err.contains("no setting `z`"));
    }
    let (code, _, err) = program.ask("get", &["kp"]);
    assert_eq!(code, exit_code::USAGE);
    assert!(err.contains("`kp` is no setting: it is written as `component.field`"), "{err}");
    for wrong in ["controller.kp", "kp=1"] {
        let (code, _, err) = program.ask("set", &[wrong]);
        assert_eq!(code, exit_code::USAGE);
        assert!(err.contains("expected"), "{err}");
    }
    assert!(!contains(&program.end(), b"\x02kp"), "nothing was changed");
}

#[test]
fn a_run_that_has_ended_and_a_program_that_has_gone_are_not_connected() {
    let Program { runtime, run, console, log: _, directory } =
        Program::start("ended", Control::GRAPHS);
    run.stop();
    runtime.block_on(run).unwrap();
    let name = console.address().to_string();
    let (code, _, err) = clockjack(&["set", &name, "controller.kp=1"]);
    assert_eq!((code, err.as_str()), (exit_code::NOT_CONNECTED, "clockjack: the run has ended\n"));
    console.close();
    for args in [["get", &name, "controller.kp"], ["set", &name, "controller.kp=1"]] {
        assert_eq!(clockjack(&args).0, exit_code::NOT_CONNECTED);
    }
    fs::remove_dir(directory).unwrap();
}
