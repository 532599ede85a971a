//! Draws graphs of 2,000 components, and fails if a drawing takes two seconds or is wider than
//! 4,000 pixels.
//!
//! `cargo run --profile dist -p clockjack-graph --example large_picture [DIRECTORY]`: with a
//! directory, it leaves the drawings there. The time is that from the plan to the text of the SVG.
#![expect(clippy::print_stdout, reason = "an example that prints its result")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch; nothing depends on the time it shows")]

use core::{error::Error, fmt::Write as _, time::Duration};
use std::{env, fs, path::PathBuf, process::ExitCode, time::Instant};

use clockjack_graph::{
    GraphFile, Registry,
    picture::{Fold, Picture, svg},
};

/// Components of each graph.
const N_COMPONENTS: usize = 2_000;

/// Components of a subgraph, in the shape that has some.
const N_IN_CELL: usize = 50;

/// What is allowed.
const TIME_MAX: Duration = Duration::from_secs(2);
const WIDTH_MAX: u32 = 4_000;

/// Which earlier component feeds one, by its number.
type Shape = fn(usize) -> usize;

/// The shapes without subgraphs.
const SHAPES: [(&str, Shape); 3] = [
    ("chain", |at| at - 1),
    ("tree", |at| (at - 1) / 3),
    // The multiplier scatters the distances.
    ("scattered", |at| at - 1 - at.wrapping_mul(0x9e37_79b9) / 7 % at.min(50)),
];

const HEAD: &str = "schema_version: 1\ngraph: { name: large, kind: internal_test }\n\
                    lanes: { main: { type: event_loop }, pool: { type: thread_pool } }\n";

/// A component on one of two lanes; the first of all has no input.
fn component(id: &str, at: usize) -> String {
    let component_type = if at == 0 { "counter" } else { "identity" };
    let lane = if at.is_multiple_of(7) { "pool" } else { "main" };
    format!("{{ id: {id}, type: {component_type}, execution: {{ lane: {lane} }} }}")
}

fn edge(id: usize, from: &str, to: &str) -> String {
    format!("{{ id: e{id}, kind: immediate, from: {from}.out, to: {to}.in }}")
}

/// A graph without subgraphs.
fn flat(from: Shape) -> String {
    let mut text = format!("{HEAD}components:\n");
    for at in 0..N_COMPONENTS {
        let _ = writeln!(text, "  - {}", component(&format!("c{at}"), at));
    }
    text.push_str("edges:\n");
    for at in 1..N_COMPONENTS {
        let (from, to) = (format!("c{}", from(at)), format!("c{at}"));
        let _ = writeln!(text, "  - {}", edge(at, &from, &to));
    }
    text
}

/// A chain of subgraphs, each a chain of components.
fn cells() -> String {
    let mut text = format!("{HEAD}components: []\nsubgraphs:\n");
    let mut between = String::from("edges:\n");
    for cell in 0..N_COMPONENTS / N_IN_CELL {
        let _ = writeln!(text, "  - id: cell{cell}\n    components:");
        for at in 0..N_IN_CELL {
            let one = component(&format!("c{at}"), cell * N_IN_CELL + at);
            let _ = writeln!(text, "      - {one}");
        }
        text.push_str("    edges:\n");
        for at in 1..N_IN_CELL {
            let one = edge(at, &format!("c{}", at - 1), &format!("c{at}"));
            let _ = writeln!(text, "      - {one}");
        }
        if cell > 0 {
            let from = format!("cell{}.c{}", cell - 1, N_IN_CELL - 1);
            let _ = writeln!(between, "  - {}", edge(cell, &from, &format!("cell{cell}.c0")));
        }
    }
    text + &between
}

/// The number in the first attribute of this name.
fn attribute(drawing: &str, name: &str) -> Option<u32> {
    let (_, rest) = drawing.split_once(&format!(" {name}=\""))?;
    rest.split_once('"')?.0.parse().ok()
}

/// Draws a graph; returns whether the drawing is as it should be.
fn draw(name: &str, text: &str, directory: Option<&PathBuf>) -> Result<bool, Box<dyn Error>> {
    let graph = GraphFile::parse(name, text)?.compile(&Registry::standard())?;
    let began = Instant::now();
    let drawing = svg::draw(&Picture::of(graph.plan()), Fold::Auto);
    let took = began.elapsed();
    let [width, height] = ["width", "height"].map(|name| attribute(&drawing, name).unwrap_or(0));
    let is_right = took < TIME_MAX && (1..=WIDTH_MAX).contains(&width);
    let (ms, verdict) = (took.as_millis(), if is_right { "ok" } else { "TOO MUCH" });
    println!("{name:<10} {ms:>6} ms {width:>6} x {height} px, {} bytes: {verdict}", drawing.len());
    if let Some(directory) = directory {
        fs::write(directory.join(name).with_extension("svg"), drawing)?;
    }
    Ok(is_right)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let directory = env::args_os().nth(1).map(PathBuf::from);
    let mut is_right = draw("cells", &cells(), directory.as_ref())?;
    for (name, from) in SHAPES {
        is_right &= draw(name, &flat(from), directory.as_ref())?;
    }
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
