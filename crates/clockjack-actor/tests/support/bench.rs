//! A host for tests, with a clock that only the test advances.

extern crate alloc;

use alloc::sync::Arc;
use std::sync::Mutex;

use clockjack_actor::{RootContext, SystemBuilder};
use clockjack_testing::toolbox::ByHand;
use clockjack_time::{ManualClock, Resolution};

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
    let (mut host, clock) = ByHand::new(resolution);
    host.seed = seed;
    (RootContext::new(host, builder).expect("it fits"), clock)
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
