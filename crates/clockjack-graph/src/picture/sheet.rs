//! A sheet: the drawing of a graph. A graph that is too large for one readable drawing has an
//! overview of folded boxes, and one panel per folded box.

use super::{
    Layout, Metrics, NodeKind, Picture,
    fold::{self, Folded},
    layout::Captions,
};

/// Whether a large picture is folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fold {
    /// Only if the picture has too many boxes or is too wide.
    #[default]
    Auto,
    /// Never.
    Never,
}

/// The number of boxes above which a picture is folded.
const BOXES_MAX: usize = 120;
/// The number of edges above which a picture is folded, and a terminal gets a wiring diagram. The
/// time of a layout grows with the square of the edges between two rows.
pub(super) const EDGES_MAX: usize = 480;
/// The number of boxes up to which a picture loses its captions before it is folded.
const UNFOLDED_BOXES: usize = 40;
/// The numbers of boxes that a folded picture may have; fewer ones are tried if it is too wide.
const FOLDED_BOXES_MAX: [usize; 7] = [48, 32, 20, 12, 6, 3, 2];
/// The number of lines above which a folded picture is not readable; fewer boxes are tried then.
const FOLDED_EDGES_MAX: usize = 160;
/// The depth of panels inside panels. Each fold divides by at least two, and a graph has fewer than
/// 2³² components.
const DEPTH_MAX: usize = 32;

/// The drawing of a graph: the first panel is the overview.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The panels, the overview first.
    pub panels: Vec<Panel>,
}

/// A drawing of the graph or of one of its parts.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What is drawn.
    pub picture: Picture,
    /// Where it is drawn.
    pub layout: Layout,
    /// The panel that has this one as a folded box.
    pub parent: Option<usize>,
    /// The panel of each folded node.
    pub links: Vec<Option<usize>>,
}

impl Sheet {
    /// Places a picture, folded if it is large. If it is folded, no panel is wider than `width_max`
    /// unless a single box is.
    #[must_use]
    pub fn new(picture: &Picture, metrics: &Metrics, fold: Fold, width_max: i64) -> Self {
        let mut sheet = Self { panels: Vec::new() };
        if fold == Fold::Never {
            let layout = Layout::new(picture, metrics, Captions::Shown);
            let links = vec![None; picture.nodes.len()];
            sheet.panels.push(Panel { picture: picture.clone(), layout, parent: None, links });
        } else {
            sheet.add(picture, metrics, width_max, None, 0);
        }
        sheet
    }

    /// Adds the panel of a picture, and those of its folded boxes.
    fn add(
        &mut self,
        picture: &Picture,
        metrics: &Metrics,
        width_max: i64,
        parent: Option<usize>,
        depth: usize,
    ) {
        let few_lanes = fold::without_many_lanes(picture);
        let picture = few_lanes.as_ref().unwrap_or(picture);
        let panel = self.panels.len();
        if let Some(layout) = unfolded(picture, metrics, width_max) {
            let links = vec![None; picture.nodes.len()];
            self.panels.push(Panel { picture: picture.clone(), layout, parent, links });
            return;
        }
        // A frame around everything would be folded to a single box again and again.
        let picture = &fold::without_common_frame(picture.clone());
        let (folded, layout) = folded(picture, metrics, width_max);
        let links = vec![None; folded.picture.nodes.len()];
        self.panels.push(Panel { picture: folded.picture.clone(), layout, parent, links });
        for (node, members) in folded.members.iter().enumerate() {
            let is_folded = matches!(folded.picture.nodes[node].kind, NodeKind::Folded(_));
            if is_folded && members.len() < picture.nodes.len() && depth < DEPTH_MAX {
                self.panels[panel].links[node] = Some(self.panels.len());
                let part = fold::part(picture, &folded, node);
                self.add(&part, metrics, width_max, Some(panel), depth + 1);
            }
        }
    }

    /// The largest width of a panel.
    #[must_use]
    pub fn width(&self) -> i64 {
        self.panels.iter().map(|panel| panel.layout.width).max().unwrap_or(0)
    }
}

/// The layout of a picture that need not be folded: shorter rows are better than folding, and for a
/// picture with few boxes it is better to leave out the captions of edges.
fn unfolded(picture: &Picture, metrics: &Metrics, width_max: i64) -> Option<Layout> {
    let n_boxes = picture.nodes.len();
    if n_boxes > BOXES_MAX || (picture.edges.len() > EDGES_MAX && n_boxes > 1) {
        return None;
    }
    let layout = Layout::new(picture, metrics, Captions::Shown);
    if layout.width <= width_max || n_boxes == 1 {
        return Some(layout);
    }
    let is_few = n_boxes <= UNFOLDED_BOXES;
    let with_captions = [2, 1].into_iter().map(|rows| (rows, Captions::Shown));
    let without = [3, 2, 1].into_iter().map(|rows| (rows, Captions::Hidden)).filter(|_| is_few);
    with_captions
        .chain(without)
        .map(|(rows, captions)| Layout::with_rows(picture, metrics, captions, rows))
        .find(|layout| layout.width <= width_max)
}

/// A picture that is folded until it is narrow enough, and its layout.
fn folded(picture: &Picture, metrics: &Metrics, width_max: i64) -> (Folded, Layout) {
    for boxes_max in FOLDED_BOXES_MAX {
        let folded = fold::fold(picture, boxes_max);
        if folded.picture.edges.len() > FOLDED_EDGES_MAX {
            continue;
        }
        let layout = Layout::new(&folded.picture, metrics, Captions::Shown);
        if layout.width <= width_max {
            return (folded, layout);
        }
    }
    let folded = fold::fold(picture, FOLDED_BOXES_MAX[FOLDED_BOXES_MAX.len() - 1]);
    let layout = Layout::with_rows(&folded.picture, metrics, Captions::Hidden, 1);
    (folded, layout)
}
