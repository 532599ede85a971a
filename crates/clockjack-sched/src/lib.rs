//! Clockjack's scheduler: jobs that run once, at a fixed rate or with a fixed delay, never early.
//!
//! ```
//! use clockjack_sched::{DispatcherId, ManualRunner, SchedulerConfig};
//! use core::time::Duration;
//! use std::sync::mpsc;
//!
//! // The host provides the time; here the caller advances it. See `clockjack-rt` for threads.
//! let manual = ManualRunner::new(SchedulerConfig::DEFAULT)?;
//! let (scheduler, any) = (manual.scheduler(), DispatcherId::DEFAULT);
//! let (sender, receiver) = mpsc::channel();
//! let (ms, late) = (Duration::from_millis, sender.clone());
//!
//! scheduler.schedule_once_fn(ms(300), any, move |_| late.send("once"))?;
//! let beat = move |_: &_| sender.send("beat");
//! let beat = scheduler.schedule_at_fixed_rate_fn(ms(0), ms(200), any, beat)?;
//!
//! manual.advance(ms(400));
//! assert!(beat.cancel());
//! manual.advance(ms(1_000));
//! assert_eq!(receiver.iter().collect::<Vec<_>>(), ["beat", "beat", "once", "beat"]);
//!
//! let report = scheduler.shutdown();
//! assert_eq!(report.accepted, report.executed + report.cancelled);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Guarantees
//!
//! * On a host that keeps up, a run begins within a tick of its deadline, and **never before** it.
//!   A late run says by how much it is late.
//! * Jobs of one shard that are due in one tick run in the order in which they were scheduled.
//! * [`Cancellable::cancel`] returns true at most once per job, and then no run of it begins, even
//!   if it was due already. One compare-exchange decides between a run and a cancel.
//! * A fixed rate keeps the grid of its first run: errors do not accumulate. Runs of one job never
//!   overlap. Runs that could not start in time are delivered one by one, or merged into one
//!   ([`CatchUp`]).
//! * A fixed delay counts from the **end** of a run. (In Pekko it counts from the end for closures
//!   and from the send for messages. Here it counts for messages too from the end of the handler
//!   that receives them.)
//! * A message that was sent can be cancelled until its receiver takes it out of the mailbox, and a
//!   periodic job has at most one message out.
//! * A refused request leaves no trace, and returns the payload.
//! * An error or a panic of a handler completes its job, is reported once, and affects nothing
//!   else.
//! * Handlers, drops and wakers of users are never called under a lock: a handler may schedule,
//!   cancel itself, shut the scheduler down, and take as long as it likes.
//! * The close takes effect at one instant. A job that was accepted before it has run or is
//!   cancelled, and [`CloseReport`] counts it exactly.
//!
//! # Parts
//!
//! | part | purpose |
//! |---|---|
//! | [`Scheduler`] | shards that threads share, quota, policies, close tasks |
//! | [`SchedulerHost`] | the platform: gives the time, polls shards, catches panics |
//! | [`ManualRunner`] | the host for tests and for virtual time |
//! | [`DelayProvider`] | futures that complete after a delay |
//! | [`Diagnostics`] | the stream of events, the log with its replay trace, dumps, hooks |
//! | [`properties`] | properties of every run, for your own fuzzers |
//!
//! # Which driver
//!
//! | you have | clock | use |
//! |---|---|---|
//! | a test, a simulation | deterministic | [`ManualRunner`] |
//! | a pool of workers | system clock | `WorkerPool::scheduler` of `clockjack-rt` |
//! | a program without a pool | system clock | `ThreadScheduler` of `clockjack-rt` |
//! | a tokio application | system clock | `TokioScheduler` of `clockjack-rt`, feature `tokio` |
//! | a timer interrupt and a loop | hardware | [`RunnerLoop`] |
//! | none of these | yours | your own [`SchedulerHost`], which calls [`Scheduler::poll_shard`] |
//!
//! The [mode](RunnerMode) follows from the kind of the clock, and is part of the
//! [metadata](Scheduler::metadata).
//!
//! # Sizes and limits
//!
//! A job takes 128 bytes on 64-bit targets plus its timer in the wheel; closures of up to three
//! words and their handles need no further memory. Delays are at most 2^48 ticks and periods
//! `i32::MAX` ticks; those beyond 2^20 ticks cost O(log n). [`SchedulerConfig::quota`] limits the
//! jobs, their capacity limits log and stream; there are at most 4096 close tasks and 1024 shards.
//! Jobs are ordered within a shard, not between two.
//!
//! # What is not here
//!
//! * Messages to actors: `clockjack-actor` implements them, with the same jobs.
//! * Threads and a clock: see `clockjack-rt`.
//! * Calendars and time zones. Time is a monotonic count; the wall clock is never read.
//!
//! # Features
//!
//! None. An allocator is always needed; with [`SchedulerConfig::is_fixed`] only at the start.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod diagnostics;
mod error;
mod jobs;
#[doc(hidden)]
pub mod model;
pub mod properties;
mod scheduler;

pub use self::{
    diagnostics::{
        Diagnostics,
        dump::{self, DumpFormat, JobDump, SchedulerDump, ShardDump},
        log::{self, LogKind, LogRecord, ReplayTrace},
        metrics::SchedulerMetrics,
        stream::{self, DiagnosticEvent, EventKinds, Subscription, TooManySubscriptions},
        warning::{PressureReason, Warning},
    },
    error::{HandlerError, ScheduleError, ScheduleErrorKind},
    jobs::{
        batch::{BatchMode, ExecutionBatch},
        delay::{DelayError, DelayFuture, DelayProvider},
        policy::{Affinity, CatchUp, DispatcherId, Policy, PolicyRegistry, TimerPriority},
        spec::{DELAY_TICKS_MAX, JobNumber, JobSpec, PERIOD_TICKS_MAX, Repeat},
        state::JobState,
        task::{FireContext, Outcome, SchedulerTask},
    },
    scheduler::{
        DispatchedRun, PollResult, Scheduler,
        close_tasks::{CloseReport, TaskRunHandle, TaskRunPriority, TaskRunReport},
        config::SchedulerConfig,
        handle::{CancelOnDrop, Cancellable},
        hardware::{HardwareHost, LoopPollResult, RunnerLoop},
        host::{DriverMetadata, EventSink, RunnerMode, SchedulerHost},
        manual::{CatchUnwind, ManualRunner},
        mode_error::ModeError,
    },
};
/// Parts that `clockjack-actor` builds its deliveries on, and that tests and small programs without
/// a scheduler use. Not for users: they may change in any release.
#[doc(hidden)]
pub use self::{
    diagnostics::{drift, log::SchedulerLog, stream::Bus},
    jobs::{
        delivery::{AcceptedDelivery, DeliverySink, DeliveryTask, PendingDelivery},
        quota::{BackpressureLink, PermitCache, PressureChange, Quota},
        spec::JobId,
        table::{Delivery, Fire, JobTable},
        task::Task,
    },
    scheduler::{
        close_tasks::{CloseTask, CloseTasks},
        driver_ticks::DriverTicks,
    },
};
pub use clockjack_sync::panic::PanicPayload;
