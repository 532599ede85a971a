//! Text in aligned columns.

use core::fmt::{self, Display, Formatter};

/// Rows under a heading. Columns whose cells are all numbers are aligned to the right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column names.
    pub(crate) fn new(heading: &[&str]) -> Self {
        Self { rows: vec![heading.iter().map(|&name| name.to_owned()).collect()] }
    }

    /// Adds a row; missing cells are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut row: Vec<String> = cells.into_iter().collect();
        assert!(row.len() <= self.rows[0].len(), "a row is wider than the heading: {row:?}");
        row.resize(self.rows[0].len(), String::new());
        self.rows.push(row);
    }

    fn is_numeric(&self, column: usize) -> bool {
        let mut cells = self.rows[1..].iter().map(|row| &row[column]).filter(|c| !c.is_empty());
        let is_number =
            |cell: &String| cell.chars().all(|char| char.is_ascii_digit() || "+-.%".contains(char));
        cells.clone().next().is_some() && cells.all(is_number)
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let n_columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let shape: Vec<(usize, bool)> =
            (0..n_columns).map(|column| (width(column), self.is_numeric(column))).collect();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (cell, &(width, is_numeric)) in row.iter().zip(&shape) {
                let cell =
                    if is_numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") };
                line.push_str(&cell);
                line.push_str("  ");
            }
            writeln!(f, "{}", line.trim_end())?;
            if index == 0 {
                let rule: Vec<String> = shape.iter().map(|&(width, _)| "-".repeat(width)).collect();
                writeln!(f, "{}", rule.join("  ").trim_end())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(&["name", "n"]);
        table.row(["a".to_owned(), "7".to_owned()]);
        table.row(["longer".to_owned(), "1234".to_owned()]);
        let expected = "name       n\n------  ----\na          7\nlonger  1234\n";
        assert_eq!(table.to_string(), expected);
    }

    #[test]
    #[should_panic(expected = "wider than the heading")]
    fn a_row_wider_than_its_heading_is_refused() {
        Table::new(&["one"]).row(["1".to_owned(), "2".to_owned()]);
    }
}
