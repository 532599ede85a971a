//! Why a command failed. Retrying helps with none of these failures.

use core::{error::Error, fmt};
use std::{io, path::Path};

use clockjack_sched::properties::PropertyError;

use crate::{exit_code, graph::explain};

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
        Self::usage(format!("cannot read the graph '{}'", path.display())).caused_by(source)
    }

    /// A file that the arguments name could not be written.
    pub(crate) fn file_output(path: &Path, source: io::Error) -> Self {
        Self::failed(format!("cannot write '{}'", path.display())).caused_by(source)
    }

    /// A component could not be started or stopped.
    pub(crate) fn dry_run(file: &str, why: &str) -> Self {
        let message = format!("{file}: the dry run failed: {why}");
        Self { exit_code: exit_code::RUN_FAILED, ..Self::usage(message) }
    }

    /// The operating system cannot start the worker threads.
    pub(crate) fn no_runtime(why: impl fmt::Display) -> Self {
        Self::failed(format!("cannot start the worker threads: {why}"))
    }

    /// The measurements cannot be exported in the requested format.
    pub(crate) fn no_export(why: impl fmt::Display) -> Self {
        Self::failed(format!("cannot export the measurements: {why}"))
    }

    /// An assertion file could not be read.
    pub(crate) fn assertions_input(path: &Path, source: io::Error) -> Self {
        Self::usage(format!("cannot read the assertion file '{}'", path.display()))
            .caused_by(source)
    }

    /// The file is not a valid assertion file.
    pub(crate) fn not_assertions(path: &Path, why: &str) -> Self {
        Self::usage(format!("'{}' is not a valid assertion file: {why}", path.display()))
    }

    /// The diagnostic code does not exist.
    pub(crate) fn unknown_code(name: &str) -> Self {
        let near = explain::near(name);
        Self::usage(if near.is_empty() {
            format!("unknown code '{name}'; `clockjack explain` lists all codes")
        } else {
            format!("unknown code '{name}'; did you mean {}?", near.join(" or "))
        })
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

    /// An output file is also an input file or another output file.
    pub(crate) fn same_file(path: &Path) -> Self {
        let path = path.display();
        Self::usage(format!("'{path}' would be overwritten: another argument names the same file"))
    }

    /// The result could not be written.
    pub(crate) fn output(source: io::Error) -> Self {
        Self::failed("cannot write the result").caused_by(source)
    }

    /// The exit code of the process.
    pub(crate) const fn exit_code(&self) -> u8 {
        self.exit_code
    }
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
