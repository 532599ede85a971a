//! Spaces out a warning whose cause persists, so that a log has a few lines about it and not
//! thousands.
//!
//! The first occurrence is reported. After a report, occurrences are only counted for a pause,
//! which is a minute at first and doubles with each report up to an hour. The first occurrence
//! after the pause is reported with the number of those that were counted: one line for all. If
//! nothing occurs for as long as the pause once more, the cause is over, and the pause is a minute
//! again.
//!
//! Nothing here reads a clock.

use core::time::Duration;

/// The pause after the first report.
pub const PAUSE_MIN: Duration = Duration::from_secs(60);

/// The longest pause.
pub const PAUSE_MAX: Duration = Duration::from_secs(3600);

const PAUSE_MIN_NS: u64 = PAUSE_MIN.as_secs() * 1_000_000_000;
const PAUSE_MAX_NS: u64 = PAUSE_MAX.as_secs() * 1_000_000_000;

/// The state of one kind of warning; see the [module](self).
///
/// # Examples
///
/// ```
/// use clockjack_observe::backoff::{PAUSE_MIN, WarningBackoff};
///
/// let mut backoff = WarningBackoff::new();
/// let pause_ns = PAUSE_MIN.as_nanos() as u64;
/// assert_eq!(backoff.note(7), Some(0));
/// assert_eq!(backoff.note(8), None);
/// assert_eq!(backoff.note(7 + pause_ns), Some(1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct WarningBackoff {
    pause_ns: u64,
    /// Until when occurrences are only counted; zero before the first report.
    until_ns: u64,
    unreported: u32,
}

impl WarningBackoff {
    /// A state without a report.
    #[must_use]
    pub const fn new() -> Self {
        Self { pause_ns: 0, until_ns: 0, unreported: 0 }
    }

    /// How long after `now_ns` the current pause ends: from then on, [`note`](Self::note) reports
    /// an occurrence.
    #[must_use]
    pub const fn wait_ns(&self, now_ns: u64) -> u64 {
        self.until_ns.saturating_sub(now_ns)
    }

    /// Notes an occurrence at `now_ns`. If it is to be reported: how many before it were not.
    pub fn note(&mut self, now_ns: u64) -> Option<u32> {
        if self.wait_ns(now_ns) > 0 {
            self.unreported = self.unreported.saturating_add(1);
            return None;
        }
        let is_over = now_ns - self.until_ns >= self.pause_ns;
        let longer_ns = self.pause_ns.saturating_mul(2).min(PAUSE_MAX_NS);
        self.pause_ns = if is_over { PAUSE_MIN_NS } else { longer_ns };
        self.until_ns = now_ns.saturating_add(self.pause_ns);
        Some(core::mem::take(&mut self.unreported))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = PAUSE_MIN_NS;

    fn check(times: impl IntoIterator<Item = u64>, expected: &[(u64, u32)]) {
        let mut backoff = WarningBackoff::new();
        let mut expected = expected.iter();
        for at in times {
            if let Some(unreported) = backoff.note(at) {
                assert_eq!(Some(&(at, unreported)), expected.next());
            }
        }
        assert_eq!(expected.next(), None);
    }

    #[test]
    fn a_cause_that_persists_is_reported_after_longer_and_longer_pauses() {
        let minutes = |n| (0..n).map(|n| n * MINUTE);
        let expected = [(0, 0), (1, 0), (3, 1), (7, 3), (15, 7), (31, 15), (63, 31), (123, 59)];
        check(minutes(183), &expected.map(|(minute, unreported)| (minute * MINUTE, unreported)));
        let mut backoff = WarningBackoff::new();
        let n_reports = minutes(24 * 60).filter(|at| backoff.note(*at).is_some()).count();
        assert_eq!(n_reports, 7 + 22, "about one in an hour");
    }

    #[test]
    fn what_was_not_reported_is_in_the_next_report() {
        check([0, 1, 2, MINUTE - 1, MINUTE, MINUTE + 1], &[(0, 0), (MINUTE, 3)]);
    }

    #[test]
    fn after_a_quiet_time_the_pause_is_short_again() {
        // The pause of the second report is two minutes; two further minutes are quiet.
        let quiet = MINUTE + 4 * MINUTE;
        check(
            [0, MINUTE, quiet, quiet + MINUTE - 1, quiet + MINUTE],
            &[(0, 0), (MINUTE, 0), (quiet, 0), (quiet + MINUTE, 1)],
        );
    }
}
