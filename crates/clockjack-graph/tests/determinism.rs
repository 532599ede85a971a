//! In virtual time the commit log does not depend on threads: random graphs, run by one, two, four
//! and eight, with components that take another time in each run.
//!
//! Fifty graphs by default, `CLOCKJACK_GRAPHS` of them if that is set. A graph that fails prints
//! the command that repeats it alone.

// Under loom there is no simulation, whose random graphs these are.
#![cfg(not(loom))]
#![expect(clippy::print_stdout, reason = "what was seen of many graphs is for who asks for it")]

#[path = "determinism/ledger.rs"]
mod ledger;
#[path = "determinism/log.rs"]
mod log;
#[path = "determinism/parts.rs"]
mod parts;

use std::env;

use clockjack_actor::ActorSystem;
use clockjack_graph::{
    Clock, CommitLog, Graph, Parallel, RunError, RunOptions, RunReport, RunStopReason,
    compile::Plan,
    describe::{GraphFile, LaneType},
};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_sim::random_graph::{mix, random_graph, registry};
use clockjack_testkit::ManualTime;

/// How many at once.
const WORKERS: [usize; 4] = [1, 2, 4, 8];

/// Epochs of each run.
const STEPS: u64 = 40;

/// Numbers that are measured, or that tell how many there were to work: not results.
const MEASURED: [&str; 8] = [
    "duration",
    "worker_count",
    "active_count",
    "in_flight_count",
    "queue_depth",
    "starvation_guard_count",
    "jitter",
    "budget",
];

/// What came of a run.
struct Ran {
    log: Vec<u8>,
    facts: String,
    overlap: usize,
    is_failed: bool,
}

fn compile(text: &str) -> Graph {
    let faults = |faults| panic!("{faults:#?}\n{text}");
    let file = GraphFile::parse("random.yaml", text).unwrap_or_else(faults);
    file.compile(&registry::<parts::Digests>())
        .unwrap_or_else(|faults| panic!("{faults:#?}\n{text}"))
}

fn options(log: &CommitLog) -> RunOptions {
    RunOptions::steps(STEPS).clock(Clock::Virtual).commit_log(log).tasks_max(3)
}

fn run_by(runtime: &Runtime, text: &str, workers: usize) -> Ran {
    let log = CommitLog::in_memory();
    let options = options(&log).workers(workers).parallel(Parallel::Always);
    let run = compile(text).start(runtime.system(), options);
    let result = run.and_then(|run| runtime.block_on(run));
    ran(&log, result)
}

/// On one thread, without a pool.
fn run_alone(text: &str) -> Ran {
    let (log, time) = (CommitLog::in_memory(), ManualTime::start());
    let run = compile(text).start(time.system(), options(&log));
    let result = run.and_then(|run| time.block_on(run));
    ran(&log, result)
}

fn ran(log: &CommitLog, result: Result<RunReport, RunError>) -> Ran {
    let (facts, overlap) = match &result {
        Ok(report) => (facts(report), report.overlap_max),
        Err(error) => {
            let report = error.report().expect("it has begun");
            let (epochs, elapsed) = (report.epochs, report.elapsed_ns);
            let faults = &report.faults;
            let text = format!("{:?} {epochs} {elapsed} {faults:#?}", error.fault());
            (text, report.overlap_max)
        }
    };
    Ran { log: log.bytes(), facts, overlap, is_failed: result.is_err() }
}

/// All of a report that threads must not change.
fn facts(report: &RunReport) -> String {
    assert_eq!(report.stop, RunStopReason::TickBound);
    let (epochs, executions, elapsed) = (report.epochs, report.executions, report.elapsed_ns);
    let mut text = format!("{epochs} {executions} {elapsed} {:#?}", report.faults);
    text.push_str(&format!("{:#?}", report.loops));
    for metric in &report.metrics.list {
        if !MEASURED.iter().any(|measured| metric.name.contains(measured)) {
            text.push_str(&format!("{} {:?} {}\n", metric.name, metric.label, metric.value));
        }
    }
    text
}

/// Whether two regions may run at once: neither waits for the other, and their lane lets them.
fn has_independent_regions(plan: &Plan) -> bool {
    let n = plan.regions.len();
    let mut before = vec![vec![false; n]; n];
    let mut last_of_lane = vec![None; plan.lanes.len()];
    for at in 0..n {
        let region = &plan.regions[at];
        let mut direct = region.incoming.clone();
        if plan.lanes[region.lane].spec.lane_type != LaneType::ThreadPool {
            direct.extend(last_of_lane[region.lane].replace(at));
        }
        if region.is_output {
            direct.extend(0..at);
        }
        for one in direct {
            let of_it = before[one].clone();
            for (mine, its) in before[at].iter_mut().zip(of_it) {
                *mine |= its;
            }
            before[at][one] = true;
        }
    }
    (0..n).any(|b| {
        (0..b).any(|a| {
            let (lane, other) = (plan.regions[a].lane, plan.regions[b].lane);
            let is_narrow = lane == other && plan.lanes[lane].spec.max_threads <= 1;
            !before[b][a] && !is_narrow
        })
    })
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

#[track_caller]
fn check_equal(seed: u64, text: &str, one: &Ran, other: &Ran, who: &str) {
    let again =
        format!("CLOCKJACK_GRAPH_SEED={seed} cargo test -p clockjack-graph --test determinism");
    if one.log != other.log {
        let difference = log::first_difference(&one.log, &other.log);
        panic!("{text}\nthe log of {who} differs: {difference}\nrepeat it with: {again}");
    }
    if one.facts != other.facts {
        let lines = one.facts.lines().zip(other.facts.lines());
        let lines: Vec<_> = lines.filter(|(a, b)| a != b).take(8).collect();
        panic!("{text}\nthe report of {who} differs: {lines:#?}\nrepeat it with: {again}");
    }
}

/// Seeds that have found a fault: a task that was begun concurrently with a failure before it.
const FOUND: [u64; 1] = [919];

/// What was seen of many graphs.
#[derive(Debug, Default)]
struct Tally {
    graphs: u64,
    failed: u64,
    independent: u64,
    overlapped: u64,
    bytes: usize,
}

fn check(runtime: &Runtime, seed: u64, tally: &mut Tally) {
    let text = random_graph(seed);
    let is_wide = has_independent_regions(compile(&text).plan());
    let alone = run_alone(&text);
    let mut overlap = 0;
    for (round, workers) in WORKERS.into_iter().enumerate() {
        let patience = if workers > 1 { 1_000 } else { 0 };
        parts::set_delays(mix(seed, round as u64), patience);
        let ran = run_by(runtime, &text, workers);
        check_equal(seed, &text, &alone, &ran, &format!("{workers} workers"));
        overlap = overlap.max(ran.overlap);
    }
    assert!(is_wide || overlap <= 1, "seed {seed}: regions that wait for each other overlapped");
    tally.graphs += 1;
    tally.failed += u64::from(alone.is_failed);
    tally.independent += u64::from(is_wide);
    tally.overlapped += u64::from(is_wide && overlap > 1);
    tally.bytes += alone.log.len();
}

fn runtime() -> Runtime {
    let config = RuntimeConfig { workers: Some(8), ..RuntimeConfig::DEFAULT };
    Runtime::start_with(ActorSystem::builder("graphs"), config).unwrap()
}

#[test]
fn the_commit_log_is_the_same_for_any_number_of_workers() {
    let runtime = runtime();
    let mut tally = Tally::default();
    if let Some(seed) = number("CLOCKJACK_GRAPH_SEED") {
        println!("{}", random_graph(seed));
        check(&runtime, seed, &mut tally);
        println!("{tally:?}");
        return;
    }
    let n_graphs = number("CLOCKJACK_GRAPHS").unwrap_or(50);
    for seed in (1..=n_graphs).chain(FOUND.into_iter().filter(|seed| *seed > n_graphs)) {
        check(&runtime, seed, &mut tally);
    }
    println!("{tally:?}");
    let Tally { graphs, failed, independent, overlapped, .. } = tally;
    // The graphs are useful: most run to their end, most are not a line.
    assert!(failed * 2 <= graphs && independent * 2 >= graphs, "{tally:?}");
    assert!(overlapped * 10 >= independent * 9, "{tally:?}");
}
