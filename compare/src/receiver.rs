//! A receiver that only counts, so that a pass can see that it is over.
//!
//! A timer costs exactly one relaxed addition here, whether it fires or is dropped unfired, and no
//! reference count: the receiver of a pass is never freed. The timer that brings the counts to the
//! number of timers wakes the thread that waits, so that no thread polls the counts.

use core::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::failure::Failure;

/// One timer that fired, in the word of both counts.
const FIRED: u64 = 1;
/// One timer that was dropped unfired, in the word of both counts.
const DROPPED: u64 = 1 << 32;

/// Counts the timers of one pass.
#[derive(Debug)]
pub(crate) struct Receiver {
    n: u32,
    /// The timers that fired in the lower half, those that were dropped in the upper half: one
    /// addition changes a count and returns both.
    counts: AtomicU64,
    waiter: Thread,
}

/// What became of the timers of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) fired: u32,
    /// Without having fired.
    pub(crate) dropped: u32,
}

impl Ends {
    fn of(counts: u64) -> Self {
        let half = |count: u64| u32::try_from(count).expect("half of a word has 32 bits");
        Self { fired: half(counts % DROPPED), dropped: half(counts / DROPPED) }
    }

    /// Compares what became of the timers of a subject with what the load asks for.
    ///
    /// # Errors
    ///
    /// If a count differs.
    pub(crate) fn check(self, subject: &'static str, expected: Self) -> Result<(), Failure> {
        let counts = [
            ("the number of timers that fired", self.fired, expected.fired),
            ("the number of timers that were dropped unfired", self.dropped, expected.dropped),
        ];
        for (what, found, expected) in counts {
            if found != expected {
                let (found, expected) = (u64::from(found), u64::from(expected));
                return Err(Failure::miscount(subject, what, found, expected));
            }
        }
        Ok(())
    }
}

/// How many timers both counts say together.
const fn total(counts: u64) -> u64 {
    counts % DROPPED + counts / DROPPED
}

impl Receiver {
    /// A receiver for `n` timers, for which this thread will wait. It is not freed: there are a few
    /// hundred in the longest comparison.
    pub(crate) fn leaked(n: u32) -> &'static Self {
        Self::waited_for_by(n, thread::current())
    }

    fn waited_for_by(n: u32, waiter: Thread) -> &'static Self {
        Box::leak(Box::new(Self { n, counts: AtomicU64::new(0), waiter }))
    }

    /// What one timer holds.
    #[inline]
    pub(crate) const fn shot(&'static self) -> Shot {
        Shot(Some(self))
    }

    /// Waits until every timer has fired or was dropped, but not beyond `deadline`.
    ///
    /// # Panics
    ///
    /// On another thread than the one that the timers wake.
    pub(crate) fn wait(&self, deadline: Instant) -> Ends {
        assert_eq!(thread::current().id(), self.waiter.id(), "this thread is not woken");
        // The last timer or the deadline finishes the loop; a spurious wake-up repeats it once.
        loop {
            // Relaxed: the counts publish nothing, and the last of them is ordered before the wake.
            let counts = self.counts.load(Ordering::Relaxed);
            let left = deadline.saturating_duration_since(Instant::now());
            if total(counts) >= u64::from(self.n) || left.is_zero() {
                return Ends::of(counts);
            }
            thread::park_timeout(left);
        }
    }

    #[inline]
    fn count(&self, one: u64) {
        // Relaxed: the counts publish nothing, and the wake orders them.
        let counts = self.counts.fetch_add(one, Ordering::Relaxed) + one;
        if total(counts) == u64::from(self.n) {
            self.waiter.unpark();
        }
    }
}

/// What one timer holds: fires at most once. The drop of one that never fired counts the timer as
/// dropped.
#[derive(Debug)]
pub(crate) struct Shot(Option<&'static Receiver>);

impl Shot {
    /// The work of the timer.
    #[inline]
    pub(crate) fn fire(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.count(FIRED);
        }
    }
}

impl Drop for Shot {
    fn drop(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.count(DROPPED);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ends, Instant, Receiver};
    use core::time::Duration;

    fn hour_ahead() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    #[test]
    fn a_shot_counts_once_as_fired_or_as_dropped() {
        let receiver = Receiver::leaked(3);
        let mut shot = receiver.shot();
        shot.fire();
        shot.fire();
        drop(shot);
        drop(receiver.shot());
        assert_eq!(receiver.wait(Instant::now()), Ends { fired: 1, dropped: 1 });
    }

    #[test]
    fn a_timer_that_is_lost_or_fires_in_vain_is_an_error() {
        let expected = Ends { fired: 3, dropped: 2 };
        assert!(expected.check("one", expected).is_ok());
        for (fired, dropped) in [(2, 2), (3, 1), (4, 1), (2, 3)] {
            let failure = Ends { fired, dropped }.check("one", expected);
            let failure = failure.expect_err("a count differs").to_string();
            assert!(failure.contains("one: the number of timers that"), "{failure}");
        }
    }

    #[test]
    fn who_waits_is_woken_by_the_last_timer() {
        for fires in [true, false] {
            let receiver = Receiver::leaked(1_000);
            let ends = std::thread::scope(|scope| {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let mut shot = receiver.shot();
                        if fires {
                            shot.fire();
                        }
                    }
                });
                receiver.wait(hour_ahead())
            });
            let fired = if fires { 1_000 } else { 0 };
            assert_eq!(ends, Ends { fired, dropped: 1_000 - fired });
        }
    }
}
