//! Clockjack's scheduler.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

mod batch;
mod close;
mod config;
mod delay;
mod diagnostics;
pub mod drift;
pub mod dump;
mod error;
mod handle;
mod host;
mod job;
pub mod log;
mod manual;
mod metrics;
mod policy;
mod quota;
mod scheduler;
mod shard;
mod slots;
pub mod stream;
mod table;
mod task;
mod warning;
mod word;

pub use batch::{BatchMode, ExecutionBatch};
#[doc(hidden)]
pub use close::CloseTasks;
pub use close::{CloseReport, CloseTask, TaskRunHandle, TaskRunPriority, TaskRunReport};
pub use config::SchedulerConfig;
pub use delay::{DelayError, DelayFuture, DelayProvider};
pub use diagnostics::Diagnostics;
pub use dump::{DumpFormat, JobDump, SchedulerDump, ShardDump};
pub use error::{HandlerError, ScheduleError, ScheduleErrorKind};
pub use handle::{CancelOnDrop, Cancellable};
pub use host::{DriverMetadata, ModeError, RunnerMode, SchedulerHost, Work};
pub use job::{DELAY_TICKS_MAX, JobId, JobNumber, JobSpec, Repeat};
pub use log::{LogKind, LogRecord, ReplayTrace, SchedulerLog};
pub use manual::{Guard, ManualRunner};
pub use metrics::SchedulerMetrics;
pub use policy::{Affinity, CatchUp, Class, DispatcherId, Policy, PolicyRegistry};
pub use quota::{PressureChange, PressureLink};
#[doc(hidden)]
pub use quota::{Purse, Quota};
pub use scheduler::{Scheduler, Turn};
pub use stream::{DiagnosticEvent, EventKinds, Hub, Subscription, TooManySubscriptions};
pub use table::{Delivery, Fire, JobTable};
#[doc(hidden)]
pub use task::Task;
pub use task::{FireContext, Outcome, SchedulerTask};
pub use warning::{PressureReason, Warning};
pub use word::JobState;
