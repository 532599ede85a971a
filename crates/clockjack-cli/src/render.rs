//! Drawings of a plan. A plan is first converted to a [`Picture`], which is independent of the
//! output format; each format then draws the same picture. `clockjack_graph` places and draws the
//! boxes for terminals and browsers; the formats here leave that to other programs.

mod dot;
mod json;
mod mermaid;

use core::fmt::Write as _;

use clap::ValueEnum;
use clockjack_graph::{
    compile::Plan,
    picture::{Fold, Picture, svg, text},
};

/// The output format of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A drawing with box-drawing characters.
    #[value(alias = "human", alias = "text")]
    Ascii,
    /// A self-contained SVG drawing.
    Svg,
    /// A Graphviz DOT file.
    Dot,
    /// A Mermaid flowchart.
    Mermaid,
    /// Boxes, nodes and edges as one JSON object.
    #[value(alias = "ndjson")]
    Json,
}

/// Draws a plan.
pub(crate) fn draw(plan: &Plan, form: Form) -> String {
    draw_picture(&Picture::of(plan), form, Fold::Auto, text::COLUMNS_DEFAULT)
}

/// Draws a picture; `columns` is the width of a terminal.
pub(crate) fn draw_picture(picture: &Picture, form: Form, fold: Fold, columns: usize) -> String {
    match form {
        Form::Ascii => text::draw(picture, fold, columns),
        Form::Svg => svg::draw(picture, fold),
        Form::Dot => dot::draw(picture),
        Form::Mermaid => mermaid::draw(picture),
        Form::Json => json::draw(picture),
    }
}

/// Appends a line.
fn line(out: &mut String, text: core::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string cannot fail");
    out.push('\n');
}

#[cfg(test)]
mod tests;
