//! The context of one run: its seed, clock, faults, trace and invariant checker.

use core::fmt;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use crate::{
    clock::SimClock,
    fault::{Class, Fault, Faults},
    invariant::{Checker, Invariant},
    random::{Stream, mix},
    trace::Trace,
};

/// What a run demonstrates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Nothing wrong happens, whatever fails, until the run stops at an arbitrary time.
    #[default]
    Safety,
    /// After the last fault, all work completes.
    Liveness,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Safety => "safety",
            Self::Liveness => "liveness",
        })
    }
}

/// The context of a run. Only one thread uses it; clones share the same state, so that handlers and
/// jobs, which must be `Send`, can hold one.
#[derive(Clone)]
pub struct SimContext {
    shared: Arc<Shared>,
}

struct Shared {
    seed: u64,
    mode: Mode,
    clock: Arc<SimClock>,
    inner: Mutex<Inner>,
}

pub(crate) struct Inner {
    pub(crate) faults: Faults,
    pub(crate) trace: Trace,
    pub(crate) checker: Checker,
    /// The random settings of this run, by name.
    pub(crate) settings: Vec<(&'static str, u64)>,
    /// How many ticks handlers may still consume.
    slow_left: u64,
}

impl SimContext {
    /// A context for one run with faults of these classes; with `only`, exactly these faults can
    /// occur.
    #[must_use]
    pub fn new(
        seed: u64,
        mode: Mode,
        classes: impl IntoIterator<Item = Class>,
        only: Option<&[Fault]>,
    ) -> Self {
        let mut faults = Faults::drawn(seed, classes);
        if let Some(only) = only {
            faults = faults.only(only);
        }
        // The start is not zero, because code could mistake zero for "no time".
        let start = Stream::new(seed, "start").pick(&[
            (4, 1),
            (1, (1 << 12) - 3),
            (1, (1 << 20) - 50),
            (1, (1 << 32) - 100),
            (1, (1 << 36) - 9),
        ]);
        let clock = Arc::new(SimClock::starting_at(start.unwrap_or(1)));
        let (trace, checker) = (Trace::default(), Checker::default());
        let inner = Inner { faults, trace, checker, settings: Vec::new(), slow_left: 0 };
        Self { shared: Arc::new(Shared { seed, mode, clock, inner: Mutex::new(inner) }) }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.shared.inner)
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&Inner) -> R) -> R {
        look(&self.inner())
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The seed for the order of execution; never zero, because zero means "no random order".
    #[must_use]
    pub fn order_seed(&self) -> u64 {
        mix(self.seed() ^ 0x6f72_6465_7200).max(1)
    }

    /// What this run demonstrates.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<SimClock> {
        &self.shared.clock
    }

    /// The current time in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock().tick()
    }

    /// The random numbers of one consumer.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed(), name)
    }

    /// Draws a setting of the run and stores it for the report.
    #[must_use]
    pub fn setting(&self, name: &'static str, least: u64, most: u64) -> u64 {
        let drawn = Stream::new(self.seed(), name).between(least, most);
        self.inner().settings.push((name, drawn));
        drawn
    }

    /// Whether a fault occurs here; returns its size, an arbitrary number.
    pub fn fault(&self, class: Class) -> Option<u64> {
        let mut inner = self.inner();
        let size = inner.faults.ask(class)?;
        let now = self.now();
        inner.trace.push("fault", &[class.index() as u64, now]);
        Some(size)
    }

    /// From now on handlers may consume at most this many ticks in total: without a limit, a busy
    /// system would never catch up.
    pub fn allow_slowness(&self, ticks: u64) {
        self.inner().slow_left = ticks;
    }

    /// Consumes the time of a slow handler, up to the [limit](Self::allow_slowness).
    pub fn spend_time(&self, ticks: u64) {
        let mut inner = self.inner();
        let ticks = ticks.min(inner.slow_left);
        inner.slow_left -= ticks;
        drop(inner);
        self.clock().advance(ticks);
    }

    /// Call this function in a handler: it injects slowness.
    pub fn may_be_slow(&self) {
        if let Some(size) = self.fault(Class::SlowHandler) {
            self.spend_time(1 + size % 25);
        }
    }

    /// From now on no faults occur.
    pub fn heal(&self) {
        self.inner().faults.heal();
        self.record("heal", &[self.now()]);
    }

    /// Appends a record to the trace.
    pub fn record(&self, word: &'static str, fields: &[u64]) {
        self.inner().trace.push(word, fields);
    }

    /// Checks an invariant; `text` describes the violation.
    pub fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.inner().checker.check(invariant, self.now(), is_kept, text);
    }

    /// Checks an invariant that requires two numbers to be equal.
    pub fn check_equal(&self, invariant: Invariant, what: &str, found: u64, expected: u64) {
        self.check(invariant, found == expected, || {
            format!("{what}: {found}, expected {expected}")
        });
    }

    /// Whether an invariant was already violated: later violations are only consequences.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        !self.inner().checker.violations().is_empty()
    }
}

/// Locks the state that the parts of a run share. Only one thread uses the state, so a failed
/// `try_lock` means that the same thread locks twice. A poisoned lock is still consistent, because
/// injected panics happen only while the lock is free.
///
/// # Panics
///
/// If the state is already locked.
pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    match shared.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => panic!("the state of the run is locked twice"),
    }
}

impl fmt::Debug for SimContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimContext")
            .field("seed", &self.seed())
            .field("mode", &self.mode())
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
