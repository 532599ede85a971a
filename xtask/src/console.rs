//! The output of a command: numbered steps with their time, and a table at the end.
//!
//! On a terminal the line of a running step is redrawn with the elapsed time and the last line of
//! output. Under `CI` or without a terminal only plain lines are written. This is the only module
//! of the tool that prints. If the reader of the output closes the pipe, as `head` does, the checks
//! continue.

use core::{cell::Cell, fmt, time::Duration};
use std::{
    io::{self, IsTerminal as _, Write as _},
    time::Instant,
};

use anyhow::Result;

use crate::table::Table;

/// The maximum width of a redrawn line.
const LIVE_COLUMNS: usize = 78;
/// The maximum width of the note after a step.
const NOTE_COLUMNS: usize = 72;

/// The steps of one command, in order.
#[derive(Debug)]
pub(crate) struct Steps {
    title: &'static str,
    total: usize,
    started: Instant,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    passed: bool,
    took: Duration,
    note: String,
}

/// The line of the step that is running now.
#[derive(Debug)]
pub(crate) struct Line {
    prefix: String,
    live: bool,
    started: Instant,
    is_broken: Cell<bool>,
}

impl Steps {
    /// Announces a command with `total` steps.
    pub(crate) fn new(title: &'static str, total: usize) -> Self {
        put(format_args!("{title}: {total} step{}\n", if total == 1 { "" } else { "s" }));
        Self { title, total, started: Instant::now(), rows: Vec::new() }
    }

    /// Runs one step. The text of its `Ok` is shown after the time. A failure is printed
    /// immediately and remembered for [`Steps::finish`]; the returned value says whether the step
    /// passed.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce(&Line) -> Result<String>) -> bool {
        let line = Line::begin(format!("[{}/{}] {name}", self.rows.len() + 1, self.total));
        let result = work(&line);
        let took = line.started.elapsed();
        let (passed, note) = match &result {
            Ok(note) => (true, note.chars().take(NOTE_COLUMNS).collect()),
            Err(_) => (false, String::new()),
        };
        line.end(passed, took, &note);
        if let Err(error) = result {
            for text in format!("{error:#}").lines() {
                put(format_args!("      {text}\n"));
            }
        }
        self.rows.push(Row { name: name.to_owned(), passed, took, note });
        passed
    }

    /// Prints the table of steps, if there are several. `Err` names the steps that failed, and says
    /// whether some were not reached.
    pub(crate) fn finish(self) -> Result<()> {
        let mut table = Table::new(&["step", "result", "seconds", ""]);
        for row in &self.rows {
            let result = if row.passed { "ok" } else { "FAILED" };
            table.row([row.name.clone(), result.to_owned(), seconds(row.took), row.note.clone()]);
        }
        let total = seconds(self.started.elapsed());
        table.row(["total".to_owned(), String::new(), total, String::new()]);
        if self.total > 1 {
            put(format_args!("\n{table}\n"));
        }
        let failed: Vec<&str> =
            self.rows.iter().filter(|row| !row.passed).map(|row| row.name.as_str()).collect();
        anyhow::ensure!(failed.is_empty(), "{}: failed: {}", self.title, failed.join("; "));
        anyhow::ensure!(
            self.rows.len() == self.total,
            "{}: stopped after {} of {} steps",
            self.title,
            self.rows.len(),
            self.total
        );
        Ok(())
    }
}

impl Line {
    fn begin(prefix: String) -> Self {
        let live = is_live();
        put(format_args!("{prefix} ... "));
        flush();
        Self { prefix, live, started: Instant::now(), is_broken: Cell::new(false) }
    }

    /// Redraws the line on a terminal with the elapsed time and the current activity. Does nothing
    /// without a terminal.
    pub(crate) fn tick(&self, doing: &str) {
        if self.live {
            let text = format!(
                "{} ... {}s {}",
                self.prefix,
                self.started.elapsed().as_secs(),
                printable(doing)
            );
            put(format_args!("\r\x1b[K{}", text.chars().take(LIVE_COLUMNS).collect::<String>()));
            flush();
        }
    }

    /// Writes a separate line below the line of the step.
    pub(crate) fn say(&self, text: &str) {
        if self.live {
            put(format_args!("\r\x1b[K"));
        } else if !self.is_broken.replace(true) {
            put(format_args!("\n"));
        }
        put(format_args!("      {}\n", printable(text)));
    }

    fn end(&self, passed: bool, took: Duration, note: &str) {
        if self.live {
            put(format_args!("\r\x1b[K"));
        }
        if self.live || self.is_broken.get() {
            put(format_args!("{} ... ", self.prefix));
        }
        let result = if passed { "ok" } else { "FAILED" };
        let gap = if note.is_empty() { "" } else { "  " };
        put(format_args!("{result} {}s{gap}{note}\n", seconds(took)));
        flush();
    }
}

/// Prints one line of the command's own output.
pub(crate) fn say(text: impl fmt::Display) {
    put(format_args!("{text}\n"));
}

/// Prints why the command failed.
pub(crate) fn error(error: &anyhow::Error) {
    flush();
    let _ = writeln!(io::stderr(), "error: {error:#}");
}

/// Seconds with one decimal, as every table shows them.
pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1}", time.as_secs_f64())
}

/// Whether the command runs in continuous integration, where the log is read only after a failure.
pub(crate) fn is_under_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty())
}

fn is_live() -> bool {
    !is_under_ci() && io::stdout().is_terminal()
}

/// The text without control characters, which a child may have written.
fn printable(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// Prints. Under test the macro is used because the test harness captures only the macro's output;
/// the macro panics if the reader has closed the pipe.
#[cfg_attr(test, expect(clippy::print_stdout, reason = "so that a harness captures it"))]
fn put(text: fmt::Arguments<'_>) {
    #[cfg(test)]
    print!("{text}");
    #[cfg(not(test))]
    let _ = io::stdout().write_fmt(text);
}

fn flush() {
    let _ = io::stdout().flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_command_by_name() {
        let mut steps = Steps::new("sample", 2);
        assert!(steps.step("good", |_| Ok("fine".to_owned())));
        assert!(!steps.step("bad", |_| anyhow::bail!("broken")));
        let error = steps.finish().expect_err("one step failed").to_string();
        assert_eq!(error, "sample: failed: bad");
    }

    #[test]
    fn a_step_that_was_not_reached_fails_the_command() {
        let mut steps = Steps::new("sample", 2);
        assert!(steps.step("good", |_| Ok(String::new())));
        let error = steps.finish().expect_err("one step is missing").to_string();
        assert_eq!(error, "sample: stopped after 1 of 2 steps");
    }

    #[test]
    fn control_characters_of_a_child_are_dropped() {
        assert_eq!(printable("\x1b[1mbold\r"), "[1mbold");
    }
}
