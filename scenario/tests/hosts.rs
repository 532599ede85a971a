//! The scenario on every host with a clock that runs here: its logical trace equals the golden one.
//!
//! Time is real, and the lateness of a host does not change the trace; only a hanging host fails by
//! a timeout.
#![cfg(not(loom))]

#[path = "hosts/embassy.rs"]
mod embassy;
#[path = "hosts/threads.rs"]
mod threads;
#[path = "hosts/tokio.rs"]
mod tokio;

use core::time::Duration;

use clockjack_actor::TerminationReport;
use clockjack_scenario::{
    Tape,
    order::{self, Steps},
};

/// The time limit of a host: the scenario itself takes thirty milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

const GOLDEN: &str = include_str!("../golden.txt");

/// Occupies the thread, as a slow handler does.
fn take_time() {
    std::thread::sleep(order::SLOW);
}

#[track_caller]
fn check_order(steps: &Steps, report: &TerminationReport) {
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(steps.get(), order::expected());
}

#[track_caller]
fn check(tape: &Tape, report: &TerminationReport) {
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(tape.by_actor(), GOLDEN);
}
