//! The scenario on every host that has a clock and runs here: its logical trace is the golden one.
//!
//! Time is real, and how late a host is changes nothing; only one that hangs is given up on.
#![cfg(not(loom))]

#[path = "hosts/embassy.rs"]
mod embassy;
#[path = "hosts/threads.rs"]
mod threads;
#[path = "hosts/tokio.rs"]
mod tokio;

use core::time::Duration;

use clockjack_actor::TerminationReport;
use clockjack_scenario::Tape;

/// For how long a host may hang before it counts as hung: the scenario has thirty milliseconds.
const PATIENCE: Duration = Duration::from_secs(120);

const GOLDEN: &str = include_str!("../golden.txt");

#[track_caller]
fn check(tape: &Tape, report: &TerminationReport) {
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(tape.by_actor(), GOLDEN);
}
