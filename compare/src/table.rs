//! The table for people.

use core::fmt;

use crate::report::{Column, Row, Standing, Target};

/// Rows and columns, to be printed.
#[derive(Debug)]
pub(crate) struct Table<'a> {
    pub(crate) columns: &'a [Column],
    pub(crate) rows: &'a [Row],
}

impl Table<'_> {
    /// Our own column first, then the others in their order.
    fn subjects(&self) -> impl Iterator<Item = &Column> {
        let of = |ours: bool| {
            self.columns.iter().filter(move |column| (column.standing == Standing::Ours) == ours)
        };
        of(true).chain(of(false))
    }

    /// The rows, grouped by case, whatever the order of the measurement.
    fn by_case(&self) -> Vec<&Row> {
        let first = |row: &&Row| self.rows.iter().position(|other| other.case == row.case);
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.sort_by_key(first);
        rows
    }

    fn head(&self) -> Vec<String> {
        let mut cells = vec!["case".to_owned(), "n".to_owned(), "unit".to_owned()];
        cells.extend(self.subjects().map(|column| match column.standing {
            Standing::Ours => format!("ours: {}", column.name),
            Standing::Rival => column.name.to_owned(),
            Standing::Reference => format!("{}*", column.name),
        }));
        cells.extend(["best peer", "ratio", "target", "verdict"].map(str::to_owned));
        cells
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let outcome = row.outcome(self.columns);
        let dash = || "-".to_owned();
        let mut cells = vec![row.case.to_owned(), row.n.to_string(), row.unit.to_owned()];
        cells.extend(self.subjects().map(|column| {
            row.figure(column.name).map_or_else(dash, |figure| format!("{figure:.1}"))
        }));
        cells.push(outcome.best_peer.map_or_else(dash, |(name, _)| name.to_owned()));
        cells.push(outcome.ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")));
        cells.push(match row.target {
            Some(Target::RatioAtLeast(least)) => format!(">={least:.1}"),
            Some(Target::OursAtMost(most)) => format!("<={most:.0} {}", row.unit),
            Some(Target::Within(subject, times)) => format!("<={times:.1}x {subject}"),
            Some(Target::Over(subject, most)) => format!("<={subject}+{most:.0}"),
            None => dash(),
        });
        cells.push(match outcome.met {
            Some(true) => "met".to_owned(),
            Some(false) => "SHORT".to_owned(),
            None => dash(),
        });
        cells
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = vec![self.head()];
        lines.extend(self.by_case().into_iter().map(|row| self.line(row)));
        let widths: Vec<usize> = (0..lines[0].len())
            .map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0))
            .collect();
        for (index, cells) in lines.iter().enumerate() {
            if index > 0 && cells[0] != lines[index - 1][0] {
                let rule: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
                writeln!(f, "{}", "-".repeat(rule))?;
            }
            let padded: Vec<String> = cells
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, &width))| match column {
                    0 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(f, "{}", padded.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Table;
    use crate::report::{Column, Row, Standing, Target};

    #[test]
    fn ours_comes_first_and_what_is_missing_is_a_dash() {
        let column = |name, standing| Column { name, package: None, standing, note: String::new() };
        let columns = [
            column("rival", Standing::Rival),
            column("tree", Standing::Reference),
            column("us", Standing::Ours),
        ];
        let row = |case, us, target| Row {
            case,
            n: 1_000,
            unit: "ns",
            figures: vec![("us", us), ("rival", Some(30.0)), ("tree", None)],
            n_rounds: 1,
            target,
            least: 0.0,
            versus: &[],
            extras: Vec::new(),
        };
        let rows = [
            row("insert", Some(10.0), Some(Target::RatioAtLeast(1.5))),
            row("cancel", None, None),
            row("insert", Some(60.0), Some(Target::RatioAtLeast(1.5))),
        ];
        let shown = Table { columns: &columns, rows: &rows }.to_string();
        let lines: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            "case n unit ours: us rival tree* best peer ratio target verdict",
            "---",
            "insert 1000 ns 10.0 30.0 - rival 3.00 >=1.5 met",
            "insert 1000 ns 60.0 30.0 - rival 0.50 >=1.5 SHORT",
            "---",
            "cancel 1000 ns - 30.0 - rival - - -",
        ];
        assert_eq!(lines.len(), expected.len(), "{shown}");
        for (line, expected) in lines.iter().zip(expected) {
            let squeezed = line.join(" ");
            let ruled = expected == "---" && squeezed.starts_with("---");
            assert!(ruled || squeezed == expected, "{squeezed}\nis not\n{expected}");
        }
    }
}
