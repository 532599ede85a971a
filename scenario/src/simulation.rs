//! The scenario in virtual time, on any processor.
//!
//! Time passes only where nothing else can happen, and then at once; a seed decides who of those
//! that are ready goes first. So one seed gives one order, and where two processors differ, one of
//! them is wrong. Needs an allocator and nothing else.

use clockjack_actor::{Failure, RootContext, SystemBuilder, TerminationReport, Toolbox};
use clockjack_sync::Arc;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::{Tape, start};

/// How often time may be moved on: the scenario has some twenty different deadlines.
const JUMPS_MAX: usize = 1_000;

/// Runs the scenario in a system to its end.
///
/// # Errors
///
/// If the system does not start, has no room for the plant, or does not come to its end.
pub fn simulate(
    seed: u64,
    tape: &Tape,
    builder: SystemBuilder,
) -> Result<TerminationReport, Failure> {
    let clock = Arc::new(ManualClock::new(Resolution::MILLI));
    let driver = ManualDriver::new(Resolution::MILLI);
    let toolbox = Virtual { clock: clock.clone(), driver, seed };
    let mut root = RootContext::new(toolbox, builder)?;
    start(root.system(), tape)?;
    let end = root.system().when_terminated();
    for _ in 0..JUMPS_MAX {
        root.run_until_idle();
        if let Some(report) = end.report() {
            return Ok(report);
        }
        let next = root.next_wake().ok_or_else(|| Failure::msg("nothing is due ever"))?;
        clock.advance_to(next);
    }
    Err(Failure::msg("it does not come to its end"))
}

/// A host whose time passes by hand.
struct Virtual {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    seed: u64,
}

impl Toolbox for Virtual {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }

    fn park(&self, _until: Option<Tick>) {}

    fn unpark(&self) {}

    fn seed(&self) -> u64 {
        self.seed
    }
}
