//! The output streams of a command and the properties of their readers.

use core::fmt;
use std::io::{IsTerminal as _, Stderr, Stdout, Write};

use crate::{interrupt::Interrupt, terminal};

/// The output streams of a command.
pub struct Streams<'w> {
    /// The result.
    pub out: &'w mut dyn Write,
    /// Progress and messages.
    pub err: &'w mut dyn Write,
    /// Whether `out` is a terminal, which can show colors.
    pub out_is_terminal: bool,
    /// The width of the terminal, if `out` is one and its width is known.
    pub out_columns: Option<usize>,
    /// Whether `err` is a terminal, on which a progress line can be redrawn.
    pub err_is_terminal: bool,
    /// Whether the user has disabled colors: `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// Whether the user wants the command to stop.
    pub interrupt: Interrupt,
}

impl<'w> Streams<'w> {
    /// Streams that are not terminals, without an interrupt.
    pub fn new(out: &'w mut dyn Write, err: &'w mut dyn Write) -> Self {
        Self {
            out,
            err,
            out_is_terminal: false,
            out_columns: None,
            err_is_terminal: false,
            no_color: false,
            interrupt: Interrupt::new(),
        }
    }

    /// The streams of this process.
    pub(crate) fn of_process(out: &'w mut Stdout, err: &'w mut Stderr) -> Self {
        // A dumb terminal understands no escape sequences, so it is treated like a file.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_terminal = (out.is_terminal() && !is_dumb, err.is_terminal() && !is_dumb);
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let (out_is_terminal, err_is_terminal) = is_terminal;
        let out_columns = if out.is_terminal() { terminal::columns(out) } else { None };
        let streams = Self::new(out, err);
        Self { out_is_terminal, out_columns, err_is_terminal, no_color, ..streams }
    }
}

impl fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("out_is_terminal", &self.out_is_terminal)
            .field("out_columns", &self.out_columns)
            .field("err_is_terminal", &self.err_is_terminal)
            .field("no_color", &self.no_color)
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}
