//! Why a command failed. Retrying helps with none of these failures.

use core::{error::Error, fmt};
use std::{
    io,
    path::{Path, PathBuf},
};

use clockjack_sched::{
    ScheduleErrorKind,
    log::{Divergence, TraceError},
};

use crate::{exit_code, graph::explain, init::InitError, jobs, timers};

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure(Kind);

#[derive(Debug)]
enum Kind {
    Timers(timers::Violation),
    Jobs(jobs::Violation),
    Refused { number: u32, capacity: usize },
    NotScheduled { number: u32, kind: ScheduleErrorKind },
    Plan(jobs::PlanError),
    SameFile(PathBuf),
    StdinTwice,
    TraceInput { path: PathBuf, source: io::Error },
    NotATrace { path: PathBuf, source: TraceError },
    Diverged { path: PathBuf, divergence: Box<Divergence> },
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

    /// The wheel rejected a timer although its capacity suffices.
    pub(crate) const fn refused(number: u32, capacity: usize) -> Self {
        Self(Kind::Refused { number, capacity })
    }

    /// The scheduler rejected a valid job.
    pub(crate) fn not_scheduled(number: u32) -> impl FnOnce(ScheduleErrorKind) -> Self {
        move |kind| Self(Kind::NotScheduled { number, kind })
    }

    /// An output file is also an input file or another output file.
    pub(crate) fn same_file(path: &Path) -> Self {
        Self(Kind::SameFile(path.to_owned()))
    }

    /// `-` (standard input) is given more than once.
    pub(crate) const fn stdin_twice() -> Self {
        Self(Kind::StdinTwice)
    }

    /// A trace could not be read.
    pub(crate) fn trace_input(path: &Path, source: io::Error) -> Self {
        Self(Kind::TraceInput { path: path.to_owned(), source })
    }

    /// The file is not a valid trace.
    pub(crate) fn not_a_trace(path: &Path, source: TraceError) -> Self {
        Self(Kind::NotATrace { path: path.to_owned(), source })
    }

    /// The run differs from the recorded run.
    pub(crate) fn diverged(path: &Path, divergence: Divergence) -> Self {
        Self(Kind::Diverged { path: path.to_owned(), divergence: Box::new(divergence) })
    }

    /// The result could not be written.
    pub(crate) const fn output(source: io::Error) -> Self {
        Self(Kind::Output(source))
    }

    /// The exit code of the process. Invalid arguments are detected before the command does any
    /// work.
    pub(crate) const fn exit_code(&self) -> u8 {
        match &self.0 {
            Kind::Plan(_)
            | Kind::SameFile(_)
            | Kind::StdinTwice
            | Kind::TraceInput { .. }
            | Kind::NotATrace { .. }
            | Kind::GraphInput { .. }
            | Kind::AssertionsInput { .. }
            | Kind::NotAssertions { .. }
            | Kind::UnknownCode(_)
            | Kind::UnknownName(_)
            | Kind::UnknownCommand(_) => exit_code::USAGE,
            Kind::AlreadyReported(code) => *code,
            Kind::Init(error) => error.exit_code(),
            Kind::Timers(_)
            | Kind::Jobs(_)
            | Kind::Refused { .. }
            | Kind::NotScheduled { .. }
            | Kind::Diverged { .. }
            | Kind::FileOutput { .. }
            | Kind::NoRuntime(_)
            | Kind::NoExport(_)
            | Kind::Output(_) => exit_code::FAILED,
        }
    }
}

impl From<timers::Violation> for Failure {
    fn from(violation: timers::Violation) -> Self {
        Self(Kind::Timers(violation))
    }
}

impl From<jobs::Violation> for Failure {
    fn from(violation: jobs::Violation) -> Self {
        Self(Kind::Jobs(violation))
    }
}

impl From<jobs::PlanError> for Failure {
    fn from(error: jobs::PlanError) -> Self {
        Self(Kind::Plan(error))
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
            Kind::Timers(_) | Kind::Jobs(_) => write!(f, "a check failed"),
            Kind::Refused { number, capacity } => {
                write!(f, "the wheel rejected timer {number} although its capacity is {capacity}")
            }
            Kind::NotScheduled { number, kind } => {
                write!(f, "the scheduler rejected job {number}: {kind}")
            }
            Kind::Plan(_) => write!(f, "the arguments contradict each other"),
            Kind::SameFile(path) => {
                let path = path.display();
                write!(f, "'{path}' would be overwritten: another argument names the same file")
            }
            Kind::StdinTwice => {
                write!(f, "`-` is given twice, but standard input can be read only once")
            }
            Kind::TraceInput { path, .. } => {
                write!(f, "cannot read the trace '{}'", path.display())
            }
            Kind::NotATrace { path, .. } => {
                write!(f, "'{}' is not a complete trace", path.display())
            }
            Kind::Diverged { path, divergence } => {
                let path = path.display();
                write!(f, "this run (right) differs from '{path}' (left): {divergence}")
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
            Kind::Timers(violation) => Some(violation),
            Kind::Jobs(violation) => Some(violation),
            Kind::Plan(error) => Some(error),
            Kind::Init(error) => error.source(),
            Kind::NotATrace { source, .. } => Some(source),
            Kind::TraceInput { source, .. }
            | Kind::GraphInput { source, .. }
            | Kind::AssertionsInput { source, .. }
            | Kind::FileOutput { source, .. }
            | Kind::Output(source) => Some(source),
            Kind::Refused { .. }
            | Kind::NotScheduled { .. }
            | Kind::SameFile(_)
            | Kind::StdinTwice
            | Kind::NoRuntime(_)
            | Kind::NoExport(_)
            | Kind::NotAssertions { .. }
            | Kind::UnknownCode(_)
            | Kind::UnknownName(_)
            | Kind::UnknownCommand(_)
            | Kind::AlreadyReported(_)
            | Kind::Diverged { .. } => None,
        }
    }
}
