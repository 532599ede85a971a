//! Why a project was not written.

use core::{error::Error, fmt};
use std::{io, path::PathBuf};

use crate::exit_code;

/// A project that was not written, or not to its end.
#[derive(Debug)]
pub(crate) enum InitError {
    /// Cargo would not take this name, and why.
    BadName { name: String, why: &'static str },
    /// There is something at its place.
    NotEmpty(PathBuf),
    /// This is no checkout of Clockjack.
    NoCheckout(PathBuf),
    /// The file system refused.
    Write { path: PathBuf, source: io::Error },
}

impl InitError {
    /// What the process exits with. Unless the file system refused, nothing was done.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::BadName { .. } | Self::NotEmpty(_) | Self::NoCheckout(_) => exit_code::USAGE,
            Self::Write { .. } => exit_code::FAILED,
        }
    }
}

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName { name, why } => {
                write!(f, "a project cannot be called '{name}': {why}")
            }
            Self::NotEmpty(dir) => {
                write!(f, "'{}' is there and not empty: nothing was written", dir.display())
            }
            Self::NoCheckout(dir) => {
                let dir = dir.display();
                write!(f, "'{dir}' is no checkout of Clockjack: it has no crates/clockjack")
            }
            Self::Write { path, .. } => write!(f, "cannot write '{}'", path.display()),
        }
    }
}

impl Error for InitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Write { source, .. } => Some(source),
            Self::BadName { .. } | Self::NotEmpty(_) | Self::NoCheckout(_) => None,
        }
    }
}
