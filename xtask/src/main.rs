//! Every developer command of Clockjack: `cargo xtask help` lists them.
//!
//! `main` parses the command line and calls one function per command; each lives in a module of
//! its name. A command prints its steps and how long each took. The exit status is 0 if every
//! step passed, 1 if one failed, 2 for a command line that does not parse; `compare`, `sim` and
//! `soak` become the program that they build, and end as that does.

mod api;
mod book;
mod ci;
mod compare;
mod console;
mod contract;
mod counts;
mod digest;
mod firmware;
mod foreign;
mod fuzz;
mod init;
mod layering;
mod libtest;
mod licences;
mod loom;
mod mutants;
mod nostd;
mod process;
mod sanitize;
mod shuttle;
mod sim;
mod size;
mod soak;
mod suite;
mod table;
mod testbin;
mod tidy;
mod tool;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Every developer command of Clockjack.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run unit, integration and doc tests and the quick loom models (needs nothing but cargo)
    Test,
    /// Run everything a submission must pass, beginning with `cargo xtask test`
    Ci,
    /// Run the long checks (full loom, mutants, sanitizers, compare) and leave a dated log
    Deep,
    /// Check the style rules that a program can check
    Tidy,
    /// Count code, documentation and tests of each crate, public types and words of our own
    Size,
    /// Check the arrows between crates against the one allowed table
    Layering,
    /// Check licences and advisories of what is depended upon, and that every crate can be packed
    Licences(licences::Options),
    /// Compare the public surface of each crate with `api/`, or write it anew
    Api(api::Options),
    /// Write the generated pages and pictures of the book, and build it for a browser
    Book(book::Options),
    /// Write each project of `clockjack init` anew and run its tests
    Init,
    /// Run the loom models of every crate that has tests/loom.rs
    Loom(loom::Options),
    /// Run the scenes of every crate that has tests/shuttle.rs under random schedules
    Shuttle(shuttle::Options),
    /// Run whole systems in virtual time, each seed with faults of its own, and judge them
    Sim(sim::Options),
    /// Run mixed load on the worker pool, with books that must balance
    Soak(soak::Options),
    /// Switch on each planted fault and see its named test fail
    Mutants(mutants::Options),
    /// Check that every test named in a contract.md or requirements.md exists and ran
    Contract,
    /// Check instructions and allocations of hot operations against benches/counts.toml
    Counts(counts::Options),
    /// Run the same loads on Clockjack and its rivals
    Compare(compare::Options),
    /// Prove that the core crates link no std, and check them for bare-metal targets
    Nostd(nostd::Options),
    /// Build the bare-metal program, run it in QEMU and check what it says; tables of its sizes
    Firmware(firmware::Options),
    /// Run the simulated scenario on 32-bit ARM and big-endian s390x, under QEMU's user mode
    Foreign(foreign::Options),
    /// Run the fuzz targets under libFuzzer, each for some minutes
    Fuzz(fuzz::Options),
    /// Run the stress tests under ThreadSanitizer and AddressSanitizer
    Sanitize(sanitize::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            console::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Test => suite::run(),
        Command::Ci => ci::run(),
        Command::Deep => ci::run_deep(),
        Command::Tidy => tidy::run(),
        Command::Size => size::run(),
        Command::Layering => layering::run(),
        Command::Licences(options) => licences::run(options),
        Command::Api(options) => api::run(options),
        Command::Book(options) => book::run(options),
        Command::Init => init::run(),
        Command::Loom(options) => loom::run(options),
        Command::Shuttle(options) => shuttle::run(options),
        Command::Sim(options) => sim::run(options),
        Command::Soak(options) => soak::run(options),
        Command::Mutants(options) => mutants::run(options),
        Command::Contract => contract::run(),
        Command::Counts(options) => counts::run(options),
        Command::Compare(options) => compare::run(options),
        Command::Nostd(options) => nostd::run(options),
        Command::Firmware(options) => firmware::run(options),
        Command::Foreign(options) => foreign::run(options),
        Command::Fuzz(options) => fuzz::run(options),
        Command::Sanitize(options) => sanitize::run(options),
    }
}
