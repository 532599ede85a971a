//! The ledger: every operation that starts gets an entry, which is closed exactly once.
//!
//! An [`Entry`] is owned by the operation that it counts: by the future, the process or the
//! message. The code that completes the operation closes the entry as *done*; otherwise its drop
//! closes it as *dropped*. When the load is idle no entry may be open: begun = done + dropped, for
//! every kind.

use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

/// How many violations are kept; one is enough to fail.
const FAULTS_MAX: usize = 20;

/// What an entry counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Futures and processes: finished, or cancelled.
    Task,
    /// Sleeps: fired, or cancelled.
    Timer,
    /// Messages that were accepted: handled, or dropped with their process.
    Message,
    /// Closures on blocking threads: run, or dropped.
    Blocking,
    /// Monitors: notified. None may be dropped, because their watchers are never cancelled.
    Watch,
    /// Episodes with a runtime of their own.
    Episode,
}

/// Every kind, in the order of [`Kind`].
const KINDS: [(Kind, &str); 6] = [
    (Kind::Task, "tasks"),
    (Kind::Timer, "timers"),
    (Kind::Message, "messages"),
    (Kind::Blocking, "blocking"),
    (Kind::Watch, "watches"),
    (Kind::Episode, "episodes"),
];

/// The counts of all kinds. They are relaxed: they publish nothing, and the check for an idle load
/// is repeated.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    accounts: [Account; KINDS.len()],
    faults: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
struct Account {
    begun: AtomicU64,
    done: AtomicU64,
    dropped: AtomicU64,
}

impl Ledger {
    /// Opens an entry.
    pub(crate) fn begin(self: &Arc<Self>, kind: Kind) -> Entry {
        self.account(kind).begun.fetch_add(1, Relaxed);
        Entry { ledger: Arc::clone(self), kind, is_done: false, due: None }
    }

    /// Opens an entry for a timer that must not fire before `after` has elapsed.
    pub(crate) fn arm(self: &Arc<Self>, after: Duration) -> Entry {
        let mut entry = self.begin(Kind::Timer);
        entry.due = Some(Instant::now() + after);
        entry
    }

    /// How many entries of a kind are open.
    pub(crate) fn open(&self, kind: Kind) -> u64 {
        let account = self.account(kind);
        // The closed entries are read first: an entry that is opened in between can only increase
        // the difference, which is therefore never negative.
        let closed = account.done.load(Relaxed) + account.dropped.load(Relaxed);
        account.begun.load(Relaxed).saturating_sub(closed)
    }

    /// Whether no entry is open.
    pub(crate) fn is_balanced(&self) -> bool {
        KINDS.iter().all(|(kind, _)| self.open(*kind) == 0)
    }

    /// The number of entries opened and closed so far: it is constant only if nothing happens.
    pub(crate) fn events(&self) -> u64 {
        let sum =
            |a: &Account| a.begun.load(Relaxed) + a.done.load(Relaxed) + a.dropped.load(Relaxed);
        self.accounts.iter().map(sum).sum()
    }

    /// Records a violation.
    pub(crate) fn fault(&self, text: String) {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS_MAX {
            faults.push(text);
        }
    }

    /// Checks the invariants of an idle load and records violations.
    pub(crate) fn audit(&self) {
        for ((kind, name), account) in KINDS.iter().zip(&self.accounts) {
            let [begun, done, dropped] = account.read();
            if begun != done + dropped {
                self.fault(format!("{name}: {begun} begun, {done} done, {dropped} dropped"));
            }
            if *kind == Kind::Watch && dropped > 0 {
                self.fault(format!("{name}: {dropped} were never notified"));
            }
        }
    }

    /// The violations so far.
    pub(crate) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn account(&self, kind: Kind) -> &Account {
        &self.accounts[kind as usize]
    }
}

impl Account {
    fn read(&self) -> [u64; 3] {
        [&self.begun, &self.done, &self.dropped].map(|count| count.load(Relaxed))
    }
}

impl fmt::Display for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ((kind, name), account) in KINDS.iter().zip(&self.accounts) {
            let [begun, done, dropped] = account.read();
            let open = self.open(*kind);
            writeln!(
                f,
                "  {name:<9} begun {begun:>12}  done {done:>12}  dropped {dropped:>11}  open {open}"
            )?;
        }
        Ok(())
    }
}

/// An operation that has started and must finish.
#[derive(Debug)]
pub(crate) struct Entry {
    ledger: Arc<Ledger>,
    kind: Kind,
    is_done: bool,
    due: Option<Instant>,
}

impl Entry {
    /// Closes the entry as done, and checks that a timer is not early.
    pub(crate) fn done(mut self) {
        if let Some(due) = self.due
            && let early = due.saturating_duration_since(Instant::now())
            && !early.is_zero()
        {
            self.ledger.fault(format!("a timer fired {early:?} early"));
        }
        self.is_done = true;
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let account = self.ledger.account(self.kind);
        let count = if self.is_done { &account.done } else { &account.dropped };
        count.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_and_dropped_entries_leave_the_ledger_balanced() {
        let ledger = Arc::new(Ledger::default());
        let (one, two) = (ledger.begin(Kind::Task), ledger.begin(Kind::Message));
        assert_eq!((ledger.open(Kind::Task), ledger.is_balanced()), (1, false));
        one.done();
        drop(two);
        assert!(ledger.is_balanced());
        assert_eq!(ledger.events(), 4);
        ledger.audit();
        assert_eq!(ledger.faults(), [""; 0]);
    }

    #[test]
    fn an_entry_that_is_lost_or_closed_twice_is_a_violation() {
        let ledger = Arc::new(Ledger::default());
        core::mem::forget(ledger.begin(Kind::Task));
        ledger.audit();
        assert_eq!(ledger.faults(), ["tasks: 1 begun, 0 done, 0 dropped"]);
        let ledger = Ledger::default();
        ledger.account(Kind::Blocking).done.fetch_add(1, Relaxed);
        ledger.audit();
        assert_eq!(ledger.faults(), ["blocking: 0 begun, 1 done, 0 dropped"]);
    }

    #[test]
    fn a_watch_that_is_never_notified_is_a_violation() {
        let ledger = Arc::new(Ledger::default());
        drop(ledger.begin(Kind::Watch));
        ledger.audit();
        assert_eq!(ledger.faults(), ["watches: 1 were never notified"]);
    }

    #[test]
    fn an_early_timer_is_a_violation_and_a_cancelled_one_is_not() {
        let ledger = Arc::new(Ledger::default());
        ledger.arm(Duration::ZERO).done();
        drop(ledger.arm(Duration::from_secs(3600)));
        assert_eq!(ledger.faults(), [""; 0]);
        ledger.arm(Duration::from_secs(3600)).done();
        assert!(ledger.faults()[0].ends_with("early"), "{:?}", ledger.faults());
    }
}
