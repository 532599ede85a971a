//! `clockjack cluster`: starts the program `clockjack-cluster`, which has the commands for
//! clusters.
//!
//! Those need a client for NATS and its dependencies. They are a program of their own, as the
//! subcommands of cargo and git are, so that who installs this one does not build them.

use std::{
    ffi::OsString,
    io,
    path::PathBuf,
    process::{Command, Stdio},
};

use clap::Args;

use super::{Streams, exit_codes};
use crate::failure::Failure;

/// The program.
const PROGRAM: &str = "clockjack-cluster";

const EXAMPLES: &str = "\
Examples:
  clockjack cluster help                          all commands for clusters
  clockjack cluster init-server --data ./nats     the configuration of a server
  clockjack cluster status                        who is a member
  clockjack cluster doctor                        check servers, log and members";

/// Show and check a cluster of nodes on NATS servers; runs the program clockjack-cluster
#[derive(Debug, Args)]
#[command(after_help = exit_codes(EXAMPLES, &[0, 2, 8]))]
pub(super) struct ClusterArgs {
    /// The command of clockjack-cluster and its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    arguments: Vec<OsString>,
}

impl ClusterArgs {
    pub(super) fn run(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let mut command = Command::new(program());
        command.args(&self.arguments).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| Failure::no_program(PROGRAM, error))?;
        let mut out = child.stdout.take().expect("it is a pipe");
        let copied = copy(&mut out, streams);
        // A program that still writes notices that nobody reads.
        drop(out);
        let status = child.wait().map_err(|error| Failure::no_program(PROGRAM, error))?;
        copied?;
        match status.code() {
            Some(0) => Ok(()),
            code => {
                // A program that a signal has stopped has no exit code.
                let code = code.and_then(|code| u8::try_from(code).ok());
                Err(Failure::already_reported(code.unwrap_or(crate::exit_code::FAILED)))
            }
        }
    }
}

/// Writes what the program prints, as soon as it is there.
fn copy(from: &mut impl io::Read, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let mut buffer = [0; 8_192];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failure::output(error)),
        };
        match streams.out.write_all(&buffer[..n]).and_then(|()| streams.out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written.map_err(Failure::output)?,
        }
    }
}

/// The program next to this one, or else the one that the search path has.
fn program() -> PathBuf {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let here = std::env::current_exe().ok();
    let next = here.and_then(|path| Some(path.parent()?.join(&name))).filter(|path| path.is_file());
    next.unwrap_or_else(|| name.into())
}
