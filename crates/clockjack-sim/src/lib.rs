//! Deterministic simulation of Clockjack: whole systems on one thread, under one seed.
//!
//! A [*workload*](run::Workload) is a system with its workload and its oracles. A *run* of it is decided
//! by one number: the order of what is ready, who steals from whom, how time passes, what fails and
//! where. It leaves a [trace](trace), which is the same for the same seed on every machine.
//!
//! ```
//! use clockjack_sim::{run::run, context::Mode, workloads::Jobs};
//!
//! let outcome = run(&Jobs, 7, Mode::Safety, None);
//! assert!(outcome.is_clean(), "{outcome}");
//! assert_eq!(outcome.hash, run(&Jobs, 7, Mode::Safety, None).hash);
//! ```
//!
//! `cargo xtask sim --seeds 10000` runs all workloads. A seed that fails prints the one command that
//! repeats it, all that was drawn for it, and a smaller list of faults that is enough to make it
//! fail.
//!
//! # The rules
//!
//! 1. One random [stream](random) for each consumer, found by name: who is added changes no other.
//! 2. Each seed draws its own mixture of [faults](fault), some classes at none at all.
//! 3. Runs for [safety](context::Mode::Safety) fail to the end; those for
//!    [liveness](context::Mode::Liveness) heal, and then everything must get done.
//! 4. What is expected is kept by the workload in oracle of its own, by definition and not by what the
//!    runtime says of itself.
//! 5. A run that did too little, or was looked at too seldom, fails ([`invariant::Invariant::W1`]). A
//!    [campaign](campaign) in which a class of faults never fired, or a invariant was never looked at,
//!    fails too.
//! 6. The faults of a run are a list. A part of it can be [played again](run::run), and so a
//!    failing list is [made smaller](shrink).
//!
//! # The workloads
//!
//! | workload | what runs in it |
//! |---|---|
//! | [`workloads::Actors`] | a supervised tree: messages, timers, watches, stashes, restarts, ends |
//! | [`workloads::Jobs`] | the scheduler: once, fixed rate, fixed delay, cancel, quota, close |
//! | [`workloads::Workers`] | futures and processes on several workers that take turns |
//! | [`workloads::Graphs`] | random graphs: in simulated time, alone and by several; by the clock |
//! | [`workloads::Asks`] | actors that ask each other, wait for futures, answer late or never |
//!
//! The first two have [`rooted`] as their host, the third one of its own, the others that one or a
//! [`crowd`]. [`invariant::Invariant`] lists what they are judged by. Of the invariants in ARCHITECTURE.md they
//! show 2 (T1), 3 (T7), 4 (T3), 6 (M1, A3, G3), 7 (A2), 8 (X1, X2, X3), 9 (A5), 10 (that all of
//! these hold while handlers panic), 11 (G1), 12 (D1) and 13 (S1, S2).
//!
//! # What is not simulated
//!
//! * Threads. Workers change places between steps and, in a crowd, where a handler or a component
//!   says so: what happens between two atomic operations is loom's and shuttle's to find. Of those
//!   that are at work at once, who has begun last ends first.
//! * Routers, the receptionist, `send` that waits for workers, and dispatchers beside the default one.
//! * Of graphs: lanes with a thread or a time of their own, feeds, actors that serve or own them,
//!   changes of settings.
//! * Allocation that fails, panics in drops and in deciders, a clock whose shown time goes back
//!   (its source does), and time beyond 2^36 ticks.
//! * A wake-up that never comes: those that are late come in the end, as the contract of a host
//!   says.

extern crate alloc;

pub mod campaign;
pub mod clock;
pub mod context;
pub mod fault;
pub mod host;
pub mod invariant;
pub mod random;
pub mod run;
pub mod shrink;
pub mod trace;
pub mod workloads;
