//! A plot as a self-contained SVG drawing: no script and no font. Colors follow the color scheme of
//! the reader, and curves also differ in their dashes. Curves of similar ranges share a panel.

use core::fmt::Write as _;

use super::{
    Curve, Plot,
    axis::{Tick, ticks},
    series::wider,
};

/// The size of the drawing area of a panel.
const WIDTH: u32 = 760;
const HEIGHT: u32 = 200;
/// The distance between the drawing area and the left side of the image: room for labels.
const LEFT: u32 = 76;
/// The distance to the right side.
const RIGHT: u32 = 24;
/// The height of the title of the image.
const TITLE_HEIGHT: u32 = 40;
/// The height of a line of a legend.
const LEGEND_HEIGHT: u32 = 20;
/// The distance between panels.
const GAP: u32 = 16;
/// The height of the labels of the horizontal axis.
const AXIS_HEIGHT: u32 = 44;
/// The most curves in one panel: that many can be told apart.
const PANEL_CURVES: usize = 4;
/// Curves share a panel if the range of both is at most this many times that of each.
const RANGE_FACTOR: f64 = 4.0;
/// The most marks on an axis.
const X_TICKS: usize = 10;
const Y_TICKS: usize = 6;

const STYLE: &str = include_str!("svg.css");

/// Curves with one scale.
struct Panel<'p> {
    curves: Vec<&'p Curve>,
    /// `None`: no curve has a finite value.
    range: Option<(f64, f64)>,
}

/// Draws a plot.
pub(crate) fn draw(plot: &Plot) -> String {
    let panels = panels(plot);
    let heights = panels.iter().map(Panel::height);
    let height = TITLE_HEIGHT + heights.sum::<u32>() + AXIS_HEIGHT;
    let width = LEFT + WIDTH + RIGHT;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         width=\"{width}\" height=\"{height}\" role=\"img\" aria-labelledby=\"title desc\">\n"
    );
    let name = escaped(&plot.graph);
    put(&mut out, format_args!("<title id=\"title\">Values in a run of {name}</title>\n"));
    put(&mut out, format_args!("<desc id=\"desc\">{}</desc>\n", escaped(&description(plot))));
    put(&mut out, format_args!("<style>\n{STYLE}</style>\n"));
    out.push_str("<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
    put(&mut out, format_args!("<text class=\"heading\" x=\"{LEFT}\" y=\"26\">{name}</text>\n"));
    let mut top = TITLE_HEIGHT;
    for panel in &panels {
        panel.draw(plot, top, &mut out);
        top += panel.height();
    }
    horizontal_axis(plot, top - GAP, &mut out);
    out.push_str("</svg>\n");
    out
}

fn put(out: &mut String, text: core::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
}

/// The contents in words, for readers who do not see the drawing.
fn description(plot: &Plot) -> String {
    let curves = plot.curves.iter().map(|curve| {
        let range = curve.series.range().map_or(String::new(), |(low, high)| {
            let (low, high) = (super::number::short(low), super::number::short(high));
            format!(", from {low} to {high}")
        });
        format!("{}: {}{range}.", curve.name, curve.note())
    });
    curves.collect::<Vec<_>>().join(" ")
}

/// Puts curves of similar ranges into one panel.
fn panels(plot: &Plot) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for curve in &plot.curves {
        let range = curve.series.range();
        let fits = |panel: &&mut Panel<'_>| {
            panel.curves.len() < PANEL_CURVES && are_similar(panel.range, range)
        };
        match panels.iter_mut().find(fits) {
            Some(panel) => {
                panel.curves.push(curve);
                panel.range = panel.range.zip(range).map(|(a, b)| wider(a, b));
            }
            None => panels.push(Panel { curves: vec![curve], range }),
        }
    }
    panels
}

/// Whether two ranges are readable on one scale.
fn are_similar(a: Option<(f64, f64)>, b: Option<(f64, f64)>) -> bool {
    let (Some(a), Some(b)) = (a, b) else { return false };
    let length = |(low, high): (f64, f64)| high / 2.0 - low / 2.0;
    let all = length(wider(a, b));
    let largest = length(a).max(length(b));
    // A constant needs no room of its own.
    let is_readable = |one| length(one) == 0.0 || all <= RANGE_FACTOR * length(one);
    if largest == 0.0 {
        all == 0.0
    } else {
        is_readable(a) && is_readable(b) && all <= RANGE_FACTOR * largest
    }
}

impl Panel<'_> {
    fn height(&self) -> u32 {
        LEGEND_HEIGHT * self.n_lines() + HEIGHT + GAP
    }

    fn n_lines(&self) -> u32 {
        u32::try_from(self.curves.len()).unwrap_or(u32::MAX)
    }

    fn draw(&self, plot: &Plot, top: u32, out: &mut String) {
        for (index, curve) in self.curves.iter().enumerate() {
            let y = top + LEGEND_HEIGHT * u32::try_from(index).unwrap_or(0) + 10;
            put(
                out,
                format_args!(
                    "<path class=\"curve c{index}\" d=\"M{LEFT} {y}h28\"/>\
                     <text x=\"{}\" y=\"{}\">{} ({}): {}</text>\n",
                    LEFT + 36,
                    y + 4,
                    escaped(&curve.name),
                    escaped(&curve.port),
                    escaped(&curve.note()),
                ),
            );
        }
        let top = top + LEGEND_HEIGHT * self.n_lines();
        put(
            out,
            format_args!(
                "<rect class=\"panel\" x=\"{LEFT}\" y=\"{top}\" width=\"{WIDTH}\" \
                 height=\"{HEIGHT}\"/>\n"
            ),
        );
        for Tick { at, .. } in plot.axis.ticks(plot.end, X_TICKS) {
            let x = f64::from(LEFT) + at * f64::from(WIDTH);
            put(out, format_args!("<path class=\"grid\" d=\"M{x:.1} {top}v{HEIGHT}\"/>\n"));
        }
        let Some(range) = self.range else { return };
        let scale = Scale::new(range, top);
        for Tick { at, label } in ticks(range.0, range.1, Y_TICKS) {
            let y = scale.at(at);
            put(
                out,
                format_args!(
                    "<path class=\"grid\" d=\"M{LEFT} {y:.1}h{WIDTH}\"/>\
                     <text class=\"tick y\" x=\"{}\" y=\"{:.1}\">{label}</text>\n",
                    LEFT - 8,
                    y + 4.0,
                ),
            );
        }
        for (index, curve) in self.curves.iter().enumerate() {
            let path = path(curve, plot.end, &scale);
            put(out, format_args!("<path class=\"curve c{index}\" d=\"{path}\"/>\n"));
        }
    }
}

/// The vertical scale of a panel.
struct Scale {
    range: (f64, f64),
    top: f64,
}

impl Scale {
    /// The distance of curves from the top and the bottom of their panel.
    const MARGIN: f64 = 10.0;

    fn new(range: (f64, f64), top: u32) -> Self {
        Self { range, top: f64::from(top) }
    }

    /// The height of a part of the range.
    fn at(&self, part: f64) -> f64 {
        let inner = f64::from(HEIGHT) - 2.0 * Self::MARGIN;
        self.top + Self::MARGIN + (1.0 - part) * inner
    }

    /// The height of a value, in tenths of a pixel.
    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        // Halves, because the difference of two numbers may be infinite.
        let part =
            if low < high { (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) } else { 0.5 };
        (self.at(part) * 10.0).round() / 10.0
    }
}

/// The line of a curve: in each column of pixels at most two points, from its lowest to its highest
/// value there.
fn path(curve: &Curve, end: u64, scale: &Scale) -> String {
    let mut out = String::new();
    // The height of the pen; none after a gap.
    let mut pen: Option<f64> = None;
    let columns = curve.series.columns(WIDTH as usize, end);
    for (x, range) in (LEFT..).zip(columns.into_iter().chain([None])) {
        let Some((low, high)) = range else {
            if pen.take().is_some() {
                put(&mut out, format_args!("H{x}"));
            }
            continue;
        };
        let (low, high) = (scale.y(low), scale.y(high));
        let before = pen.unwrap_or_else(|| {
            put(&mut out, format_args!("M{x} {low}"));
            low
        });
        // The nearer end comes first.
        let is_rising = (before - low).abs() <= (before - high).abs();
        let ends = if is_rising { [low, high] } else { [high, low] };
        for (from, to) in [(before, ends[0]), (ends[0], ends[1])] {
            if from.to_bits() != to.to_bits() {
                put(&mut out, format_args!("H{x}V{to}"));
            }
        }
        pen = Some(ends[1]);
    }
    out
}

/// The labels of the horizontal axis.
fn horizontal_axis(plot: &Plot, top: u32, out: &mut String) {
    for Tick { at, label } in plot.axis.ticks(plot.end, X_TICKS) {
        let x = f64::from(LEFT) + at * f64::from(WIDTH);
        let y = top + 18;
        put(out, format_args!("<text class=\"tick x\" x=\"{x:.1}\" y=\"{y}\">{label}</text>\n"));
    }
    put(
        out,
        format_args!(
            "<text class=\"x\" x=\"{}\" y=\"{}\">{}</text>\n",
            LEFT + WIDTH / 2,
            top + 38,
            plot.axis.title(plot.end)
        ),
    );
}

/// Text for XML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
