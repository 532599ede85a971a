//! Clockjack's scheduler: jobs that run once, at a fixed rate or with a fixed delay, never early.
//!
//! ```
//! use clockjack_sched::{DispatcherId, ManualRunner, SchedulerConfig};
//! use core::time::Duration;
//! use std::sync::mpsc;
//!
//! // Time is handed in: here by a hand that moves it. `clockjack-rt` has hosts with threads.
//! let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
//! let (scheduler, any) = (manual.scheduler(), DispatcherId::DEFAULT);
//! let (told, heard) = mpsc::channel();
//! let (ms, late) = (Duration::from_millis, told.clone());
//!
//! scheduler.schedule_once_fn(ms(300), any, move |_| late.send("once"))?;
//! let beat = move |_: &_| told.send("beat");
//! let beat = scheduler.schedule_at_fixed_rate_fn(ms(0), ms(200), any, beat)?;
//!
//! manual.advance(ms(400));
//! assert!(beat.cancel());
//! manual.advance(ms(1_000));
//! assert_eq!(heard.iter().collect::<Vec<_>>(), ["beat", "beat", "once", "beat"]);
//!
//! let report = scheduler.shutdown();
//! assert_eq!(report.accepted, report.executed + report.cancelled);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! * A run begins within a tick of its deadline on a host that keeps up, and **never before** it. A
//!   late one says by how much.
//! * Jobs of one shard that are due in one tick run in the order in which they were scheduled.
//! * [`Cancellable::cancel`] gives true at most once for each job, and then no run of it begins,
//!   also if it was due already. One compare-exchange decides between a run and a cancel.
//! * A fixed rate keeps the grid of its first run: nothing adds up. Runs of one job never overlap;
//!   of those that could not start in time each is delivered by itself, or all as one
//!   ([`CatchUp`]).
//! * A fixed delay counts from the **end** of a run. (In Pekko it counts from there for closures
//!   and from the send for messages; here for messages too it counts from the end of the handler
//!   that they were sent to: the drop of their [`PendingDelivery`].)
//! * A message that was sent can be cancelled until its receiver takes it out of the mailbox, and
//!   one of a periodic job is out at the most.
//! * A request that is refused leaves no trace, and gives back what was to be delivered.
//! * An error or a panic of a handler ends its job, is told once, and touches nothing else.
//! * Handlers, drops and wakers of users are never called under a lock: a handler may schedule,
//!   cancel itself, shut the scheduler down, and take as long as it likes.
//! * The close has an instant. What was accepted before it has run or is cancelled, and
//!   [`CloseReport`] counts it exactly.
//!
//! # The parts
//!
//! | part | is |
//! |---|---|
//! | [`JobTable`] | the jobs of one shard over a wheel that you hand in: no clock, no threads |
//! | [`Scheduler`] | shards that threads share, quota, policies, close tasks |
//! | [`SchedulerHost`] | what carries it: who gives the time, takes turns, catches panics |
//! | [`ManualRunner`] | the host of tests and of virtual time |
//! | [`PendingDelivery`] | a run that is sent to a mailbox, and decided when it is taken out |
//! | [`DelayProvider`] | futures that wait |
//! | [`Diagnostics`] | the stream of events, the log with its replay trace, dumps, hooks |
//! | [`properties`] | what must hold of every run, for fuzzers of your own |
//!
//! # Which driver
//!
//! | you have | clock | take |
//! |---|---|---|
//! | a test, a simulation | deterministic | [`ManualRunner`] |
//! | a pool of workers | of the system | `WorkerPool::scheduler` of `clockjack-rt` |
//! | a program without a pool | of the system | `ThreadScheduler` of `clockjack-rt` |
//! | a tokio application | of the system | `TokioScheduler` of `clockjack-rt`, feature `tokio` |
//! | a timer interrupt and a loop | of the hardware | [`RunnerLoop`] |
//! | none of these | yours | a [`SchedulerHost`] of your own, which calls [`Scheduler::poll_shard`] |
//!
//! The [mode](RunnerMode) follows from the kind of the clock and is kept as
//! [metadata](Scheduler::metadata).
//!
//! # Sizes and limits
//!
//! A job is 128 bytes on 64-bit targets and what its timer needs in the wheel; closures of up to
//! three words and their handles need no further memory. Delays and periods are at most `i32::MAX`
//! ticks; those beyond 2^20 ticks cost O(log n). Jobs are bounded by [`SchedulerConfig::quota`],
//! log and stream by their capacity, close tasks by 4096, shards by 1024. Order holds within a
//! shard, not between two.
//!
//! # What is not here
//!
//! * Messages to actors: `clockjack-actor` is to bring them, as [deliveries](PendingDelivery) of the same jobs.
//! * Threads and a clock: `clockjack-rt` has them.
//! * Calendars and time zones. Time is a monotonic count; the wall clock is never asked.
//!
//! # Features
//!
//! None. An allocator is always needed; with [`SchedulerConfig::is_fixed`] only at the start.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

mod batch;
mod close;
mod config;
mod delay;
mod delivery;
mod diagnostics;
pub mod drift;
pub mod dump;
mod error;
mod handle;
mod hardware;
mod host;
mod job;
pub mod log;
mod manual;
mod metrics;
#[doc(hidden)]
pub mod model;
mod policy;
pub mod properties;
mod quota;
mod scheduler;
mod shard;
mod slots;
mod state;
pub mod stream;
mod table;
mod task;
mod warning;
mod watch;

pub use batch::{BatchMode, ExecutionBatch};
#[doc(hidden)]
pub use close::CloseTasks;
pub use close::{CloseReport, CloseTask, TaskRunHandle, TaskRunPriority, TaskRunReport};
pub use config::SchedulerConfig;
pub use delay::{DelayError, DelayFuture, DelayProvider};
pub use delivery::{AcceptedDelivery, DeliverySink, DeliveryTask, PendingDelivery};
pub use diagnostics::Diagnostics;
pub use dump::{DumpFormat, JobDump, SchedulerDump, ShardDump};
pub use error::{HandlerError, ScheduleError, ScheduleErrorKind};
pub use handle::{CancelOnDrop, Cancellable};
pub use hardware::{HardwareHost, LoopError, LoopPollResult, RunnerLoop};
pub use host::{DriverMetadata, ModeError, RunnerMode, SchedulerHost};
pub use job::{DELAY_TICKS_MAX, JobId, JobNumber, JobSpec, Repeat};
pub use log::{LogKind, LogRecord, ReplayTrace, SchedulerLog};
pub use manual::{CatchUnwind, ManualRunner};
pub use metrics::SchedulerMetrics;
pub use policy::{Affinity, CatchUp, Class, DispatcherId, Policy, PolicyRegistry};
pub use quota::{BackpressureLink, PressureChange};
#[doc(hidden)]
pub use quota::{PermitCache, Quota};
pub use scheduler::{DispatchedRun, PollResult, Scheduler};
pub use state::JobState;
pub use stream::{Bus, DiagnosticEvent, EventKinds, Subscription, TooManySubscriptions};
pub use table::{Delivery, Fire, JobTable};
#[doc(hidden)]
pub use task::Task;
pub use task::{FireContext, Outcome, SchedulerTask};
pub use warning::{PressureReason, Warning};
pub use watch::{DriverWatch, Failover, FailoverClock};
