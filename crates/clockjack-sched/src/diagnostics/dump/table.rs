//! A text table whose columns are as wide as their content.

use alloc::{string::String, vec::Vec};
use core::fmt;

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// A table of `N` columns.
pub(super) struct TextTable<const N: usize> {
    columns: [(Align, &'static str); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> TextTable<N> {
    pub(super) fn new(
        columns: [(Align, &'static str); N],
        rows: impl Iterator<Item = [String; N]>,
    ) -> Self {
        Self { columns, rows: rows.collect() }
    }

    /// Writes the header and the rows. The last column should be right-aligned, so that no line
    /// ends in spaces.
    pub(super) fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let widths: [usize; N] = core::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0).max(self.columns[column].1.len())
        });
        let line = |cells: [&str; N], out: &mut dyn fmt::Write| {
            let mut text = String::new();
            for ((cell, width), (side, _)) in cells.iter().zip(widths).zip(self.columns) {
                let blanks = " ".repeat(width - cell.chars().count());
                let (before, behind) = match side {
                    Align::Left => ("", &*blanks),
                    Align::Right => (&*blanks, ""),
                };
                text.extend(["  ", before, cell, behind]);
            }
            writeln!(out, "{text}")
        };
        line(self.columns.map(|(_, name)| name), out)?;
        self.rows.iter().try_for_each(|row| line(row.each_ref().map(String::as_str), out))
    }
}
