//! Sums up the pressure on the scheduler, which may begin and end many times in a second of load.
//!
//! A single change of pressure is nothing that an operator acts on. Pressure that lasts, or comes
//! again and again, is: so the changes are collected in a *window*, and its sum is one warning. The
//! first window begins with the pressure and is a second long; the next one ends when
//! [`WarningBackoff`] allows another warning, after 1, 2, 4 .. 60 minutes. A window in which the
//! pressure has held for less than [`HELD_MIN_NS`] causes no warning.
//!
//! A change is an event, and events can be lost. So the caller also says, at the end of each
//! window, whether there is pressure at present: pressure whose end was lost has ended at some time
//! in that window. Otherwise it would cause a warning after every pause, for ever.
//!
//! Nothing here reads a clock.

use core::{fmt, time::Duration};

use clockjack_observe::backoff::WarningBackoff;
use clockjack_sched::PressureReason;

/// The length of the first window.
const COLLECTING_NS: u64 = 1_000_000_000;
/// Pressure that holds for less than this in a window slows nobody noticeably.
const HELD_MIN_NS: u64 = 100_000_000;
/// The reasons that there are.
const REASONS: usize = 3;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct PressureLog {
    /// Since when there is pressure.
    since_ns: Option<u64>,
    window: Option<Window>,
    backoff: WarningBackoff,
}

#[derive(Debug)]
struct Window {
    from_ns: u64,
    until_ns: u64,
    sum: PressureSum,
}

/// The pressure in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PressureSum {
    /// How many times there was pressure.
    times: u32,
    /// For how long, in all.
    held_ns: u64,
    /// The length of the window.
    window_ns: u64,
    /// Whether there still is.
    is_on: bool,
    /// The event that says when the pressure has ended was lost, or is on its way: it has held for
    /// at most `held_ns`.
    is_end_unknown: bool,
    /// Why, in the order of the first occurrences.
    reasons: [Option<PressureReason>; REASONS],
}

impl PressureLog {
    /// Pressure began or ended at `now_ns`.
    pub(super) fn note(&mut self, now_ns: u64, is_on: bool, reason: PressureReason) {
        if is_on == self.since_ns.is_some() {
            // The event that was between the two was lost.
            return;
        }
        if !is_on {
            self.add_held(now_ns);
            self.since_ns = None;
            return;
        }
        self.since_ns = Some(now_ns);
        let sum = &mut self.window_at(now_ns).sum;
        sum.times = sum.times.saturating_add(1);
        let is_free = |place: &&mut Option<_>| place.is_none_or(|known| known == reason);
        if let Some(place) = sum.reasons.iter_mut().find(is_free) {
            *place = Some(reason);
        }
    }

    /// When the current window ends.
    pub(super) fn window_end_ns(&self) -> Option<u64> {
        self.window.as_ref().map(|window| window.until_ns)
    }

    /// Ends the window if its time has come; `is_on` says whether there is pressure at present.
    /// Returns the sum if it is worth a warning.
    pub(super) fn take_due(&mut self, now_ns: u64, is_on: bool) -> Option<PressureSum> {
        if self.window_end_ns()? > now_ns { None } else { self.take(now_ns, is_on) }
    }

    /// As [`take_due`](Self::take_due), before the time of the window has come.
    pub(super) fn take(&mut self, now_ns: u64, is_on: bool) -> Option<PressureSum> {
        self.add_held(now_ns);
        let Window { from_ns, mut sum, .. } = self.window.take()?;
        sum.window_ns = now_ns.saturating_sub(from_ns);
        sum.is_end_unknown = !is_on && self.since_ns.is_some();
        if sum.is_end_unknown {
            self.since_ns = None;
        }
        sum.is_on = self.since_ns.is_some();
        let is_warning = sum.held_ns >= HELD_MIN_NS;
        if is_warning {
            self.backoff.note(now_ns);
        }
        if sum.is_on {
            // The pressure continues in the next window.
            self.since_ns = Some(now_ns);
            let next = &mut self.window_at(now_ns).sum;
            (next.times, next.reasons) = (1, sum.reasons);
        }
        is_warning.then_some(sum)
    }

    fn window_at(&mut self, now_ns: u64) -> &mut Window {
        let wait_ns = self.backoff.wait_ns(now_ns).max(COLLECTING_NS);
        self.window.get_or_insert_with(|| Window {
            from_ns: now_ns,
            until_ns: now_ns.saturating_add(wait_ns),
            sum: PressureSum::default(),
        })
    }

    fn add_held(&mut self, now_ns: u64) {
        if let (Some(since_ns), Some(window)) = (self.since_ns, &mut self.window) {
            window.sum.held_ns += now_ns.saturating_sub(since_ns);
        }
    }
}

impl fmt::Display for PressureSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = |ns: u64| Duration::from_millis(ns / 1_000_000);
        let (held, window) = (rounded(self.held_ns), rounded(self.window_ns));
        let bound = if self.is_end_unknown { "at most " } else { "" };
        write!(f, "under pressure for {bound}{held:?} of {window:?}")?;
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        if self.is_on {
            f.write_str(", and still is")?;
        }
        let mut separator = ": ";
        for reason in self.reasons.iter().flatten() {
            write!(f, "{separator}{reason}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PressureReason::{Dispatcher, Mailboxes};

    const MS: u64 = 1_000_000;
    const MINUTE: u64 = 60_000 * MS;

    /// Begins and ends pressure at these times in milliseconds, which alternate, and collects what
    /// is written until the last minute, with the time in milliseconds.
    fn check(changes: impl IntoIterator<Item = u64>, minutes: u64, expected: &[(u64, &str)]) {
        let mut log = PressureLog::default();
        let mut seen = Vec::new();
        let mut changes = changes.into_iter().peekable();
        let mut is_on = false;
        loop {
            let due = log.window_end_ns().unwrap_or(u64::MAX);
            let next = changes.peek().map_or(u64::MAX, |ms| ms * MS);
            let now = due.min(next);
            if now > minutes * MINUTE {
                break;
            }
            seen.extend(log.take_due(now, is_on).map(|sum| (now / MS, sum.to_string())));
            if now == next {
                is_on = !is_on;
                log.note(now, is_on, Mailboxes);
                changes.next();
            }
        }
        let seen: Vec<_> = seen.iter().map(|(at, sum)| (*at, sum.as_str())).collect();
        assert_eq!(seen, expected);
    }

    #[test]
    fn pressure_that_begins_and_ends_many_times_is_one_line() {
        // For 5 s: on for 10 ms, and off for 40 ms.
        let load = (0..100).flat_map(|n| [n * 50, n * 50 + 10]);
        let first = "under pressure for 200ms of 1s, 20 times: mailboxes are nearly full";
        let rest = "under pressure for 800ms of 60s, 80 times: mailboxes are nearly full";
        check(load, 60, &[(1_000, first), (61_000, rest)]);
    }

    #[test]
    fn short_pressure_is_no_warning() {
        check([0, 99], 60, &[]);
        check(
            [0, 100],
            60,
            &[(1_000, "under pressure for 100ms of 1s: mailboxes are nearly full")],
        );
        // Nine short ones in a window, and then a long time nothing.
        check((0..18).map(|n| n * 11), 60, &[]);
        check((0..1_000).flat_map(|n| [n * 2_000, n * 2_000 + 50]), 600, &[]);
    }

    #[test]
    fn pressure_that_lasts_is_reported_after_longer_and_longer_pauses() {
        let line = |ms, window| {
            let text = format!(
                "under pressure for {window} of {window}, and still is: mailboxes are nearly full"
            );
            (ms, text)
        };
        let lines = [line(1_000, "1s"), line(61_000, "60s"), line(181_000, "120s")];
        check([0], 6, &lines.each_ref().map(|(at, text)| (*at, text.as_str())));
    }

    #[test]
    fn each_reason_is_named_once_and_a_lost_event_counts_as_nothing() {
        let mut log = PressureLog::default();
        for n in 0..4 {
            let reason = if n % 2 == 0 { Dispatcher } else { Mailboxes };
            log.note(n * 100 * MS, true, reason);
            log.note(n * 100 * MS + MS, true, reason);
            log.note(n * 100 * MS + 50 * MS, false, reason);
            log.note(n * 100 * MS + 51 * MS, false, reason);
        }
        let sum = log.take(400 * MS, false).expect("it has held for 200 ms");
        let text = "under pressure for 200ms of 400ms, 4 times: a dispatcher refuses work, \
                    mailboxes are nearly full";
        assert_eq!(sum.to_string(), text);
        assert_eq!(log.take(500 * MS, false), None, "there is no window");
    }

    #[test]
    fn pressure_whose_end_was_lost_is_one_line() {
        let mut log = PressureLog::default();
        log.note(0, true, Mailboxes);
        assert_eq!(log.window_end_ns(), Some(COLLECTING_NS));
        // The end is lost; the next window has nothing of it.
        let sum = log.take_due(COLLECTING_NS, false).expect("it may have held all the time");
        let text = "under pressure for at most 1s of 1s: mailboxes are nearly full";
        assert_eq!(sum.to_string(), text);
        assert_eq!(log.window_end_ns(), None);
        // The next pressure is seen again.
        log.note(2 * COLLECTING_NS, true, Mailboxes);
        log.note(3 * COLLECTING_NS, false, Mailboxes);
        let sum = log.take_due(2 * MINUTE, false).expect("it has held for a second");
        let text = "under pressure for 1s of 118s: mailboxes are nearly full";
        assert_eq!(sum.to_string(), text);
    }
}
