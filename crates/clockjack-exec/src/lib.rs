//! Clockjack's processes and what runs them, without an operating system.
//!
//! ```
//! use clockjack_exec::{
//!     Commands, Event, Events, Failure, Limits, LocalExecutor, Payload, Process, StepOutput, Tag,
//!     Toolbox, builtin::Sleep,
//! };
//! use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};
//! use std::{sync::Arc, time::Duration};
//!
//! /// A host whose time passes by hand.
//! struct Bench(Arc<ManualClock>, ManualDriver);
//!
//! impl Toolbox for Bench {
//!     fn clock(&self) -> &dyn MonotonicClock {
//!         &*self.0
//!     }
//!     fn driver(&self) -> &dyn TickDriver {
//!         &self.1
//!     }
//!     fn park(&self, _until: Option<Tick>) {}
//!     fn unpark(&self) {}
//! }
//!
//! /// Greets whom it is told to, a second later.
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
//!                     out.yield_command(Tag(1), Sleep(Duration::from_secs(1)));
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
//! ([`Event`]: messages, completions, requests to stop, ends of others) from a cursor, and writes
//! into a [`StepOutput`] what it wants next: another step, to wait, to end, to go on as another
//! process. It never waits itself. What takes time is yielded as a **command** with a [`Tag`]; its
//! handler answers through a [`Completer`], at once or later from any thread, and the answer comes
//! as an event. Every command is answered once. A future is a process too: each step polls it.
//!
//! Whoever starts a process has a [`ProcessRef`], which sends, and may **join** it: [`JoinHandle`] is a
//! future of its result, or of the [`JoinError`] that stands in its place. A process that **monitors**
//! another is told of its end, however it ended. Two that are **linked** fail together, unless one
//! [traps](StepOutput::trap_links) that and is told instead ([`builtin`]).
//!
//! An executor runs them. [`LocalExecutor`] is one thread, yours: it steps what is ready when you
//! call it, and what it runs need not be `Send`. The pool of **workers** of `clockjack-rt` runs on
//! the same parts: each worker has a queue, steals from others, and sleeps when there is nothing.
//! Timers stand in **shards**, one a worker; whoever has a shard's **lease** may fire them, so
//! those of a worker that is busy are fired by another. The **watchdog** is the thread that
//! notices when nobody does; it has no ticks and, with nothing to do, no wake-ups.
//!
//! Nothing here reads a clock, sleeps or starts a thread. A host hands all of it in: [`Toolbox`].
//!
//! # Map
//!
//! | module | what is in it |
//! |---|---|
//! | [`builtin`] | commands that every process may yield: send, spawn, monitor, link, sleep |
//! | [`command`] | your own commands, and the codes of failures that executors answer with |
//! | [`exit`], [`failure`], [`error`] | how a process ended; what a step fails with; refusals |
//! | [`payload`] | values of any type: results, replies, arguments |
//! | [`pid`] | the names of processes, and their text form |
//! | [`limits`] | how much there may be of everything |
//!
//! The parts below are public for hosts and for models, hidden, and may change at any time: the
//! state word and the registry of processes, the idle protocol, the table of shards, the
//! watchdog, the worker. Each has its protocol in prose at its header.
//!
//! # WaitKind, and giving it up
//!
//! | what | if it is given up | if it is taken up again |
//! |---|---|---|
//! | [`JoinHandle`] | dropped, it detaches: the process goes on | the result is there still, once |
//! | [`Sleep`] | dropped, it is disarmed | same deadline; the last waker is woken |
//! | [`Interval::tick`] | nothing is lost | same deadline, what was left out is counted |
//! | [`YieldNow`] | there may be a turn for nothing | ready at its second poll |
//! | [`LocalExecutor::block_on`] | cannot be: it is no future | the next call runs the rest |
//!
//! After a tick of an interval was given up, its timer stays armed until the next call or the
//! interval's drop, so there may be a wake for nothing. If the future of `block_on` panics, so does
//! the call.
//!
//! A [`Sleep`] made by [`sleep`] finds its executor by the waker of the process that awaits it.
//! Behind a combinator that brings wakers of its own, or outside processes, it ends with an error:
//! make it by [`Handle::sleep`] there.
//!
//! Stopping a process is asked for ([`ProcessRef::cancel`], [`JoinHandle::cancel`]: an event, and for a
//! future the drop at its next turn) or done ([`ProcessRef::terminate`], [`JoinHandle::abort`]: at the
//! next turn). A step that is under way is never interrupted.
//!
//! # Panics
//!
//! If the toolbox catches panics ([`Toolbox::catch_unwind`]), one in user code ends no more than it has
//! to:
//!
//! | a panic in | ends |
//! |---|---|
//! | `init` | the start: the process comes back in the [`SubmitError`] |
//! | `step`, a future's `poll` | the process: [`JoinError::is_panicked`]; monitors and links are told |
//! | a handler | the command, with the failure [`UNANSWERED`](command::UNANSWERED) |
//! | `close`, a drop, a foreign waker | nothing: [`ExecStats::drop_panics`] counts it |
//!
//! A panic during the unwinding of another aborts the program, as everywhere in Rust; so does the
//! first one under `panic = "abort"`, where nothing can be caught. With a toolbox that catches
//! nothing, as the default is, a panic leaves through whoever called the executor; the process
//! that it came from is then neither stepped nor freed.
//!
//! # Sizes and limits
//!
//! [`Limits`] bounds processes, timers a shard, messages a process, and events and time a step;
//! what is beyond comes back to its caller. Processes are less than 2^30, timers less than 2^26 a
//! shard. A [`Pid`] has 16 bytes, a [`Failure`] two words, a [`Payload`] room for three words
//! before it allocates. A process is one allocation and what its queues grow to, a message another.
//! Completions, requests to stop and ties are not counted against a limit: there are as many as
//! were asked for.
//!
//! # Microcontrollers
//!
//! The executor on one thread is made for processors without 64-bit atomics (Cortex-M, RV32) and
//! without compare-exchange (Cortex-M0) too. What their programs have to say of themselves stands
//! in [`clockjack_sync`](clockjack_sync#microcontrollers); `firmware/` is such a program.
//!
//! # What is not here
//!
//! * Priorities, and interrupting a step. A step that never returns keeps its worker.
//! * Names for processes, processes on other machines (the node of a pid is 0), pids of one's own
//!   choice.
//! * Threads, and a clock: `clockjack-rt` has them.
//!
//! # Features
//!
//! None. An allocator is always needed.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

mod arm;
pub mod builtin;
pub mod command;
#[doc(hidden)]
pub mod custom_task;
pub mod error;
#[doc(hidden)]
pub mod executor;
#[doc(hidden)]
pub mod executor_ref;
pub mod exit;
pub mod failure;
mod handle;
#[doc(hidden)]
pub mod idle;
mod join;
pub mod limits;
mod links;
mod local;
#[doc(hidden)]
pub mod memory;
mod panic;
pub mod payload;
mod period;
pub mod pid;
mod process;
mod process_ref;
#[doc(hidden)]
pub mod registry;
#[doc(hidden)]
pub mod shards;
mod shutdown;
mod signal;
#[doc(hidden)]
pub mod state;
mod stats;
mod task;
mod timer;
mod timer_action;
mod toolbox;
mod unparker;
#[doc(hidden)]
pub mod watchdog;
#[doc(hidden)]
pub mod worker;

pub use command::{Command, CommandId, Commands, Completer};
pub use error::{SendError, StartError, SubmitError, TimerError};
pub use exit::{ExitReason, JoinError, PanicPayload};
pub use failure::{Failure, StaticError};
pub use handle::Handle;
pub use join::JoinHandle;
pub use limits::Limits;
pub use local::{LocalExecutor, LocalReport, LocalTurn};
pub use payload::{Payload, Payloads};
pub use pid::Pid;
pub use process::{Event, Events, Process, StepOutput, Tag, UnknownMethod};
pub use process_ref::ProcessRef;
pub use shutdown::{LiveTask, SHUTDOWN};
pub use state::State;
pub use stats::ExecStats;
pub use timer::{Interval, Sleep, Timer, YieldNow, sleep, yield_now};
pub use timer_action::IntervalTick;
pub use toolbox::{ExecutorToolbox, Toolbox};
pub use watchdog::StuckWorker;
