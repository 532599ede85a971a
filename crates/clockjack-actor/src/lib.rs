//! Typed, supervised actors with timers, for threads, for tests and for bare metal.
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
//! // A host provides the clock and the way to sleep. The clock of this host is advanced by hand;
//! // `clockjack-rt` provides hosts with threads.
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
//! An **actor** is a value that handles one message at a time, as `&mut self`. Code that has the
//! actor's [`ActorRef`] (one machine word) can [`tell`](ActorRef::tell) the actor a message: `tell`
//! never waits, and a refused message is returned to the caller. [`send`](ActorRef::send) waits for
//! room in the mailbox. [`ask`](ActorRef::ask) waits for an answer, always with a time-out. A ref
//! can be [mapped](ActorRef::map), so that its holder can send only one kind of message.
//!
//! Actors form a tree and have [paths](ActorPath) like `/user/a/b`. A **parent** starts its
//! children, stops them, and supervises them through its [`Context`]: a [`Strategy`] decides about
//! every failure that the child's own strategies do not handle. A failure is an `Err` or, where the
//! host can catch it, a panic; both are handled in the same way. A **restart** calls the factory
//! again; the messages in the mailbox stay. Children stop before their parent does, the newest
//! first.
//!
//! An actor receives three kinds of messages: **system** (stop, restart, termination of watched
//! actors, failures), **control** ([`tell_control`](ActorRef::tell_control), and timers
//! [with priority](Timers::priority)), and **user**. Each kind overtakes the next; within one kind,
//! the messages of one sender keep their order. The message of any other timer takes its place
//! among the user messages when the timer fires.
//!
//! # Map
//!
//! | topic | modules |
//! |---|---|
//! | actors and their handlers | [`actor`], [`context`], [`props`] |
//! | references: tell, ask, send | [`actor_ref`], [`ask`], [`reply`], [`send`] |
//! | failures | [`strategy`], [`failure_info`], [`escalation`], [`hub`] |
//! | time | [`timers`], [`receive_timeout`], [`scheduler`] |
//! | futures in an actor; messages of other types | [`futures`], [`adapter`] |
//! | service discovery and routers | [`receptionist`], [`router`] |
//! | the system: events and shutdown | [`system`], [`events`], [`shutdown`], [`stuck`] |
//! | single-threaded hosts | [`root`] |
//!
//! The feature `spans`, off by default, adds the module `spans`: what a host does around each
//! handler, so that a trace shows which message caused which. `clockjack-rt` enables it for
//! `tracing`.
//!
//! # What is not here
//!
//! Threads and a clock (`clockjack-rt`); virtual time for tests (`clockjack-testkit`); actors on
//! other machines.
//!
//! # Microcontrollers
//!
//! Actors run on bare metal, on a [`RootContext`]. They are tested on a Cortex-M3, and compiled for
//! processors without compare-exchange (Cortex-M0) and for RV32. `clockjack-sync` documents what a
//! program has to declare about its processor; `firmware/` contains example programs and their
//! memory cost.
#![no_std]

extern crate alloc;
#[cfg(any(test, loom))]
extern crate std;

mod api;
#[cfg(not(feature = "spans"))]
#[path = "cell/carried_span/disabled.rs"]
mod carried_span;
#[cfg(feature = "spans")]
#[path = "cell/carried_span/enabled.rs"]
mod carried_span;
mod cell;
#[doc(hidden)]
pub mod generated;
#[doc(hidden)]
pub mod inspect;
mod mailbox;
mod room;
pub mod root;
mod services;
pub mod shutdown;
#[cfg(feature = "spans")]
#[path = "api/spans.rs"]
pub mod spans;
mod supervision;
pub mod system;
#[doc(hidden)]
pub mod testing;

pub use api::{
    actor, actor_ref, adapter, ask, context, error, futures, path, props, receive_timeout, reply,
    system_message, timers,
};
pub use mailbox::send;
pub use services::{events, receptionist, router, scheduler, scheduler_dump};
pub use supervision::{escalation, failure_info, hub, strategy, stuck};

pub use actor::{Actor, FnActor, Next, Signal};
pub use actor_ref::ActorRef;
pub use adapter::Foreign;
pub use ask::{Ask, AskError, AskWithStatus};
pub use clockjack_exec::{Failure, Limits, Pid, SendError, StartError, StaticError, Toolbox};
pub use clockjack_observe as observe;
pub use clockjack_sched::{
    Cancellable, DispatcherId, ExecutionBatch, ScheduleError, TaskRunPriority,
};
pub use context::Context;
pub use error::{ActorError, LookupError, SpawnError};
pub use escalation::EscalationSink;
pub use events::{
    AskCycle, DeadLetter, DeadLetterReason, EventKinds, EventStream, Lifecycle, LifecycleStep,
    MailboxRefusals, RootFailure, SystemEvent, TickRate, Unhandled,
};
pub use failure_info::{EscalationStage, FailureInfo, FailureReport, RestartStats};
pub use generated::IntoNext;
pub use hub::FailureEventHub;
pub use path::ActorPath;
pub use props::{BoxedProps, IntoProps, Mailbox, MsgOf, Overflow, Props};
pub use receptionist::{Listing, Receptionist, ServiceKey};
pub use reply::ReplyTo;
pub use root::RootContext;
pub use router::{Group, Pool, PoolHandle};
pub use scheduler::Scheduler;
pub use scheduler_dump::{SchedulerDumpReply, SchedulerDumpRequest};
pub use send::Sending;
#[cfg(feature = "spans")]
pub use spans::{HandledMessage, MessageSpans, ParentSpan};
pub use strategy::{Backoff, Directive, Scope, Strategy, SupervisorStrategy};
pub use stuck::Stuck;
pub use system::{
    ActorStats, ActorSystem, DispatcherConfig, DispatcherKind, Pinned, SystemBuilder,
    SystemMetrics, Termination, TerminationReport,
};
pub use system_message::{SystemMessage, Terminated, TerminationCause};
pub use timers::{Key, Timers};
