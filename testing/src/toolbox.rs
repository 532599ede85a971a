//! A host for the executor, whose time passes only by hand.

use alloc::sync::Arc;
use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use clockjack_exec::{PanicPayload, Toolbox};
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

/// What becomes of a panic in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Panics {
    /// The executor is told of it, as by a host with threads.
    AreCaught,
    /// It ends the test, as it would a program whose host cannot catch it.
    GoThrough,
}

/// What becomes of an executor that parks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parking {
    /// It comes back at once, and no time has passed.
    IsIgnored,
    /// It comes back at once, and it is as late as it wanted to sleep.
    MovesTime,
}

/// A toolbox in virtual time, for one thread.
#[derive(Debug)]
pub struct ByHand {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    /// The seed of every choice that the executor has.
    pub seed: u64,
    /// What becomes of a panic.
    pub panics: Panics,
    /// What becomes of a park.
    pub parking: Parking,
}

impl ByHand {
    /// At tick zero, with seed zero; panics are caught, and parking is ignored. The clock is the
    /// hand.
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
                self.clock.advance_to(until.expect("nobody would end this sleep"));
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
