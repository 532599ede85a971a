//! A host for tests, in which time passes only by hand.

extern crate alloc;

use alloc::sync::Arc;
use core::{any::Any, panic::AssertUnwindSafe};
use std::{panic::catch_unwind, sync::Mutex};

use clockjack_actor::{RootContext, SystemBuilder, Toolbox};
use clockjack_exec::Caught;
use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};

pub(crate) struct Bench {
    clock: Arc<ManualClock>,
    driver: ManualDriver,
    seed: u64,
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

/// A system in virtual time, and its clock.
pub(crate) fn start(builder: SystemBuilder) -> (RootContext, Arc<ManualClock>) {
    start_seeded(builder, 0)
}

pub(crate) fn start_seeded(builder: SystemBuilder, seed: u64) -> (RootContext, Arc<ManualClock>) {
    start_ticking(builder, seed, Resolution::MILLI)
}

pub(crate) fn start_ticking(
    builder: SystemBuilder,
    seed: u64,
    resolution: Resolution,
) -> (RootContext, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(resolution));
    let driver = ManualDriver::new(resolution);
    let bench = Bench { clock: Arc::clone(&clock), driver, seed };
    (RootContext::new(bench, builder).expect("it fits"), clock)
}

/// What has happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }
}
