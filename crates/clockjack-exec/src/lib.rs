//! Processes and what runs them, without an operating system.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

#[cfg(any(loom, target_has_atomic = "64"))]
mod arm;
#[cfg(any(loom, target_has_atomic = "64"))]
pub mod builtin;
#[cfg(any(loom, target_has_atomic = "64"))]
mod cell;
#[cfg(any(loom, target_has_atomic = "64"))]
pub mod command;
#[cfg(any(loom, target_has_atomic = "64"))]
mod contain;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod engine;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod engine_ref;
pub mod error;
pub mod exit;
pub mod failure;
#[cfg(any(loom, target_has_atomic = "64"))]
mod fire;
#[cfg(any(loom, target_has_atomic = "64"))]
mod handle;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod idle;
#[cfg(any(loom, target_has_atomic = "64"))]
mod join;
pub mod limits;
#[cfg(any(loom, target_has_atomic = "64"))]
mod local;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod metronome;
pub mod payload;
pub mod pid;
#[cfg(any(loom, target_has_atomic = "64"))]
mod process;
#[cfg(any(loom, target_has_atomic = "64"))]
mod process_ref;
#[doc(hidden)]
pub mod registry;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod shards;
#[cfg(any(loom, target_has_atomic = "64"))]
mod signal;
#[doc(hidden)]
pub mod state;
#[cfg(any(loom, target_has_atomic = "64"))]
mod stop;
#[cfg(any(loom, target_has_atomic = "64"))]
mod ties;
#[cfg(any(loom, target_has_atomic = "64"))]
mod timer;
#[cfg(any(loom, target_has_atomic = "64"))]
mod toolbox;
#[cfg(any(loom, target_has_atomic = "64"))]
mod unparker;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod watch;
#[cfg(any(loom, target_has_atomic = "64"))]
#[doc(hidden)]
pub mod worker;

#[cfg(any(loom, target_has_atomic = "64"))]
pub use command::{Command, CommandId, Commands, Completer};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use engine::ExecStats;
pub use error::{SendError, StartError, SubmitError, TimerError};
pub use exit::{Caught, Exit, ExitReason};
pub use failure::{Coded, Failure};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use fire::IntervalTick;
#[cfg(any(loom, target_has_atomic = "64"))]
pub use handle::Handle;
#[cfg(any(loom, target_has_atomic = "64"))]
pub use join::Join;
pub use limits::Limits;
#[cfg(any(loom, target_has_atomic = "64"))]
pub use local::{LocalExecutor, LocalReport, LocalTurn};
pub use payload::{Payload, Payloads};
pub use pid::Pid;
#[cfg(any(loom, target_has_atomic = "64"))]
pub use process::{Event, Events, Process, StepOutput, Tag, UnknownMethod};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use process_ref::ProcessRef;
pub use state::State;
#[cfg(any(loom, target_has_atomic = "64"))]
pub use stop::{Alive, SHUTDOWN};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use timer::{Interval, Sleep, Timer, YieldNow, sleep, yield_now};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use toolbox::{Host, Toolbox};
#[cfg(any(loom, target_has_atomic = "64"))]
pub use watch::StuckWorker;
