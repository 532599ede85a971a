//! Exponential back-off: the pause before a restart, which doubles from one restart to the next.
//!
//! Exponential back-off is from Ethernet (Metcalfe and Boggs, "Ethernet: distributed packet
//! switching for local computer networks", 1976).
//!
//! The pause is computed in integers (nanoseconds and thousandths), so that the result is the same
//! on a board without floating point as on a server. Overflow saturates.

use core::time::Duration;

use super::nanos;

/// The pauses before restarts: `min`, doubled each time, up to `max`.
///
/// # Examples
///
/// ```
/// use clockjack_actor::strategy::Backoff;
/// use core::time::Duration;
///
/// // 100 ms, 200 ms, 400 ms .. 10 s, each longer by up to a fifth. After a minute without a
/// // failure it begins at 100 ms again.
/// let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10))
///     .jitter(0.2)
///     .reset_after(Duration::from_secs(60));
/// # let _ = backoff;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Backoff {
    min: Duration,
    max: Duration,
    /// None if the given factor is invalid; [`check`](Self::check) reports it.
    jitter_per_mille: Option<u32>,
    reset_after: Option<Duration>,
}

impl Backoff {
    /// Pauses from `min` to `max`, without jitter.
    pub fn new(min: Duration, max: Duration) -> Self {
        Self { min, max, jitter_per_mille: Some(0), reset_after: None }
    }

    /// Makes each pause longer by a random part of up to `factor` of it, in steps of a thousandth;
    /// so the pause may be longer than `max`. The randomness comes from the seed and the actor's
    /// path.
    pub fn jitter(mut self, factor: f64) -> Self {
        let is_factor = factor.is_finite() && factor >= 0.0;
        // Adding a half rounds.
        self.jitter_per_mille = is_factor.then(|| saturate(factor * 1000.0 + 0.5));
        self
    }

    /// How long an actor must run after a restart until the next pause is the shortest again. By
    /// default, half of the sum of `min` and `max`.
    pub fn reset_after(mut self, calm: Duration) -> Self {
        self.reset_after = Some(calm);
        self
    }

    pub(super) fn check(&self) -> Result<(), &'static str> {
        let reason = if self.min.is_zero() {
            "the first pause of a back-off must be longer than zero"
        } else if self.max < self.min {
            "the longest pause of a back-off is shorter than the first"
        } else if self.jitter_per_mille.is_none() {
            "the jitter of a back-off must be a finite number that is not negative"
        } else {
            return Ok(());
        };
        Err(reason)
    }

    /// The pause after `count` earlier ones.
    pub(super) fn delay(&self, count: u32, random: u64) -> Duration {
        let (min, max) = (nanos(self.min), nanos(self.max));
        let factor = 1_u64.checked_shl(count).unwrap_or(u64::MAX);
        let base = u128::from(min.saturating_mul(factor).min(max));
        // 64 bits plus 32, minus ten, plus 32: fits into 128.
        let widest = base * u128::from(self.jitter_per_mille.unwrap_or(0)) / 1000;
        let jitter = (widest * u128::from(random >> 32)) >> 32;
        Duration::from_nanos(u64::try_from(base + jitter).unwrap_or(u64::MAX))
    }

    /// The length of the calm period that resets the count, in nanoseconds.
    pub(super) fn calm_nanos(&self) -> u64 {
        self.reset_after.map_or_else(|| nanos(self.min).midpoint(nanos(self.max)), nanos)
    }
}

/// The integer part, saturating.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which is what is wanted")]
#[expect(clippy::cast_sign_loss, reason = "the caller has checked that it is not negative")]
fn saturate(number: f64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_pause_doubles_until_it_is_the_longest() {
        let backoff = Backoff::new(SECOND, 10 * SECOND);
        let pauses: [_; 6] =
            core::array::from_fn(|n| backoff.delay(u32::try_from(n).unwrap(), u64::MAX).as_secs());
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10]);
        for count in [31, 32, 63, 64, 65, u32::MAX] {
            assert_eq!(backoff.delay(count, 0), 10 * SECOND, "{count}");
        }
    }

    #[test]
    fn jitter_makes_longer_by_up_to_its_factor_and_may_exceed_the_longest() {
        let backoff = Backoff::new(SECOND, SECOND).jitter(0.2);
        assert_eq!(backoff.delay(5, 0), SECOND);
        assert_eq!(backoff.delay(5, 1 << 63), Duration::from_millis(1100));
        let longest = backoff.delay(5, u64::MAX);
        assert!(longest > Duration::from_millis(1199) && longest < Duration::from_millis(1200));
    }

    #[test]
    fn what_does_not_fit_is_the_longest_pause() {
        let backoff = Backoff::new(Duration::MAX, Duration::MAX).jitter(f64::MAX);
        assert_eq!(backoff.delay(u32::MAX, u64::MAX), Duration::from_nanos(u64::MAX));
        assert_eq!(backoff.calm_nanos(), u64::MAX);
    }

    #[test]
    fn the_calm_is_the_middle_of_both_pauses_unless_it_is_given() {
        let backoff = Backoff::new(SECOND, 3 * SECOND);
        assert_eq!(backoff.calm_nanos(), 2_000_000_000);
        assert_eq!(backoff.reset_after(SECOND).calm_nanos(), 1_000_000_000);
    }
}
