//! Every developer command of Clockjack: `cargo xtask help` lists them.
//!
//! `main` parses the command line and calls one function per command, in the module of the same
//! name. A command prints its steps and how long each took. The exit status is 0 if every step
//! passed, 1 if one failed, 2 for a command line that does not parse; `compare`, `sim` and `soak`
//! run the program that they build and return its exit status.

mod api;
mod book;
mod browser;
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
mod nats;
mod nostd;
mod process;
mod release;
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
mod version;
mod wire;
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
    /// Run unit, integration and doc tests and the quick loom models (needs only cargo)
    Test,
    /// Run everything that a submission must pass, beginning with `cargo xtask test`
    Ci,
    /// Run the long checks (full loom, mutants, sanitizers, compare) and write a dated log
    Deep,
    /// Check the style rules that a program can check
    Tidy,
    /// Count lines of code, documentation and tests per crate, public types and project-specific
    /// words
    Size,
    /// Check the dependencies between crates against the table of allowed ones
    Layering,
    /// Check licences and advisories of dependencies, and that every crate can be packaged
    Licences(licences::Options),
    /// Check that the tree can be released: versions, changelog, public API, packages; and tag it
    Release(release::Options),
    /// Compare the public surface of each crate with `api/`, or update the stored surface
    Api(api::Options),
    /// Generate the reference pages and pictures of the book, and build it for a browser
    Book(book::Options),
    /// Drive the page of the console in Chromium against running programs, and take pictures of it
    Browser,
    /// Create each project of `clockjack init` and run its tests
    Init,
    /// Run the loom models of every crate that has tests/loom.rs
    Loom(loom::Options),
    /// Run the tests of every crate that has tests/shuttle.rs under random schedules
    Shuttle(shuttle::Options),
    /// Simulate whole systems in virtual time with injected faults, one run per seed
    Sim(sim::Options),
    /// Run a mixed load on the worker pool and check that nothing is lost or done twice
    Soak(soak::Options),
    /// Switch on each planted fault and check that its named test fails
    Mutants(mutants::Options),
    /// Check that every test named in a contract.md or requirements.md exists and ran
    Contract,
    /// Check instructions and allocations of hot operations against benches/counts.toml
    Counts(counts::Options),
    /// Run the same workloads on Clockjack and on competing crates
    Compare(compare::Options),
    /// Fetch the pinned nats-server and print its path
    NatsServer,
    /// Run the tests of clockjack-nats against a real nats-server, which is fetched
    Nats(nats::Options),
    /// Check the golden bytes of the types that travel, or write those of new versions
    Wire(wire::Options),
    /// Prove that the core crates link no std, and check them for bare-metal targets
    Nostd(nostd::Options),
    /// Build the bare-metal programs, run them in QEMU, check their output and print their sizes
    Firmware(firmware::Options),
    /// Check other platforms: emulated 32-bit ARM and big-endian s390x, Windows in Wine, macOS
    Foreign(foreign::Options),
    /// Run the fuzz targets under libFuzzer
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
        Command::Release(options) => release::run(options),
        Command::Api(options) => api::run(options),
        Command::Book(options) => book::run(options),
        Command::Browser => browser::run(),
        Command::Init => init::run(),
        Command::Loom(options) => loom::run(options),
        Command::Shuttle(options) => shuttle::run(options),
        Command::Sim(options) => sim::run(options),
        Command::Soak(options) => soak::run(options),
        Command::Mutants(options) => mutants::run(options),
        Command::Contract => contract::run(),
        Command::Counts(options) => counts::run(options),
        Command::Compare(options) => compare::run(options),
        Command::NatsServer => nats::run_server(),
        Command::Nats(options) => nats::run(options),
        Command::Wire(options) => wire::run(options),
        Command::Nostd(options) => nostd::run(options),
        Command::Firmware(options) => firmware::run(options),
        Command::Foreign(options) => foreign::run(options),
        Command::Fuzz(options) => fuzz::run(options),
        Command::Sanitize(options) => sanitize::run(options),
    }
}
