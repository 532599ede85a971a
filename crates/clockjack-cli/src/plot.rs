//! Plots of the values on the edges of a run, for a terminal and as SVG.
//!
//! ```text
//! commit log, of a run or of a file ──► LogReader ──► RunValues ──► Series, of bounded size
//!                                                                      │
//!                                                  text::draw, svg::draw, last values ◄──┘
//! ```
//!
//! There is one source of values, the commit log: while a graph runs, the log is read as it is
//! written. So a plot of a run and a plot of its log are the same.

pub(crate) mod axis;
pub(crate) mod log;
pub(crate) mod number;
pub(crate) mod series;
pub(crate) mod signal;
pub(crate) mod svg;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod values;

use self::series::Series;

/// A curve and its name.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    /// The edge, and the item of its values if it has several.
    pub(crate) name: String,
    /// The output that publishes the values.
    pub(crate) port: String,
    pub(crate) series: Series,
}

/// What a plot shows.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// The name of the graph.
    pub(crate) graph: String,
    pub(crate) curves: Vec<Curve>,
    /// What the horizontal axis is.
    pub(crate) axis: Axis,
    /// The end of the horizontal axis: a time in nanoseconds, or the number of an epoch.
    pub(crate) end: u64,
}

/// The horizontal axis of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// The time of the run.
    Time,
    /// The number of the epoch: in virtual time, a graph without timers and rates takes no time.
    Epoch,
}

impl Curve {
    /// The number of values, and what is not drawn.
    pub(crate) fn note(&self) -> String {
        let n = self.series.n_values();
        let mut note = match n {
            0 => return String::from("no values"),
            1 => String::from("1 value"),
            _ => format!("{n} values"),
        };
        let n_bad = self.series.n_not_finite();
        if n_bad > 0 {
            note.push_str(&format!(", {n_bad} of them NaN or infinite"));
        }
        let n_unreadable = self.series.n_unreadable();
        if n_unreadable > 0 {
            note.push_str(&format!(", {n_unreadable} of them without this item"));
        }
        note
    }
}
