//! Sleeping on a lock and a condition variable: every system that std knows, and loom's models.
//!
//! Less precise than its twin: a sleep is as long as the rest until the deadline at the time of
//! asking, rounded as std rounds it. It is never too short, because the clock is asked again
//! before a time-out is reported.

use std::sync::PoisonError;

use clockjack_sync::{
    mutant,
    prim::atomic::{AtomicU32, Ordering::Relaxed},
};

use crate::{
    clock::OsInstant,
    parker::{RawParker, Sleep, Slept},
    primitive::{Condvar, Mutex},
};

/// A parker that sleeps on a condition variable.
pub type Parker = RawParker<Monitor>;

/// The lock that makes looking and falling asleep one step, and the bell.
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
        // Nothing is guarded but the moment, so a poisoned lock is as good as any.
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: a waker changes the word before it takes the lock. If it had the lock before
        // us then the lock shows us the change, and if not then it rings after we sleep.
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
        // Whether it was the bell or the time is found out by the next look.
        drop(self.condvar.wait_timeout(lock, rest));
        Slept::Awake
    }

    fn wake(&self, _word: &AtomicU32) {
        if !mutant!("parker-wake-unlocked") {
            // Whoever looked before us sleeps by now, and whoever looks after us sees the change.
            drop(self.lock.lock());
        }
        self.condvar.notify_one();
    }
}
