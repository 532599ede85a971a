//! The progress line: how far a long phase has come, redrawn in place.
//!
//! Printable text and carriage returns only. There is no colour, no escape sequence and no terminal
//! mode, so that an interrupted process leaves nothing to repair. A line that cannot be written is
//! left out: progress is a courtesy.

use core::{fmt, time::Duration};
use std::{io::Write, time::Instant};

/// Time between two drawings: fast enough for the eye, too slow to cost anything.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// Columns of the bar.
const BAR_COLUMNS: u64 = 30;

/// What the line looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A bar and numbers.
    Bar,
    /// Numbers.
    Counter,
}

/// Draws the line, or nothing. Dropped, it leaves an empty line.
pub(crate) struct Progress<'w> {
    out: Option<&'w mut dyn Write>,
    style: Style,
    drawn_at: Option<Instant>,
    phase: &'static str,
    /// Columns that the last drawing took.
    columns: usize,
}

impl<'w> Progress<'w> {
    /// Draws nothing.
    pub(crate) const fn silent() -> Self {
        Self { out: None, style: Style::Counter, drawn_at: None, phase: "", columns: 0 }
    }

    /// Draws on `out`.
    pub(crate) const fn on(out: &'w mut dyn Write, style: Style) -> Self {
        Self { out: Some(out), style, drawn_at: None, phase: "", columns: 0 }
    }

    /// Says how far a phase is. Draws when a phase begins, and then now and again.
    pub(crate) fn show(&mut self, phase: &'static str, done: u64, total: u64) {
        if self.out.is_none() {
            return;
        }
        let is_fresh = self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW_EVERY);
        if is_fresh && phase == self.phase {
            return;
        }
        self.phase = phase;
        self.drawn_at = Some(Instant::now());
        let share = |of: u64| {
            let part = u128::from(done.min(total)) * u128::from(of) / u128::from(total.max(1));
            usize::try_from(part).unwrap_or(usize::MAX)
        };
        if self.style == Style::Counter {
            return self.draw(&format!("{phase:<10} {done}/{total}"));
        }
        let bar = "#".repeat(share(BAR_COLUMNS));
        let bar_columns = usize::try_from(BAR_COLUMNS).unwrap_or(usize::MAX);
        let percent = share(100);
        self.draw(&format!("{phase:<10} [{bar:.<bar_columns$}] {percent:>3}%  {done}/{total}"));
    }

    /// Draws a line of its own making, not more often than others.
    pub(crate) fn say(&mut self, text: impl FnOnce() -> String) {
        if self.out.is_none() || self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW_EVERY) {
            return;
        }
        self.drawn_at = Some(Instant::now());
        self.draw(&text());
    }

    fn draw(&mut self, text: &str) {
        let Some(out) = &mut self.out else { return };
        let columns = self.columns;
        // What cannot be drawn is not drawn.
        let _drawn = write!(out, "\r{text:<columns$}").and_then(|()| out.flush());
        self.columns = text.len();
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.columns > 0 {
            self.draw("");
            self.draw("");
        }
    }
}

impl fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("phase", &self.phase).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Style};

    fn drawn(work: impl FnOnce(&mut Progress<'_>)) -> String {
        let mut out = Vec::new();
        work(&mut Progress::on(&mut out, Style::Bar));
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_phase_is_drawn_when_it_begins_and_the_line_is_empty_in_the_end() {
        let text = drawn(|progress| {
            progress.show("arming", 0, 8);
            progress.show("firing", 2, 8);
        });
        let lines: Vec<&str> = text.split('\r').collect();
        assert_eq!(lines[1], "arming     [..............................]   0%  0/8");
        assert_eq!(lines[2], "firing     [#######.......................]  25%  2/8");
        assert_eq!(lines[3], " ".repeat(lines[2].len()), "wiped");
        assert_eq!(lines[4..], [""], "and the cursor is back at the start");
    }

    #[test]
    fn a_counter_has_no_bar() {
        let mut out = Vec::new();
        Progress::on(&mut out, Style::Counter).show("firing", 2, 8);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.split('\r').nth(1), Some("firing     2/8"));
    }

    #[test]
    fn nothing_is_drawn_that_would_need_repair() {
        let text = drawn(|progress| progress.show("arming", 1, 0));
        let is_plain = |c: char| c == '\r' || c == ' ' || c.is_ascii_graphic();
        assert!(text.chars().all(is_plain), "{text:?}");
    }

    #[test]
    fn without_a_phase_nothing_is_written() {
        assert_eq!(drawn(|_| ()), "");
    }
}
