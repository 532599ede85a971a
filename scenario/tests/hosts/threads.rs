//! On a pool of workers.

use std::sync::mpsc;

use clockjack_actor::{ActorSystem, SystemBuilder, TerminationReport};
use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_scenario::{Tape, builder, order, start};

use crate::{PATIENCE, check, check_order, take_time};

/// Runs a program that shuts its system down.
fn run_on<R>(
    workers: usize,
    builder: SystemBuilder,
    start: impl FnOnce(&ActorSystem) -> R,
) -> (R, TerminationReport) {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(builder, config).expect("the pool starts");
    let (told, heard) = mpsc::channel();
    let is_alive = runtime.system().on_terminated(move |report| {
        drop(told.send(report.clone()));
    });
    assert!(is_alive, "it has not even begun");
    let started = start(runtime.system());
    let report = heard.recv_timeout(PATIENCE).expect("the program shuts the system down");
    drop(runtime);
    (started, report)
}

fn run(workers: usize) {
    let tape = Tape::new();
    let begin = |system: &ActorSystem| start(system, &tape).expect("there is room");
    let ((), report) = run_on(workers, builder(&tape), begin);
    check(&tape, &report);
}

fn run_in_order(workers: usize) {
    let begin = |system: &ActorSystem| order::start(system, take_time).expect("there is room");
    let (steps, report) = run_on(workers, ActorSystem::builder("order"), begin);
    check_order(&steps, &report);
}

#[test]
fn a_timer_on_one_worker_overtakes_no_message() {
    run_in_order(1);
}

#[test]
fn a_timer_on_four_workers_overtakes_no_message() {
    run_in_order(4);
}

#[test]
fn one_worker_leaves_the_golden_trace() {
    run(1);
}

#[test]
fn four_workers_leave_the_golden_trace() {
    run(4);
}
