//! Actors, timers and dataflow graphs for Rust, on one clock that your program supplies.
//!
//! The same code runs on a server, on a microcontroller, and in a test in which an hour takes
//! milliseconds: everything that waits, waits on one clock, and the host supplies that clock. An
//! actor with a timer, and its test:
//!
//! ```
//! # #[cfg(feature = "testkit")]
//! # mod with_testkit {
//! use clockjack::{prelude::*, testkit::ManualTime};
//!
//! /// Switches a lamp off five minutes after the last movement.
//! struct Lamp { switch: ActorRef<bool> }
//!
//! enum Msg { Moved, Quiet }
//!
//! impl Actor for Lamp {
//!     type Msg = Msg;
//!
//!     fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
//!         match msg {
//!             Msg::Moved => {
//!                 self.switch.tell(true)?; // does not block; a refused message is in the error
//!                 cx.timers().single("quiet", Duration::from_secs(300), Msg::Quiet)?;
//!             }
//!             Msg::Quiet => self.switch.tell(false)?,
//!         }
//!         Ok(Next::Stay)
//!     }
//! }
//!
//! // The test: five minutes of virtual time, twice. On threads: `Runtime::new("house")?`.
//! fn main() -> Result<(), Failure> {
//!     let time = ManualTime::start();
//!     let switch = time.probe();
//!     let to = switch.actor_ref();
//!     let lamp = time.spawn("lamp", move || Lamp { switch: to.clone() });
//!     lamp.tell(Msg::Moved)?;
//!     switch.expect_eq(true);
//!     time.advance(Duration::from_secs(299));
//!     lamp.tell(Msg::Moved)?; // one timer per key: this replaces the first one
//!     switch.expect_eq(true);
//!     switch.expect_none_for(Duration::from_millis(299_999));
//!     time.advance(Duration::from_millis(1)); // exactly on time
//!     switch.expect_eq(false);
//!     Ok(())
//! }
//! # pub fn run() -> Result<(), Failure> { main() }
//! # }
//! # fn main() {
//! #     #[cfg(feature = "testkit")]
//! #     with_testkit::run().unwrap();
//! # }
//! ```
//!
//! On threads, with the clock of the operating system, a [`Runtime`](rt::Runtime) runs the same
//! actors:
//!
//! ```
//! # #[cfg(feature = "rt")] {
//! use clockjack::prelude::*;
//!
//! /// Counts those who ask.
//! #[derive(Default)]
//! struct Counter(u64);
//!
//! impl Actor for Counter {
//!     type Msg = ReplyTo<u64>; // a question carries the address for its answer
//!
//!     fn receive(&mut self, _: &mut Context<'_, Self>, to: Self::Msg) -> Result<Next, Failure> {
//!         self.0 += 1;
//!         to.reply(self.0);
//!         Ok(Next::Stay)
//!     }
//! }
//!
//! let rt = Runtime::new("house")?;
//! let counter = rt.spawn("counter", Counter::default)?;
//! let n = rt.block_on(counter.ask(|reply_to| reply_to, Duration::from_secs(1)))?;
//! assert_eq!(n, 1);
//! # }
//! # Ok::<(), clockjack::actor::Failure>(())
//! ```
//!
//! This crate contains no code of its own: it re-exports all parts of Clockjack under one name.
//! The directory `examples/` of the repository contains short programs, from `hello` to
//! `virtual_time`, and graph files; the directory `book/` contains tutorials, recipes and the
//! reference.
//!
//! # The model
//!
//! * An **actor** owns its state and handles one message at a time, with `&mut self`. Other code
//!   reaches it only through its [`ActorRef`](actor::ActorRef), which is one word in size and can
//!   be cloned freely.
//! * **Tell** sends a message without waiting; the error of a refused message returns the message
//!   to the caller. **Ask** sends a message and waits for an answer, always with a timeout.
//! * Actors form a **tree**. The strategies of the actor itself, then of its parent, then of its
//!   ancestors decide about a failure, which is an `Err` or a panic: resume, restart, stop or
//!   escalate.
//! * **Time is a message.** A timer sends its actor a message later. A system has one clock, which
//!   the host provides: in a [`Runtime`](rt::Runtime) the clock of the operating system, in a test
//!   [`ManualTime`](testkit::ManualTime), which the test advances.
//! * A handler returns quickly. Slow work is a **future**, which the actor runs concurrently with
//!   its messages ([`Context::spawn_future`](actor::Context::spawn_future)) or instead of them
//!   ([`Context::wait`](actor::Context::wait)); blocking work runs on a separate dispatcher.
//! * A **graph** is for data that takes the same path again and again: components with typed ports,
//!   triggered by ticks and by incoming messages. Edges determine the order in which results
//!   appear; lanes determine only the threads, and so never the result. A graph runs on the
//!   executor and the clock of a system, next to its actors.
//!
//! # How to
//!
//! * **Test something that takes an hour**: [`ManualTime`](testkit::ManualTime) and
//!   [`TestProbe`](testkit::TestProbe).
//! * **Do something later, or periodically**: [`Context::timers`](actor::Context::timers);
//!   without an actor, [`ActorSystem::scheduler`](actor::ActorSystem::scheduler).
//! * **Get an answer**: [`ActorRef::ask`](actor::ActorRef::ask), or in an actor
//!   [`Context::ask`](actor::Context::ask); the asked actor gets a [`ReplyTo`](actor::ReplyTo).
//! * **Wait for something slow**: [`Context::spawn_future`](actor::Context::spawn_future) for a
//!   future; for one blocking call, [`Runtime::spawn_blocking`](rt::Runtime::spawn_blocking); for
//!   an actor that blocks,
//!   [`ActorSystem::create_dispatcher`](actor::ActorSystem::create_dispatcher) and
//!   [`Props::dispatcher`](actor::Props::dispatcher).
//! * **Slow down a fast sender**: [`Mailbox::bounded`](actor::Mailbox::bounded). `tell` returns a
//!   message that does not fit, [`ActorRef::send`](actor::ActorRef::send) waits for room.
//! * **Survive a failure**: [`Props::supervise`](actor::Props::supervise) with a
//!   [`Strategy`](actor::Strategy).
//! * **Stop an actor**: [`Next::Stop`](actor::Next::Stop),
//!   [`Context::stop_child`](actor::Context::stop_child),
//!   [`ActorSystem::stop`](actor::ActorSystem::stop).
//! * **Stop the program**: [`Runtime::run`](rt::Runtime::run) runs until a signal,
//!   [`Runtime::shutdown`](rt::Runtime::shutdown) shuts down now; register cleanup with
//!   [`ActorSystem::on_shutdown`](actor::ActorSystem::on_shutdown).
//! * **Learn that another actor has stopped**: [`Context::watch`](actor::Context::watch) and
//!   [`Signal::Terminated`](actor::Signal::Terminated).
//! * **Distribute work, find a service**: [`router`](actor::router),
//!   [`receptionist`](actor::receptionist).
//! * **Reach actors on other machines**: [`Net`](net::Net); in a test, with several nodes in
//!   virtual time, [`TestCluster`](testkit::TestCluster).
//! * **Observe a system**: [`ActorSystem::events`](actor::ActorSystem::events),
//!   [`ActorSystem::metrics`](actor::ActorSystem::metrics), [`TracingBridge`](rt::TracingBridge).
//! * **Trace a request through actors**: [`TracingSpans`](rt::TracingSpans).
//! * **Look at a running program**: the feature `console`, `Console::of(&rt).open()`; then
//!   `clockjack top`, `clockjack doctor --of`, a browser.
//! * **See what all tasks do**: [`Runtime::task_dump`](rt::Runtime::task_dump),
//!   [`Runtime::worker_stats`](rt::Runtime::worker_stats).
//! * **Run plain futures**: [`Runtime::spawn_future`](rt::Runtime::spawn_future),
//!   [`JoinSet`](rt::JoinSet), [`timeout`](rt::timeout).
//! * **Use sockets**: [`PoolConfig::tokio`](rt::PoolConfig::tokio); inside a tokio application,
//!   [`TokioToolbox`](rt::TokioToolbox).
//! * **Run a graph file**: [`GraphFile::read`](graph::GraphFile::read) and
//!   [`Graph::start`](graph::Graph::start).
//! * **Run without std**: [`RootContext`](actor::RootContext) on your own
//!   [`Toolbox`](exec::Toolbox).
//!
//! # Map
//!
//! | module | contents | std | feature |
//! |---|---|---|---|
//! | [`prelude`] | what nearly every program needs | no | |
//! | [`actor`] | actors: supervision, timers, ask, futures, routers, events, shutdown | no | |
//! | [`sched`] | jobs without actors: once, at a fixed rate, with a fixed delay | no | |
//! | [`exec`] | processes, futures and their executor, below the actors | no | |
//! | [`time`] | ticks, clocks, the timer wheel | no | |
//! | [`observe`] | events, counters, histograms, the flight recorder | no | |
//! | [`macros`] | `#[actor]` | no | `macros` |
//! | [`graph`] | dataflow graphs in files or in code, `derive(Component)` | yes | `graph` |
//! | [`net`] | actors on several nodes: `Net`, addresses, members, shared services | no | `net` |
//! | [`wire`] | messages that travel: `derive(Wire)`, versions, frames | no | `net` |
//! | [`rt`] | `Runtime`: threads, and the clock of the operating system | yes | `rt` |
//! | [`testkit`] | `ManualTime`, probes, an actor that the test calls | yes | `testkit` |
//!
//! # Features
//!
//! * `macros` (default): the attribute [`macro@macros::actor`].
//! * `rt` (default): the module [`rt`]. Without `rt`, `graph` and `testkit`, the crate needs no
//!   std.
//! * `graph`: the module [`graph`]; does not need `rt`. The crate `clockjack-cli` contains the
//!   command `clockjack` for graph files, which you can extend with your own components.
//! * `net`: the modules [`net`] and [`wire`], and with `testkit` a cluster of nodes in virtual
//!   time; does not need `rt`. The crate `clockjack-nats` connects the nodes of several machines.
//! * `testkit`: the module [`testkit`], for `[dev-dependencies]`.
//! * `tokio`: tokio's sockets inside actors, and Clockjack inside a tokio application; enables
//!   `rt`.
//! * `tracing`: forwards the events of a system to `tracing`, gives each task a span, and on
//!   request each message; enables `rt`.
//!
//! Features only add items; they never change existing behaviour. The crate needs Rust 1.95 or
//! newer.
//!
//! # Guarantees
//!
//! * Messages of the same kind from one sender to one actor are handled in the order in which they
//!   were sent. System messages precede control messages, and control messages precede user
//!   messages. [`Props::priority`](actor::Props::priority) selects another order.
//! * A timer never fires early. Its message is handled after those that were in the mailbox when it
//!   fired; [`Timers::priority`](actor::Timers::priority) selects another order. After its `cancel`
//!   has returned true, its message does not arrive, not even from the mailbox.
//! * A receive time-out never fires while a message waits.
//! * Mailboxes, stashes, timers and futures of actors are bounded. The error of a refused message
//!   returns the message to the caller; a dropped message is counted as a dead letter, with the
//!   reason.
//! * A panic stops at most the actor in which it occurred, if the program can catch it (`panic =
//!   "unwind"`).
//! * Children stop before their parent, the newest first.
//! * On one thread, with your own clock, a program with the same seed always behaves the same.
//! * In virtual time a graph commits the same values in the same order, byte for byte, on any
//!   number of threads.
//!
//! Each guarantee has tests that fail if it is violated. In the repository, ARCHITECTURE.md, the
//! book's chapter on guarantees, and the contract files next to the tests of each crate list these
//! tests.
//!
//! # What is not supported
//!
//! * Messages that survive the program. What connects actors on several machines is in a crate of
//!   its own, `clockjack-nats`.
//! * Record and replay. A run in virtual time is reproducible; a run on threads leaves a trace to
//!   read.
//! * Reproducible runs of actors on several threads: test in [virtual time](testkit), on one
//!   thread.
//! * Preempting a handler. A handler that does not return keeps its thread, and is reported.
//! * Hard real time. Periods are as precise as the operating system allows, and late runs are
//!   counted.
#![no_std]

#[cfg(feature = "graph")]
pub mod graph;
#[cfg(feature = "macros")]
pub mod macros;
#[cfg(feature = "net")]
pub mod wire;
pub mod prelude {
    //! What nearly every program with actors needs: `use clockjack::prelude::*`.
    //!
    //! A first program uses [`Runtime`], [`Actor`], [`Context`], [`Next`], [`Failure`], and
    //! [`ReplyTo`] to answer requests; the other items are for larger programs. Use the modules for
    //! everything else: `clockjack::actor::EventKinds`.

    pub use core::time::Duration;

    pub use clockjack_actor::{
        Actor, ActorRef, ActorSystem, Ask, AskError, Backoff, Context, Directive, Failure, Mailbox,
        Next, Overflow, Props, ReplyTo, Scope, SendError, Signal, Strategy,
    };
    #[cfg(feature = "rt")]
    pub use clockjack_rt::Runtime;

    #[cfg(feature = "macros")]
    pub use crate::macros::actor;
}

#[doc(no_inline)]
pub use clockjack_actor as actor;
#[doc(no_inline)]
pub use clockjack_actor::observe;
#[cfg(feature = "console")]
#[doc(no_inline)]
pub use clockjack_console::server as console;
#[doc(no_inline)]
pub use clockjack_exec as exec;
#[cfg(feature = "net")]
#[doc(no_inline)]
pub use clockjack_net as net;
#[cfg(feature = "rt")]
#[doc(no_inline)]
pub use clockjack_rt as rt;
#[doc(no_inline)]
pub use clockjack_sched as sched;
#[cfg(feature = "testkit")]
#[doc(no_inline)]
pub use clockjack_testkit as testkit;
#[doc(no_inline)]
pub use clockjack_time as time;

/// The examples of the project's README, as tests.
#[cfg(all(doctest, feature = "net", feature = "rt", feature = "testkit"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
