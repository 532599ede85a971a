//! The kinds of signals that a program can listen for, and how their handlers are installed.

pub(crate) use super::signal_handler::install;

/// A kind of signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalKind {
    /// SIGINT; on Windows Ctrl-C and Ctrl-Break.
    Interrupt,
    /// SIGTERM; on Windows the end of the console, of the session, or of the system.
    Terminate,
    /// SIGHUP.
    Hangup,
}

/// The result of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// The signal has a handler.
    Handled {
        /// Whether the process was started with this signal ignored.
        was_ignored: bool,
    },
    /// The process was started with this signal ignored, and the signal stays ignored.
    StaysIgnored,
}

impl Installed {
    /// The result for a signal that is handled, unless the process was started with this signal
    /// ignored.
    pub(crate) const fn unless_ignored(is_ignored: bool) -> Self {
        if is_ignored { Self::StaysIgnored } else { Self::Handled { was_ignored: false } }
    }
}
