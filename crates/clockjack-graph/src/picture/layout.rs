//! Positions of everything in a picture, in abstract units: pixels for a browser, character cells
//! for a terminal. The layout is layered (Sugiyama's method), from top to bottom in compiled order:
//!
//! 1. Lanes are bands next to each other; their order keeps connected lanes close.
//! 2. Frames are placed from the inside out. A frame is a box in the level around it, and edges
//!    enter it at the top and leave it at the bottom.
//! 3. Each level gets ranks (`rank.rs`), an order in each rank (`order.rs`), horizontal coordinates
//!    (`position.rs`, Brandes and Köpf) and orthogonal routes (`channel.rs`).
//!
//! Invariants, whatever the picture is: boxes do not overlap; labels overlap neither each other nor
//! a box; no edge crosses a box, a frame or a label that it does not belong to; two edges have no
//! common line. Positions depend on the picture and the metrics only, and are integers, so that
//! they are equal on every machine.

mod channel;
mod level;
pub mod metrics;
mod order;
mod position;
mod rank;
mod rows;
mod tree;

pub use metrics::Metrics;

use super::Picture;

/// A point; `y` grows downward.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// The distance from the left side.
    pub x: i64,
    /// The distance from the top.
    pub y: i64,
}

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// The left side.
    pub x: i64,
    /// The upper side.
    pub y: i64,
    /// The width.
    pub width: i64,
    /// The height.
    pub height: i64,
}

impl Rect {
    /// The right side.
    #[must_use]
    pub const fn right(&self) -> i64 {
        self.x + self.width
    }

    /// The lower side.
    #[must_use]
    pub const fn bottom(&self) -> i64 {
        self.y + self.height
    }

    const fn moved(self, by: Point) -> Self {
        Self { x: self.x + by.x, y: self.y + by.y, ..self }
    }
}

/// The band of a lane. Its title is in the upper left corner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Band {
    /// The index of the lane.
    pub lane: usize,
    /// Where it is.
    pub rect: Rect,
}

/// The box of a frame. Its title is in the upper left corner. A subgraph with components on several
/// lanes has a box in each of their bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameBox {
    /// The index of the frame.
    pub frame: usize,
    /// The index of the lane.
    pub lane: usize,
    /// Where it is.
    pub rect: Rect,
    /// The room for its title.
    pub title: Rect,
}

/// The line of an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// The corners from the producer to the consumer. Each part is horizontal or vertical; the
    /// first part leaves the producer at its lower side, and the last part enters the consumer at
    /// its upper side.
    pub points: Vec<Point>,
    /// The room for the caption.
    pub label: Option<Rect>,
}

/// The positions of everything in a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The total width.
    pub width: i64,
    /// The total height.
    pub height: i64,
    /// The bands of the lanes, from left to right.
    pub bands: Vec<Band>,
    /// The boxes of the frames; an outer box comes before those inside of it.
    pub frames: Vec<FrameBox>,
    /// The boxes of the nodes.
    pub nodes: Vec<Rect>,
    /// The lines of the edges.
    pub edges: Vec<Route>,
}

/// Whether the layout has room for the captions of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Captions {
    /// Each edge has its caption.
    Shown,
    /// No edge has a caption.
    Hidden,
}

impl Layout {
    /// Places everything in a picture.
    #[must_use]
    pub fn new(picture: &Picture, metrics: &Metrics, captions: Captions) -> Self {
        let n_nodes = picture.nodes.len();
        let lanes = tree::lane_order(picture);
        // A drawing that is a little wider than high.
        let row_items_max = (n_nodes + n_nodes / 2).isqrt().div_ceil(lanes.len().max(1)).max(3);
        Self::with_rows(picture, metrics, captions, row_items_max)
    }

    /// Places everything in a picture, with at most this many items per row of a lane or of a
    /// frame.
    #[must_use]
    pub fn with_rows(
        picture: &Picture,
        metrics: &Metrics,
        captions: Captions,
        row_items_max: usize,
    ) -> Self {
        tree::Tree::new(picture, metrics, captions, row_items_max).place()
    }
}
