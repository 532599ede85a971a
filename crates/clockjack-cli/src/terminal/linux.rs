//! The properties of a terminal on Linux.

use std::io::Stdout;

/// Whether output is UTF-8 if no variable names a locale: the locale is then `C`.
pub(crate) const IS_UTF8_BY_DEFAULT: bool = false;

/// The number of columns of the terminal; `None` if it does not know.
pub(crate) fn columns(out: &Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
