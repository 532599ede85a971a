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
    /// Whether the reader of `out` understands UTF-8; otherwise plots consist of ASCII characters.
    pub out_is_utf8: bool,
    /// Whether `err` is a terminal, on which a progress line can be redrawn.
    pub err_is_terminal: bool,
    /// Whether the user has disabled colors: `NO_COLOR` is set and not empty.
    pub no_color: bool,
    /// Whether the user wants the command to stop.
    pub interrupt: Interrupt,
}

impl<'w> Streams<'w> {
    /// Streams that are not terminals and take UTF-8, without an interrupt.
    pub fn new(out: &'w mut dyn Write, err: &'w mut dyn Write) -> Self {
        Self {
            out,
            err,
            out_is_terminal: false,
            out_columns: None,
            out_is_utf8: true,
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
        let out_is_utf8 = is_utf8(|name| std::env::var(name).ok());
        let streams = Self::new(out, err);
        Self { out_is_terminal, out_columns, out_is_utf8, err_is_terminal, no_color, ..streams }
    }
}

/// Whether the locale has UTF-8: the first of these variables that is set and not empty decides
/// (POSIX.1-2024, Base Definitions, 8.2). `variable` returns the value of a variable.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut values = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable);
    let locale = values.find(|value| !value.is_empty());
    locale.map_or(terminal::IS_UTF8_BY_DEFAULT, |locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

impl fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("out_is_terminal", &self.out_is_terminal)
            .field("out_columns", &self.out_columns)
            .field("out_is_utf8", &self.out_is_utf8)
            .field("err_is_terminal", &self.err_is_terminal)
            .field("no_color", &self.no_color)
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_says_whether_there_is_utf_8() {
        let with = |set: &[(&str, &str)]| {
            is_utf8(|name| {
                set.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert!(with(&[("LANG", "de_AT.UTF-8")]));
        assert!(with(&[("LANG", "C"), ("LC_CTYPE", "C.utf8")]), "the more special one decides");
        assert!(with(&[("LC_ALL", ""), ("LANG", "en_US.utf8")]), "an empty one counts as not set");
        assert!(!with(&[("LC_ALL", "C"), ("LANG", "en_US.UTF-8")]));
        assert!(!with(&[("LANG", "de_AT.ISO-8859-1")]));
        assert_eq!(with(&[]), terminal::IS_UTF8_BY_DEFAULT);
    }
}
