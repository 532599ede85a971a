//! The width of a terminal where there is no common way to ask for it.

use std::io::Stdout;

/// The number of columns of the terminal: shells that export `COLUMNS` tell it.
pub(crate) fn columns(_out: &Stdout) -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok()?.parse().ok()?;
    Some(columns).filter(|columns| *columns > 0)
}
