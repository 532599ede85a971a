//! Requests to stop as a flag that the command polls, instead of a signal that stops the process.

use core::sync::atomic::{AtomicBool, Ordering};
use std::{
    io::Write,
    sync::{Arc, OnceLock},
};

use clockjack_graph::Clock;
use clockjack_rt::signals::{SignalConfig, SignalListener, SignalWarning, StopSignal};

/// The signals that a command takes: the first one lets it complete its work, the second one lets
/// it write its files. A third one exits the process at once.
const SIGNALS_MAX: u32 = 2;

/// Whether the user wants the command to stop. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_requested: AtomicBool,
    /// Set by the first call of `listen`.
    signals: OnceLock<SignalListener>,
}

impl Interrupt {
    /// A flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests a stop.
    pub fn request(&self) {
        // Relaxed: the flag publishes no other data; a thread that sees the flag late stops late.
        self.0.is_requested.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested, by [`request`](Self::request) or by a signal.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.0.is_requested.load(Ordering::Relaxed) || self.signal().is_some()
    }

    /// The signal that requested the stop.
    pub(crate) fn signal(&self) -> Option<StopSignal> {
        self.0.signals.get().and_then(SignalListener::stop_signal)
    }

    /// Whether a second signal has arrived: the command is not to wait any longer.
    pub(crate) fn is_urgent(&self) -> bool {
        self.0.signals.get().is_some_and(|signals| signals.n_stops() >= SIGNALS_MAX)
    }

    /// Makes SIGINT (Ctrl-C) and SIGTERM set this flag. Writes a warning for a signal that cannot
    /// be received. That SIGINT is ignored, as in the background of a script, is worth a warning
    /// only for a run by the wall clock, which may go on for ever.
    pub(crate) fn listen(&self, clock: Clock, err: &mut dyn Write) {
        let config = SignalConfig { stops_max: SIGNALS_MAX, ..SignalConfig::DEFAULT };
        let signals = self.0.signals.get_or_init(|| SignalListener::new(config));
        let is_worth = |warning: &&SignalWarning| clock != Clock::Virtual || !warning.is_ignored();
        for warning in signals.warnings().iter().filter(is_worth) {
            // A warning that cannot be written changes nothing about the run.
            let _written = writeln!(err, "clockjack: {warning}");
        }
    }
}
