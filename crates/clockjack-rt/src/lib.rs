//! Clockjack on an operating system: workers, clock, parking, blocking work.
//!
//! This is the crate that reads a clock, sleeps and starts threads, so that no crate below has to.
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
//! assert_eq!(pool.block_on(pool.spawn(async { 6 * 7 }))?, 42);
//! pool.resize(8)?;
//! for straggler in pool.shutdown(Duration::from_secs(10)).stragglers {
//!     eprintln!("{straggler}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! More of it stands in `examples/`: `process`, `timers`, `supervise`, `scheduler`.
//!
//! # The model
//!
//! What a process, a step, an event, a command, a join, a link and a monitor are is told by
//! [`exec`], which this crate re-exports. Here are the threads.
//!
//! * A **worker** is a thread that steps what is ready: what the last step woke first, then its own
//!   queue, and from time to time what came from outside. With nothing of its own it takes half of
//!   another's queue; with nothing anywhere it sleeps, until its next timer is due.
//! * Each worker keeps a **shard** of timers. A timer stands in the shard of the worker that armed
//!   it. To touch a shard takes its **lease**, which is never waited for; so the timers of a worker
//!   that is busy, or that has left, are fired by another.
//! * The **metronome** is one thread more. It wakes when a shard is overdue by more than
//!   [`PoolConfig::grace`], when a worker has left timers behind, and to report a step that takes
//!   longer than [`PoolConfig::stuck_after`]. With all workers asleep and nothing armed it sleeps.
//! * **Blocking work** has threads of its own: [`WorkerPool::spawn_blocking`], and the command
//!   [`Blocking`] for processes.
//!
//! [`spawn`], [`sleep`] and [`interval`] belong to the pool on whose worker, or in whose
//! [`block_on`](WorkerPool::block_on), they are called.
//!
//! # Map
//!
//! | part | what it is |
//! |---|---|
//! | [`WorkerPool`], [`PoolConfig`] | the pool, and what it is made of |
//! | [`ShutdownReport`], [`Straggler`] | what became of the processes when it stopped |
//! | [`spawn`], [`sleep`], [`interval`], [`yield_now`] | for futures on a pool |
//! | [`exec`] | processes, commands, handles, timers: `clockjack-exec` |
//! | [`sched`] | jobs: once, at a fixed rate, with a fixed delay: `clockjack-sched` |
//! | [`scheduler`] | who drives those: a pool, a [`ThreadScheduler`], a `TokioScheduler` |
//! | [`clock`] | [`OsClock`]: ticks counted by the monotonic clock of the system |
//! | [`parker`] | [`Parker`]: where one thread sleeps until it is called or a deadline passes |
//! | [`thread`] | named threads, precise sleeping, one CPU for one thread |
//! | [`blocking`] | [`BlockingPool`]: threads for closures that wait |
//! | `TracingBridge` | a system's events for `tracing`, with the feature `tracing` |
//! | `TokioExecutor`, `TokioSystem` | processes, or actors, inside tokio: feature `tokio` |
//!
//! # Waiting, and giving it up
//!
//! The futures are those of [`exec`], whose table says what giving up costs: a [`Join`](exec::Join)
//! detaches, a [`Sleep`](exec::Sleep) is disarmed, a [`tick`](exec::Interval::tick) loses nothing.
//! [`WorkerPool::block_on`] is no future and cannot be given up: its thread waits. On a worker it
//! panics, since that would wait for itself. A [`sleep`] that was made outside and is handed to it
//! ends with an error: make it inside, as in `pool.block_on(async { sleep(d).await })`, or by a
//! handle.
//!
//! # Panics
//!
//! A panic in a process, a future, a handler or a drop ends no more than [`exec`] says. A closure
//! of the blocking pool that panics is counted, and if it was a command, that is answered by a
//! failure. A panic in [`PoolConfig::on_stuck`] is counted and the metronome goes on. What is run
//! by `block_on` panics where it was called. Threads live on in all of these cases. Under `panic =
//! "abort"` the first panic ends the program, and so does always a second one while the first
//! unwinds.
//!
//! # The end
//!
//! [`WorkerPool::shutdown`] closes the scheduler first, if there is one: what is due runs, the rest
//! is cancelled. Then it takes nothing new, asks every process to stop, and waits with the
//! workers at work; a process may clean up by commands and timers meanwhile. A future cannot be
//! asked: it is dropped where it waits. At the deadline the rest is ended and each is reported. A
//! step that never returns is left behind with its thread. Dropping a pool does the same, for
//! [`PoolConfig::drop_deadline`].
//!
//! # Limits
//!
//! | what | bound |
//! |---|---|
//! | workers | [`PoolConfig::workers_max`], 64 unless told otherwise, 1024 at the most |
//! | processes, timers, messages | [`exec::Limits`] in [`PoolConfig::limits`] |
//! | blocking threads and closures that wait | [`BlockingConfig`]: 64 and 4096 |
//! | the precision of timers | a tick, [`PoolConfig::resolution`], 1 ms; never early |
//!
//! # What is not here
//!
//! * Interrupting a step, priorities, and moving a process to a chosen worker.
//! * Repeatable runs: a seed makes choices repeatable, threads are not. Use
//!   [`LocalExecutor`](exec::LocalExecutor) with a clock of your own.
//!
//! # Features
//!
//! * `tokio`: tokio's sockets and timers in processes, and executors inside tokio; see below. Off
//!   by default, and without it a pool with [`PoolConfig::tokio`] does not start.
//! * `tracing`: `TracingBridge`, which writes what a system tells as events of `tracing`. Off by
//!   default.
//!
//! # Platforms
//!
//! Linux sleeps on a futex with an absolute deadline, and can be told the CPU and the timer slack
//! of a thread. Elsewhere a lock and a condition variable of std do the sleeping, which is as
//! precise as std is there, and affinity is refused as not supported.
//!
//! # tokio
//!
//! The feature `tokio` is for programs that have both, and goes two ways.
//!
//! *tokio inside Clockjack*: a pool with [`PoolConfig::tokio`] has one more thread, `cj-tokio`,
//! with a tokio runtime, and every worker is entered into it, and every thread in `block_on` as
//! long as it waits. So sockets, sleeps and `tokio::spawn` work in processes and futures; what is
//! spawned runs on that thread, and is dropped with the
//! pool. The pool takes a thread of its own even if it is made inside another runtime: its
//! processes may then outlive that one. tokio's own features, `net` among them, are chosen by who
//! uses them.
//!
//! *Clockjack inside tokio*: `TokioToolbox` makes an executor, or a system of actors, that is
//! driven by a task of an existing application, and never blocks its thread. A pool can be used
//! there as well, its joins awaited in any task; only its shutdown and its drop wait, so they
//! belong into `tokio::task::spawn_blocking` where that matters.

mod block_on;
pub mod blocking;
mod blocking_command;
pub mod clock;
mod current;
mod dispatchers;
#[cfg(all(feature = "tokio", not(loom)))]
mod failure_bridge;
mod host;
#[cfg(target_os = "linux")]
#[path = "clock/linux.rs"]
mod monotonic;
#[cfg(not(target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic;
// Both twins are compiled and tested where the tests run.
#[cfg(all(test, target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic_portable;
pub mod parker;
#[cfg(all(target_os = "linux", not(loom)))]
#[doc(hidden)]
#[path = "parker/futex.rs"]
pub mod parker_futex;
#[doc(hidden)]
#[path = "parker/portable.rs"]
pub mod parker_portable;
mod pool;
mod primitive;
mod runtime;
pub mod scheduler;
pub mod thread;
#[cfg(target_os = "linux")]
#[path = "thread/linux.rs"]
mod thread_control;
#[cfg(not(target_os = "linux"))]
#[path = "thread/portable.rs"]
mod thread_control;
#[cfg(all(test, target_os = "linux"))]
#[path = "thread/portable.rs"]
mod thread_control_portable;
#[cfg(not(all(feature = "tokio", not(loom))))]
#[path = "tokio_host/disabled.rs"]
mod tokio_host;
#[cfg(all(feature = "tokio", not(loom)))]
#[path = "tokio_host/enabled.rs"]
mod tokio_host;
#[cfg(all(test, feature = "tokio", not(loom)))]
#[path = "tokio_host/disabled.rs"]
mod tokio_host_disabled;
#[cfg(all(feature = "tokio", not(loom)))]
#[path = "scheduler/tokio.rs"]
mod tokio_scheduler;
#[cfg(all(feature = "tokio", not(loom)))]
mod tokio_toolbox;
#[cfg(feature = "tracing")]
mod tracing_bridge;

pub use blocking::{BlockingConfig, BlockingPool, BlockingReport, BlockingStats, Rejected};
pub use blocking_command::Blocking;
pub use clock::{OsClock, OsInstant};
pub use clockjack_actor as actor;
pub use clockjack_exec as exec;
pub use clockjack_exec::yield_now;
pub use clockjack_sched as sched;
pub use current::{interval, sleep, spawn};
#[cfg(all(feature = "tokio", not(loom)))]
pub use failure_bridge::TokioFailureEventBridge;
pub use parker::Parked;
#[cfg(all(target_os = "linux", not(loom)))]
pub use parker_futex::Parker;
#[cfg(not(all(target_os = "linux", not(loom))))]
pub use parker_portable::Parker;
pub use pool::{PoolConfig, ShutdownReport, Straggler, WorkerPool};
pub use runtime::Runtime;
pub use scheduler::{
    BLOCKING_DISPATCHER, PoolSchedulerConfig, RunnerStats, ThreadScheduler, TimerTopology,
    catch_panic,
};
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_scheduler::TokioScheduler;
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_toolbox::{TokioExecutor, TokioSystem, TokioToolbox};
#[cfg(feature = "tracing")]
pub use tracing_bridge::{InstallError, TracingBridge};
