//! The kinds of signals that a program can listen for, and how their handlers are installed.

pub(crate) use super::signal_handler::install;

/// A kind of signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalKind {
    /// SIGINT, or Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    Hangup,
}

/// The result of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Installed {
    /// The signal has a handler.
    Handled,
    /// The process was started with this signal ignored, and the signal stays ignored.
    StaysIgnored,
}
