//! Waiting for what another thread is about to do, in tests that have no clock.

use std::thread;

/// How often a thread may find nothing to do in a row: far more than any schedule makes it.
const IDLE_MAX: u32 = 20_000_000;

/// Waits by yielding, not for ever.
#[derive(Debug, Default)]
pub struct Patience(u32);

impl Patience {
    /// Lets others run.
    ///
    /// # Panics
    ///
    /// If it was called so often since the last [`renew`](Self::renew) that what is waited for
    /// will not come.
    #[track_caller]
    pub fn wait(&mut self) {
        self.0 += 1;
        assert!(self.0 < IDLE_MAX, "something is lost");
        thread::yield_now();
    }

    /// There was something to do.
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
