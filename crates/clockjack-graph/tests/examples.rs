//! Every file in `examples/` is valid, runs, and matches its text in `golden/examples`: how often
//! each component was executed, what happened to its messages, and a digest of the commit log. The
//! meaning of each policy is tested elsewhere.
//!
//! After an intended change, `CLOCKJACK_BLESS=1 cargo test -p clockjack-graph --test examples`
//! rewrites the texts; review the difference before you commit it.

use core::fmt::Write as _;
use std::{
    env,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, GraphFile, Parallel, Registry, RunOptions, RunReport,
    describe::{EdgeKind, EdgeMode, ErrorPolicy, GraphSpec, LaneType, LoopType, TriggerType},
    run::MetricKind,
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_testkit::ManualTime;

/// Epochs per run.
const EPOCHS: u64 = 50;

/// How many of these the host requests, if a lane waits for it.
const STEPS_CALLED: usize = 10;

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn examples() -> PathBuf {
    here("../../examples")
}

/// The graph files below a directory, as sorted relative paths. Files of other packages have their
/// own components and their own test.
fn files() -> Vec<PathBuf> {
    let (root, mut found) = (examples(), vec![]);
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("there is such a directory") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() && !path.join("Cargo.toml").exists() {
                open.push(path);
            } else if path.extension() == Some(OsStr::new("yaml")) {
                found.push(path.strip_prefix(&root).expect("it is below").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> GraphFile {
    GraphFile::read(examples().join(path)).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a file in virtual time and returns the outcome.
fn run(path: &Path) -> (Result<RunReport, String>, Vec<u8>) {
    let file = read(path);
    let is_stepped = file.spec().lanes.iter().any(|lane| lane.lane_type == LaneType::ManualStep);
    let graph = file.compile(&Registry::standard()).unwrap_or_else(|faults| panic!("{faults}"));
    let (time, log) = (ManualTime::start(), CommitLog::in_memory());
    let options = RunOptions::steps(EPOCHS).clock(Clock::Virtual).commit_log(&log);
    let run = graph.start(time.system(), options).expect("nothing refuses its settings");
    if is_stepped {
        (0..STEPS_CALLED).for_each(|_| run.step());
    }
    let ended = time.block_on(run).or_else(|error| match error.report() {
        Some(report) => {
            let mut report = report.clone();
            report.faults.extend(error.fault().cloned());
            Ok(report)
        }
        None => Err(error.to_string()),
    });
    (ended, log.bytes())
}

/// A summary of a run.
fn digest(path: &Path) -> String {
    let (report, log) = run(path);
    let report = report.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let ms = report.elapsed_ns / 1_000_000;
    let mut text = format!("{} after {} epochs, {ms} ms\n", report.stop, report.epochs);
    for one in &report.metrics.list {
        if let ("runtime.component.execution_count", Some((_, who))) = (&*one.name, &one.label) {
            writeln!(text, "{who} {}", one.value).expect("a string takes everything");
        }
    }
    let mut names: Vec<&str> = vec![];
    for one in report.metrics.list.iter().filter(|one| one.kind == MetricKind::Counter) {
        if !names.contains(&&*one.name) {
            names.push(&*one.name);
        }
    }
    // All metrics of channels, including zeros; of the others, only those that are not zero.
    for name in names {
        let total = report.metrics.total(name);
        let is_told = name.starts_with("runtime.channel.")
            || (total > 0.0 && name.starts_with("runtime.trigger."))
            || (total > 0.0 && name.starts_with("runtime.loop."))
            || (total > 0.0 && name.starts_with("runtime.async."))
            || (total > 0.0 && name.starts_with("runtime.publication."));
        if is_told {
            writeln!(text, "{name} {total}").expect("a string takes everything");
        }
    }
    for one in &report.loops {
        writeln!(text, "loop {}: {}", one.id, one.reason).expect("a string takes everything");
    }
    for fault in &report.faults {
        writeln!(text, "fault: {fault}").expect("a string takes everything");
    }
    for loss in &report.losses {
        let (kind, id) = (loss.place.kind(), loss.place.id());
        writeln!(text, "{kind} {id}: {} {}", loss.count, loss.cause)
            .expect("a string takes everything");
    }
    for chain in &report.chains {
        writeln!(text, "{chain}").expect("a string takes everything");
    }
    for input in &report.silent_inputs {
        writeln!(text, "{input}").expect("a string takes everything");
    }
    writeln!(text, "commit log of {} bytes, {:#018x}", log.len(), fnv(&log))
        .expect("a string takes everything");
    text
}

/// FNV-1a, 64 bits.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn every_example_does_what_its_golden_text_says() {
    let mut wrong = String::new();
    for path in files() {
        let found = digest(&path);
        let golden = here("tests/golden/examples").join(&path).with_extension("txt");
        if env::var_os("CLOCKJACK_BLESS").is_some() {
            let directory = golden.parent().expect("it stands in one");
            fs::create_dir_all(directory).expect("it can be made");
            fs::write(&golden, &found).expect("it can be written");
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if found != expected {
            let name = path.display();
            write!(wrong, "--- {name}, golden\n{expected}--- {name}, found\n{found}")
                .expect("a string takes everything");
        }
    }
    assert!(wrong.is_empty(), "if that is meant, run with CLOCKJACK_BLESS=1\n{wrong}");
}

#[test]
fn every_golden_text_has_its_example() {
    let (root, mut open, mut n_found) = (here("tests/golden/examples"), vec![], 0);
    open.push(root.clone());
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).expect("there is such a directory") {
            let path = entry.expect("it can be listed").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            n_found += 1;
            let example = path.strip_prefix(&root).expect("it is below").with_extension("yaml");
            assert!(examples().join(&example).exists(), "there is no {}", example.display());
        }
    }
    assert_eq!(n_found, files().len());
}

#[test]
fn an_example_gives_the_same_log_each_time() {
    for path in files() {
        assert_eq!(run(&path).1, run(&path).1, "{}", path.display());
    }
}

/// The shapes that never overlap, because each region waits for another one or for its lane. The
/// others do, and so does the graph of Autoware.
const SEQUENTIAL: [&str; 7] = [
    "async_completion.yaml",
    "backpressure.yaml",
    "batching.yaml",
    "composite_loop.yaml",
    "delayed_feedback.yaml",
    "fan_out.yaml",
    "pipeline.yaml",
];

#[test]
fn an_example_gives_the_same_log_on_one_worker_and_on_four_that_overlap() {
    for workers in [1, 4] {
        let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
        let rt = Runtime::start_with(ActorSystem::builder("pool"), config).expect("it starts");
        let mut overlapped = Vec::new();
        for path in files() {
            let file = read(&path);
            // The time at which a host requests a step is an input, and on a pool it varies.
            if file.spec().lanes.iter().any(|lane| lane.lane_type == LaneType::ManualStep) {
                continue;
            }
            let graph = file.compile(&Registry::standard()).expect("it is right");
            let log = CommitLog::in_memory();
            let options = RunOptions::steps(EPOCHS).clock(Clock::Virtual).commit_log(&log);
            let options = options.workers(workers).parallel(Parallel::Always);
            let run = graph.start(rt.system(), options).expect("nothing refuses its settings");
            // The golden text covers the outcome; here the committed messages matter, and that
            // epochs are run by several workers.
            if rt.block_on(run).is_ok_and(|report| report.parallel_epochs > 0) {
                overlapped.push(path.clone());
            }
            let is_same = log.bytes() == self::run(&path).1;
            assert!(is_same, "{} on {workers} workers", path.display());
        }
        let shapes = files().into_iter().filter(|path| path.starts_with("graphs/shapes"));
        let reference = PathBuf::from("graphs/autoware_reference.yaml");
        let all: Vec<PathBuf> = shapes.chain([reference]).collect();
        assert_eq!(all.len(), 13);
        for path in all {
            let expected = workers > 1 && !SEQUENTIAL.iter().any(|one| path.ends_with(one));
            let name = path.display();
            assert_eq!(overlapped.contains(&path), expected, "{name} on {workers}: {overlapped:?}");
        }
    }
}

/// The description of the file that is named after a value.
fn spec_of(directory: &str, value: &str) -> GraphSpec {
    read(&Path::new("graphs").join(directory).join(value).with_extension("yaml")).into_spec()
}

#[test]
fn every_edge_kind_has_a_file_that_uses_it() {
    for kind in EdgeKind::ALL {
        let spec = spec_of("edges", kind.name());
        assert!(spec.edges.iter().any(|edge| edge.kind == *kind), "{kind}");
    }
}

#[test]
fn every_channel_mode_has_a_file_that_uses_it() {
    for mode in EdgeMode::ALL {
        let spec = spec_of("modes", mode.name());
        assert!(spec.edges.iter().any(|edge| edge.policy.mode == *mode), "{mode}");
    }
}

#[test]
fn every_trigger_has_a_file_that_uses_it() {
    for trigger in TriggerType::ALL {
        let spec = spec_of("triggers", trigger.name());
        let mut types = spec.components.iter().map(|one| one.trigger.trigger_type);
        assert!(types.any(|one| one == *trigger), "{trigger}");
    }
}

#[test]
fn every_loop_type_has_a_file_that_uses_it() {
    for loop_type in LoopType::ALL {
        let spec = spec_of("loops", loop_type.name());
        assert!(spec.loops.iter().any(|one| one.loop_type == *loop_type), "{loop_type}");
    }
}

#[test]
fn every_lane_type_has_a_file_that_uses_it() {
    for lane_type in LaneType::ALL {
        let spec = spec_of("lanes", lane_type.name());
        assert!(spec.lanes.iter().any(|lane| lane.lane_type == *lane_type), "{lane_type}");
    }
}

#[test]
fn every_error_policy_has_a_file_that_uses_it() {
    for policy in ErrorPolicy::ALL {
        let spec = spec_of("errors", policy.name());
        let mut policies = spec.components.iter().map(|one| one.execution.on_error.policy);
        assert!(policies.any(|one| one == *policy), "{policy}");
    }
}

#[test]
fn the_reference_system_has_24_components_and_there_are_twelve_shapes() {
    let autoware = read(Path::new("graphs/autoware_reference.yaml")).into_spec();
    assert_eq!(autoware.components.len(), 24);
    let shapes = files().into_iter().filter(|path| path.starts_with("graphs/shapes"));
    assert_eq!(shapes.count(), 12);
}

#[test]
fn the_robot_cell_and_the_caterpillar_are_what_they_are_said_to_be() {
    let robot = read(Path::new("robot-cell.yaml")).into_spec();
    assert_eq!(robot.lanes.len(), 3);
    assert!(robot.edges.iter().any(|edge| edge.kind == EdgeKind::Delay && edge.id == "feedback"));
    assert_eq!(read(Path::new("caterpillar.yaml")).spec().components.len(), 17);
}
