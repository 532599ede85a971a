//! The host of a system whose time passes only by hand.

use alloc::sync::Arc;
use core::{any::Any, panic::AssertUnwindSafe};
use std::panic::catch_unwind;

use clockjack_actor::Toolbox;
use clockjack_exec::Caught;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// How fine virtual time is: as fine as that of a host with threads, if nothing else is set there.
pub(crate) const RESOLUTION: Resolution = Resolution::MILLI;

/// See the [module](self).
pub(crate) struct Bench {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    seed: u64,
}

impl Bench {
    pub(crate) fn new(clock: Arc<ManualClock>, seed: u64) -> Self {
        Self { clock, driver: ManualDriver::new(RESOLUTION), seed }
    }
}

impl Toolbox for Bench {
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

    fn guarded(&self, turn: &mut dyn FnMut()) -> Result<(), Caught> {
        catch_unwind(AssertUnwindSafe(turn))
            .map_err(|payload: Box<dyn Any + Send>| Caught::new(payload))
    }
}
