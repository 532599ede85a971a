//! Waits for an action of another thread, in tests without a clock.

use std::thread;

/// How often a thread may find nothing to do in a row: far more often than any schedule causes.
const IDLE_MAX: u32 = 20_000_000;

/// Waits by yielding, with a limit.
#[derive(Debug, Default)]
pub struct Patience(u32);

impl Patience {
    /// Yields to other threads.
    ///
    /// # Panics
    ///
    /// If it was called too often since the last [`renew`](Self::renew): then the awaited action is
    /// lost.
    #[track_caller]
    pub fn wait(&mut self) {
        self.0 += 1;
        assert!(self.0 < IDLE_MAX, "something is lost");
        thread::yield_now();
    }

    /// Resets the limit, because there was something to do.
    pub fn renew(&mut self) {
        self.0 = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "something is lost")]
    fn who_waits_for_what_never_comes_is_told() {
        let mut patience = Patience(IDLE_MAX - 2);
        patience.wait();
        patience.wait();
    }

    #[test]
    fn patience_that_is_renewed_is_as_long_as_at_first() {
        let mut patience = Patience(IDLE_MAX - 2);
        patience.wait();
        patience.renew();
        patience.wait();
    }
}
