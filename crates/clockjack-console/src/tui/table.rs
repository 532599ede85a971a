//! Tables of text: columns with a width, one of which takes what is left.

use super::format;

/// A column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    /// Its width; 0 for the column that takes what is left.
    pub(super) width: usize,
    pub(super) align: Align,
    /// The screen must have so many columns, or this one is left out.
    pub(super) from: usize,
}

/// Where the text of a column is, and what is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
    /// As left, and what is too long loses its front.
    Path,
}

impl Column {
    pub(super) const fn left(title: &'static str, width: usize) -> Self {
        Self { title, width, align: Align::Left, from: 0 }
    }

    pub(super) const fn right(title: &'static str, width: usize) -> Self {
        Self { title, width, align: Align::Right, from: 0 }
    }

    pub(super) const fn path(title: &'static str) -> Self {
        Self { title, width: 0, align: Align::Path, from: 0 }
    }

    /// The column that takes what is left.
    pub(super) const fn rest(title: &'static str) -> Self {
        Self { title, width: 0, align: Align::Left, from: 0 }
    }

    pub(super) const fn from(self, from: usize) -> Self {
        Self { from, ..self }
    }
}

/// Lays out the titles and the rows in so many columns. A row has one text per column.
pub(super) fn lay_out(columns: &[Column], rows: &[Vec<String>], width: usize) -> Vec<String> {
    let is_shown = |column: &Column| column.from <= width;
    let fixed: usize =
        columns.iter().filter(|one| is_shown(one) && one.width > 0).map(|one| one.width + 1).sum();
    // One column for the mark of the selected row.
    let rest = width.saturating_sub(fixed + 1);
    let line = |texts: &mut dyn Iterator<Item = &str>| {
        let mut line = String::new();
        for (column, text) in columns.iter().zip(texts) {
            if !is_shown(column) {
                continue;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            let width = if column.width == 0 { rest } else { column.width };
            let text = match column.align {
                Align::Path => format::tail(text, width),
                _ => format::head(text, width),
            };
            line.push_str(&match column.align {
                Align::Right => format!("{text:>width$}"),
                _ => format!("{text:<width$}"),
            });
        }
        line
    };
    let mut lines = vec![line(&mut columns.iter().map(|column| column.title))];
    lines.extend(rows.iter().map(|row| line(&mut row.iter().map(String::as_str))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_takes_what_is_left_and_narrow_screens_lose_columns() {
        let columns =
            [Column::path("PATH"), Column::right("RATE", 6), Column::left("TYPE", 4).from(30)];
        let rows = vec![vec!["/user/long/path".into(), "1 /s".into(), "Till".into()]];
        assert_eq!(lay_out(&columns, &rows, 20), ["PATH           RATE", "../long/path   1 /s"]);
        let wide = lay_out(&columns, &rows, 31);
        assert_eq!(wide[1], "/user/long/path      1 /s Till");
        assert_eq!(wide[1].len(), 30, "one is left for the mark");
    }
}
