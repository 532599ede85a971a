//! Nodes on a real server: `cargo xtask nats` runs these tests.

#[path = "server/differential.rs"]
mod differential;
#[path = "server/errors.rs"]
mod errors;
#[path = "server/faults.rs"]
mod faults;
#[path = "server/gate.rs"]
mod gate;
#[path = "server/nodes.rs"]
mod nodes;
#[path = "server/process.rs"]
mod process;
#[path = "server/rounds.rs"]
mod rounds;
#[path = "server/rules.rs"]
mod rules;
#[path = "server/stress.rs"]
mod stress;

use core::time::Duration;
use std::time::Instant;

/// Longer than anything takes that these tests wait for.
const PATIENCE: Duration = Duration::from_secs(40);

/// Waits until something is there.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "it has not happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
