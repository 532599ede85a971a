//! On a pool of workers.

use std::sync::mpsc;

use clockjack_rt::{Runtime, RuntimeConfig};
use clockjack_scenario::{Tape, builder, start};

use crate::{PATIENCE, check};

fn run(workers: usize) {
    let tape = Tape::new();
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(builder(&tape), config).expect("the pool starts");
    let (told, heard) = mpsc::channel();
    let is_alive = runtime.system().on_terminated(move |report| {
        drop(told.send(report.clone()));
    });
    assert!(is_alive, "it has not even begun");
    start(runtime.system(), &tape).expect("there is room");
    let report = heard.recv_timeout(PATIENCE).expect("the scenario shuts the system down");
    drop(runtime);
    check(&tape, &report);
}

#[test]
fn one_worker_leaves_the_golden_trace() {
    run(1);
}

#[test]
fn four_workers_leave_the_golden_trace() {
    run(4);
}
