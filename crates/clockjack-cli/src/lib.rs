//! The command `clockjack` as a library, so that tests can call it without starting a process.
//!
//! ```
//! use clockjack_cli::{Streams, exit_code, run};
//! use clockjack_graph::Registry;
//!
//! let (mut out, mut err) = (Vec::new(), Vec::new());
//! let mut streams = Streams::new(&mut out, &mut err);
//! let args = ["clockjack", "demo", "timers", "--count", "1000"];
//! assert_eq!(run(&Registry::new(), args, &mut streams), exit_code::OK);
//! let text = String::from_utf8(out)?;
//! assert!(text.contains("against a sorted list: equal"), "{text}");
//! # Ok::<(), std::string::FromUtf8Error>(())
//! ```
//!
//! # Conventions
//!
//! * The result goes to standard output and everything else to standard error. If the reader closes
//!   the pipe early (`clockjack demo timers | head -3`), this is not a failure and does not hide
//!   one.
//! * A file is written completely or not at all, and an unwritable file is reported before the run.
//!   Logs are the exception: they grow during a run.
//! * Where a command reads a graph file, `-` means standard input.
//! * [Exit codes](exit_code) are part of the interface.
//! * Colors are used only on a terminal, and never if `NO_COLOR` is set; `--color` overrides both.
//!   The progress line consists of printable text and carriage returns. On Ctrl-C or
//!   SIGTERM a run completes the work in progress and exits with 130 or 143; it does not wait for
//!   it longer than `--drain-timeout`, nor after a second signal. Every other command is stopped by
//!   the signal.
//! * Everything except measured durations is the same in every run with the same arguments, on
//!   every machine. In `--format json` the exceptions are the members of `timing`.
//!
//! # Graphs
//!
//! `check`, `plan`, `render`, `lint`, `explain`, `diff-plan` and `schema` read graph files; `run`,
//! `trace`, `observe` and `bench` run them. A program with its own components gets every command
//! with one call:
//!
//! ```no_run
//! fn main() -> std::process::ExitCode {
//!     clockjack_cli::main(clockjack_graph::Registry::standard())
//! }
//! ```
//!
//! `observe --record` writes a recording of a run: the graph file, the plan, a drawing, events,
//! assertions, metrics, health events and a trace, in formats that other tools read. It writes no
//! HTML page.
//!
//! # Running programs
//!
//! `ps`, `top`, `inspect` and `doctor --of` look at a running program that has opened its console
//! (`Console::of(&rt).open()?`). `get` prints a setting of one of its graphs, and `set` changes it
//! if the program allows that. `run --console` opens a console on a run.
//!
//! # Demos
//!
//! `demo timers` and `demo jobs` run a timer wheel and a scheduler in virtual time, and check every
//! run with the oracle of `clockjack_sched::properties`.
//!
//! # Projects
//!
//! `init` creates a new project that compiles and passes its tests, from one of four templates.
//!
//! # Clusters
//!
//! `cluster` runs the program `clockjack-cluster`, which shows and checks a cluster of nodes on
//! NATS servers. It is a program of its own, so that this one needs no client for NATS.
//!
//! # Not supported
//!
//! Replaying runs of graphs. Previews of payloads: events describe messages, not their contents.
//! Real time for `demo`: it checks correctness, not the punctuality of the operating system.

mod cli;
#[cfg(feature = "console")]
#[path = "console/with.rs"]
mod console;
#[cfg(not(feature = "console"))]
#[path = "console/without.rs"]
mod console;
mod demo;
pub mod exit_code;
mod failure;
#[cfg(not(unix))]
#[path = "file_id/portable.rs"]
mod file_id;
#[cfg(unix)]
#[path = "file_id/unix.rs"]
mod file_id;
mod findings;
mod format;
#[cfg(test)]
mod golden;
mod graph;
mod init;
mod interrupt;
mod live;
mod output;
mod plot;
mod progress;
mod render;
mod rng;
mod run;
mod span;
mod streams;
#[cfg(target_os = "linux")]
#[path = "terminal/linux.rs"]
mod terminal;
#[cfg(not(target_os = "linux"))]
#[path = "terminal/portable.rs"]
mod terminal;

pub use cli::{main, run};
pub use interrupt::Interrupt;
pub use streams::Streams;

/// How this program was built; measurements are meaningful only in a release build.
#[cfg(debug_assertions)]
const BUILD: &str = "debug";
#[cfg(not(debug_assertions))]
const BUILD: &str = "release";

/// A note after measured durations; empty in a release build.
const fn slow_build_note() -> &'static str {
    if cfg!(debug_assertions) { " (debug build; release is much faster)" } else { "" }
}
