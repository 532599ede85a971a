//! Clockjack's scheduler.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

mod batch;
mod config;
pub mod drift;
pub mod dump;
mod error;
mod job;
pub mod log;
mod policy;
pub mod stream;
mod warning;

pub use batch::{BatchMode, ExecutionBatch};
pub use config::SchedulerConfig;
pub use error::{HandlerError, ScheduleError, ScheduleErrorKind};
pub use job::{DELAY_TICKS_MAX, JobId, JobNumber, JobSpec, Repeat};
pub use policy::{Affinity, CatchUp, Class, DispatcherId, Policy, PolicyRegistry};
pub use warning::{PressureReason, Warning};
