//! Why a command failed, and the exit codes, which are those of the command `clockjack`.

use core::error::Error;
use std::process::ExitCode;

use clockjack_nats::{JoinError, tools::InspectError};

/// A check failed, the log cannot be read, or a file or the result cannot be written.
pub(crate) const FAILED: u8 = 1;
/// The arguments are invalid; nothing was done.
pub(crate) const USAGE: u8 = 2;
/// No server was reached, or it refused the connection.
pub(crate) const CANNOT_CONNECT: u8 = 8;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    exit_code: u8,
    /// Empty if the command has reported it.
    message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit_code: USAGE, message: message.into() }
    }

    pub(crate) fn failed(what: &str, why: impl core::fmt::Display) -> Self {
        Self { exit_code: FAILED, message: format!("{what}: {why}") }
    }

    /// A check has failed, and the report says which.
    pub(crate) fn already_reported() -> Self {
        Self { exit_code: FAILED, message: String::new() }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_code)
    }

    #[expect(clippy::print_stderr, reason = "this is where the program reports failures")]
    pub(crate) fn report(&self) {
        if !self.message.is_empty() {
            eprintln!("clockjack cluster: {}", self.message);
        }
    }
}

fn with_source(error: &dyn Error) -> String {
    error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let is_usage = error.is_invalid_config() || error.is_insecure();
        let exit_code = if is_usage { USAGE } else { CANNOT_CONNECT };
        Self { exit_code, message: with_source(&error) }
    }
}

impl From<InspectError> for Failure {
    fn from(error: InspectError) -> Self {
        Self { exit_code: FAILED, message: with_source(&error) }
    }
}
