//! The program `clockjack-cluster`: the commands of `clockjack cluster`.
//!
//! All of them work through the log of the cluster, and need no port on the nodes. Those that read
//! need the right to read only; `init-server` and `permissions` need no server.

mod args;
mod doctor;
mod events;
mod failure;
mod init_server;
mod monitor;
mod status;

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use clap::Parser as _;

use crate::{args::Command, failure::Failure};

fn main() -> ExitCode {
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return print_parse_message(&error),
    };
    let result = match cli.command {
        Command::Status(args) => status::run(&args, true),
        Command::Members(args) => status::run(&args, false),
        Command::Events(args) => events::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::InitServer(args) => init_server::run(args),
        Command::Permissions(args) => permissions(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

/// Prints the help, the version or the error in the arguments.
fn print_parse_message(error: &clap::Error) -> ExitCode {
    // Without colors.
    let text = error.render().to_string();
    if error.use_stderr() {
        // The exit code reports the error even if standard error cannot be written.
        let _written = io::stderr().write_all(text.as_bytes());
        return ExitCode::from(failure::USAGE);
    }
    match write_result(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            failure.exit_code()
        }
    }
}

/// Writes a result. A closed pipe is not a failure: the reader has seen enough.
fn write_result(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::failed("cannot write the result", error)),
    }
}

fn permissions(args: &args::PermissionsArgs) -> Result<(), Failure> {
    let rules = clockjack_nats::tools::Rules::new(&args.cluster, &args.node, args.role.into());
    let rules = rules.ok_or_else(|| {
        Failure::usage(
            "the names of the cluster and the node have 1 to 64 ASCII letters, digits, '-' and \
             '_'; that of the node also '.'",
        )
    })?;
    write_result(&rules.to_string())
}
