//! The receiver that does nothing but count, so that the end of a pass can be seen.
//!
//! A timer costs exactly one relaxed addition here, whether it fires or is dropped unfired, and no
//! reference count: the receiver of a pass is never freed. Whoever brings a count to the number of
//! timers wakes the thread that waits, so that nobody has to look again and again.

use core::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::Instant;

/// Counts the timers of one pass.
#[derive(Debug)]
pub(crate) struct Receiver {
    n: u32,
    fired: AtomicU32,
    dropped: AtomicU32,
    waiter: Thread,
}

/// What came of the timers of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) fired: u32,
    /// Without having fired.
    pub(crate) dropped: u32,
}

impl Receiver {
    /// A receiver for `n` timers, for which this thread will wait. It is not freed: there are a few
    /// hundred in the longest comparison.
    pub(crate) fn leaked(n: u32) -> &'static Self {
        let (fired, dropped) = (AtomicU32::new(0), AtomicU32::new(0));
        Box::leak(Box::new(Self { n, fired, dropped, waiter: thread::current() }))
    }

    /// What one timer holds.
    #[inline]
    pub(crate) const fn shot(&'static self) -> Shot {
        Shot(Some(self))
    }

    /// Waits until all timers have fired, or all were dropped, but not beyond `deadline`.
    ///
    /// # Panics
    ///
    /// On another thread than that which made the receiver: nobody would wake it.
    pub(crate) fn wait(&self, deadline: Instant) -> Ends {
        assert_eq!(thread::current().id(), self.waiter.id(), "this thread is not woken");
        // Ends with the last timer or with the deadline; a wake for nothing costs one turn more.
        loop {
            // Relaxed: the counts publish nothing, and the last of them is ordered before the wake.
            let fired = self.fired.load(Ordering::Relaxed);
            let ends = Ends { fired, dropped: self.dropped.load(Ordering::Relaxed) };
            let left = deadline.saturating_duration_since(Instant::now());
            if ends.fired == self.n || ends.dropped == self.n || left.is_zero() {
                return ends;
            }
            thread::park_timeout(left);
        }
    }

    #[inline]
    fn count(&self, ends: &AtomicU32) {
        // Relaxed: the counts publish nothing, and the wake orders them.
        if ends.fetch_add(1, Ordering::Relaxed) + 1 == self.n {
            self.waiter.unpark();
        }
    }
}

/// What one timer holds: fires at most once and, if it never did, tells by its drop that the timer
/// is gone.
#[derive(Debug)]
pub(crate) struct Shot(Option<&'static Receiver>);

impl Shot {
    /// The work of the timer.
    #[inline]
    pub(crate) fn fire(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.count(&receiver.fired);
        }
    }
}

impl Drop for Shot {
    fn drop(&mut self) {
        if let Some(receiver) = self.0.take() {
            receiver.count(&receiver.dropped);
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
