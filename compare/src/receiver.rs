//! A receiver that only counts, so that a pass can detect its end.
//!
//! Each timer costs exactly one relaxed addition here, whether it fires or is dropped unfired, and
//! no reference count: the receiver of a pass is never freed. The timer that completes the counts
//! wakes the waiting thread, so that no thread polls them.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::mpsc;
use std::thread::{self, Thread};
use std::time::Instant;

use futures_channel::oneshot;

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

/// How many timers of a pass fired and how many were dropped.
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

    /// Compares the counts of a subject with those that the load requires.
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

/// The sum of both counts.
const fn total(counts: u64) -> u64 {
    counts % DROPPED + counts / DROPPED
}

impl Receiver {
    /// A receiver for `n` timers, for which this thread will wait. It is never freed: the longest
    /// comparison has a few hundred.
    pub(crate) fn leaked(n: u32) -> &'static Self {
        Self::waited_for_by(n, thread::current())
    }

    /// A receiver for `n` timers with a dedicated thread that waits at most `patience`: a task must
    /// not block its worker, and a lost timer must not block the comparison.
    pub(crate) fn attended(n: u32, patience: Duration) -> (&'static Self, oneshot::Receiver<Ends>) {
        let deadline = Instant::now() + patience;
        let (hand_over, handed_over) = mpsc::channel::<&'static Self>();
        let (report, ends) = oneshot::channel();
        let attendant = thread::spawn(move || {
            if let Ok(receiver) = handed_over.recv() {
                // If the driver no longer waits, the result is not needed.
                let _unasked = report.send(receiver.wait(deadline));
            }
        });
        let receiver = Self::waited_for_by(n, attendant.thread().clone());
        hand_over.send(receiver).expect("the thread waits for its receiver");
        (receiver, ends)
    }

    fn waited_for_by(n: u32, waiter: Thread) -> &'static Self {
        Box::leak(Box::new(Self { n, counts: AtomicU64::new(0), waiter }))
    }

    /// The token of one timer.
    #[inline]
    pub(crate) const fn shot(&'static self) -> Shot {
        Shot(Some(self))
    }

    /// Waits until every timer has fired or was dropped, but not beyond `deadline`.
    ///
    /// # Panics
    ///
    /// If it is called on another thread than the one that the timers wake.
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

/// The token of one timer: fires at most once. If it is dropped without having fired, it counts the
/// timer as dropped.
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
    use super::{Duration, Ends, Instant, Receiver, oneshot};

    fn hour_ahead() -> Instant {
        Instant::now() + Duration::from_secs(3_600)
    }

    fn reported(mut ends: oneshot::Receiver<Ends>) -> Ends {
        loop {
            if let Some(reported) = ends.try_recv().expect("the thread reports") {
                return reported;
            }
            std::thread::yield_now();
        }
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

    #[test]
    fn the_thread_of_an_attended_receiver_reports_timers_that_fired_and_that_were_dropped() {
        let (receiver, ends) = Receiver::attended(3, Duration::from_secs(3_600));
        for fires in [true, false, true] {
            let mut shot = receiver.shot();
            if fires {
                shot.fire();
            }
        }
        assert_eq!(reported(ends), Ends { fired: 2, dropped: 1 });
    }

    #[test]
    fn an_attended_receiver_does_not_wait_for_a_lost_timer() {
        let (_, ends) = Receiver::attended(1, Duration::from_millis(1));
        assert_eq!(reported(ends), Ends { fired: 0, dropped: 0 });
    }
}
