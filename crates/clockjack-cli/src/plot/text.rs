//! A plot for a terminal: one panel per curve above a common horizontal axis, drawn with Braille
//! patterns, or with plain ASCII characters.
//!
//! Each curve has its own panel and scale: so curves can be told apart without colors, and curves
//! of very different ranges are all readable.

use core::iter::repeat_n;

use super::{Curve, Plot, axis::Tick, number::short};

/// The width of a plot whose reader has no known width.
pub(crate) const COLUMNS_DEFAULT: usize = 80;
/// The smallest width.
pub(crate) const COLUMNS_MIN: usize = 30;
/// The largest width: wider plots show no more.
const COLUMNS_MAX: usize = 240;
/// The lines of a panel.
const ROWS: usize = 5;
/// Columns that a mark on the horizontal axis needs, with the distance to the next one.
const TICK_COLUMNS: usize = 11;

/// The characters of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// Braille patterns and box-drawing characters: four dots per row, two per column.
    Unicode,
    /// ASCII: three heights per row.
    Ascii,
}

/// How a plot is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) columns: usize,
    pub(crate) charset: Charset,
    /// Whether curves have colors.
    pub(crate) is_painted: bool,
}

/// The colors of curves: escape sequences of ECMA-48 for cyan, yellow, green and magenta.
const COLORS: [&str; 4] = ["\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m"];
const NO_COLOR: &str = "\x1b[0m";

impl Charset {
    /// The dots per character, across and down.
    const fn dots(self) -> (usize, usize) {
        match self {
            Self::Unicode => (2, 4),
            Self::Ascii => (1, 3),
        }
    }

    /// The character of a cell with these dots: for each dot column a bit per dot, the lowest bit
    /// is the highest dot.
    fn cell(self, dots: &[u8]) -> char {
        match self {
            // The numbering of dots in a Braille pattern: the Unicode Standard, chapter 21.1.
            Self::Unicode => {
                let [left, right] = [0, 1].map(|at| u32::from(dots.get(at).copied().unwrap_or(0)));
                let low = |column: u32| column & 0b111;
                let last = |column: u32| column >> 3 & 1;
                let bits = low(left) | low(right) << 3 | last(left) << 6 | last(right) << 7;
                char::from_u32(0x2800 + bits).filter(|_| bits > 0).unwrap_or(' ')
            }
            Self::Ascii => match dots.first() {
                None | Some(0) => ' ',
                Some(0b001) => '\'',
                Some(0b010) => '-',
                Some(0b100) => '_',
                Some(_) => '|',
            },
        }
    }

    /// A border with a mark, one without, the corner, the horizontal axis, and a mark on that.
    const fn frame(self) -> [char; 5] {
        match self {
            Self::Unicode => ['┤', '│', '└', '─', '┬'],
            Self::Ascii => ['+', '|', '+', '-', '+'],
        }
    }
}

/// Draws a plot; lines end in no spaces.
pub(crate) fn draw(plot: &Plot, style: Style) -> String {
    let columns = style.columns.clamp(COLUMNS_MIN, COLUMNS_MAX);
    let labels: Vec<[String; ROWS]> = plot.curves.iter().map(labels).collect();
    let widths = labels.iter().flatten().map(|label| label.chars().count());
    let label_width = widths.max().unwrap_or(0).max(4);
    let width = columns - label_width - 4;
    let mut out = String::new();
    for (index, (curve, labels)) in plot.curves.iter().zip(&labels).enumerate() {
        let heading = format!("{} ({}): {}", curve.name, curve.port, curve.note());
        push_line(&mut out, &heading);
        let color = style.is_painted.then(|| COLORS[index % COLORS.len()]);
        let [marked, plain, ..] = style.charset.frame();
        for (row, label) in rows(curve, plot.end, width, style.charset).iter().zip(labels) {
            let border = if label.is_empty() { plain } else { marked };
            let row = match color {
                Some(color) if !row.is_empty() => format!("{color}{row}{NO_COLOR}"),
                _ => row.clone(),
            };
            push_line(&mut out, &format!("  {label:>label_width$} {border}{row}"));
        }
    }
    if !plot.curves.is_empty() {
        horizontal_axis(&mut out, plot, label_width, width, style.charset);
    }
    out
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The labels of the rows: the largest value, the smallest value, or the only value.
fn labels(curve: &Curve) -> [String; ROWS] {
    let mut labels = [const { String::new() }; ROWS];
    match curve.series.range() {
        Some((low, high)) if low < high => {
            labels[0] = short(high);
            labels[ROWS - 1] = short(low);
        }
        Some((only, _)) => labels[ROWS / 2] = short(only),
        None => {}
    }
    labels
}

/// The rows of a panel.
fn rows(curve: &Curve, end: u64, width: usize, charset: Charset) -> [String; ROWS] {
    let (across, down) = charset.dots();
    let mut rows = [const { String::new() }; ROWS];
    let Some((low, high)) = curve.series.range() else { return rows };
    let n_dots = ROWS * down;
    // The number of the dot, from above. Halves, because the difference may be infinite.
    let dot = |value: f64| {
        let half = high / 2.0 - low / 2.0;
        let part = if low < high { (high / 2.0 - value / 2.0) / half } else { 0.5 };
        nearest(part, n_dots - 1)
    };
    let columns = curve.series.columns(width * across, end);
    let spans: Vec<_> =
        columns.iter().map(|range| range.map(|(low, high)| dot(high)..=dot(low))).collect();
    for (index, row) in rows.iter_mut().enumerate() {
        for cell in spans.chunks(across) {
            let bits = |span: &Option<core::ops::RangeInclusive<usize>>| {
                let is_set = |dot: &usize| {
                    span.as_ref().is_some_and(|span| span.contains(&(index * down + dot)))
                };
                (0..down).filter(is_set).fold(0_u8, |bits, dot| bits | 1 << dot)
            };
            let dots: Vec<u8> = cell.iter().map(bits).collect();
            row.push(charset.cell(&dots));
        }
        row.truncate(row.trim_end().len());
    }
    rows
}

/// A part of `max`, rounded.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "from 0 to the number of dots"
)]
fn nearest(part: f64, max: usize) -> usize {
    (part.clamp(0.0, 1.0) * max as f64).round() as usize
}

/// The horizontal axis and its labels.
fn horizontal_axis(
    out: &mut String,
    plot: &Plot,
    label_width: usize,
    width: usize,
    charset: Charset,
) {
    let [_, _, corner, line, mark] = charset.frame();
    let ticks = plot.axis.ticks(plot.end, (width / TICK_COLUMNS).max(2));
    let mut axis: Vec<char> = repeat_n(line, width).collect();
    let mut labels: Vec<char> = Vec::new();
    let margin = label_width + 4;
    for Tick { at, label } in &ticks {
        let column = nearest(*at, width - 1);
        axis[column] = mark;
        let label = plot.axis.label(plot.end, label);
        // The label begins below its mark, if it fits there.
        let n = label.chars().count();
        let at = (margin + column).min((margin + width).saturating_sub(n));
        if labels.is_empty() || labels.len() < at {
            labels.extend(repeat_n(' ', at.saturating_sub(labels.len())));
            labels.extend(label.chars());
        }
    }
    let axis: String = axis.into_iter().collect();
    push_line(out, &format!("{}{corner}{axis}", " ".repeat(margin - 1)));
    push_line(out, &labels.into_iter().collect::<String>());
}
