//! Deterministic simulation of Clockjack: complete systems on one thread, controlled by one seed.
//!
//! A [*workload*](run::Workload) is a system with its load and its oracles. One number, the seed,
//! determines a *run*: the order of ready tasks, work stealing, the passage of time, and which
//! faults occur where. A run produces a [trace](trace), which is the same for the same seed on
//! every machine.
//!
//! ```
//! use clockjack_sim::{run::run, context::Mode, workloads::Jobs};
//!
//! let outcome = run(&Jobs, 7, Mode::Safety, None);
//! assert!(outcome.is_clean(), "{outcome}");
//! assert_eq!(outcome.hash, run(&Jobs, 7, Mode::Safety, None).hash);
//! ```
//!
//! `cargo xtask sim --seeds 10000` runs all workloads. For a failing seed it prints the command
//! that repeats the run, all random settings, and a smaller list of faults that still fails.
//!
//! # Rules
//!
//! 1. Each consumer has its own random [stream](random), identified by name: a new consumer does
//!    not affect the others.
//! 2. Each seed draws its own rates of [faults](fault); some classes have rate zero.
//! 3. Runs in mode [safety](context::Mode::Safety) have faults until the end. Runs in mode
//!    [liveness](context::Mode::Liveness) heal, and then all work must complete.
//! 4. The workload keeps the expected state in an oracle of its own, which does not rely on reports
//!    of the runtime.
//! 5. A run that did too little, or checked too little, fails ([`invariant::Invariant::W1`]). A
//!    [campaign](campaign) in which a fault class never fired, or an invariant was never checked,
//!    fails too.
//! 6. The faults of a run form a list. A part of the list can be [run again](run::run), and so a
//!    failing list can be [shrunk](shrink).
//!
//! # Workloads
//!
//! | workload | contents |
//! |---|---|
//! | [`workloads::Actors`] | a supervised tree: messages, timers, watches, stash, restarts, stops |
//! | [`workloads::Jobs`] | the scheduler: once, fixed rate, fixed delay, cancel, quota, shutdown |
//! | [`workloads::Workers`] | futures and processes on several interleaved workers |
//! | [`workloads::Graphs`] | random graphs: simulated time, one or several workers; wall clock |
//! | [`workloads::Asks`] | actors that ask each other, wait for futures, reply late or never |
//! | [`workloads::Cluster`] | nodes on one server: messages, asks, watches, services, members |
//!
//! The first two workloads run on [`host::single_thread`], and so does each node of the last one;
//! the third has its own host, and the others run on [`host::single_thread`] or
//! [`host::multi_worker`]. [`invariant::Invariant`] lists
//! all invariants. They cover these invariants of ARCHITECTURE.md: 2 (T1), 3 (T7), 4 (T3), 6 (M1,
//! A3, G3), 7 (A2), 8 (X1, X2, X3), 9 (A5), 10 (all of these hold while handlers panic), 11 (G1),
//! 12 (D1) and 13 (S1, S2).
//!
//! # What is not simulated
//!
//! * Threads. Workers are interleaved between steps and, on a host with several workers, where a
//!   handler or a component allows it ([`host::multi_worker::interleave`]): loom and shuttle check
//!   what happens between two atomic operations. Of several interleaved steps, the one that started
//!   last finishes first.
//! * Of nodes: servers that lose what they have confirmed, a log that was created again, peers that
//!   break the protocol, and the client of a real server.
//! * Routers, `send` that waits for mailbox capacity, and dispatchers other than
//!   the default one.
//! * Of graphs: lanes with their own thread or time domain, feeds, actors that serve or own graphs,
//!   and changes of settings.
//! * Failing allocations, panics in drops and in deciders, a clock whose visible time goes back
//!   (only its source goes back), and times beyond 2^36 ticks.
//! * A wake-up that is never delivered: late wake-ups are delivered eventually, as the contract of
//!   a host requires.

pub mod campaign;
pub mod clock;
pub mod context;
pub mod fault;
pub mod host;
pub mod invariant;
pub mod random;
#[doc(hidden)]
pub mod random_graph;
pub mod run;
pub mod shrink;
pub mod trace;
pub mod workloads;
