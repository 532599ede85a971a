//! Clockjack's actors: typed, supervised and timed, on every host.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

#[cfg_attr(not(test), expect(dead_code, reason = "the cells that call it come later"))]
pub mod escalation;
pub mod failure_info;
pub mod path;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the cells that call it come later")
)]
pub mod strategy;
pub mod system_message;

pub use clockjack_exec::{Failure, Pid, SendError};
pub use escalation::EscalationSink;
pub use failure_info::{EscalationStage, FailureInfo, FailureReport, RestartStats};
pub use path::ActorPath;
pub use strategy::{Backoff, Directive, Scope, Strategy, SupervisorStrategy};
pub use system_message::{SystemMessage, Terminated};
