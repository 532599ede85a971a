//! Why a command that was understood came to no good end. Trying again helps with none of these.

use core::{error::Error, fmt};
use std::io;

use crate::timers::Violation;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure(Kind);

#[derive(Debug)]
enum Kind {
    Check(Violation),
    Refused { number: u32, capacity: usize },
    Output(io::Error),
}

impl Failure {
    /// The wheel refused a timer although it was made for as many.
    pub(crate) const fn refused(number: u32, capacity: usize) -> Self {
        Self(Kind::Refused { number, capacity })
    }

    /// The result could not be written.
    pub(crate) const fn output(source: io::Error) -> Self {
        Self(Kind::Output(source))
    }

    /// Whether the reader of the output went away, which is no fault.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(&self.0, Kind::Output(source) if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl From<Violation> for Failure {
    fn from(violation: Violation) -> Self {
        Self(Kind::Check(violation))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Check(_) => write!(f, "a check did not hold"),
            Kind::Refused { number, capacity } => {
                write!(f, "timer {number} was refused by a wheel with room for {capacity}")
            }
            Kind::Output(_) => write!(f, "cannot write the result"),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::Check(violation) => Some(violation),
            Kind::Refused { .. } => None,
            Kind::Output(source) => Some(source),
        }
    }
}
