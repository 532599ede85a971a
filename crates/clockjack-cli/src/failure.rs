//! Why a command failed. Retrying helps with none of these failures.

use core::{error::Error, fmt};
use std::{io, path::Path};

use clockjack_console::client::{ClientError, ConnectError};
use clockjack_sched::properties::PropertyError;

use crate::{exit_code, findings, graph::explain, live};

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit_code: u8,
    /// The reason; `None` if the command has already reported it.
    message: Option<String>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl Failure {
    /// The arguments are invalid. This is detected before the command does any work.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit_code: exit_code::USAGE, message: Some(message.into()), source: None }
    }

    /// The command could not do its work.
    fn failed(message: impl Into<String>) -> Self {
        Self { exit_code: exit_code::FAILED, ..Self::usage(message) }
    }

    fn caused_by(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }

    /// A graph file could not be read.
    pub(crate) fn graph_input(path: &Path, source: io::Error) -> Self {
        Self::usage(format!("cannot read the graph '{}'", shown(path))).caused_by(source)
    }

    /// A file that the arguments name could not be written.
    pub(crate) fn file_output(path: &Path, source: io::Error) -> Self {
        Self::failed(format!("cannot write '{}'", shown(path))).caused_by(source)
    }

    /// A component could not be started or stopped.
    pub(crate) fn dry_run(file: &str, why: &str) -> Self {
        let message = format!("{}: the dry run failed: {why}", printable(file));
        Self { exit_code: exit_code::RUN_FAILED, ..Self::usage(message) }
    }

    /// The operating system cannot start the worker threads.
    pub(crate) fn no_runtime(why: impl fmt::Display) -> Self {
        Self::failed(format!("cannot start the worker threads: {why}"))
    }

    /// The console of a run could not be opened.
    #[cfg_attr(not(feature = "console"), expect(dead_code, reason = "there is no console"))]
    pub(crate) fn no_console(source: impl Error) -> Self {
        Self::failed(live::with_cause(&source))
    }

    /// The measurements cannot be exported in the requested format.
    pub(crate) fn no_export(why: impl fmt::Display) -> Self {
        Self::failed(format!("cannot export the measurements: {why}"))
    }

    /// An assertion file could not be read.
    pub(crate) fn assertions_input(path: &Path, source: io::Error) -> Self {
        Self::usage(format!("cannot read the assertion file '{}'", shown(path))).caused_by(source)
    }

    /// A commit log could not be read.
    pub(crate) fn log_input(path: &Path, source: io::Error) -> Self {
        Self::usage(format!("cannot read the commit log '{}'", shown(path))).caused_by(source)
    }

    /// The file is not a commit log of the graph.
    pub(crate) fn not_a_log(path: &Path, why: &str) -> Self {
        Self::usage(format!("'{}' is not a commit log of this graph: {why}", shown(path)))
    }

    /// The file is not a valid assertion file.
    pub(crate) fn not_assertions(path: &Path, why: &str) -> Self {
        Self::usage(format!("'{}' is not a valid assertion file: {why}", shown(path)))
    }

    /// The diagnostic code does not exist.
    pub(crate) fn unknown_code(name: &str) -> Self {
        let mut near = explain::near(name);
        near.extend(findings::near(name));
        Self::usage(if near.is_empty() {
            format!("unknown code '{name}'; `clockjack explain` lists all codes")
        } else {
            format!("unknown code '{name}'; did you mean {}?", near.join(" or "))
        })
    }

    /// There is no connection to a running program.
    pub(crate) fn not_connected(source: ConnectError) -> Self {
        let is_not_allowed = source.is_not_allowed();
        let code = if is_not_allowed { exit_code::NOT_ALLOWED } else { exit_code::NOT_CONNECTED };
        Self { exit_code: code, ..Self::usage(printable(&live::with_cause(&source))) }
    }

    /// A running program does not answer, or refuses.
    pub(crate) fn client(source: ClientError) -> Self {
        let code = match &source {
            error if error.is_not_allowed() => exit_code::NOT_ALLOWED,
            error if error.is_not_found() || error.is_invalid() => exit_code::USAGE,
            _ => exit_code::NOT_CONNECTED,
        };
        Self { exit_code: code, ..Self::usage(printable(&source.to_string())) }
    }

    /// A running program has nothing of the name that was asked for.
    pub(crate) fn nothing_there(why: &str) -> Self {
        Self::usage(printable(why))
    }

    /// A running program has closed its console.
    pub(crate) fn program_ended() -> Self {
        let message = "the program has ended, or has closed its console";
        Self { exit_code: exit_code::NOT_CONNECTED, ..Self::usage(message) }
    }

    /// The directory of the sockets cannot be read.
    pub(crate) fn sockets(source: io::Error) -> Self {
        Self::failed("cannot read the directory of the sockets").caused_by(source)
    }

    /// The command has already reported the failure; only the exit code is missing.
    pub(crate) const fn already_reported(exit_code: u8) -> Self {
        Self { exit_code, message: None, source: None }
    }

    /// Whether the failure is already reported.
    pub(crate) const fn is_already_reported(&self) -> bool {
        self.message.is_none()
    }

    /// A check of a demo failed.
    pub(crate) fn check(what: impl fmt::Display) -> Self {
        Self::failed(format!("a check failed: {what}"))
    }

    /// The property that a demo violates.
    #[cfg(test)]
    pub(crate) fn property(&self) -> Option<clockjack_sched::properties::Property> {
        self.source.as_ref()?.downcast_ref().map(PropertyError::property)
    }

    /// Another program, which has the command, could not be started.
    pub(crate) fn no_program(program: &str, source: io::Error) -> Self {
        let message = format!(
            "the command needs the program `{program}`, next to this one or on the search path"
        );
        Self::usage(message).caused_by(source)
    }

    /// An output file is also an input file or another output file.
    pub(crate) fn same_file(path: &Path) -> Self {
        let path = shown(path);
        Self::usage(format!("'{path}' would be overwritten: another argument names the same file"))
    }

    /// The result could not be written.
    pub(crate) fn output(source: io::Error) -> Self {
        Self::failed("cannot write the result").caused_by(source)
    }

    /// The terminal cannot be used.
    #[cfg_attr(not(feature = "tui"), expect(dead_code, reason = "there is no screen"))]
    pub(crate) fn terminal(source: io::Error) -> Self {
        Self::failed("cannot use the terminal").caused_by(source)
    }

    /// The exit code of the process.
    pub(crate) const fn exit_code(&self) -> u8 {
        self.exit_code
    }
}

/// A path in a message.
pub(crate) fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// A name in a line of text. Control characters are escaped, so that a file name cannot send
/// commands to the terminal or seem to be several lines.
pub(crate) fn printable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if letter.is_control() {
            out.extend(letter.escape_default());
        } else {
            out.push(letter);
        }
    }
    out
}

impl From<PropertyError> for Failure {
    fn from(error: PropertyError) -> Self {
        Self::failed("a check failed").caused_by(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => f.write_str(message),
            None => write!(f, "exit code {}", self.exit_code),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
