//! The properties of a terminal where there is no common way to ask for them.

use std::io::Stdout;

/// Whether output is UTF-8 if no variable names a locale.
pub(crate) const IS_UTF8_BY_DEFAULT: bool = true;

/// The number of columns of the terminal: shells that export `COLUMNS` tell it.
pub(crate) fn columns(_out: &Stdout) -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    Some(columns).filter(|columns| *columns > 0)
}
