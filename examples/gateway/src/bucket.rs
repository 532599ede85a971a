//! A token bucket: the rate limit of a device. It takes the time from its caller.

use clockjack::{prelude::*, time::TimerInstant};

/// Allows a burst, and one more per interval.
#[derive(Debug)]
pub struct TokenBucket {
    burst: u32,
    every: Duration,
    tokens: u32,
    /// Until when tokens were added.
    filled_until: Option<TimerInstant>,
}

impl TokenBucket {
    /// A full bucket.
    ///
    /// # Panics
    ///
    /// If the interval is zero.
    #[must_use]
    pub fn new(burst: u32, every: Duration) -> Self {
        assert!(!every.is_zero(), "one token per interval, so there is an interval");
        Self { burst, every, tokens: burst, filled_until: None }
    }

    /// Takes a token; false if there is none.
    #[must_use]
    pub fn take(&mut self, now: TimerInstant) -> bool {
        let filled_until = *self.filled_until.get_or_insert(now);
        let elapsed = now.since(filled_until).as_nanos() / self.every.as_nanos();
        let missing = self.burst - self.tokens;
        match u32::try_from(elapsed) {
            Ok(elapsed) if elapsed < missing => {
                self.tokens += elapsed;
                self.filled_until = Some(filled_until.saturating_add(self.every * elapsed));
            }
            _ => {
                self.tokens = self.burst;
                self.filled_until = Some(now);
            }
        }
        let is_allowed = self.tokens > 0;
        self.tokens -= u32::from(is_allowed);
        is_allowed
    }
}
