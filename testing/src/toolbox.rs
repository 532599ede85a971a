//! A host for the executor with a manual clock.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use clockjack_exec::{PanicPayload, Toolbox};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// What happens to a panic in a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panics {
    /// The host catches it and reports it to the executor, as a host with threads does.
    AreCaught,
    /// It unwinds through the executor, as on a host that cannot catch it.
    GoThrough,
}

/// What happens when the executor parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    /// The park returns immediately, and no time passes.
    IsIgnored,
    /// The park returns immediately, and the clock advances to the end of the park.
    MovesTime,
}

/// A toolbox with virtual time, for one thread.
#[derive(Debug)]
pub struct ByHand {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    /// The seed of every random choice of the executor.
    pub seed: u64,
    /// What happens to a panic.
    pub panics: Panics,
    /// What happens to a park.
    pub parking: Parking,
}

impl ByHand {
    /// At tick zero, with seed zero; panics are caught, and parking is ignored. The test advances
    /// the returned clock.
    #[must_use]
    pub fn new(resolution: Resolution) -> (Self, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(resolution));
        let by_hand = Self {
            clock: Arc::clone(&clock),
            driver: ManualDriver::new(resolution),
            seed: 0,
            panics: Panics::AreCaught,
            parking: Parking::IsIgnored,
        };
        (by_hand, clock)
    }
}

impl Toolbox for ByHand {
    fn clock(&self) -> &dyn MonotonicClock {
        &*self.clock
    }

    fn driver(&self) -> &dyn TickDriver {
        &self.driver
    }

    fn park(&self, until: Option<Tick>) {
        match self.parking {
            Parking::IsIgnored => {}
            Parking::MovesTime => {
                self.clock.advance_to(until.expect("a park without a deadline would never return"));
            }
        }
    }

    fn unpark(&self) {}

    fn seed(&self) -> u64 {
        self.seed
    }

    fn catch_unwind(&self, turn: &mut dyn FnMut()) -> Result<(), PanicPayload> {
        match self.panics {
            Panics::AreCaught => catch_unwind(AssertUnwindSafe(turn)).map_err(PanicPayload::new),
            Panics::GoThrough => {
                turn();
                Ok(())
            }
        }
    }
}
