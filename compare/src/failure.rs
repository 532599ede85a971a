//! Why a comparison could not be made. None of these errors is temporary: the same call fails
//! again.

use core::error::Error;
use core::fmt;
use std::io;

/// A comparison that could not be made.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Miscount { subject: &'static str, what: &'static str, found: u64, expected: u64 },
    FalseClaim { subject: &'static str, claim: &'static str, first: f64, second: f64 },
    Unknown { what: &'static str, name: String, known: String },
    Output { what: String, source: io::Error },
    Start { subject: &'static str, source: io::Error },
    Child { subject: &'static str, said: String },
}

impl Failure {
    /// A subject did not do the load correctly, so its times mean nothing.
    pub(crate) const fn miscount(
        subject: &'static str,
        what: &'static str,
        found: u64,
        expected: u64,
    ) -> Self {
        Self { kind: Kind::Miscount { subject, what, found, expected } }
    }

    /// The allocator contradicts a property of a subject.
    pub(crate) const fn false_claim(
        subject: &'static str,
        claim: &'static str,
        first: f64,
        second: f64,
    ) -> Self {
        Self { kind: Kind::FalseClaim { subject, claim, first, second } }
    }

    /// The user named something that does not exist.
    pub(crate) const fn unknown(what: &'static str, name: String, known: String) -> Self {
        Self { kind: Kind::Unknown { what, name, known } }
    }

    /// The report could not be written.
    pub(crate) const fn output(what: String, source: io::Error) -> Self {
        Self { kind: Kind::Output { what, source } }
    }

    /// A subject or its threads could not be started.
    pub(crate) const fn start(subject: &'static str, source: io::Error) -> Self {
        Self { kind: Kind::Start { subject, source } }
    }

    /// The separate process of a subject did not print its result.
    pub(crate) const fn child(subject: &'static str, said: String) -> Self {
        Self { kind: Kind::Child { subject, said } }
    }

    /// Whether the arguments were wrong.
    pub(crate) const fn is_usage(&self) -> bool {
        matches!(self.kind, Kind::Unknown { .. })
    }

    /// Whether the reader of the output closed the pipe, which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(&self.kind, Kind::Output { source, .. }
            if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Miscount { subject, what, found, expected } => {
                write!(f, "{subject}: {what} is {found}, expected {expected}")
            }
            Kind::FalseClaim { subject, claim, first, second } => write!(
                f,
                "{subject} claims {claim}, but used {first:.1} bytes per timer after the \
                 first filling and {second:.1} after the second"
            ),
            Kind::Unknown { what, name, known } => {
                write!(f, "no {what} is called `{name}`; known: {known}")
            }
            Kind::Output { what, .. } => write!(f, "cannot write {what}"),
            Kind::Start { subject, .. } => write!(f, "{subject} cannot be started"),
            Kind::Child { subject, said } => {
                write!(f, "{subject} could not be measured in a separate process: {said}")
            }
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            Kind::Output { source, .. } | Kind::Start { source, .. } => Some(source),
            _ => None,
        }
    }
}
