//! The report of a case: one line of JSON for programs, and a table for people.
//!
//! `ratio` is the cost of the best rival divided by ours, so a ratio above 1 is a win. Rivals are
//! the crates that may be the best peer; references are shown next to them and are never compared
//! with.

use std::io::{IsTerminal, Write};

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::order::BySubject;
use crate::stats::Quartiles;
use crate::table::Table;

/// The properties of a subject.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The name in tables, in JSON and after `--only`.
    pub(crate) name: &'static str,
    /// Its package, or `None` for the standard library or the operating system.
    pub(crate) package: Option<&'static str>,
    pub(crate) standing: Standing,
    /// A remark for the reader of the figures, in one line.
    pub(crate) note: &'static str,
}

impl Facts {
    pub(crate) fn column(&self) -> Column {
        let Self { name, package, standing, note } = *self;
        Column { name, package, standing, note: note.to_owned() }
    }
}

/// A subject as a column of the report.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// Its package, or `None` for the standard library.
    pub(crate) package: Option<&'static str>,
    pub(crate) standing: Standing,
    pub(crate) note: String,
}

/// The role of a subject in the ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Ours,
    Rival,
    Reference,
}

/// The target of a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Target {
    RatioAtLeast(f64),
    OursAtMost(f64),
    /// Our figure is at most this many times the figure of the named subject.
    Within(&'static str, f64),
    /// Our figure is at most this much above the figure of the named subject.
    Over(&'static str, f64),
}

/// One case at one size.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) n: u32,
    pub(crate) unit: &'static str,
    /// The figure of each subject, by name; `None` if it does not support the case.
    pub(crate) figures: BySubject<f64>,
    /// The number of rounds of which the figures are the medians.
    pub(crate) n_rounds: usize,
    pub(crate) target: Option<Target>,
    /// Smaller figures count as this value in a ratio: the smallest meaningful value where a figure
    /// may be zero. Zero against zero is then 1.
    pub(crate) least: f64,
    /// Ratios against single subjects, each with its name in JSON and the name of the subject.
    pub(crate) versus: &'static [(&'static str, &'static str)],
    pub(crate) extras: Vec<Extra>,
}

/// A further figure of each subject, with the JSON names `ours_NAME` and `peers_NAME`.
#[derive(Clone, Debug)]
pub(crate) struct Extra {
    name: &'static str,
    values: BySubject<Value>,
}

impl Extra {
    /// One number per subject.
    pub(crate) fn numbers(name: &'static str, values: BySubject<f64>) -> Self {
        let number = |(subject, value): (_, Option<f64>)| (subject, value.map(Self::number));
        Self { name, values: values.into_iter().map(number).collect() }
    }

    /// The quartiles of each subject.
    pub(crate) fn quartiles(values: BySubject<Quartiles>) -> Self {
        let pair = |cuts: Quartiles| json!([Self::number(cuts.q1), Self::number(cuts.q3)]);
        let pair = |(subject, cuts): (_, Option<Quartiles>)| (subject, cuts.map(pair));
        Self { name: "quartiles", values: values.into_iter().map(pair).collect() }
    }

    /// A number in JSON: three decimals are more precise than any clock here.
    fn number(value: f64) -> Value {
        json!((value * 1_000.0).round() / 1_000.0)
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        let found = self.values.iter().find(|(subject, _)| *subject == name);
        found.and_then(|(_, value)| value.clone()).unwrap_or(Value::Null)
    }
}

/// The results that follow from a row and the roles of the subjects.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) ours: Option<f64>,
    pub(crate) best_peer: Option<(&'static str, f64)>,
    pub(crate) ratio: Option<f64>,
    /// Whether the target is met; `None` without a target or without our own figure.
    pub(crate) met: Option<bool>,
}

impl Row {
    /// The figure of the subject `name`.
    pub(crate) fn figure(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|(subject, _)| *subject == name).and_then(|(_, figure)| *figure)
    }

    pub(crate) fn outcome(&self, columns: &[Column]) -> Outcome {
        let of = |standing| {
            columns
                .iter()
                .filter(move |column| column.standing == standing)
                .filter_map(|column| Some((column.name, self.figure(column.name)?)))
        };
        let ours = of(Standing::Ours).map(|(_, figure)| figure).next();
        let best_peer = of(Standing::Rival).min_by(|a, b| a.1.total_cmp(&b.1));
        let ratio = self.ratio(best_peer.map(|(_, best)| best), ours);
        let met = match self.target {
            Some(Target::RatioAtLeast(least)) => ratio.map(|ratio| ratio >= least),
            Some(Target::OursAtMost(most)) => ours.map(|ours| ours <= most),
            Some(Target::Within(subject, times)) => {
                self.ratio(self.figure(subject), ours).map(|ratio| ratio * times >= 1.0)
            }
            Some(Target::Over(subject, most)) => self.over(subject, ours).map(|over| over <= most),
            None => None,
        };
        Outcome { ours, best_peer, ratio, met }
    }

    /// The ratios against single subjects, by their names in JSON.
    pub(crate) fn versus(
        &self,
        ours: Option<f64>,
    ) -> impl Iterator<Item = (&'static str, Option<f64>)> {
        self.versus.iter().map(move |(key, name)| (*key, self.ratio(self.figure(name), ours)))
    }

    /// How much our figure is above the figure of one subject.
    fn over(&self, subject: &str, ours: Option<f64>) -> Option<f64> {
        Some(ours? - self.figure(subject)?)
    }

    fn ratio(&self, peer: Option<f64>, ours: Option<f64>) -> Option<f64> {
        let (peer, ours) = (peer?.max(self.least), ours?.max(self.least));
        (ours > 0.0).then(|| peer / ours)
    }

    /// The row as a JSON object; the published fields come first.
    pub(crate) fn json(&self, suite: &str, columns: &[Column], machine: &str) -> Value {
        let outcome = self.outcome(columns);
        let number = |value: Option<f64>| value.map_or(Value::Null, Extra::number);
        let ours = columns.iter().find(|column| column.standing == Standing::Ours);
        let peers = |value: &dyn Fn(&str) -> Value| {
            columns
                .iter()
                .filter(|column| column.standing != Standing::Ours)
                .map(|column| (column.name.to_owned(), value(column.name)))
                .collect::<Map<String, Value>>()
        };
        let references: Vec<&str> = columns
            .iter()
            .filter(|column| column.standing == Standing::Reference)
            .map(|column| column.name)
            .collect();
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("suite", json!(suite));
        put("case", json!(self.case));
        put("n", json!(self.n));
        put("unit", json!(self.unit));
        put("ours", number(outcome.ours));
        put("peers", Value::Object(peers(&|name| number(self.figure(name)))));
        put("best_peer", json!(outcome.best_peer.map(|(name, _)| name)));
        put("ratio", number(outcome.ratio));
        put("references", json!(references));
        put("rounds", json!(self.n_rounds));
        let (mut ratio_min, mut ours_max) = (Value::Null, Value::Null);
        let (mut within, mut over) = (None, None);
        match self.target {
            Some(Target::RatioAtLeast(least)) => ratio_min = json!(least),
            Some(Target::OursAtMost(most)) => ours_max = json!(most),
            Some(Target::Within(of, times)) => within = Some(json!({"of": of, "times": times})),
            Some(Target::Over(of, by)) => over = Some((of, by)),
            None => {}
        }
        put("target_ratio_min", ratio_min);
        put("target_ours_max", ours_max);
        if let Some(within) = within {
            put("target_within", within);
        }
        if let Some((of, by)) = over {
            put("target_over", json!({"of": of, "by": by}));
            put(&format!("over_{of}"), number(self.over(of, outcome.ours)));
        }
        put("met", json!(outcome.met));
        for (key, ratio) in self.versus(outcome.ours) {
            put(key, number(ratio));
        }
        for extra in &self.extras {
            let own = ours.map_or(Value::Null, |column| extra.value(column.name));
            put(&format!("ours_{}", extra.name), own);
            let others = Value::Object(peers(&|name| extra.value(name)));
            put(&format!("peers_{}", extra.name), others);
        }
        put("machine", json!(machine));
        Value::Object(object)
    }
}

/// Receives rows, writes their JSON immediately and keeps them for the table.
pub(crate) struct Reporter<'a> {
    pub(crate) suite: &'static str,
    /// The meaning of the figures of the table.
    pub(crate) caption: &'static str,
    pub(crate) columns: Vec<Column>,
    pub(crate) machine: String,
    /// The destination of JSON lines, with its name.
    pub(crate) json: Option<(&'a mut dyn Write, String)>,
    pub(crate) rows: Vec<Row>,
    pub(crate) progress: Progress,
}

impl Reporter<'_> {
    /// Shows the current work on the progress line.
    pub(crate) fn progress(&mut self, what: &str) {
        self.progress.show(self.suite, what);
    }

    /// Reports a finished case.
    ///
    /// # Errors
    ///
    /// If its JSON cannot be written.
    pub(crate) fn report(&mut self, row: Row) -> Result<(), Failure> {
        if let Some((out, place)) = &mut self.json {
            let line = row.json(self.suite, &self.columns, &self.machine);
            // Each line is flushed, so that an aborted run keeps its finished results.
            writeln!(out, "{line}")
                .and_then(|()| out.flush())
                .map_err(|source| Failure::output(place.clone(), source))?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// The table of all rows so far.
    pub(crate) fn table(&self) -> Table<'_> {
        Table { columns: &self.columns, rows: &self.rows }
    }

    /// The rows of all cases that have the further figure `name`, with this figure instead of the
    /// main one.
    pub(crate) fn rows_of(&self, name: &str) -> Vec<Row> {
        let of_extra = |row: &Row| {
            let extra = row.extras.iter().find(|extra| extra.name() == name)?;
            let figure =
                |&(subject, _): &(&'static str, _)| (subject, extra.value(subject).as_f64());
            let figures: Vec<_> = row.figures.iter().map(figure).collect();
            // A case in which no subject has the figure is omitted.
            figures.iter().find(|(_, figure)| figure.is_some())?;
            Some(Row { figures, target: None, extras: Vec::new(), ..row.clone() })
        };
        self.rows.iter().filter_map(of_extra).collect()
    }
}

/// One line on standard error that is overwritten; without a terminal, one line per case.
#[derive(Debug)]
pub(crate) struct Progress {
    over_write: bool,
    last_case: String,
}

impl Progress {
    pub(crate) fn on_stderr() -> Self {
        Self { over_write: std::io::stderr().is_terminal(), last_case: String::new() }
    }

    fn show(&mut self, suite: &str, what: &str) {
        let mut err = std::io::stderr().lock();
        let case = what.split(':').next().unwrap_or(what);
        // If progress cannot be shown, the run continues.
        let _shown = if self.over_write {
            write!(err, "\r\x1b[K{suite} {what}").and_then(|()| err.flush())
        } else if case != self.last_case {
            writeln!(err, "{suite} {case}")
        } else {
            Ok(())
        };
        if case != self.last_case {
            case.clone_into(&mut self.last_case);
        }
    }

    /// Clears the line.
    pub(crate) fn end(&mut self) {
        if self.over_write {
            let mut err = std::io::stderr().lock();
            let _cleared = write!(err, "\r\x1b[K").and_then(|()| err.flush());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Column, Extra, Row, Standing, Target};
    use serde_json::{Value, json};

    fn column(name: &'static str, standing: Standing) -> Column {
        Column { name, package: None, standing, note: String::new() }
    }

    fn row(figures: &[(&'static str, Option<f64>)], target: Option<Target>) -> Row {
        Row {
            case: "insert",
            n: 1_000,
            unit: "ns",
            figures: figures.to_vec(),
            n_rounds: 5,
            target,
            least: 0.0,
            versus: &[("vs_tree", "tree")],
            extras: vec![Extra::numbers("wall", vec![("us", Some(9.5))])],
        }
    }

    fn columns() -> [Column; 4] {
        [
            column("us", Standing::Ours),
            column("rival", Standing::Rival),
            column("other", Standing::Rival),
            column("tree", Standing::Reference),
        ]
    }

    #[test]
    fn the_best_peer_is_the_cheapest_rival_and_never_a_reference() {
        let figures =
            [("us", Some(10.0)), ("rival", Some(30.0)), ("other", Some(25.0)), ("tree", Some(1.0))];
        let outcome = row(&figures, Some(Target::RatioAtLeast(2.5))).outcome(&columns());
        assert_eq!(outcome.best_peer, Some(("other", 25.0)));
        assert_eq!(outcome.ratio, Some(2.5));
        assert_eq!(outcome.met, Some(true));
        let outcome = row(&figures, Some(Target::RatioAtLeast(2.6))).outcome(&columns());
        assert_eq!(outcome.met, Some(false));
    }

    #[test]
    fn without_our_own_figure_there_is_a_best_peer_but_no_ratio() {
        let figures = [("us", None), ("rival", Some(30.0)), ("tree", Some(1.0))];
        let outcome = row(&figures, Some(Target::OursAtMost(32.0))).outcome(&columns());
        assert_eq!(outcome.best_peer, Some(("rival", 30.0)));
        assert_eq!((outcome.ours, outcome.ratio, outcome.met), (None, None, None));
        let others = [column("rival", Standing::Rival)];
        let line = row(&figures, None).json("timers", &others, "a machine");
        assert_eq!(line["ours"], Value::Null);
        assert_eq!(line["ours_wall"], Value::Null);
        assert_eq!(line["ratio"], Value::Null);
    }

    #[test]
    fn an_upper_limit_is_met_up_to_and_including_the_limit() {
        fn check(ours: f64, met: bool) {
            let row = row(&[("us", Some(ours))], Some(Target::OursAtMost(32.0)));
            assert_eq!(row.outcome(&columns()).met, Some(met), "{ours}");
        }
        check(31.9, true);
        check(32.0, true);
        check(32.1, false);
    }

    #[test]
    fn a_promise_against_one_subject_is_met_within_its_factor_and_shown_as_a_ratio() {
        fn check(ours: f64, met: bool) {
            let figures = [("us", Some(ours)), ("rival", Some(1.0)), ("tree", Some(10.0))];
            let row = row(&figures, Some(Target::Within("tree", 1.5)));
            assert_eq!(row.outcome(&columns()).met, Some(met), "{ours}");
            let line = row.json("timers", &columns(), "a machine");
            assert_eq!(line["vs_tree"], Extra::number(10.0 / ours));
            assert_eq!(line["target_within"], json!({"of": "tree", "times": 1.5}));
            assert_eq!(line["met"], json!(met));
        }
        check(4.0, true);
        check(15.0, true);
        check(15.1, false);
    }

    #[test]
    fn a_promise_of_a_difference_is_met_up_to_it_and_the_difference_is_written() {
        fn check(ours: f64, met: bool) {
            let figures = [("us", Some(ours)), ("rival", Some(1.0)), ("tree", Some(10.0))];
            let row = row(&figures, Some(Target::Over("tree", 30.0)));
            assert_eq!(row.outcome(&columns()).met, Some(met), "{ours}");
            let line = row.json("timers", &columns(), "a machine");
            assert_eq!(line["over_tree"], Extra::number(ours - 10.0));
            assert_eq!(line["target_over"], json!({"of": "tree", "by": 30.0}));
        }
        check(4.0, true);
        check(40.0, true);
        check(40.1, false);
        let alone = row(&[("us", Some(1.0))], Some(Target::Over("tree", 30.0)));
        assert_eq!(alone.outcome(&columns()).met, None);
    }

    #[test]
    fn what_is_below_the_least_that_counts_is_the_least_in_a_ratio() {
        fn check(least: f64, ours: f64, rival: f64, ratio: Option<f64>) {
            let figures = [("us", Some(ours)), ("rival", Some(rival))];
            let row = Row { least, ..row(&figures, None) };
            assert_eq!(row.outcome(&columns()).ratio, ratio, "{ours} against {rival}");
        }
        check(1.0, 0.0, 0.0, Some(1.0));
        check(1.0, 0.0, 8.0, Some(8.0));
        check(1.0, 8.0, 0.0, Some(0.125));
        check(1.0, 2.0, 8.0, Some(4.0));
        check(0.0, 0.0, 8.0, None);
    }

    #[test]
    fn the_line_opens_with_the_published_fields_in_order() {
        let figures = [("us", Some(10.0)), ("rival", Some(20.12345)), ("tree", Some(1.0))];
        let line = row(&figures, None).json("timers", &columns(), "a machine").to_string();
        let published = concat!(
            r#"{"suite":"timers","case":"insert","n":1000,"unit":"ns","ours":10.0,"#,
            r#""peers":{"rival":20.123,"other":null,"tree":1.0},"#,
            r#""best_peer":"rival","ratio":2.012,"references":["tree"],"rounds":5,"#
        );
        assert!(line.starts_with(published), "{line}");
        assert!(line.contains(r#""ours_wall":9.5,"peers_wall":{"rival":null"#), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
