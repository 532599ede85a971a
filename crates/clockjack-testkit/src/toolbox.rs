//! The toolbox of a system whose clock is advanced by hand.

use core::panic::AssertUnwindSafe;
use std::{panic::catch_unwind, sync::Arc};

use clockjack_actor::Toolbox;
use clockjack_exec::PanicPayload;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// The resolution of virtual time: the default of hosts with threads.
pub(crate) const RESOLUTION: Resolution = Resolution::MILLI;

/// See the [module](self).
pub(crate) struct ManualToolbox {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    seed: u64,
}

impl ManualToolbox {
    pub(crate) fn new(clock: Arc<ManualClock>, seed: u64) -> Self {
        Self { clock, driver: ManualDriver::new(RESOLUTION), seed }
    }
}

impl Toolbox for ManualToolbox {
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

    fn catch_unwind(&self, call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
    }
}
