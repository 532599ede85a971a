//! The texts of a drawing.

use super::{Frame, FrameKind, Node, NodeKind, Picture, PictureLane, layout::metrics::columns_of};

/// The maximum width of a text in character cells. A longer text is shortened in the middle; the
/// SVG shows the whole text when the pointer is above it.
const COLUMNS_MAX: i64 = 48;
/// How much of a longer text is kept at its end.
const COLUMNS_END: i64 = 18;

/// The text without control characters and without its middle if it is too long.
pub(super) fn plain(text: &str) -> String {
    let letters: Vec<char> =
        text.chars().map(|letter| if letter.is_control() { '\u{fffd}' } else { letter }).collect();
    let width: i64 = letters.iter().copied().map(columns_of).sum();
    if width <= COLUMNS_MAX {
        return letters.into_iter().collect();
    }
    let fits = |letters: &mut dyn Iterator<Item = &char>, columns: i64| {
        let mut used = 0;
        letters
            .take_while(|letter| {
                used += columns_of(**letter);
                used <= columns
            })
            .copied()
            .collect::<Vec<char>>()
    };
    let begin = fits(&mut letters.iter(), COLUMNS_MAX - COLUMNS_END - 1);
    let end = fits(&mut letters.iter().rev(), COLUMNS_END);
    begin.into_iter().chain(['…']).chain(end.into_iter().rev()).collect()
}

/// The lines of a box.
pub(super) fn lines(node: &Node) -> [String; 2] {
    [plain(&node.id), plain(&node.component_type)]
}

/// The title of a frame.
pub(super) fn frame(frame: &Frame) -> String {
    match frame.kind {
        FrameKind::Hierarchy => plain(&frame.label),
        FrameKind::Loop => plain(&format!("loop {}", frame.label)),
    }
}

/// The title of a band.
pub(super) fn lane(lane: &PictureLane) -> String {
    plain(&format!("{} · {}", lane.id, lane.detail))
}

/// The title of a picture: the name, and how much there is.
pub(super) fn heading(picture: &Picture) -> String {
    let counted = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "{}: {}, {}",
        plain(&picture.name),
        counted(picture.n_components(), "component"),
        counted(picture.n_edges, "edge"),
    );
    if picture.nodes.iter().any(|node| matches!(node.kind, NodeKind::Folded(_))) {
        let n_boxes = picture.nodes.iter().filter(|node| node.kind != NodeKind::Outside).count();
        let boxes = if n_boxes == 1 { "box" } else { "boxes" };
        text.push_str(&format!(", folded into {n_boxes} {boxes}"));
    }
    text
}
