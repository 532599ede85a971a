//! Actors, timers, jobs and dataflow graphs on one clock.
//!
//! This crate has no code of its own: it is all of Clockjack under one name. An actor, and what a
//! program does with it:
//!
//! ```
//! # #[cfg(feature = "rt")] {
//! use clockjack::prelude::*;
//!
//! enum Msg {
//!     Greet(String),
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
//!             Msg::Greet(name) => {
//!                 self.greeted += 1;
//!                 println!("hello, {name}");
//!             }
//!             Msg::Count(reply_to) => reply_to.reply(self.greeted),
//!         }
//!         Ok(Next::Stay)
//!     }
//! }
//!
//! let rt = Runtime::new("hello")?;
//! let greeter = rt.spawn("greeter", Greeter::default)?;
//! greeter.tell(Msg::Greet("world".into()))?;
//! assert_eq!(rt.block_on(greeter.ask(Msg::Count, Duration::from_secs(1)))?, 1);
//! # }
//! # Ok::<(), clockjack::actor::Failure>(())
//! ```
//!
//! A test of an actor takes no time, whatever its timers say: [`testkit`] lets time pass by hand.
//!
//! ```
//! # #[cfg(feature = "testkit")] {
//! use clockjack::{prelude::*, testkit::ManualTime};
//!
//! /// Says so when nothing was heard for a minute.
//! struct Watchdog(ActorRef<&'static str>);
//!
//! impl Actor for Watchdog {
//!     type Msg = bool; // whether there was a sign of life
//!
//!     fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
//!         cx.timers().single("silence", Duration::from_secs(60), false)?;
//!         Ok(Next::Stay)
//!     }
//!
//!     fn receive(&mut self, cx: &mut Context<'_, Self>, alive: bool) -> Result<Next, Failure> {
//!         if !alive {
//!             self.0.tell("silent for a minute")?;
//!         }
//!         self.started(cx) // the key has one timer: this one takes the place of the last
//!     }
//! }
//!
//! let time = ManualTime::start();
//! let alarm = time.probe();
//! let to = alarm.actor_ref();
//! let dog = time.spawn("dog", move || Watchdog(to.clone()));
//! time.advance(Duration::from_secs(59));
//! dog.tell(true)?;
//! time.advance(Duration::from_millis(59_999));
//! alarm.expect_none();
//! time.advance(Duration::from_millis(1)); // not a tick early, and none late
//! alarm.expect_eq("silent for a minute");
//! # }
//! # Ok::<(), clockjack::actor::Failure>(())
//! ```
//!
//! Programs of a page each stand in the repository's `examples/`, from `hello` to `virtual_time`,
//! graph files beside them, and a book with tutorials, recipes and the reference in `book/`.
//!
//! # The model
//!
//! * An **actor** owns its state and handles one message at a time, as `&mut self`. It can only be
//!   reached by its [`ActorRef`](actor::ActorRef), one word that may be copied to wherever it is
//!   needed.
//! * A message is **told** and nobody waits; what is refused comes back in the error. Who needs an
//!   answer **asks**, always with a time-out.
//! * Actors stand in a **tree**. A failure, be it an `Err` or a panic, is settled by the strategies
//!   of the actor itself, then by its parent, then above: resume, restart, stop or escalate.
//! * **Time is a message.** A timer tells its actor something later. There is one clock to a
//!   system, and the host gives it: in a [`Runtime`](rt::Runtime) the clock of the operating
//!   system, in a test [`ManualTime`](testkit::ManualTime), which passes by hand.
//! * A handler returns soon. What takes long is a **future**, which the actor runs beside its
//!   messages ([`Context::spawn`](actor::Context::spawn)) or instead of them
//!   ([`Context::wait`](actor::Context::wait)), or is done on a dispatcher for what blocks.
//! * A **graph** is for data that flows the same way again and again: components behind typed
//!   ports, called by ticks and by what comes in. Edges decide the order in which results appear;
//!   lanes decide only on which threads, and so never the result. It runs on the executor and the
//!   clock of a system, beside its actors.
//!
//! # How to
//!
//! * **Test something that takes an hour**: [`ManualTime`](testkit::ManualTime) and
//!   [`TestProbe`](testkit::TestProbe).
//! * **Do something later, or again and again**: [`Context::timers`](actor::Context::timers);
//!   without an actor, [`ActorSystem::scheduler`](actor::ActorSystem::scheduler).
//! * **Get an answer**: [`ActorRef::ask`](actor::ActorRef::ask), in an actor
//!   [`Context::ask`](actor::Context::ask); who is asked has a [`ReplyTo`](actor::ReplyTo).
//! * **Wait for something slow**: [`Context::spawn`](actor::Context::spawn) for a future; for what
//!   blocks, [`ActorSystem::dispatcher`](actor::ActorSystem::dispatcher) and
//!   [`Props::dispatcher`](actor::Props::dispatcher).
//! * **Hold back who sends too much**: [`Mailbox::bounded`](actor::Mailbox::bounded). `tell` gives
//!   back what does not fit, [`ActorRef::send`](actor::ActorRef::send) waits for room.
//! * **Survive a failure**: [`Props::supervise`](actor::Props::supervise) with a
//!   [`Strategy`](actor::Strategy).
//! * **Stop an actor**: [`Next::Stop`](actor::Next::Stop),
//!   [`Context::stop_child`](actor::Context::stop_child),
//!   [`ActorSystem::stop`](actor::ActorSystem::stop).
//! * **Stop the program**: [`Runtime::run`](rt::Runtime::run) goes on until Ctrl-C,
//!   [`Runtime::shutdown`](rt::Runtime::shutdown) ends it now; what must be done before stands in
//!   [`ActorSystem::on_shutdown`](actor::ActorSystem::on_shutdown).
//! * **Know that another has ended**: [`Context::watch`](actor::Context::watch) and
//!   [`Signal::Terminated`](actor::Signal::Terminated).
//! * **Share work, find a service**: [`router`](actor::router),
//!   [`receptionist`](actor::receptionist).
//! * **See what goes on**: [`ActorSystem::events`](actor::ActorSystem::events),
//!   [`ActorSystem::metrics`](actor::ActorSystem::metrics), [`TracingBridge`](rt::TracingBridge).
//! * **Open sockets**: [`PoolConfig::tokio`](rt::PoolConfig::tokio); inside a tokio application,
//!   [`TokioToolbox`](rt::TokioToolbox).
//! * **Run a graph file**: [`GraphFile::read`](graph::GraphFile::read) and
//!   [`Graph::start`](graph::Graph::start).
//! * **Run without std**: [`RootContext`](actor::RootContext) on a [`Toolbox`](exec::Toolbox) of
//!   yours.
//!
//! # Map
//!
//! | module | what is there | std | feature |
//! |---|---|---|---|
//! | [`prelude`] | what nearly every program needs | no | |
//! | [`actor`] | actors: supervision, timers, ask, futures, routers, events, shutdown | no | |
//! | [`sched`] | jobs without actors: once, at a fixed rate, with a fixed delay | no | |
//! | [`exec`] | processes, futures and their executor, below the actors | no | |
//! | [`time`] | ticks, clocks, the timer wheel | no | |
//! | [`macros`] | `#[actor]` | no | `macros` |
//! | [`graph`] | dataflow graphs in files or in code, `derive(Component)` | yes | `graph` |
//! | [`rt`] | `Runtime`: threads, and the clock of the operating system | yes | `rt` |
//! | [`testkit`] | `ManualTime`, probes, an actor called by hand | yes | `testkit` |
//!
//! # Features
//!
//! * `macros` (default): the attribute [`macro@macros::actor`].
//! * `rt` (default): the module [`rt`]. Without it, `graph` and `testkit` nothing here needs std.
//! * `graph`: the module [`graph`]; needs no `rt`. The command `clockjack` for graph files, also
//!   with components of your own, is the crate `clockjack-cli`.
//! * `testkit`: the module [`testkit`], for `[dev-dependencies]`.
//! * `tokio`: tokio's sockets inside actors, and Clockjack inside a tokio application; brings `rt`.
//! * `tracing`: what a system tells, as events of `tracing`; brings `rt`.
//!
//! Features add and never change what is there. Rust 1.95 or newer is needed.
//!
//! # What you can rely on
//!
//! * Messages from one sender to one actor are handled in the order in which they were sent, within
//!   their lane: system before control, control before user. An actor with
//!   [`Props::priority`](actor::Props::priority) has asked for another order.
//! * A timer never fires early. Once its `cancel` has returned true, its message does not arrive,
//!   not even out of the mailbox.
//! * Mailboxes, stashes, timers and futures of actors have bounds. What is refused comes back in
//!   the error; a message that is dropped is counted as a dead letter, with the reason.
//! * A panic ends no more than the actor that it came from, if the program can catch it (`panic =
//!   "unwind"`).
//! * Children stop before their parent does, the newest first.
//! * On one thread, with a clock of your own, the same program and seed take the same course.
//! * In virtual time a graph commits the same values in the same order, byte for byte, on any
//!   number of threads.
//!
//! Each of these has tests that fail if it is broken. In the repository they are named by
//! ARCHITECTURE.md, by the book's chapter on guarantees, and by the contracts beside the tests of
//! each crate.
//!
//! # What is not here
//!
//! * Actors on other machines, and messages that survive the program.
//! * Recordings that replay. A run in virtual time repeats; one on threads leaves a trace to read.
//! * Repeatable runs of actors on several threads: test in [virtual time](testkit), on one.
//! * Interrupting a handler. One that does not return keeps its thread; it is reported.
//! * Hard real time. A period is kept as well as the operating system lets it, and what is late is
//!   counted.
#![no_std]

#[cfg(feature = "graph")]
pub mod graph;
#[cfg(feature = "macros")]
pub mod macros;
pub mod prelude {
    //! What nearly every program with actors needs: `use clockjack::prelude::*`.
    //!
    //! The words of a first program are [`Runtime`], [`Actor`], [`Context`], [`Next`], [`Failure`],
    //! and [`ReplyTo`] for one that is asked; the others come with the second program. What is not
    //! here is reached by its module: `clockjack::actor::EventKinds`.

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
pub use clockjack_exec as exec;
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

/// The examples of the project's front page, as tests.
#[cfg(all(doctest, feature = "rt", feature = "testkit"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
