//! Requests to stop from outside the program: SIGINT (Ctrl-C) and SIGTERM, or the console events of
//! Windows; and SIGHUP.
//!
//! [`Runtime::run`](crate::Runtime::run) listens by itself. A program with another main loop, or an
//! actor system on another host, uses a [`SignalListener`].
//!
//! # How it works
//!
//! The first listener installs handlers for the whole program, which are never removed. A thread
//! receives the signals and notifies all listeners: `cj-signals`, or on Windows one that the system
//! starts for each event.
//!
//! | signal | listeners | effect |
//! |---|---|---|
//! | SIGINT, SIGTERM | none | exits the program with 130 or 143 |
//! | the first one | some | notifies the listeners |
//! | one more than a listener takes | some | exits the program at once, with 130 or 143 |
//! | SIGHUP | none that takes it | as without a handler; exits with 129, if there was one |
//!
//! * A signal that was ignored when the program started: SIGINT stays ignored, with a
//!   [warning](SignalWarning). Shells ignore it for jobs in the background of a script, whose
//!   Ctrl-C is meant for other programs. SIGTERM and SIGHUP are sent to this program on purpose,
//!   and are handled; without a listener that takes it, SIGHUP is ignored again.
//! * A handler that was installed before, and every handler of the crates `signal-hook` and
//!   `tokio`, is called as well. A handler that is installed later in another way replaces these.
//! * A child that is forked without `exec` exits by the signals, as it would without handlers.
//! * Windows has console events instead. Ctrl-C and Ctrl-Break are what SIGINT is; that the console
//!   is closed and that the system shuts down are what SIGTERM is. After the last two, Windows ends
//!   the process when its own time-out is over, whatever the drain time-out is: 5 seconds for a
//!   closed console. That a user logs off is left to Windows, which ends the programs of that
//!   session, and no service. There is no SIGHUP. Other systems have neither.
//! * A program that Windows has started as the head of a new process group ignores Ctrl-C, without
//!   a warning: nothing says so to the program. Ctrl-Break reaches it.

use core::{
    fmt,
    future::poll_fn,
    sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    task::{Context, Poll},
};
use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use clockjack_sync::waker::AtomicWaker;

use crate::{
    catch_panic,
    platform::signals::{Installed, SignalKind, install},
};

/// A request to stop the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StopSignal {
    /// SIGINT: Ctrl-C on a terminal. On Windows also Ctrl-Break.
    Interrupt,
    /// SIGTERM: `kill`, service managers, container runtimes. On Windows: the console is closed, or
    /// the system shuts down.
    Terminate,
}

impl StopSignal {
    /// The exit code that shells show for a program that this signal has ended: 130 or 143.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// `Ctrl-C` or `SIGTERM`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "Ctrl-C",
            Self::Terminate => "SIGTERM",
        }
    }
}

impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The exit code of a program that SIGHUP has ended.
const HANGUP_EXIT_CODE: i32 = 129;

/// What a [`SignalListener`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalEvent {
    /// The program is to stop.
    Stop(StopSignal),
    /// SIGHUP, at least once since the last report: usually the request to read the configuration
    /// again.
    Hangup,
}

/// What a [`SignalListener`] takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalConfig {
    /// The number of stop signals that the listener takes. The next one exits the program at once.
    pub stops_max: u32,
    /// Whether the listener takes SIGHUP.
    pub hangup: Hangup,
}

impl SignalConfig {
    /// The second stop signal exits the program; SIGHUP is left alone.
    pub const DEFAULT: Self = Self { stops_max: 1, hangup: Hangup::Leave };
}

impl Default for SignalConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens to SIGHUP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hangup {
    /// SIGHUP does what it does without a listener: usually it ends the program.
    #[default]
    Leave,
    /// The listener reports SIGHUP.
    Listen,
}

/// Receives signals, until it is dropped.
///
/// # Examples
///
/// A listener for a main loop that polls:
///
/// ```
/// use clockjack_rt::signals::{SignalConfig, SignalListener};
///
/// let signals = SignalListener::new(SignalConfig::DEFAULT);
/// signals.warnings().iter().for_each(|warning| eprintln!("{warning}"));
/// while signals.stop_signal().is_none() {
///     // Work for a while.
/// #   break;
/// }
/// ```
#[derive(Debug)]
pub struct SignalListener {
    state: Arc<ListenerState>,
    warnings: Vec<SignalWarning>,
}

#[derive(Debug)]
struct ListenerState {
    config: SignalConfig,
    n_stops: AtomicU32,
    /// The exit code of the first stop signal; 0 before it.
    first: AtomicU8,
    is_hangup_pending: AtomicBool,
    waker: AtomicWaker,
}

static LISTENERS: Mutex<Vec<Arc<ListenerState>>> = Mutex::new(Vec::new());

/// The handlers that are installed; SIGINT, SIGTERM, SIGHUP.
static HANDLERS: Mutex<[Option<Installed>; 3]> = Mutex::new([None; 3]);

/// The place of SIGHUP in [`HANDLERS`].
const HANGUP: usize = 2;

impl SignalListener {
    /// Starts to listen. A handler that could not be installed is among the
    /// [`warnings`](Self::warnings).
    #[must_use]
    pub fn new(config: SignalConfig) -> Self {
        let state = Arc::new(ListenerState::new(config));
        // First the listener and then the handlers: a handler that finds no listener exits.
        lock(&LISTENERS).push(Arc::clone(&state));
        let mut kinds = vec![SignalKind::Interrupt, SignalKind::Terminate];
        if config.hangup == Hangup::Listen {
            kinds.push(SignalKind::Hangup);
        }
        let warnings = kinds.into_iter().filter_map(|kind| ensure_handler(kind).err()).collect();
        Self { state, warnings }
    }

    /// Why signals do not arrive, one warning per signal; empty if all do.
    #[must_use]
    pub fn warnings(&self) -> &[SignalWarning] {
        &self.warnings
    }

    /// The first stop signal, if there was one.
    #[must_use]
    pub fn stop_signal(&self) -> Option<StopSignal> {
        // Acquire: pairs with the store in `deliver_stop`.
        match self.state.first.load(Acquire) {
            0 => None,
            code if code == StopSignal::Interrupt.exit_code() => Some(StopSignal::Interrupt),
            _ => Some(StopSignal::Terminate),
        }
    }

    /// The number of stop signals so far.
    #[must_use]
    pub fn n_stops(&self) -> u32 {
        // Relaxed: the number publishes no other data.
        self.state.n_stops.load(Relaxed)
    }

    /// Waits for the next event. After a stop signal, every call returns that signal.
    pub async fn next(&mut self) -> SignalEvent {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Ready if there is an event; otherwise the waker of the last caller is woken by the next one.
    pub fn poll_next(&self, cx: &Context<'_>) -> Poll<SignalEvent> {
        self.state.waker.register(cx.waker());
        if let Some(signal) = self.stop_signal() {
            return Poll::Ready(SignalEvent::Stop(signal));
        }
        // AcqRel: pairs with the store in `deliver`; a later SIGHUP sets the flag again.
        if self.state.is_hangup_pending.swap(false, AcqRel) {
            return Poll::Ready(SignalEvent::Hangup);
        }
        Poll::Pending
    }
}

impl ListenerState {
    fn new(config: SignalConfig) -> Self {
        Self {
            config,
            n_stops: AtomicU32::new(0),
            first: AtomicU8::new(0),
            is_hangup_pending: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }
}

impl Drop for SignalListener {
    fn drop(&mut self) {
        lock(&LISTENERS).retain(|state| !Arc::ptr_eq(state, &self.state));
    }
}

/// Why a signal does not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalWarning {
    signal: &'static str,
    /// `None` if the signal is ignored.
    error: Option<String>,
}

impl SignalWarning {
    /// Whether the program was started with this signal ignored. Otherwise the system has refused
    /// the handler.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.error.is_none()
    }
}

impl fmt::Display for SignalWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = self.signal;
        match &self.error {
            None => write!(
                f,
                "{signal} was ignored when the program started, and stays ignored; use SIGTERM to \
                 stop the program"
            ),
            Some(error) => write!(f, "cannot install a handler for {signal}: {error}"),
        }
    }
}

impl core::error::Error for SignalWarning {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks leaves the data in an inconsistent state when it panics.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs a handler, unless there is one. A refused installation is tried again by the next
/// listener.
fn ensure_handler(kind: SignalKind) -> Result<(), SignalWarning> {
    let (index, signal) = match kind {
        SignalKind::Interrupt => (0, "SIGINT"),
        SignalKind::Terminate => (1, "SIGTERM"),
        SignalKind::Hangup => (HANGUP, "SIGHUP"),
    };
    let mut handlers = lock(&HANDLERS);
    let installed = match handlers[index] {
        Some(installed) => installed,
        None => {
            let refused = |error: io::Error| Some(error.to_string());
            let installed = install(kind, deliver)
                .map_err(|error| SignalWarning { signal, error: refused(error) })?;
            *handlers[index].insert(installed)
        }
    };
    match installed {
        Installed::Handled { .. } => Ok(()),
        Installed::StaysIgnored => Err(SignalWarning { signal, error: None }),
    }
}

/// The thread of the handlers calls this function; it does not run in a signal handler.
fn deliver(kind: SignalKind) {
    // The last reference to a listener may be dropped here, with the waker of a user, which may
    // panic. If that ended the thread, all later signals would be lost.
    if let Err(caught) = catch_panic(&mut || deliver_to_all(kind)) {
        caught.drop_caught(catch_panic);
    }
}

fn deliver_to_all(kind: SignalKind) {
    let listeners = lock(&LISTENERS).clone();
    let is_taken = match kind {
        SignalKind::Interrupt => return deliver_stop(StopSignal::Interrupt, &listeners),
        SignalKind::Terminate => return deliver_stop(StopSignal::Terminate, &listeners),
        SignalKind::Hangup => listeners.iter().filter(|one| one.config.hangup == Hangup::Listen),
    };
    let taken: Vec<_> = is_taken.collect();
    for state in &taken {
        // Release: pairs with the swap in `poll_next`.
        state.is_hangup_pending.store(true, Release);
    }
    if taken.is_empty() && !was_hangup_ignored() {
        std::process::exit(HANGUP_EXIT_CODE);
    }
    wake_all(taken.into_iter());
}

/// Whether the program was started with SIGHUP ignored, as by `nohup`.
fn was_hangup_ignored() -> bool {
    matches!(lock(&HANDLERS)[HANGUP], Some(Installed::Handled { was_ignored: true }))
}

fn deliver_stop(signal: StopSignal, listeners: &[Arc<ListenerState>]) {
    let is_too_many = |state: &Arc<ListenerState>| {
        // Relaxed: the number publishes no other data, and only this thread adds to it.
        state.n_stops.fetch_add(1, Relaxed) >= state.config.stops_max
    };
    // Not `any`: every listener counts the signal.
    let n_exceeded = listeners.iter().filter(|state| is_too_many(state)).count();
    if listeners.is_empty() || n_exceeded > 0 {
        std::process::exit(i32::from(signal.exit_code()));
    }
    for state in listeners {
        // Release: pairs with the load in `stop_signal`. The first signal stays.
        let _ = state.first.compare_exchange(0, signal.exit_code(), Release, Relaxed);
    }
    wake_all(listeners.iter());
}

/// Wakes listeners. Each waker may be that of a user: one that panics does not keep the others from
/// being woken.
fn wake_all<'l>(listeners: impl Iterator<Item = &'l Arc<ListenerState>>) {
    for state in listeners {
        if let Err(caught) = catch_panic(&mut || state.waker.wake()) {
            caught.drop_caught(catch_panic);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::task::Waker;
    use std::task::Wake;

    use super::*;

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("the waker of a user");
        }
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn a_waker_that_panics_keeps_no_signal_from_others() {
        let woken = Arc::new(Woken::default());
        let wakers = [Waker::from(Arc::new(Panics)), Waker::from(Arc::clone(&woken))];
        let listeners = wakers.map(|waker| {
            let state = ListenerState::new(SignalConfig::DEFAULT);
            state.waker.register(&waker);
            Arc::new(state)
        });
        deliver_stop(StopSignal::Terminate, &listeners);
        assert!(woken.0.load(Relaxed));
        let code = StopSignal::Terminate.exit_code();
        assert!(listeners.iter().all(|state| state.first.load(Relaxed) == code));
    }
}
