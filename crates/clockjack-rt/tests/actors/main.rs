//! Actors on threads: what a runtime adds to a system that one thread could run as well.
//!
//! Nothing waits in order to pass; a bound is reached only by a fault.
#![cfg(not(loom))]

mod builder;
mod dispatchers;
#[path = "../support/eventually.rs"]
mod eventually;
#[path = "../support/in_time.rs"]
mod in_time;
mod mapped;
mod panics;
mod portable;
mod shutdown;
mod shutdown_report;

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use clockjack_rt::{
    Runtime, RuntimeConfig,
    actor::{ActorSystem, SystemBuilder},
};
use clockjack_testing::InTime;

const LONG: Duration = Duration::from_secs(60);

fn start_with(builder: SystemBuilder, workers: usize) -> InTime<Runtime> {
    let config = RuntimeConfig { workers: Some(workers), ..RuntimeConfig::DEFAULT };
    let runtime = Runtime::start_with(builder, config).expect("a few threads start");
    InTime::new(runtime, RuntimeConfig::DEFAULT.drop_timeout)
}

fn start(workers: usize) -> InTime<Runtime> {
    start_with(ActorSystem::builder("t"), workers)
}

/// What has happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.into());
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
