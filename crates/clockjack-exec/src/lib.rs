//! Clockjack's processes and executors, without an operating system.
//!
//! ```
//! use clockjack_exec::{
//!     Commands, Event, Events, Failure, Limits, LocalExecutor, Payload, Process, StepOutput, Tag,
//!     Toolbox, builtin::SleepFor,
//! };
//! use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, TickDriver};
//! use std::{sync::Arc, time::Duration};
//!
//! /// A platform whose time advances only by hand.
//! struct Bench(Arc<ManualClock>, ManualDriver);
//!
//! impl Toolbox for Bench {
//!     fn clock(&self) -> &dyn MonotonicClock {
//!         &*self.0
//!     }
//!     fn driver(&self) -> &dyn TickDriver {
//!         &self.1
//!     }
//! }
//!
//! /// Greets the name that it is sent, a second later.
//! #[derive(Default)]
//! struct Greeter(String);
//!
//! impl Process for Greeter {
//!     type Message = &'static str;
//!
//!     fn step(
//!         &mut self,
//!         events: &mut Events<'_, &'static str>,
//!         out: &mut StepOutput,
//!     ) -> Result<(), Failure> {
//!         out.idle(); // unless something else is written below
//!         for event in events {
//!             match event {
//!                 Event::Message(name) => {
//!                     self.0 = format!("hello {name}");
//!                     out.yield_command(Tag(1), SleepFor(Duration::from_secs(1)));
//!                 }
//!                 Event::YieldComplete { result, .. } => {
//!                     result?;
//!                     out.done(Payload::new(std::mem::take(&mut self.0)));
//!                 }
//!                 _ => out.done(Payload::unit()), // asked to stop
//!             }
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let clock = Arc::new(ManualClock::new(Resolution::MILLI));
//! let bench = Bench(Arc::clone(&clock), ManualDriver::new(Resolution::MILLI));
//! let mut executor = LocalExecutor::new(bench, Limits::SMALL, Commands::new())?;
//!
//! let greeter = executor.submit(Greeter::default())?;
//! greeter.tell("world")?;
//! executor.run_until_idle();
//! clock.advance(Duration::from_millis(999));
//! executor.run_until_idle();
//! assert!(!greeter.is_finished()); // never early
//!
//! clock.advance(Duration::from_millis(1));
//! executor.run_until_idle();
//! let text = executor.block_on(greeter.join())?.downcast::<String>();
//! assert_eq!(text.ok().as_deref(), Some("hello world"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The model
//!
//! A **process** is a value with a mailbox that runs in **steps**. A step takes **events**
//! ([`Event`]: messages, completions, requests to stop, ends of other processes) from an iterator,
//! and writes into a [`StepOutput`] what it wants next: another step, to wait, to end, to be
//! replaced by another process. A step never waits. An operation that takes time is yielded as a
//! **command** with a [`Tag`]; its handler replies through a [`Completer`], at once or later from
//! any thread, and the reply arrives as an event. Every command completes once. An executor runs
//! futures, too. Whatever it runs, a process, a future or an actor of `clockjack-actor`, is a
//! **task**.
//!
//! A caller that starts a process gets a [`ProcessRef`], which sends messages, and may **join** it:
//! a [`JoinHandle`] is a future of its result, or of the [`JoinError`] that says why there is none.
//! A process that **monitors** another receives an event when that one ends, in whatever way. Two
//! processes that are **linked** fail together, unless one [traps](StepOutput::trap_links) that and
//! receives an event instead ([`builtin`]).
//!
//! An executor runs tasks. A [`LocalExecutor`] uses one thread, the caller's: it polls ready tasks
//! when it is called, and what it runs need not be `Send`. The pool of **workers** of
//! `clockjack-rt` is built on the same parts: each worker has a run queue, steals tasks from
//! others, and parks when there is nothing to do. Timers are in **shards**, one per worker; any
//! thread that holds a shard's guard may fire them, so another worker fires the timers of a busy
//! one. The **watchdog** is a thread that notices when nobody does; it does not tick, and with
//! nothing to do it does not wake up.
//!
//! Nothing in this crate reads a clock, sleeps or starts a thread. The platform provides all of
//! these: [`Toolbox`].
//!
//! # Map
//!
//! | module | contents |
//! |---|---|
//! | [`builtin`] | commands that every process may yield: send, spawn, monitor, link, sleep |
//! | [`command`] | your own commands, and the codes of failures of commands |
//! | [`exit`], [`failure`], [`error`] | how a task ended; what a step fails with; what is refused |
//! | [`payload`] | values of any type: results, replies, arguments |
//! | [`pid`] | the identifiers of processes, and their text form |
//! | [`limits`] | the limits of an executor |
//!
//! Further modules are public for runtimes and for model checking, hidden, and may change at any
//! time: the state and the registry of tasks, the idle protocol, the timer shards, the watchdog,
//! the worker. Each describes its protocol at the top of its file.
//!
//! # Waiting and cancellation
//!
//! | future | if it is dropped | if it is polled again later |
//! |---|---|---|
//! | [`JoinHandle`] | the task is detached and continues | the result is still available, once |
//! | [`Sleep`] | its timer is cancelled | same deadline; the last waker is woken |
//! | [`Interval::tick`] | nothing is lost | same deadline; skipped ticks are counted |
//! | [`Timeout`] | its future is dropped, its timer cancelled | same deadline |
//! | [`YieldNow`] | there may be a spurious poll | ready at its second poll |
//! | [`LocalExecutor::block_on`] | not a future | the next call runs the remaining ones |
//!
//! After the future of [`Interval::tick`] is dropped, the timer stays armed until the next call or
//! the interval's drop, so there may be a spurious wake-up. If the future of `block_on` panics, so
//! does the call.
//!
//! A poll of a task has a budget: after 128 leaf futures of this crate were ready, the next one is
//! pending, and the task goes to the end of the run queue. So a future that is always ready does
//! not keep its worker; [`consume_budget`] is for loops without such a leaf future.
//!
//! A [`Sleep`] made by [`sleep`] finds its executor by the waker of the task that awaits it. Inside
//! a combinator that uses its own wakers, or outside tasks, it completes with an error: use
//! [`Handle::sleep`] there.
//!
//! There are two ways to stop a task. [`ProcessRef::cancel`] and [`JoinHandle::cancel`] ask it: a
//! process receives an event, and a future is dropped instead of its next poll.
//! [`ProcessRef::terminate`] and [`JoinHandle::abort`] end it instead of its next poll. A running
//! step is never interrupted.
//!
//! # Panics
//!
//! If the toolbox catches panics ([`Toolbox::catch_unwind`]), a panic in user code ends no more
//! than necessary:
//!
//! | a panic in | ends |
//! |---|---|
//! | `init` | the start: the [`SubmitError`] returns the process to the caller |
//! | `step`, a future's `poll` | the task: [`JoinError::is_panicked`]; monitors and links get it |
//! | a handler | the command, with the failure [`UNANSWERED`](command::UNANSWERED) |
//! | `close`, a drop, a foreign waker | nothing: [`ExecStats::drop_panics`] counts it |
//!
//! A panic during the unwinding of another aborts the program, as everywhere in Rust; so does the
//! first one under `panic = "abort"`, where nothing can be caught. If the toolbox catches nothing,
//! which is the default, a panic propagates to the caller of the executor; the task that it came
//! from is then neither polled nor freed.
//!
//! # Sizes and limits
//!
//! [`Limits`] bounds the processes, the timers per shard, the messages per process, and the events
//! and the time per step; what exceeds a limit is returned to the caller. There are less than 2^30
//! processes, and less than 2^26 timers per shard. A [`Pid`] has 16 bytes, a [`Failure`] two words,
//! and a [`Payload`] stores three words before it allocates. A process is one allocation and what
//! its queues grow to; a message is another. Completions, requests to stop, links and monitors do
//! not count against a limit: there are as many as were requested.
//!
//! # Microcontrollers
//!
//! The executor on one thread also runs on processors without 64-bit atomics (Cortex-M, RV32) and
//! without compare-exchange (Cortex-M0). [`clockjack_sync`](clockjack_sync#microcontrollers) says
//! what programs for these have to declare; `firmware/` is such a program.
//!
//! # What is not included
//!
//! * Priorities, and interrupting a step. A step that never returns occupies its worker.
//! * Names for processes (a future can have one, for dumps), processes on other machines (the node
//!   of a pid is 0), pids that the caller chooses.
//! * Threads, and a clock: `clockjack-rt` has them.
//!
//! # Features
//!
//! None. An allocator is always needed.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

pub mod error;
#[doc(hidden)]
pub mod executor;
pub mod failure;
mod handle;
pub mod limits;
mod process;
mod stats;
mod task;
mod timer;
mod toolbox;
#[doc(hidden)]
pub mod worker;

pub use error::{SendError, StartError, SubmitError, TimerError};
#[doc(hidden)]
pub use executor::executor_ref;
pub use executor::{
    local::{LocalExecutor, LocalReport, LocalTurn},
    shutdown::SHUTDOWN,
};
pub use failure::{Failure, StaticError};
pub use handle::Handle;
pub use limits::Limits;
pub use process::{
    Event, Events, Process, StepOutput, Tag, builtin, command,
    command::{Command, CommandId, Commands, Completer},
    exit,
    exit::{ExitReason, JoinError, PanicPayload},
    payload,
    payload::{Payload, Payloads},
    pid,
    pid::Pid,
    process_ref::ProcessRef,
};
pub use stats::ExecStats;
pub use task::{budget::consume_budget, join::JoinHandle, live_task::LiveTask, state::State};
#[doc(hidden)]
pub use task::{budget::poll_leaf, wake_last};
#[doc(hidden)]
pub use task::{custom_task, memory, registry, state};
pub use timer::{
    Interval, Sleep, Timer, YieldNow,
    action::IntervalTick,
    sleep,
    timeout::{Timeout, timeout},
    watchdog::StuckWorker,
    yield_now,
};
#[doc(hidden)]
pub use timer::{
    shards, source,
    source::{SourcePoll, TimerSource},
    watchdog,
};
pub use toolbox::{ExecutorToolbox, Toolbox};
#[doc(hidden)]
pub use worker::idle;
#[doc(inline)]
pub use worker::worker_stats::WorkerStats;
