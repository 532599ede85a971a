//! The members of a Jacobi loop on a pool run at the same time, and that changes no result.

use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex};

use clockjack_graph::{
    Clock, CommitLog, Component, ComponentLog, Execute, Failure, GraphContext, Input, LogLevel,
    Output, Parallel, Registry, RunError, RunOptions, RunReport,
};
use clockjack_rt::Runtime;
use clockjack_testkit::ManualTime;

use crate::{
    acts::compile,
    parts::{Seen, registry},
    teller,
};

/// Longer than any helper needs to start.
const LONG: Duration = Duration::from_secs(10);

/// Where the members of a loop meet.
#[derive(Default)]
struct Meeting {
    /// Members that are in a call now, and the most that were.
    in_call: Mutex<(usize, usize)>,
    came: Condvar,
    /// How many must have been in a call at the same time before the first one returns.
    n_wanted: usize,
}

impl Meeting {
    /// A call begins: waits once for the others.
    fn enter(&self) {
        let mut in_call = self.in_call.lock().unwrap();
        in_call.0 += 1;
        in_call.1 = in_call.1.max(in_call.0);
        self.came.notify_all();
        let is_early = |(_, most): &mut (usize, usize)| *most < self.n_wanted;
        let (mut in_call, waited) = self.came.wait_timeout_while(in_call, LONG, is_early).unwrap();
        if waited.timed_out() {
            // Nobody comes: the test fails, and the other calls need not wait for that.
            *in_call = (in_call.0, usize::MAX);
        }
    }

    fn leave(&self) {
        self.in_call.lock().unwrap().0 -= 1;
    }
}

/// A member: the mean of its neighbours and itself, and a line for each message that it gets.
#[derive(Component, Default)]
#[component(type = "cell")]
struct Cell {
    #[input(optional, multiple)]
    a: Input<f64>,
    #[output]
    out: Output<f64>,
    /// How often it publishes in a call.
    #[config]
    burst: Option<i64>,
    /// The call that fails.
    #[config]
    fails_at: Option<i64>,
    n_calls: i64,
    value: f64,
    meeting: Arc<Meeting>,
}

impl Execute for Cell {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        self.meeting.enter();
        let values: Vec<f64> = cx.drain(self.a).copied().collect();
        self.n_calls += 1;
        #[expect(clippy::cast_precision_loss, reason = "they are few")]
        let n = (values.len() + 1) as f64;
        self.value = (self.value + values.iter().sum::<f64>()) / n + 1.0;
        let iteration = cx.loop_iteration().expect("it is in a loop").index;
        cx.log(LogLevel::Info, format_args!("{}: {values:?} in {iteration}", cx.component_id()));
        cx.counter("calls")?.add(1);
        for nth in 0..self.burst.unwrap_or(1) {
            #[expect(clippy::cast_precision_loss, reason = "it is small")]
            cx.publish(self.out, self.value + nth as f64)?;
        }
        self.meeting.leave();
        if self.fails_at == Some(self.n_calls) {
            return Err(Failure::msg("told to fail"));
        }
        Ok(())
    }
}

/// Everything of a run that threads must not change.
#[derive(Debug, PartialEq)]
struct RunRecord {
    log: Vec<u8>,
    lines: Vec<String>,
    executions: u64,
    facts: String,
}

fn record(
    result: &Result<RunReport, RunError>,
    log: &CommitLog,
    lines: &ComponentLog,
) -> RunRecord {
    let report = match result {
        Ok(report) => report,
        Err(error) => error.report().expect("it has begun"),
    };
    let fault = result.as_ref().err().map(RunError::fault);
    let calls: Vec<_> = report.metrics.user.iter().collect();
    let RunReport { epochs, executions, faults, loops, losses, .. } = report;
    RunRecord {
        log: log.bytes(),
        lines: lines.take().iter().map(ToString::to_string).collect(),
        executions: *executions,
        facts: format!("{fault:?} {epochs} {faults:#?} {loops:#?} {losses:#?} {calls:#?}"),
    }
}

/// A source, and a loop of four members in a ring on a pool; each hears the one before it and the
/// one after it. `of_b`: the settings of the second; the others publish once and never fail.
fn ring(lane: &str, policy: &str, of_b: &str) -> String {
    let ids = ["a", "b", "c", "d"];
    let member = |id: &str| {
        let config = if id == "b" { of_b } else { "burst: 1" };
        format!(
            "id: {id}, type: cell, execution: {{ lane: pool, on_error: continue }}, \
             event_sources: [{{ type: message, inputs: [a] }}], \
             trigger_policy: {{ type: any_input }}, config: {{ {config} }}"
        )
    };
    let mut parts =
        vec!["id: src, type: count, execution: { lane: main }, boundary: { role: input }".into()];
    parts.extend(ids.map(member));
    let queue = "policy: { mode: queue, capacity: 64 }";
    let mut edges = Vec::new();
    for (at, id) in ids.iter().enumerate() {
        edges.push(format!("id: given{id}, kind: immediate, from: src.out, to: {id}.a"));
        for next in [ids[(at + 1) % 4], ids[(at + 3) % 4]] {
            edges.push(format!(
                "id: {id}{next}, kind: immediate, from: {id}.out, to: {next}.a, {queue}"
            ));
        }
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let edges: Vec<&str> = edges.iter().map(String::as_str).collect();
    let lanes = format!("main: {{ type: event_loop }}, pool: {{ {lane} }}");
    let policy = format!("type: solver_iteration, {policy}");
    teller::graph(&lanes, &parts, &edges)
        + &format!(
            "composite_loops:\n  - {{ id: ring, components: [a, b, c, d], \
             loop_policy: {{ {policy} }} }}\n"
        )
}

const WIDE: &str = "type: thread_pool, max_threads: 4, queue_capacity: 64";

const JACOBI: &str = "mode: jacobi, max_iterations: 6";

/// Runs a graph by one thread, or by so many workers; returns the most members at once, too.
fn run(
    runtime: &Runtime,
    text: &str,
    workers: Option<usize>,
    n_wanted: usize,
) -> (RunRecord, usize) {
    let meeting = Arc::new(Meeting { n_wanted, ..Meeting::default() });
    let of_cells = Arc::clone(&meeting);
    let types: Registry = registry(&Seen::default())
        .register_with(move || Cell { meeting: Arc::clone(&of_cells), ..Cell::default() });
    let (log, lines) = (CommitLog::in_memory(), ComponentLog::new(4_096));
    let options = RunOptions::steps(5).clock(Clock::Virtual).commit_log(&log).component_log(&lines);
    let graph = compile(text, &types);
    let result = match workers {
        None => {
            let time = ManualTime::start();
            let run = graph.start(time.system(), options).expect("it starts");
            time.block_on(run)
        }
        Some(workers) => {
            let options = options.workers(workers).parallel(Parallel::Always);
            let run = graph.start(runtime.system(), options).expect("it starts");
            runtime.block_on(run)
        }
    };
    let most = meeting.in_call.lock().unwrap().1;
    (record(&result, &log, &lines), most)
}

#[test]
fn members_of_a_jacobi_loop_run_at_the_same_time() {
    let runtime = teller::runtime();
    let text = ring(WIDE, JACOBI, "burst: 1");
    let (alone, most) = run(&runtime, &text, None, 1);
    assert_eq!(most, 1, "on one thread");
    assert!(!alone.log.is_empty());
    let (parallel, most) = run(&runtime, &text, Some(4), 2);
    assert!((2..=4).contains(&most), "no two members met");
    assert_eq!(parallel, alone);
}

#[test]
fn only_members_on_a_pool_of_several_threads_run_at_the_same_time() {
    let runtime = teller::runtime();
    for (lane, policy) in [
        ("type: thread_pool, max_threads: 1, queue_capacity: 64", JACOBI),
        ("type: event_loop", JACOBI),
        (WIDE, "mode: gauss_seidel, max_iterations: 6"),
    ] {
        let text = ring(lane, policy, "burst: 1");
        let (_, most) = run(&runtime, &text, Some(4), 1);
        assert_eq!(most, 1, "{lane}, {policy}");
    }
}

#[test]
fn jacobi_members_leave_the_same_log_on_any_number_of_workers() {
    let runtime = teller::runtime();
    // One invocation for each message: those of several are called one after the other. The last
    // has a failure that does not end the run.
    for of_b in ["burst: 3", "burst: 0", "fails_at: 7"] {
        for policy in [JACOBI, "mode: jacobi, max_iterations: 6, partial_success: discard_outputs"]
        {
            let text = ring(WIDE, policy, of_b);
            let (alone, _) = run(&runtime, &text, None, 1);
            for workers in [1, 2, 4] {
                let (parallel, _) = run(&runtime, &text, Some(workers), 1);
                assert_eq!(parallel, alone, "{of_b}, {policy}, {workers} workers");
            }
        }
    }
}

#[test]
fn a_member_that_ends_the_run_leaves_the_same_report_on_any_number_of_workers() {
    let runtime = teller::runtime();
    // The first call of `b` is its only one in the iteration; the fourth is one of several. Of the
    // first iteration only the calls of the source and of `a` count, although `c` and `d` ran, too.
    for (fails_at, n_counted) in [(1, Some(2)), (4, None)] {
        let text = ring(WIDE, JACOBI, &format!("fails_at: {fails_at}"))
            .replace("on_error: continue", "on_error: fail_fast");
        let (alone, _) = run(&runtime, &text, None, 1);
        assert!(alone.facts.contains("told to fail"), "{}", alone.facts);
        assert!(n_counted.is_none_or(|n| n == alone.executions), "{}", alone.executions);
        for workers in [1, 2, 4] {
            assert_eq!(run(&runtime, &text, Some(workers), 1).0, alone, "{workers} workers");
        }
    }
}
