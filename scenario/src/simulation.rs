//! The scenario in virtual time, on any processor.
//!
//! Time advances only if nothing is ready, and then jumps to the next deadline; a seed decides the
//! order of the ready actors. So one seed gives one order, and a difference between two processors
//! is an error. Needs only an allocator.

use clockjack_actor::{Failure, RootContext, SystemBuilder, TerminationReport, Toolbox};
use clockjack_sync::Arc;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

use crate::{Tape, start};

/// How often time may advance: the scenario has about twenty different deadlines.
const JUMPS_MAX: usize = 1_000;

/// Runs the scenario in a system until it has shut down.
///
/// # Errors
///
/// If the system does not start, has no room for the plant, or does not shut down.
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
        let next = root
            .next_wake()
            .ok_or_else(|| Failure::msg("the scenario waits, but no timer is armed"))?;
        clock.advance_to(next);
    }
    Err(Failure::msg("the scenario does not finish"))
}

/// A host with virtual time, which the caller advances.
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
