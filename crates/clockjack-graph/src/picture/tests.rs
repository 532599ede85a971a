//! The invariants of the layout over random pictures, and the sizes of large drawings.

mod random;

use std::{collections::BTreeMap, thread};

use super::*;
use crate::picture::layout::{Captions, Route, metrics::Font};

/// Whether two rectangles have a common point, borders included.
fn touch(a: &Rect, b: &Rect) -> bool {
    a.x <= b.right() && b.x <= a.right() && a.y <= b.bottom() && b.y <= a.bottom()
}

/// Rectangles by the squares of a grid that they touch, so that a check looks at few of them.
struct Grid(BTreeMap<(i64, i64), Vec<usize>>);

impl Grid {
    /// Side of a square, about as long as a box.
    const SIDE: i64 = 128;

    fn new<'r>(rects: impl Iterator<Item = &'r Rect>) -> Self {
        let mut squares: BTreeMap<(i64, i64), Vec<usize>> = BTreeMap::new();
        for (index, rect) in rects.enumerate() {
            for square in Self::squares(rect) {
                squares.entry(square).or_default().push(index);
            }
        }
        Self(squares)
    }

    fn squares(rect: &Rect) -> impl Iterator<Item = (i64, i64)> {
        let [left, right, top, bottom] =
            [rect.x, rect.right(), rect.y, rect.bottom()].map(|at| at.div_euclid(Self::SIDE));
        (left..=right).flat_map(move |x| (top..=bottom).map(move |y| (x, y)))
    }

    /// The rectangles that may touch this one, each at least once.
    fn near(&self, rect: &Rect) -> impl Iterator<Item = usize> {
        Self::squares(rect).filter_map(|square| self.0.get(&square)).flatten().copied()
    }
}

fn contains(outer: &Rect, inner: &Rect) -> bool {
    outer.x <= inner.x
        && inner.right() <= outer.right()
        && outer.y <= inner.y
        && inner.bottom() <= outer.bottom()
}

/// The parts of a line as rectangles without width or without height.
fn parts(route: &Route) -> impl Iterator<Item = Rect> {
    route.points.windows(2).map(|pair| {
        let (a, b) = (pair[0], pair[1]);
        assert!(a.x == b.x || a.y == b.y, "{a:?} to {b:?} is neither vertical nor horizontal");
        Rect {
            x: a.x.min(b.x),
            y: a.y.min(b.y),
            width: (a.x - b.x).abs(),
            height: (a.y - b.y).abs(),
        }
    })
}

/// Whether a node is inside of a frame, directly or not.
fn is_in(picture: &Picture, node: usize, frame: usize) -> bool {
    leads_to(picture, picture.nodes[node].frame, frame)
}

/// Whether one of the parents of a frame, or the frame itself, is this one.
fn leads_to(picture: &Picture, from: Option<usize>, frame: usize) -> bool {
    let mut at = from;
    while let Some(one) = at {
        if one == frame {
            return true;
        }
        at = picture.frames[one].parent;
    }
    false
}

/// Checks every invariant of a layout.
fn check(picture: &Picture, layout: &Layout) {
    check_boxes(picture, layout);
    check_labels(picture, layout);
    check_edges(picture, layout);
    check_lines(layout);
}

fn check_boxes(picture: &Picture, layout: &Layout) {
    let page = Rect { x: 0, y: 0, width: layout.width, height: layout.height };
    let grid = Grid::new(layout.nodes.iter());
    for (index, rect) in layout.nodes.iter().enumerate() {
        assert!(contains(&page, rect), "node {index} is outside of the drawing");
        for other in grid.near(rect).filter(|other| *other != index) {
            assert!(!touch(rect, &layout.nodes[other]), "nodes {index} and {other} overlap");
        }
        let lane = picture.nodes[index].lane;
        for band in &layout.bands {
            assert_eq!(band.lane == lane, touch(&band.rect, rect), "node {index}, {band:?}");
        }
        for frame in &layout.frames {
            let is_member = is_in(picture, index, frame.frame) && frame.lane == lane;
            assert_eq!(is_member, contains(&frame.rect, rect), "node {index}, {frame:?}");
            assert_eq!(is_member, touch(&frame.rect, rect), "node {index}, {frame:?}");
            assert!(!touch(&frame.title, rect), "the title of {frame:?} covers node {index}");
        }
    }
    for (index, frame) in layout.frames.iter().enumerate() {
        assert!(contains(&frame.rect, &frame.title), "{frame:?}");
        for other in &layout.frames[index + 1..] {
            let is_inside = contains(&frame.rect, &other.rect);
            let is_around = contains(&other.rect, &frame.rect);
            let is_in = |inner: usize, outer| {
                let parent = picture.frames[inner].parent;
                frame.lane == other.lane && leads_to(picture, parent, outer)
            };
            assert_eq!(is_inside, is_in(other.frame, frame.frame), "{frame:?}, {other:?}");
            assert_eq!(is_around, is_in(frame.frame, other.frame), "{frame:?}, {other:?}");
            let is_apart = !touch(&frame.rect, &other.rect);
            assert!(is_inside || is_around || is_apart, "{frame:?}, {other:?}");
        }
    }
}

fn check_labels(picture: &Picture, layout: &Layout) {
    let page = Rect { x: 0, y: 0, width: layout.width, height: layout.height };
    let labels: Vec<&Rect> = layout.edges.iter().filter_map(|route| route.label.as_ref()).collect();
    let is_complete = labels.is_empty() || labels.len() == picture.edges.len();
    assert!(is_complete, "each edge has its label, or none has");
    let nodes = Grid::new(layout.nodes.iter());
    let grid = Grid::new(labels.iter().copied());
    for (index, label) in labels.iter().enumerate() {
        assert!(contains(&page, label), "label {index} is outside of the drawing");
        for other in grid.near(label).filter(|other| *other != index) {
            assert!(!touch(label, labels[other]), "labels {index} and {other} overlap");
        }
        for node in nodes.near(label) {
            assert!(!touch(label, &layout.nodes[node]), "node {node} covers label {index}");
        }
        for frame in &layout.frames {
            assert!(!touch(label, &frame.title), "label {index} covers the title of {frame:?}");
        }
    }
}

fn check_edges(picture: &Picture, layout: &Layout) {
    let labels: Vec<&Rect> = layout.edges.iter().filter_map(|route| route.label.as_ref()).collect();
    let (nodes, grid) = (Grid::new(layout.nodes.iter()), Grid::new(labels.iter().copied()));
    for (index, (edge, route)) in picture.edges.iter().zip(&layout.edges).enumerate() {
        let (from, to) = (layout.nodes[edge.from], layout.nodes[edge.to]);
        let (first, last) = (route.points[0], route.points[route.points.len() - 1]);
        assert_eq!(first.y, from.bottom(), "edge {index} begins below its producer");
        assert!(from.x < first.x && first.x < from.right(), "edge {index} begins at its producer");
        assert_eq!(last.y, to.y, "edge {index} ends above its consumer");
        assert!(to.x < last.x && last.x < to.right(), "edge {index} ends at its consumer");
        let n_parts = route.points.len() - 1;
        for (at, part) in parts(route).enumerate() {
            for node in nodes.near(&part) {
                let rect = &layout.nodes[node];
                let is_end =
                    (at == 0 && node == edge.from) || (at + 1 == n_parts && node == edge.to);
                let common = part.height + rect.height
                    - (part.bottom().max(rect.bottom()) - part.y.min(rect.y));
                let is_covered = touch(&part, rect) && !(is_end && common == 0);
                assert!(!is_covered, "edge {index} crosses node {node}");
            }
            for label in grid.near(&part) {
                assert!(!touch(&part, labels[label]), "edge {index} crosses label {label}");
            }
            for frame in &layout.frames {
                let is_member = |node: usize| {
                    is_in(picture, node, frame.frame) && picture.nodes[node].lane == frame.lane
                };
                let may_cross = || is_member(edge.from) || is_member(edge.to);
                let is_crossed = touch(&part, &frame.rect) && !may_cross();
                assert!(!is_crossed, "edge {index} crosses {frame:?}");
                assert!(!touch(&part, &frame.title), "edge {index} crosses the title of {frame:?}");
            }
        }
    }
}

/// No two edges have a common line.
fn check_lines(layout: &Layout) {
    let mut vertical: BTreeMap<i64, Vec<(i64, i64, usize)>> = BTreeMap::new();
    let mut horizontal: BTreeMap<i64, Vec<(i64, i64, usize)>> = BTreeMap::new();
    for (index, route) in layout.edges.iter().enumerate() {
        for part in parts(route) {
            if part.width == 0 {
                vertical.entry(part.x).or_default().push((part.y, part.bottom(), index));
            } else {
                horizontal.entry(part.y).or_default().push((part.x, part.right(), index));
            }
        }
    }
    for lines in vertical.values_mut().chain(horizontal.values_mut()) {
        lines.sort_unstable();
        for pair in lines.windows(2) {
            let ((_, end, first), (begin, _, second)) = (pair[0], pair[1]);
            assert!(end < begin, "edges {first} and {second} have a common line");
        }
    }
}

#[test]
fn nothing_is_covered_in_200_random_graphs_of_up_to_300_components() {
    // Every size is as likely as any other. Each thread takes one graph in four.
    thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || (first..200).step_by(4).for_each(check_random));
        }
    });
}

#[test]
fn the_random_graphs_have_subgraphs_several_levels_deep() {
    let depth = |picture: &Picture, frame: usize| {
        let parent = |at: &usize| picture.frames[*at].parent;
        core::iter::successors(Some(frame), parent).count()
    };
    let deepest = |seed| {
        let picture = random::picture(seed, 300);
        // Only frames with members are drawn.
        let of_nodes = picture.nodes.iter().filter_map(|node| node.frame);
        of_nodes.map(|frame| depth(&picture, frame)).max().unwrap_or(0)
    };
    let n_deep = (0..200).filter(|seed| deepest(*seed) >= 4).count();
    assert!(n_deep > 50, "{n_deep}");
}

fn check_random(seed: u64) {
    let picture = random::picture(seed, 300);
    let layout = Layout::new(&picture, &Metrics::PIXELS, Captions::Shown);
    check(&picture, &layout);
    assert!(layout.edges.iter().all(|route| route.label.is_some()), "seed {seed}");
    if seed.is_multiple_of(10) {
        let again = Layout::new(&picture.clone(), &Metrics::PIXELS, Captions::Shown);
        assert!(layout == again, "seed {seed} has two layouts");
    }
}

#[test]
fn nothing_is_covered_in_a_terminal_either() {
    for seed in 0..60 {
        let picture = random::picture(seed, 60);
        let layout = Layout::new(&picture, &Metrics::CELLS, Captions::Shown);
        check_edges_in_cells(&picture, &layout);
        check_lines(&layout);
    }
}

/// In a terminal, things next to each other do not overlap.
fn check_edges_in_cells(picture: &Picture, layout: &Layout) {
    let cells = |rect: &Rect| Rect { width: rect.width - 1, height: rect.height - 1, ..*rect };
    let nodes: Vec<Rect> = layout.nodes.iter().map(cells).collect();
    let labels: Vec<Rect> =
        layout.edges.iter().filter_map(|route| route.label.as_ref().map(cells)).collect();
    for (index, rect) in nodes.iter().chain(&labels).enumerate() {
        for other in nodes.iter().chain(&labels).skip(index + 1) {
            assert!(!touch(rect, other), "{rect:?} and {other:?} overlap");
        }
    }
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        for part in parts(route) {
            for (node, rect) in nodes.iter().enumerate() {
                let is_end = node == edge.to && part.bottom() == rect.y;
                assert!(is_end || !touch(&part, rect), "{part:?} crosses node {node}");
            }
            for label in &labels {
                assert!(!touch(&part, label), "{part:?} crosses {label:?}");
            }
        }
    }
}

#[test]
fn the_text_of_a_label_fits_into_its_room() {
    let picture = random::picture(7, 40);
    let layout = Layout::new(&picture, &Metrics::PIXELS, Captions::Shown);
    for (edge, route) in picture.edges.iter().zip(&layout.edges) {
        let width = (Metrics::PIXELS.text_width)(&caption::plain(&edge.caption), Font::Label);
        assert!(route.label.expect("it has a label").width >= width, "{}", edge.caption);
    }
}

/// How often each component is drawn as a box of its own.
fn drawn(sheet: &Sheet) -> BTreeMap<&str, usize> {
    let mut drawn = BTreeMap::new();
    for node in sheet.panels.iter().flat_map(|panel| &panel.picture.nodes) {
        if node.kind == NodeKind::Component {
            *drawn.entry(node.id.as_str()).or_default() += 1;
        }
    }
    drawn
}

#[test]
fn two_thousand_components_in_subgraphs_are_folded_and_at_most_4000_pixels_wide() {
    check_folded(&random::plant(2000, 50));
}

#[test]
fn two_thousand_components_without_subgraphs_are_folded_and_at_most_4000_pixels_wide() {
    check_folded(&random::plant(2000, 0));
}

#[test]
fn a_large_random_graph_is_folded_and_at_most_4000_pixels_wide() {
    // Without optimisation, 2,000 components would take most of a minute.
    check_folded(&random::of_size(1, 600));
}

fn check_folded(picture: &Picture) {
    let sheet = Sheet::new(picture, &Metrics::PIXELS, Fold::Auto, svg::PANEL_WIDTH_MAX);
    let drawing = svg::draw_sheet(&sheet, picture);
    let width = drawing.split("width=\"").nth(1).and_then(|rest| rest.split('"').next());
    let width: i64 = width.expect("it has a width").parse().expect("it is a number");
    assert!(width <= 4000, "{width} px");
    check_panels(&sheet);
    let drawn = drawn(&sheet);
    assert_eq!(drawn.len(), picture.nodes.len(), "each component is on some panel");
    assert!(drawn.values().all(|n| *n == 1), "each component is on one panel");
    for (index, panel) in sheet.panels.iter().enumerate() {
        check(&panel.picture, &panel.layout);
        for (node, link) in panel.picture.nodes.iter().zip(&panel.links) {
            let is_folded = matches!(node.kind, NodeKind::Folded(_));
            assert_eq!(is_folded, link.is_some(), "{node:?}");
            let parent = link.map(|link| sheet.panels[link].parent);
            assert!(parent.is_none_or(|parent| parent == Some(index)), "{node:?}");
        }
    }
}

/// No two panels overlap, and no panel is outside of the drawing.
fn check_panels(sheet: &Sheet) {
    let (places, size) = svg::places(sheet);
    let page = Rect { x: 0, y: 0, width: size.x, height: size.y };
    let panel = |(place, panel): (&Point, &Panel)| {
        let (width, height) = (panel.layout.width, panel.layout.height);
        Rect { x: place.x, y: place.y, width, height }
    };
    let rects: Vec<Rect> = places.iter().zip(&sheet.panels).map(panel).collect();
    assert_eq!(rects.len(), sheet.panels.len(), "each panel has its place");
    for (index, rect) in rects.iter().enumerate() {
        assert!(contains(&page, rect), "panel {index} is outside of the drawing");
        for (other, place) in rects.iter().enumerate().skip(index + 1) {
            assert!(!touch(rect, place), "panels {index} and {other} overlap");
        }
    }
}

#[test]
fn small_panels_are_next_to_each_other() {
    // The parts of a chain that changes its lane again and again are small.
    let mut picture = random::plant(600, 0);
    let edge = picture.edges[0].clone();
    picture.edges = (1..600).map(|to| Arrow { from: to - 1, to, ..edge.clone() }).collect();
    let sheet = Sheet::new(&picture, &Metrics::PIXELS, Fold::Auto, svg::PANEL_WIDTH_MAX);
    check_panels(&sheet);
    let (places, size) = svg::places(&sheet);
    assert!(places.len() > 2 && places[1].x == 0 && places[1].y > places[0].y, "{places:?}");
    let below_each_other: i64 = sheet.panels.iter().map(|panel| panel.layout.height).sum();
    assert!(size.y < below_each_other * 2 / 3, "{} of {below_each_other} px", size.y);
}

#[test]
fn a_folded_picture_counts_every_component_and_every_edge() {
    let picture = random::plant(400, 20);
    let sheet = Sheet::new(&picture, &Metrics::PIXELS, Fold::Auto, svg::PANEL_WIDTH_MAX);
    let overview = &sheet.panels[0].picture;
    assert!(overview.nodes.len() <= 120 && overview.n_components() == 400);
    assert_eq!(overview.n_edges, picture.edges.len());
    let never = Sheet::new(&picture, &Metrics::PIXELS, Fold::Never, svg::PANEL_WIDTH_MAX);
    assert_eq!((never.panels.len(), never.panels[0].picture.nodes.len()), (1, 400));
}

#[test]
fn a_box_of_several_subgraphs_has_their_names() {
    // Two lanes of forty subgraphs are more boxes than an overview has.
    let picture = random::plant(2000, 50);
    let sheet = Sheet::new(&picture, &Metrics::PIXELS, Fold::Auto, svg::PANEL_WIDTH_MAX);
    let ids: Vec<&str> = sheet.panels[0].picture.nodes.iter().map(|node| &*node.id).collect();
    assert!(ids.contains(&"cell0 … cell1"), "{ids:?}");
    assert!(ids.iter().all(|id| id.starts_with("cell")), "{ids:?}");
}

#[test]
fn a_large_graph_that_is_one_subgraph_is_drawn_completely() {
    let mut picture = random::plant(150, 150);
    picture.nodes.iter_mut().for_each(|node| node.lane = 0);
    let sheet = Sheet::new(&picture, &Metrics::PIXELS, Fold::Auto, svg::PANEL_WIDTH_MAX);
    assert_eq!(drawn(&sheet).len(), 150);
}

#[test]
fn a_terminal_drawing_fits_the_columns_it_has() {
    for (n_components, columns) in [(4, 100), (12, 80), (30, 100), (60, 80), (2000, 100)] {
        let picture = random::plant(n_components, 10);
        let drawing = text::draw(&picture, Fold::Auto, columns);
        let width = drawing.lines().map(|line| line.chars().count()).max();
        assert!(
            width.is_some_and(|width| width <= columns),
            "{n_components}: {width:?}\n{drawing}"
        );
    }
}

#[test]
fn many_edges_between_few_boxes_are_a_wiring_diagram_without_a_layout() {
    let mut picture = random::plant(4, 4);
    let edge = picture.edges[0].clone();
    picture.edges.resize(8_000, edge);
    let drawn = text::draw(&picture, Fold::Never, 100);
    assert_eq!(drawn, wiring::draw(&picture, 100));
}

#[test]
fn a_part_is_drawn_with_what_it_is_connected_to() {
    let picture = random::plant(80, 20);
    let part = picture.part("cell1").expect("there is such a subgraph");
    assert_eq!(part.n_components(), 20);
    let outside: Vec<&str> = part
        .nodes
        .iter()
        .filter(|node| node.kind == NodeKind::Outside)
        .map(|node| node.id.as_str())
        .collect();
    assert_eq!(outside, ["c0"]);
    check(&part, &Layout::new(&part, &Metrics::PIXELS, Captions::Shown));
    let near = picture.part("c5").expect("there is such a component");
    assert_eq!(near.n_components(), 3, "the component and its two neighbors");
    let lane = picture.part("perception").expect("there is such a lane");
    assert_eq!(lane.n_components(), 20);
}

#[test]
fn an_unknown_part_is_refused_with_the_nearest_name() {
    let unknown = random::plant(80, 20).part("cel1").expect_err("there is none");
    assert_eq!(
        unknown.to_string(),
        "the graph has no subgraph, loop, lane or component `cel1`; did you mean `cell1`?"
    );
}

#[test]
fn a_long_name_is_shortened_in_the_middle() {
    let name = format!("begin{}end", "x".repeat(100));
    let short = caption::plain(&name);
    assert_eq!(short.chars().count(), 48);
    assert!(short.starts_with("begin") && short.contains('…') && short.ends_with("end"));
    assert_eq!(caption::plain("tab\there"), "tab\u{fffd}here");
}
