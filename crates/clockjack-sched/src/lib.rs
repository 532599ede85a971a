//! Clockjack's scheduler.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

mod batch;
mod close;
mod config;
pub mod drift;
pub mod dump;
mod error;
mod job;
pub mod log;
mod policy;
mod quota;
mod task;

pub mod stream;
mod warning;

pub use batch::{BatchMode, ExecutionBatch};
#[doc(hidden)]
pub use close::CloseTasks;
pub use close::{CloseReport, CloseTask, TaskRunHandle, TaskRunPriority, TaskRunReport};
pub use config::SchedulerConfig;
pub use error::{HandlerError, ScheduleError, ScheduleErrorKind};
pub use job::{DELAY_TICKS_MAX, JobId, JobNumber, JobSpec, Repeat};
pub use policy::{Affinity, CatchUp, Class, DispatcherId, Policy, PolicyRegistry};
pub use quota::{PressureChange, PressureLink};
#[doc(hidden)]
pub use quota::{Purse, Quota};
#[doc(hidden)]
pub use task::Task;
pub use task::{FireContext, Outcome, SchedulerTask};
pub use warning::{PressureReason, Warning};
