//! The command `clockjack`, as a library, so that tests can call it without starting a process.
//!
//! `clockjack timers` arms many timers on a wheel, cancels some, lets virtual time pass step by
//! step, checks every single fire, and prints a table and two histograms.
//!
//! ```
//! use clockjack_cli::{Streams, exit_code, run};
//! use clockjack_graph::Registry;
//!
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let mut streams = Streams::new(&mut out, &mut err);
//! let args = ["clockjack", "timers", "--count", "1000", "--cancel", "25"];
//! let code = run(&Registry::new(), args, &mut streams);
//! assert_eq!(code, exit_code::OK);
//! let text = String::from_utf8(out)?;
//! assert!(text.contains("fired             750"), "{text}");
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```
//!
//! `clockjack jobs` does the same with a scheduler and jobs that run once, at a fixed rate and with
//! a fixed delay. It can let the clock leap, show the scheduler at any moment, keep what happened
//! as a trace, and tell where a run parts from a trace that was kept.
//!
//! ```
//! use clockjack_cli::{Streams, exit_code, run};
//! use clockjack_graph::Registry;
//!
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let mut streams = Streams::new(&mut out, &mut err);
//! let args = ["clockjack", "jobs", "--jobs", "9", "--dump", "lines", "--at", "10s"];
//! assert_eq!(run(&Registry::new(), args, &mut streams), exit_code::OK);
//! let text = String::from_utf8(out)?;
//! assert!(text.starts_with("scheduler mode=manual clock=deterministic"), "{text}");
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```
//!
//! # Manners
//!
//! * The result goes to standard output, all else to standard error. A reader of the output that
//!   goes away (`clockjack timers | head -3`) is no failure, and hides none.
//! * A file is written whole or not at all, and what cannot be written is told before the work.
//!   Logs of a run that goes on are the exception: they grow with it.
//! * Where a graph file is read, `-` is standard input.
//! * [Exit codes](exit_code) are part of the interface.
//! * Colours are used on a terminal only, and never if `NO_COLOR` is set; `--color` says more than
//!   both. The progress line consists of printable text and carriage returns. Ctrl-C lets a run
//!   drain and exits with 130; every other command it ends by its signal.
//! * What does not say how long something took is the same in every run with the same arguments, on
//!   every machine. In `--format json` the exceptions are the members of `timing`; what `jobs`
//!   prints has none.
//!
//! # Graphs
//!
//! `check`, `plan`, `render`, `lint`, `explain`, `diff-plan` and `schema` look at graph files;
//! `run`, `trace`, `observe` and `bench` run them. A program with components of its own gets all
//! of it:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     clockjack_cli::main(clockjack_graph::Registry::standard())
//! }
//! ```
//!
//! `observe --record` keeps what was seen of a run: the file, the plan, a drawing, events,
//! assertions, metrics, health events and a trace, in forms that other tools read. A page of its
//! own for browsers is not among them.
//!
//! # Projects
//!
//! `init` writes a new project that compiles and passes its tests, from one of four templates.
//!
//! # Not supported
//!
//! Replaying runs of graphs. Previews of payloads: events tell of messages, not of what is in them.
//! Real time for `timers` and `jobs`: they show that promises are kept, not how punctual an
//! operating system is.

extern crate alloc;

mod cli;
pub mod exit_code;
mod failure;
#[cfg(test)]
mod golden;
mod graph;
mod init;
mod interrupt;
mod jobs;
mod output;
mod progress;
mod render;
mod rng;
mod run;
mod span;
mod streams;
mod timers;

pub use cli::{main, run};
pub use interrupt::Interrupt;
pub use streams::Streams;

/// How this program was built; what it measures means little otherwise than in a release.
#[cfg(debug_assertions)]
const BUILD: &str = "debug";
#[cfg(not(debug_assertions))]
const BUILD: &str = "release";

/// What stands behind a time that was measured: nothing in a release.
const fn slow_build_note() -> &'static str {
    if cfg!(debug_assertions) { ", in a debug build: a release is far faster" } else { "" }
}
