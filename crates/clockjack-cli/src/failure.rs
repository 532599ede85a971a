//! Why a command failed. Retrying helps with none of these failures.

use core::{error::Error, fmt};
use std::{
    io,
    path::{Path, PathBuf},
};

use clockjack_sched::properties::PropertyError;

use crate::{exit_code, graph::explain, init::InitError};

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure(Kind);

#[derive(Debug)]
enum Kind {
    Property(PropertyError),
    Check(String),
    SameFile(PathBuf),
    StdinTwice,
    Output(io::Error),
    Init(InitError),
    GraphInput { path: PathBuf, source: io::Error },
    FileOutput { path: PathBuf, source: io::Error },
    NoRuntime(String),
    NoExport(String),
    AssertionsInput { path: PathBuf, source: io::Error },
    NotAssertions { path: PathBuf, why: String },
    UnknownCode(String),
    UnknownName(String),
    UnknownCommand(String),
    AlreadyReported(u8),
}

impl Failure {
    /// A graph file could not be read.
    pub(crate) fn graph_input(path: &Path, source: io::Error) -> Self {
        Self(Kind::GraphInput { path: path.to_owned(), source })
    }

    /// A file that the arguments name could not be written.
    pub(crate) fn file_output(path: &Path, source: io::Error) -> Self {
        Self(Kind::FileOutput { path: path.to_owned(), source })
    }

    /// The operating system cannot start the worker threads.
    pub(crate) const fn no_runtime(why: String) -> Self {
        Self(Kind::NoRuntime(why))
    }

    /// The measurements cannot be exported in the requested format.
    pub(crate) const fn no_export(why: String) -> Self {
        Self(Kind::NoExport(why))
    }

    /// An assertion file could not be read.
    pub(crate) fn assertions_input(path: &Path, source: io::Error) -> Self {
        Self(Kind::AssertionsInput { path: path.to_owned(), source })
    }

    /// The file is not a valid assertion file.
    pub(crate) fn not_assertions(path: &Path, why: String) -> Self {
        Self(Kind::NotAssertions { path: path.to_owned(), why })
    }

    /// The diagnostic code does not exist.
    pub(crate) fn unknown_code(name: &str) -> Self {
        Self(Kind::UnknownCode(name.to_owned()))
    }

    /// The graph has no item with this name.
    pub(crate) const fn unknown_name(why: String) -> Self {
        Self(Kind::UnknownName(why))
    }

    /// The command does not exist.
    pub(crate) fn unknown_command(name: &str) -> Self {
        Self(Kind::UnknownCommand(name.to_owned()))
    }

    /// The command has already reported the failure; only the exit code is missing.
    pub(crate) const fn already_reported(exit_code: u8) -> Self {
        Self(Kind::AlreadyReported(exit_code))
    }

    /// Whether the failure is already reported.
    pub(crate) const fn is_already_reported(&self) -> bool {
        matches!(self.0, Kind::AlreadyReported(_))
    }

    /// A check of a demo failed.
    pub(crate) fn check(what: impl Into<String>) -> Self {
        Self(Kind::Check(what.into()))
    }

    /// The property that a demo violates.
    #[cfg(test)]
    pub(crate) const fn property(&self) -> Option<clockjack_sched::properties::Property> {
        match &self.0 {
            Kind::Property(error) => Some(error.property()),
            _ => None,
        }
    }

    /// An output file is also an input file or another output file.
    pub(crate) fn same_file(path: &Path) -> Self {
        Self(Kind::SameFile(path.to_owned()))
    }

    /// `-` (standard input) is given more than once.
    pub(crate) const fn stdin_twice() -> Self {
        Self(Kind::StdinTwice)
    }

    /// The result could not be written.
    pub(crate) const fn output(source: io::Error) -> Self {
        Self(Kind::Output(source))
    }

    /// The exit code of the process. Invalid arguments are detected before the command does any
    /// work.
    pub(crate) const fn exit_code(&self) -> u8 {
        match &self.0 {
            Kind::SameFile(_)
            | Kind::StdinTwice
            | Kind::GraphInput { .. }
            | Kind::AssertionsInput { .. }
            | Kind::NotAssertions { .. }
            | Kind::UnknownCode(_)
            | Kind::UnknownName(_)
            | Kind::UnknownCommand(_) => exit_code::USAGE,
            Kind::AlreadyReported(code) => *code,
            Kind::Init(error) => error.exit_code(),
            Kind::Property(_)
            | Kind::Check(_)
            | Kind::FileOutput { .. }
            | Kind::NoRuntime(_)
            | Kind::NoExport(_)
            | Kind::Output(_) => exit_code::FAILED,
        }
    }
}

impl From<PropertyError> for Failure {
    fn from(error: PropertyError) -> Self {
        Self(Kind::Property(error))
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Self {
        Self(Kind::Init(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Property(_) => write!(f, "a check failed"),
            Kind::Check(what) => write!(f, "a check failed: {what}"),
            Kind::SameFile(path) => {
                let path = path.display();
                write!(f, "'{path}' would be overwritten: another argument names the same file")
            }
            Kind::StdinTwice => {
                write!(f, "`-` is given twice, but standard input can be read only once")
            }
            Kind::Output(_) => write!(f, "cannot write the result"),
            Kind::Init(error) => write!(f, "{error}"),
            Kind::GraphInput { path, .. } => {
                write!(f, "cannot read the graph '{}'", path.display())
            }
            Kind::FileOutput { path, .. } => write!(f, "cannot write '{}'", path.display()),
            Kind::NoRuntime(why) => write!(f, "cannot start the worker threads: {why}"),
            Kind::NoExport(why) => write!(f, "cannot export the measurements: {why}"),
            Kind::AssertionsInput { path, .. } => {
                write!(f, "cannot read the assertion file '{}'", path.display())
            }
            Kind::NotAssertions { path, why } => {
                write!(f, "'{}' is not a valid assertion file: {why}", path.display())
            }
            Kind::UnknownCode(name) => {
                write!(f, "unknown code '{name}'")?;
                let near = explain::near(name);
                if near.is_empty() {
                    return write!(f, "; `clockjack explain` lists all codes");
                }
                write!(f, "; did you mean {}?", near.join(" or "))
            }
            Kind::UnknownName(why) => write!(f, "{why}"),
            Kind::UnknownCommand(name) => {
                write!(f, "unknown command '{name}'; `clockjack --help` lists all commands")
            }
            Kind::AlreadyReported(code) => write!(f, "exit code {code}"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::Property(error) => Some(error),
            Kind::Init(error) => error.source(),
            Kind::GraphInput { source, .. }
            | Kind::AssertionsInput { source, .. }
            | Kind::FileOutput { source, .. }
            | Kind::Output(source) => Some(source),
            Kind::Check(_)
            | Kind::SameFile(_)
            | Kind::StdinTwice
            | Kind::NoRuntime(_)
            | Kind::NoExport(_)
            | Kind::NotAssertions { .. }
            | Kind::UnknownCode(_)
            | Kind::UnknownName(_)
            | Kind::UnknownCommand(_)
            | Kind::AlreadyReported(_) => None,
        }
    }
}
