//! What one run is played on: its seed, its clock, its faults, its trace and its checker.

use alloc::{format, string::String, sync::Arc, vec::Vec};
use core::fmt;
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::{
    clock::SimClock,
    fault::{Class, Fault, Faults},
    invariant::{Checker, Invariant},
    random::{Stream, mix},
    trace::Trace,
};

/// What a run is to show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Nothing wrong happens, whatever fails, up to an end at an odd moment.
    #[default]
    Safety,
    /// Once nothing fails any more, everything gets done.
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

/// What a run is played on. All of it is one thread; clones are the same sim, so that handlers
/// and jobs, which must be `Send`, can have one.
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
    /// What was drawn for this run, by name.
    pub(crate) settings: Vec<(&'static str, u64)>,
    /// How many ticks handlers may still take.
    slow_left: u64,
}

impl SimContext {
    /// A sim for one run, on which there may be faults of these classes; if `only` is given,
    /// those in it and no others.
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
        // Not zero: there time might be taken for none at all.
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
        open(&self.shared.inner)
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&Inner) -> R) -> R {
        look(&self.inner())
    }

    /// The seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.shared.seed
    }

    /// The seed of the executor's own choices: never zero, which would be no choice.
    #[must_use]
    pub fn order_seed(&self) -> u64 {
        mix(self.seed() ^ 0x6f72_6465_7200).max(1)
    }

    /// What this run is to show.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.shared.mode
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Arc<SimClock> {
        &self.shared.clock
    }

    /// The time, in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock().tick()
    }

    /// The random numbers of one consumer.
    #[must_use]
    pub fn stream(&self, name: &str) -> Stream {
        Stream::new(self.seed(), name)
    }

    /// Draws something that the run is shaped by, once, and keeps it for the report.
    #[must_use]
    pub fn setting(&self, name: &'static str, least: u64, most: u64) -> u64 {
        let drawn = Stream::new(self.seed(), name).between(least, most);
        self.inner().settings.push((name, drawn));
        drawn
    }

    /// Whether there is a fault here; its size, any number.
    pub fn fault(&self, class: Class) -> Option<u64> {
        let mut inner = self.inner();
        let size = inner.faults.ask(class)?;
        let now = self.now();
        inner.trace.push("fault", &[class.index() as u64, now]);
        Some(size)
    }

    /// From here on handlers may take so many ticks, all together: if there were no bound, a busy
    /// system would never catch up.
    pub fn allow_slowness(&self, ticks: u64) {
        self.inner().slow_left = ticks;
    }

    /// Takes the time of a slow handler, as far as that is [allowed](Self::allow_slowness).
    pub fn take_time(&self, ticks: u64) {
        let mut inner = self.inner();
        let ticks = ticks.min(inner.slow_left);
        inner.slow_left -= ticks;
        drop(inner);
        self.clock().advance(ticks);
    }

    /// To be called in a handler: it may be slow.
    pub fn may_be_slow(&self) {
        if let Some(size) = self.fault(Class::SlowHandler) {
            self.take_time(1 + size % 25);
        }
    }

    /// From here on there are no faults.
    pub fn heal(&self) {
        self.inner().faults.heal();
        self.note("heal", &[self.now()]);
    }

    /// Writes down what has happened.
    pub fn note(&self, word: &'static str, fields: &[u64]) {
        self.inner().trace.push(word, fields);
    }

    /// Looks at a invariant once; `text` says what is wrong if it is broken.
    pub fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.inner().checker.check(invariant, self.now(), is_kept, text);
    }

    /// Looks at a invariant that says that two numbers are equal.
    pub fn check_equal(&self, invariant: Invariant, what: &str, found: u64, expected: u64) {
        self.check(invariant, found == expected, || {
            format!("{what}: {found}, expected {expected}")
        });
    }

    /// Whether something has gone wrong already: what follows from that is of no interest.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        !self.inner().checker.violations().is_empty()
    }
}

/// Opens what the parts of a run share. All of it is one thread, so nobody is waited for: who finds
/// it open has opened it twice. A panic while it is open has left it whole, for those that are told
/// to panic do so when it is closed.
///
/// # Panics
///
/// If it is open already.
pub(crate) fn open<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    match shared.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => panic!("the state of the run is locked twice"),
    }
}

impl fmt::Debug for SimContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stage")
            .field("seed", &self.seed())
            .field("mode", &self.mode())
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}
