//! Clockjack's actors: typed, supervised and timed, on every host.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom, mutants))]
extern crate std;

pub mod actor;
pub mod actor_ref;
pub mod adapter;
pub mod ask;
mod base;
mod cell;
mod children;
pub mod context;
mod control;
mod dead_letters;
mod envelope;
pub mod error;
pub mod escalation;
pub mod events;
pub mod failure_info;
mod front;
pub mod futures;
#[doc(hidden)]
pub mod generated;
pub mod hub;
mod notes;
pub mod path;
pub mod props;
pub mod receive_timeout;
pub mod receptionist;
pub mod reply;
pub mod root;
pub mod router;
pub mod router_logic;
pub mod scheduler;
pub mod send;
pub mod shutdown;
mod spawn;
pub mod strategy;
pub mod stuck;
pub mod system;
pub mod system_message;
#[doc(hidden)]
pub mod testing;
pub mod timers;

pub use actor::{Actor, FnActor, Next, Signal};
pub use actor_ref::ActorRef;
pub use adapter::Foreign;
pub use ask::{Ask, AskError, AskWithStatus};
pub use clockjack_exec::{Coded, Failure, Limits, Pid, SendError, StartError, Toolbox};
pub use clockjack_sched::{
    Cancellable, DispatcherId, ExecutionBatch, ScheduleError, TaskRunPriority,
};
pub use context::Context;
pub use error::{LookupError, NotAChild, SpawnError, SpawnErrorKind, StashFull, WatchError};
pub use escalation::EscalationSink;
pub use events::{
    AskCycle, DeadLetter, DeadLetterReason, EventKinds, EventStream, Lifecycle, LifecycleStep,
    SystemEvent, Unhandled,
};
pub use failure_info::{EscalationStage, FailureInfo, FailureReport, RestartStats};
pub use futures::{FutureRefused, FutureRefusedKind};
pub use hub::FailureEventHub;
pub use path::ActorPath;
pub use props::{BoxedProps, IntoProps, Mailbox, MessageCodec, MsgOf, Overflow, Props};
pub use receptionist::{Listing, Receptionist, ServiceKey};
pub use reply::ReplyTo;
pub use root::RootContext;
pub use router::{Group, Pool, PoolHandle};
pub use scheduler::Scheduler;
pub use send::Sending;
pub use strategy::{Backoff, Directive, Scope, Strategy, SupervisorStrategy};
pub use stuck::Stuck;
pub use system::{
    ActorSystem, Pinned, SystemBuilder, SystemMetrics, Termination, TerminationReport,
};
pub use system_message::{SystemMessage, Terminated};
pub use timers::{Key, Timers};
