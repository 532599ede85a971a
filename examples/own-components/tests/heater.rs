//! The graph file of this package is valid and runs, and late values are dropped.

use std::process::{Command, Stdio};
use std::thread;

use clockjack_cli::{Streams, exit_code};
use clockjack_graph::{Clock, CommitLog, GraphFile, RunOptions, RunReport};
use clockjack_own_components::registry;
use clockjack_testkit::ManualTime;

const HEATER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/heater.yaml");

/// How often a test polls for the end of a process: far more often than any needs.
const LOOKS_MAX: u32 = 20_000_000;

fn run_into(log: &CommitLog, text: &str) -> RunReport {
    let file = GraphFile::parse("heater.yaml", text).expect("it can be read");
    let graph = file.compile(&registry()).expect("it is right");
    let time = ManualTime::start();
    let options = RunOptions::steps(49).clock(Clock::Virtual).commit_log(log);
    let run = graph.start(time.system(), options).expect("all settings are taken");
    time.block_on(run).expect("nothing fails")
}

fn run(text: &str) -> RunReport {
    run_into(&CommitLog::in_memory(), text)
}

fn heater() -> String {
    std::fs::read_to_string(HEATER).expect("it is there")
}

#[test]
fn late_values_are_left_out_and_changes_are_told_once() {
    let report = run(&heater());
    let metrics = &report.metrics;
    assert_eq!(metrics.get("runtime.trigger.late_drop_count", "smooth"), Some(7.0));
    let executions = |id| report.component(id).map(|one| one.executions);
    assert_eq!(executions("switch"), Some(42));
    // On at the first value, off when the room is warm; the room never cools down.
    assert_eq!(executions("heater"), Some(2));
}

#[test]
fn a_thermometer_that_is_never_late_loses_nothing() {
    let report = run(&heater().replace("late_every: 7", "late_every: 0"));
    assert_eq!(report.component("switch").map(|one| one.executions), Some(49));
}

#[test]
fn the_commit_log_is_the_same_on_every_machine() {
    let log = CommitLog::in_memory();
    run_into(&log, &heater());
    let bytes = log.bytes();
    // FNV-1a, 64 bits.
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let digest = bytes.iter().fold(0xcbf2_9ce4_8422_2325, step);
    assert_eq!(format!("{} bytes, {digest:#018x}", bytes.len()), "1348 bytes, 0x364daa7f4c16294f");
}

#[test]
fn bounds_in_the_wrong_order_are_refused_before_anything_runs() {
    let text = heater().replace("high: 21.0", "high: 17.0");
    let file = GraphFile::parse("heater.yaml", &text).expect("it can be read");
    let graph = file.compile(&registry()).expect("each setting is right by itself");
    let error = graph.start(ManualTime::start().system(), RunOptions::steps(1)).unwrap_err();
    assert!(error.to_string().contains("17 is below `low`, 18"), "{error}");
}

#[test]
fn the_commands_know_the_components() {
    for args in [&["check"][..], &["run", "--steps", "49"][..]] {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let args = ["own-components"].iter().chain(args).chain(&[HEATER]);
        let code = clockjack_cli::run(&registry(), args, &mut streams);
        assert_eq!(code, exit_code::OK, "{}", String::from_utf8_lossy(&err));
    }
}

#[test]
fn what_components_say_is_printed_from_the_level_that_was_asked_for() {
    let said = |options: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Streams::new(&mut out, &mut err);
        let args = ["own-components", "run", HEATER, "--steps", "49"].iter().chain(options);
        assert_eq!(clockjack_cli::run(&registry(), args, &mut streams), exit_code::OK);
        String::from_utf8(err).expect("text")
    };
    let lines = "info heater/switch, epoch 1: 15.0 degrees\n\
                 info heater/switch, epoch 27: 21.2 degrees\n";
    assert_eq!(said(&["--log", "info"]), lines);
    assert_eq!((said(&["--log", "warn"]), said(&[])), (String::new(), String::new()));
}

#[test]
fn a_component_may_print_while_the_command_runs_it() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-components"));
    command.args(["run", "--steps", "49", "--format", "json", HEATER]);
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    // A command that locked its output streams would deadlock with the component.
    let mut n_looks = 0_u32;
    while child.try_wait().expect("it is a child").is_none() {
        n_looks += 1;
        if n_looks == LOOKS_MAX {
            child.kill().expect("it is a child");
            panic!("the command and its component wait for each other");
        }
        thread::yield_now();
    }
    let ran = child.wait_with_output().expect("it has ended");
    assert!(ran.status.success(), "{ran:?}");
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert_eq!(err, "at 0ns: heat 1\nat 260ms: heat 0\n");
    assert!(out.starts_with('{') && out.ends_with("}\n"), "{out}");
}
