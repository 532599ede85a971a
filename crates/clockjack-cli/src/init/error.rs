//! Why a project was not created.

use core::{error::Error, fmt};
use std::{io, path::PathBuf};

use crate::exit_code;

/// A project that was not created, or only partly.
#[derive(Debug)]
pub(crate) enum InitError {
    /// The package name is invalid, and why.
    BadName { name: String, why: &'static str },
    /// The directory exists and is not empty.
    NotEmpty(PathBuf),
    /// The directory is not a checkout of Clockjack.
    NoCheckout(PathBuf),
    /// The file system returned an error.
    Write { path: PathBuf, source: io::Error },
}

impl InitError {
    /// The exit code of the process. Except after a file system error, nothing was written.
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
                write!(f, "'{name}' is not a valid project name: {why}")
            }
            Self::NotEmpty(dir) => {
                write!(
                    f,
                    "'{}' already exists and is not empty; nothing was written",
                    dir.display()
                )
            }
            Self::NoCheckout(dir) => {
                let dir = dir.display();
                write!(f, "'{dir}' is not a checkout of Clockjack: crates/clockjack is missing")
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
