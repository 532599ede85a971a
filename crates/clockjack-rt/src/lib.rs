//! The Clockjack host for operating systems: worker threads, clock, parking, blocking work.
//!
//! Only this crate reads the system clock, sleeps and starts threads; the crates below it do not.
//!
//! ```
//! use clockjack_rt::{
//!     PoolConfig, WorkerPool,
//!     exec::{
//!         Command, CommandId, Commands, Event, Events, Failure, Payload, Process, StepOutput, Tag,
//!     },
//! };
//! use std::time::Duration;
//!
//! struct Fetch(u32);
//! impl Command for Fetch {
//!     const ID: CommandId = CommandId(300);
//!     type Reply = String;
//! }
//!
//! #[derive(Default)]
//! struct Sum {
//!     len: usize,
//!     open: u32,
//! }
//!
//! impl Process for Sum {
//!     type Message = (u32, u32);
//!
//!     fn step(
//!         &mut self,
//!         events: &mut Events<'_, (u32, u32)>,
//!         out: &mut StepOutput,
//!     ) -> Result<(), Failure> {
//!         for event in events {
//!             match event {
//!                 Event::Message((a, b)) => {
//!                     out.yield_command(Tag(1), Fetch(a));
//!                     out.yield_command(Tag(2), Fetch(b));
//!                     self.open += 2;
//!                 }
//!                 Event::YieldComplete { result, .. } => {
//!                     self.len += result?.downcast::<String>().map_or(0, |text| text.len());
//!                     self.open -= 1;
//!                 }
//!                 _ => {
//!                     out.done(Payload::new(self.len)); // asked to stop
//!                     return Ok(());
//!                 }
//!             }
//!         }
//!         if self.open == 0 { out.idle() } else { out.wait() }
//!         Ok(())
//!     }
//! }
//!
//! let commands =
//!     Commands::new().handle(|Fetch(key), done| done.complete(Ok(format!("value {key}"))));
//! let pool = WorkerPool::new(PoolConfig::DEFAULT, commands)?;
//! pool.submit(Sum::default())?.tell((1, 2))?;
//! assert_eq!(pool.block_on(pool.spawn_future(async { 6 * 7 }))?, 42);
//! pool.resize(8)?;
//! for straggler in pool.shutdown(Duration::from_secs(10)).stragglers {
//!     eprintln!("{straggler}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The directory `examples/` has more: `process`, `pool_timers`, `supervise`, `scheduler`.
//!
//! # The model
//!
//! [`exec`], which this crate re-exports, explains processes, steps, events, commands, joins,
//! links and monitors. This crate adds the threads.
//!
//! * A **worker** is a thread that polls ready tasks: first the task that the previous step woke,
//!   then its own run queue, and at intervals the queue of tasks from other threads. A worker
//!   whose queue is empty steals half of another worker's queue (work stealing). If there is
//!   nothing to steal, it sleeps until its next timer is due or until another thread wakes it.
//! * Each worker has a **shard** of timers. A timer belongs to the shard of the worker that armed
//!   it. A thread accesses a shard through a try-lock and never waits for that lock; therefore
//!   another worker can fire the timers of a worker that is busy or has left.
//! * The **watchdog** is one additional thread. It wakes when a shard is overdue by more than
//!   [`PoolConfig::timer_tolerance`], when a worker has left timers behind, and to report a step
//!   that takes longer than [`PoolConfig::stuck_after`]. It sleeps while all workers sleep and no
//!   timer is armed.
//! * **Blocking work** runs on separate threads: see [`WorkerPool::spawn_blocking`], and the
//!   command [`Blocking`] for processes.
//!
//! [`spawn_future`], [`spawn_blocking`], [`sleep`], [`timeout`] and [`interval`] use the current
//! pool: the pool whose worker calls them, or the pool in whose
//! [`block_on`](WorkerPool::block_on) they are called.
//!
//! [`WorkerPool::task_dump`] lists all tasks: what each does, where it was spawned and where it
//! waits. [`WorkerPool::worker_stats`] has the figures of single workers.
//!
//! # Map
//!
//! | item | description |
//! |---|---|
//! | [`WorkerPool`], [`PoolConfig`] | the pool and its configuration |
//! | [`Runtime`], [`RuntimeConfig`] | a pool with an actor system, and its configuration |
//! | [`RunConfig`], [`signals`] | how a runtime runs until a signal stops it |
//! | [`FailureLog`] | failures of actors on standard error |
//! | [`ShutdownReport`], [`Straggler`] | what happened to the processes during the shutdown |
//! | [`RuntimeReport`], [`ExecutorReport`] | what happened to all parts of a runtime |
//! | [`spawn_future`], [`spawn_blocking`], [`JoinSet`] | tasks of the current pool |
//! | [`sleep`], [`interval`], [`timeout`] | timers of the current pool |
//! | [`yield_now`], [`consume_budget`] | for futures that do not wait |
//! | [`exec`] | processes, commands, handles, timers: `clockjack-exec` |
//! | [`sched`] | jobs: once, at a fixed rate, with a fixed delay: `clockjack-sched` |
//! | [`scheduler`] | drivers for those jobs: a pool, a [`ThreadScheduler`], a `TokioScheduler` |
//! | [`OsClock`], [`OsInstant`] | ticks of the monotonic system clock |
//! | [`blocking`] | [`BlockingPool`]: threads for closures that block |
//! | `TracingBridge` | forwards a system's events to `tracing`; feature `tracing` |
//! | `TokioExecutor`, `TokioSystem` | processes or actors inside tokio; feature `tokio` |
//!
//! # Waiting and cancellation
//!
//! The futures are those of [`exec`], which documents what happens when they are dropped: a
//! dropped [`JoinHandle`](exec::JoinHandle) detaches its task, a dropped [`Sleep`](exec::Sleep) is
//! cancelled, a dropped [`tick`](exec::Interval::tick) loses nothing. [`WorkerPool::block_on`] is
//! not a future and cannot be cancelled: the calling thread blocks. On a worker it panics, because
//! the worker would wait for itself. A [`sleep`] that was created outside a pool belongs to the
//! pool in which it is polled first, also in `block_on`; its time starts with that poll.
//!
//! # Panics
//!
//! [`exec`] documents what a panic in a process, a future, a handler or a destructor stops. If a
//! closure of the blocking pool panics, the panic is counted; if the closure has a
//! [`BlockingHandle`], the handle yields the panic; if the closure was a command, the command
//! completes with a failure. A panic in [`PoolConfig::on_stuck`] is counted and the
//! watchdog continues. A panic in a future that `block_on` runs propagates to the caller. No
//! thread dies in any of these cases. With `panic = "abort"`, the first panic aborts the program;
//! a second panic during unwinding always does.
//!
//! # Shutdown
//!
//! [`WorkerPool::shutdown`] first shuts the scheduler down, if there is one: jobs that are due
//! run, the others are cancelled. Then the pool accepts nothing new, asks every process to stop,
//! and waits while the workers keep running; meanwhile a process may clean up with commands and
//! timers. A future cannot be asked to stop: it is dropped at its await point. At the deadline the
//! pool stops the remaining tasks by force and reports each. A step that never returns is
//! abandoned together with its thread. Dropping a pool does the same, with the deadline
//! [`PoolConfig::drop_timeout`].
//!
//! # Limits
//!
//! | what | bound |
//! |---|---|
//! | workers | [`PoolConfig::workers_max`]: 64, or one per CPU, by default; at most 1024 |
//! | processes, timers, messages | [`exec::Limits`] in [`PoolConfig::limits`] |
//! | blocking threads and queued closures | [`BlockingConfig`]: 64 and 4096 by default |
//! | timer precision | one tick, [`PoolConfig::resolution`]: 1 ms by default; never early |
//!
//! # What is not supported
//!
//! * Preempting a step, priorities, and moving a process to a chosen worker.
//! * Reproducible runs: a seed fixes the choices of the pool, but threads are not deterministic.
//!   Use [`LocalExecutor`](exec::LocalExecutor) with your own clock.
//!
//! # Features
//!
//! * `tokio`: tokio's sockets and timers in processes, and executors inside tokio; see below. Off
//!   by default; without it, a pool with [`PoolConfig::tokio`] fails to start.
//! * `tracing`: `TracingBridge`, which forwards the events of a system to `tracing`;
//!   `TracingSpans`, which gives each handled message a span; and a span per task that is spawned
//!   on a pool, with the target `clockjack::task` and the level DEBUG, entered for each poll. Off
//!   by default.
//!
//! # Platforms
//!
//! On Linux a thread sleeps on a futex with an absolute deadline, and its CPU affinity and timer
//! slack can be set. On other systems a thread sleeps on a mutex and a condition variable of std,
//! with std's precision, and setting the affinity fails with "not supported".
//!
//! # tokio
//!
//! The feature `tokio` is for programs that use both runtimes. It works in both directions.
//!
//! *tokio inside Clockjack*: a pool with [`PoolConfig::tokio`] starts a tokio runtime with that
//! number of threads. Every worker enters that runtime, and so does every thread for the duration
//! of a `block_on`. Therefore sockets, sleeps and `tokio::spawn` work in processes and futures.
//!
//! | code | runs on |
//! |---|---|
//! | handlers of actors, their futures, [`spawn_future`] | the workers of the pool |
//! | readiness of sockets, tokio's timers | the tokio runtime, which wakes the workers |
//! | `tokio::spawn`, also by a library (hyper, axum, tonic) | the threads of the tokio runtime |
//! | `tokio::task::spawn_blocking` | further threads of the tokio runtime |
//! | [`spawn_blocking`] | the blocking threads of the pool |
//!
//! So one thread is enough for actors with sockets; a server of a library that spawns a task per
//! connection needs more. Tokio tasks are dropped with the pool. Another dispatcher of a runtime
//! has a tokio runtime of its own, with one thread; a pinned thread uses that of the pool. The pool
//! starts its own tokio threads even if it is created inside another tokio runtime, so its
//! processes may outlive that runtime. The application selects tokio's features, for example `net`.
//!
//! *Clockjack inside tokio*: `TokioToolbox` creates an executor or an actor system that a task of
//! an existing tokio application drives; it never blocks the thread. A pool can be used there,
//! too, and any task can await its joins. Only the shutdown and the drop of a pool block; call
//! them in `tokio::task::spawn_blocking` if that matters.

pub mod blocking;
mod dispatchers;
mod failure_log;
#[cfg(not(feature = "tracing"))]
#[path = "failure_log/disabled.rs"]
mod failure_trace;
#[cfg(feature = "tracing")]
#[path = "failure_log/traced.rs"]
mod failure_trace;
mod panic;
mod platform;
mod pool;
mod runtime;
pub mod scheduler;
pub mod signals;
#[cfg(not(feature = "tracing"))]
#[path = "pool/task_span/disabled.rs"]
mod task_span;
#[cfg(feature = "tracing")]
#[path = "pool/task_span/enabled.rs"]
mod task_span;
mod tokio_integration;
#[cfg(all(feature = "tokio", not(loom)))]
#[path = "scheduler/tokio.rs"]
mod tokio_scheduler;
#[cfg(feature = "tracing")]
mod tracing_bridge;
#[cfg(feature = "tracing")]
mod tracing_spans;

pub use blocking::{
    BlockingConfig, BlockingHandle, BlockingPool, BlockingReport, BlockingStats, Rejected,
    command::Blocking,
};
pub use clockjack_actor as actor;
pub use clockjack_exec as exec;
pub use clockjack_exec::{consume_budget, yield_now};
pub use clockjack_sched as sched;
pub use failure_log::FailureLog;
pub use panic::catch_panic;
#[cfg(all(target_os = "linux", not(loom)))]
#[doc(hidden)]
pub use parker_futex::Parker;
#[cfg(not(all(target_os = "linux", not(loom))))]
#[doc(hidden)]
pub use parker_portable::Parker;
pub use platform::clock::{OsClock, OsInstant};
#[cfg(all(target_os = "linux", not(loom)))]
#[doc(hidden)]
pub use platform::parker_futex;
#[doc(hidden)]
pub use platform::parker_portable;
#[doc(hidden)]
pub use platform::{
    clock,
    parker::{self, Parked},
    thread,
};
pub use pool::{
    PoolConfig, ShutdownReport, Straggler, WorkerPool,
    current::{interval, sleep, spawn_blocking, spawn_future, timeout},
    join_set::JoinSet,
};
pub use runtime::{
    ExecutorReport, FlightRecording, RunConfig, Runtime, RuntimeConfig, RuntimeMetrics,
    RuntimeReport,
};
pub use scheduler::{BLOCKING_DISPATCHER, PoolSchedulerConfig, ThreadScheduler, TimerTopology};
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_integration::{
    failure_bridge::TokioFailureEventBridge,
    toolbox::{TokioExecutor, TokioSystem, TokioToolbox},
};
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_scheduler::TokioScheduler;
#[cfg(feature = "tracing")]
pub use tracing_bridge::TracingBridge;
#[cfg(feature = "tracing")]
pub use tracing_spans::TracingSpans;
