//! The progress line: the progress of a long phase, redrawn in place.
//!
//! The output consists of printable text and carriage returns, and of the "cursor up" sequence if
//! there are several lines. There are no colors and no terminal modes, so an interrupted process
//! leaves nothing to restore. Write errors are ignored, because progress is optional.

use core::{fmt, time::Duration};
use std::{io::Write, time::Instant};

/// The time between two redraws: smooth for the eye, and cheap.
const REDRAW_EVERY: Duration = Duration::from_millis(100);
/// The width of the bar in columns.
const BAR_COLUMNS: u64 = 30;

/// The sequence that moves the cursor up by one line.
const LINE_UP: &str = "\x1b[A";

/// The style of the progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// A bar and numbers.
    Bar,
    /// Numbers.
    Counter,
}

/// Draws a progress line, or nothing, and writes notes. Clears the line on drop.
pub(crate) struct Progress<'w> {
    out: &'w mut dyn Write,
    /// `None`: nothing is drawn.
    style: Option<Style>,
    drawn_at: Option<Instant>,
    phase: &'static str,
    /// The width of each line of the last drawing.
    columns: Vec<usize>,
}

impl<'w> Progress<'w> {
    /// Draws on `out`; without a style, only notes are written.
    pub(crate) const fn on(out: &'w mut dyn Write, style: Option<Style>) -> Self {
        Self { out, style, drawn_at: None, phase: "", columns: Vec::new() }
    }

    /// Writes a line that stays, above the progress line.
    pub(crate) fn note(&mut self, text: &str) {
        if self.columns.iter().any(|columns| *columns > 0) {
            self.draw("");
            self.draw("");
        }
        // A write error is ignored.
        let _written = writeln!(self.out, "{text}").and_then(|()| self.out.flush());
    }

    /// Reports the progress of a phase. Draws when a phase begins, and then at intervals.
    pub(crate) fn show(&mut self, phase: &'static str, done: u64, total: u64) {
        let Some(style) = self.style else { return };
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
        if style == Style::Counter {
            return self.draw(&format!("{phase:<10} {done}/{total}"));
        }
        let bar = "#".repeat(share(BAR_COLUMNS));
        let bar_columns = usize::try_from(BAR_COLUMNS).unwrap_or(usize::MAX);
        let percent = share(100);
        self.draw(&format!("{phase:<10} [{bar:.<bar_columns$}] {percent:>3}%  {done}/{total}"));
    }

    /// Draws custom lines, at the same maximum rate.
    pub(crate) fn draw_custom(&mut self, lines: impl FnOnce() -> Vec<String>) {
        if self.style.is_none() || self.drawn_at.is_some_and(|at| at.elapsed() < REDRAW_EVERY) {
            return;
        }
        self.drawn_at = Some(Instant::now());
        self.draw_lines(&lines());
    }

    fn draw(&mut self, text: &str) {
        self.draw_lines(&[text.to_owned()]);
    }

    /// Draws lines over the previous ones, and moves the cursor back to the first line.
    fn draw_lines(&mut self, lines: &[String]) {
        let n_lines = lines.len().max(self.columns.len());
        let mut text = String::from("\r");
        for at in 0..n_lines {
            let line = lines.get(at).map_or("", String::as_str);
            let columns = self.columns.get(at).copied().unwrap_or(0);
            text.push_str(&format!("{}{line:<columns$}", if at > 0 { "\n" } else { "" }));
        }
        if n_lines > 1 {
            text.push('\r');
            text.push_str(&LINE_UP.repeat(n_lines - 1));
        }
        // A write error is ignored.
        let _drawn = self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush());
        self.columns = lines.iter().map(|line| line.chars().count()).collect();
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.columns.iter().any(|columns| *columns > 0) {
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
        work(&mut Progress::on(&mut out, Some(Style::Bar)));
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
        Progress::on(&mut out, Some(Style::Counter)).show("firing", 2, 8);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text.split('\r').nth(1), Some("firing     2/8"));
    }

    #[test]
    fn several_lines_are_drawn_over_each_other_and_wiped() {
        let mut out = Vec::new();
        let lines = || vec!["first".into(), "two".into()];
        Progress::on(&mut out, Some(Style::Bar)).draw_custom(lines);
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "\rfirst\ntwo\r\x1b[A\r     \n   \r\x1b[A\r");
    }

    #[test]
    fn nothing_is_drawn_that_would_need_repair() {
        let text = drawn(|progress| progress.show("arming", 1, 0));
        let is_plain = |c: char| c == '\r' || c == ' ' || c.is_ascii_graphic();
        assert!(text.chars().all(is_plain), "{text:?}");
    }

    #[test]
    fn a_note_is_written_where_the_line_was_and_also_without_a_line() {
        let text = drawn(|progress| {
            progress.draw_custom(|| vec!["line".into()]);
            progress.note("a note");
        });
        assert_eq!(text, "\rline\r    \ra note\n");
        let mut out = Vec::new();
        let mut silent = Progress::on(&mut out, None);
        silent.show("firing", 2, 8);
        silent.note("a note");
        drop(silent);
        assert_eq!(out, b"a note\n");
    }

    #[test]
    fn without_a_phase_nothing_is_written() {
        assert_eq!(drawn(|_| ()), "");
    }
}
