//! The width of a terminal on Linux.

use std::io::Stdout;

/// The number of columns of the terminal; `None` if it does not know.
pub(crate) fn columns(out: &Stdout) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(out).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}
