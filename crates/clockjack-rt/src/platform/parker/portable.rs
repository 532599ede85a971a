//! Sleeping on a mutex and a condition variable: every system that std supports, and loom.
//!
//! Less precise than the futex: the sleep lasts for the rest of the time until the deadline, as
//! computed when it begins, rounded as std rounds it. It is never too short, because the clock is
//! read again before a timeout is reported.

use std::sync::PoisonError;

use clockjack_sync::primitive::atomic::{AtomicU32, Ordering::Relaxed};

use crate::{
    clock::OsInstant,
    parker::{RawParker, Sleep, Slept},
    platform::primitive::{Condvar, Mutex},
};

/// A parker that sleeps on a condition variable.
pub type Parker = RawParker<Monitor>;

/// The mutex that makes comparing and falling asleep one step, and the condition variable.
#[derive(Debug)]
pub struct Monitor {
    lock: Mutex<()>,
    condvar: Condvar,
}

impl Default for Monitor {
    fn default() -> Self {
        Self { lock: Mutex::new(()), condvar: Condvar::new() }
    }
}

impl Sleep for Monitor {
    fn sleep(&self, word: &AtomicU32, expected: u32, until: Option<OsInstant>) -> Slept {
        // The mutex guards no data, only the order of steps, so a poisoned one can be used.
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: a waker changes the word before it takes the mutex. If it held the mutex before
        // the owner, the mutex makes the change visible; if not, it notifies after the owner waits.
        if word.load(Relaxed) != expected {
            return Slept::Awake;
        }
        let Some(until) = until else {
            drop(self.condvar.wait(lock));
            return Slept::Awake;
        };
        let rest = until.saturating_since(OsInstant::now());
        if rest.is_zero() {
            return Slept::TimedOut;
        }
        // The next comparison finds out whether it was a notification or the timeout.
        drop(self.condvar.wait_timeout(lock, rest));
        Slept::Awake
    }

    fn wake(&self, _word: &AtomicU32) {
        // An owner that compared before this lock waits by now; one that compares after it
        // sees the change.
        drop(self.lock.lock());
        self.condvar.notify_one();
    }
}
