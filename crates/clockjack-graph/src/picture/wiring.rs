//! A wiring diagram for a terminal that is too narrow for the layered layout: components from top
//! to bottom in compiled order, one row per edge end, and one vertical rail per edge to the right.
//! No two ends share a row, and no two edges share a rail at the same height, so a crossing is
//! never a junction.
//!
//! A solid arrow down carries a value of the same epoch; an arrow up, or a dashed one, carries a
//! value of a later epoch.

use super::{
    FrameKind, Picture,
    caption::{self, plain},
};
use crate::describe::{BoundaryRole, EdgeKind};

/// The number of rails that there are in any case.
const RAILS_MIN: usize = 4;
/// The maximum number of rails. An edge without a free rail is described at both of its ends
/// instead.
const RAILS_MAX: usize = 24;
/// The maximum width of ids and ports; longer ones push the rails of their row to the right.
const LABEL_COLUMNS_MAX: usize = 60;

/// A row of the diagram.
#[derive(Debug)]
struct Row {
    /// The text to the left of the rails.
    text: String,
    /// The edge end in this row.
    end: Option<End>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    edge: usize,
    is_source: bool,
}

/// Draws a picture. There are as many rails as these columns have room for.
pub(super) fn draw(picture: &Picture, columns_max: usize) -> String {
    let rows = rows(picture);
    let spans = spans(&rows, picture.edges.len());
    let text_columns = rows.iter().map(|row| columns(&row.text)).max().unwrap_or(0);
    let label_columns = picture.edges.iter().map(|edge| columns(&plain(&edge.label))).max();
    let used = text_columns.min(LABEL_COLUMNS_MAX) + 1 + 2 + label_columns.unwrap_or(0);
    let n_rails_max = (columns_max.saturating_sub(used) / 2).clamp(RAILS_MIN, RAILS_MAX);
    let rails = rails(&spans, n_rails_max);
    let n_rails = rails.iter().flatten().max().map_or(0, |rail| rail + 1);
    let width = text_columns.min(LABEL_COLUMNS_MAX) + 1;
    let mut out = heading(picture);
    // The edge on each rail between the previous row and this one.
    let mut on_rail: Vec<Option<usize>> = vec![None; n_rails];
    for (at, row) in rows.iter().enumerate() {
        let mut cells = vec![' '; n_rails * 2];
        for (rail, edge) in on_rail.iter().enumerate() {
            if let Some(edge) = edge {
                cells[rail * 2 + 1] = vertical(picture.edges[*edge].kind);
            }
        }
        let label = row.end.map(|end| {
            let is_top = at == spans[end.edge].0;
            if let Some(rail) = rails[end.edge] {
                on_rail[rail] = is_top.then_some(end.edge);
            }
            connect(picture, end, rails[end.edge], is_top, &mut cells)
        });
        let filler = if row.end.is_some() { '─' } else { ' ' };
        let mut text = row.text.clone();
        text.extend(core::iter::repeat_n(filler, width.saturating_sub(columns(&row.text))));
        text.extend(cells);
        if let Some(label) = label {
            text.push_str(&format!("  {label}"));
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

/// The number of components and edges, and the boxes of the hierarchy.
fn heading(picture: &Picture) -> String {
    let mut out = format!("{}\n", caption::heading(picture));
    for frame in picture.frames.iter().filter(|frame| frame.kind == FrameKind::Hierarchy) {
        out.push_str(&format!("hierarchy {}\n", frame.label));
    }
    out.push('\n');
    out
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// Rows in compiled order: for each component its name, then its inputs, then its outputs.
fn rows(picture: &Picture) -> Vec<Row> {
    let mut ends: Vec<(Vec<usize>, Vec<usize>)> =
        (0..picture.nodes.len()).map(|_| (Vec::new(), Vec::new())).collect();
    for (index, edge) in picture.edges.iter().enumerate() {
        ends[edge.to].0.push(index);
        ends[edge.from].1.push(index);
    }
    let loop_of = |node: usize| {
        let frame = picture.nodes[node].frame?;
        (picture.frames[frame].kind == FrameKind::Loop).then_some(frame)
    };
    let mut rows = Vec::new();
    let mut open = None;
    for (index, node) in picture.nodes.iter().enumerate() {
        if loop_of(index) != open {
            if open.is_some() {
                rows.push(Row { text: String::from("╚"), end: None });
            }
            open = loop_of(index);
            if let Some(frame) = open {
                let text = format!("╔ loop {}", picture.frames[frame].label);
                rows.push(Row { text, end: None });
            }
        }
        let bar = if open.is_some() { "║ " } else { "" };
        let mark = match node.role {
            BoundaryRole::Processing => "■",
            BoundaryRole::Input => "▶",
            BoundaryRole::Output => "◼▶",
            BoundaryRole::InputOutput => "▶◼▶",
        };
        let lane = &picture.lanes[node.lane].id;
        let name = plain(&format!("{} ({} on {lane})", node.id, node.component_type));
        let text = format!("{bar}{mark} {name}");
        rows.push(Row { text, end: None });
        for edge in &ends[index].0 {
            let text = format!("{bar}    {} ◀", plain(&picture.edges[*edge].to_port));
            rows.push(Row { text, end: Some(End { edge: *edge, is_source: false }) });
        }
        for edge in &ends[index].1 {
            let text = format!("{bar}    {} ", plain(&picture.edges[*edge].from_port));
            rows.push(Row { text, end: Some(End { edge: *edge, is_source: true }) });
        }
    }
    if open.is_some() {
        rows.push(Row { text: String::from("╚"), end: None });
    }
    rows
}

/// The top and the bottom row of each edge.
fn spans(rows: &[Row], n_edges: usize) -> Vec<(usize, usize)> {
    let mut spans = vec![(usize::MAX, 0); n_edges];
    for (at, row) in rows.iter().enumerate() {
        if let Some(end) = row.end {
            let (top, bottom) = spans[end.edge];
            spans[end.edge] = (top.min(at), bottom.max(at));
        }
    }
    spans
}

/// Assigns a rail to each edge (greedy interval coloring, shortest first): short edges get the
/// inner rails, and no rail is used twice at the same height.
fn rails(spans: &[(usize, usize)], n_rails_max: usize) -> Vec<Option<usize>> {
    let mut by_length: Vec<usize> = (0..spans.len()).collect();
    by_length.sort_by_key(|edge| (spans[*edge].1 - spans[*edge].0, *edge));
    let mut used: Vec<Vec<(usize, usize)>> = Vec::new();
    let mut rails = vec![None; spans.len()];
    for edge in by_length {
        let (top, bottom) = spans[edge];
        let is_free =
            |rail: &Vec<(usize, usize)>| rail.iter().all(|(from, to)| bottom < *from || *to < top);
        let rail = used.iter().position(is_free).unwrap_or(used.len());
        if rail < n_rails_max {
            if rail == used.len() {
                used.push(Vec::new());
            }
            used[rail].push((top, bottom));
            rails[edge] = Some(rail);
        }
    }
    rails
}

const fn vertical(kind: EdgeKind) -> char {
    match kind {
        EdgeKind::Immediate => '│',
        EdgeKind::Delay => '┊',
        EdgeKind::State => '┃',
        EdgeKind::Async => '┆',
    }
}

/// Draws the horizontal part of an edge end into its row. Returns the label to the right of it.
fn connect(
    picture: &Picture,
    end: End,
    rail: Option<usize>,
    is_top: bool,
    cells: &mut [char],
) -> String {
    let edge = &picture.edges[end.edge];
    let Some(rail) = rail else {
        let (arrow, node, port) = if end.is_source {
            ('→', edge.to, &edge.to_port)
        } else {
            ('←', edge.from, &edge.from_port)
        };
        let label = format!("{} {arrow} {}.{port}", edge.label, picture.nodes[node].id);
        return plain(&label);
    };
    for cell in &mut cells[..=rail * 2] {
        *cell = if *cell == ' ' { '─' } else { '┼' };
    }
    cells[rail * 2 + 1] = if is_top { '╮' } else { '╯' };
    if end.is_source { plain(&edge.label) } else { String::new() }
}
