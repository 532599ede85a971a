//! Clockjack's actors: typed, supervised and timed, on every host.
//!
//! ```
//! use clockjack_actor::{Actor, ActorSystem, Context, Failure, Next, ReplyTo, RootContext};
//! use core::time::Duration;
//! # use clockjack_actor::Toolbox;
//! # use clockjack_time::{ManualClock, ManualDriver, MonotonicClock, Resolution, Tick, TickDriver};
//! # struct Bench(ManualClock, ManualDriver);
//! # impl Toolbox for Bench {
//! #     fn clock(&self) -> &dyn MonotonicClock { &self.0 }
//! #     fn driver(&self) -> &dyn TickDriver { &self.1 }
//! #     fn park(&self, _until: Option<Tick>) {}
//! #     fn unpark(&self) {}
//! # }
//! # let bench = Bench(ManualClock::new(Resolution::MILLI), ManualDriver::new(Resolution::MILLI));
//!
//! enum Msg {
//!     Greet(&'static str),
//!     Count(ReplyTo<u64>),
//! }
//!
//! #[derive(Default)]
//! struct Greeter {
//!     greeted: u64,
//! }
//!
//! impl Actor for Greeter {
//!     type Msg = Msg;
//!
//!     fn receive(&mut self, _cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
//!         match msg {
//!             Msg::Greet(_name) => self.greeted += 1,
//!             Msg::Count(reply_to) => reply_to.reply(self.greeted),
//!         }
//!         Ok(Next::Stay)
//!     }
//! }
//!
//! // A host gives clock and sleep: here one whose time passes by hand. `clockjack-rt` has threads.
//! let mut root = RootContext::new(bench, ActorSystem::builder("hello"))?;
//! let greeter = root.spawn("greeter", Greeter::default)?;
//! greeter.tell(Msg::Greet("world"))?;
//! let answer = greeter.ask(Msg::Count, Duration::from_secs(1));
//! assert_eq!(root.block_on(answer)?, 1);
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # The model
//!
//! An **actor** is a value that handles one message at a time, as `&mut self`. Whoever has its
//! [`ActorRef`], one word, may [`tell`](ActorRef::tell) it something: that never waits, and what is
//! refused comes back. [`send`](ActorRef::send) waits for room, [`ask`](ActorRef::ask) for an
//! answer, with a time-out always. A ref can be [mapped](ActorRef::map), so that who has it sees
//! only the messages that it is to send.
//!
//! Actors stand in a tree, at [paths](ActorPath) like `/user/a/b`. A **parent** starts its
//! children, stops them, and decides about those that fail and have not settled that themselves
//! ([`Strategy`]): by its [`Context`]. A failure is an `Err` or, where the host can catch it, a
//! panic; both go the same way. A **restart** calls the factory again; what waits in the mailbox
//! stays. Children stop before their parent does, the newest first.
//!
//! What comes to an actor has three lanes: **system** (stop, restart, ends of others, failures),
//! **control** (its timers, and [`tell_control`](ActorRef::tell_control)), **user**. A lane
//! overtakes the next; within a lane the messages of one sender keep their order.
//!
//! # Map
//!
//! | what | where |
//! |---|---|
//! | the actor, and what it can do in a handler | [`actor`], [`context`], [`props`] |
//! | addresses, questions, waiting for room | [`actor_ref`], [`ask`], [`reply`], [`send`] |
//! | failures | [`strategy`], [`failure_info`], [`escalation`], [`hub`] |
//! | time | [`timers`], [`receive_timeout`], [`scheduler`] |
//! | futures in an actor; messages of other types | [`futures`], [`adapter`] |
//! | finding and spreading | [`receptionist`], [`router`] |
//! | the system, its events, its end | [`system`], [`events`], [`shutdown`], [`stuck`] |
//! | hosts on one thread | [`root`] |
//!
//! # What is not here
//!
//! Threads and a clock (`clockjack-rt`); virtual time for tests (`clockjack-testkit`); actors on
//! other machines.
//!
//! # Microcontrollers
//!
//! Actors run on bare metal as they are, on a [`RootContext`]. They are run on a Cortex-M3, and
//! compiled for processors without compare-exchange (Cortex-M0) and for RV32. What a program has to
//! say of its processor stands in `clockjack-sync`; `firmware/` is one, and says what it costs.
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
mod lane;
mod notes;
pub mod path;
mod pooled;
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
pub use clockjack_observe as observe;
pub use clockjack_sched::{
    Cancellable, DispatcherId, ExecutionBatch, ScheduleError, TaskRunPriority,
};
pub use context::Context;
pub use error::{LookupError, NotAChild, SpawnError, SpawnErrorKind, StashFull, WatchError};
pub use escalation::EscalationSink;
pub use events::{
    AskCycle, DeadLetter, DeadLetterReason, EventKinds, EventStream, Lifecycle, LifecycleStep,
    RootFailure, SystemEvent, Unhandled,
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
    ActorSystem, DispatcherConfig, DispatcherKind, Pinned, SystemBuilder, SystemMetrics,
    Termination, TerminationReport,
};
pub use system_message::{SystemMessage, Terminated};
pub use timers::{Key, Timers};
