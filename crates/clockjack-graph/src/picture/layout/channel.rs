//! Orthogonal routing in the channel between two rows: the track of each horizontal part (channel
//! routing; Hashimoto and Stevens, "Wire routing by optimizing channel assignment within large
//! apertures", 1971). Two horizontal parts never share a track where they would touch.
//!
//! Vertical parts must not overlap either: if one wire comes from above at the `x` at which another
//! goes on below, the first must have the higher track. These constraints can form a cycle; then
//! one of the wires is split by a dogleg (Deutsch, "A dogleg channel router", 1976). Among the
//! orders that the constraints permit, the order with few crossings is chosen greedily (compare
//! Sander, "Layout of directed hypergraphs with orthogonal hyperedges", 2003).

use std::collections::BTreeMap;

/// Whose wire it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireOf {
    Segment(usize),
    Turn(usize),
}

/// A part of a link in the channel.
#[derive(Clone, Debug)]
pub(super) struct Wire {
    of: WireOf,
    /// From where to where it goes, from top to bottom.
    from_x: i64,
    to_x: i64,
    /// Where it touches the upper side of the channel.
    uppers: Vec<i64>,
    /// Where it touches the lower side of the channel.
    lowers: Vec<i64>,
    /// The first part of this wire, if this is the second part, behind a dogleg.
    first_part: Option<usize>,
}

impl Wire {
    /// A part of a link from the row above to the row below.
    pub(super) fn down(segment: usize, upper: i64, lower: i64) -> Self {
        let of = WireOf::Segment(segment);
        Self {
            of,
            from_x: upper,
            to_x: lower,
            uppers: vec![upper],
            lowers: vec![lower],
            first_part: None,
        }
    }

    /// A turn below an item of the row above.
    pub(super) fn below(turn: usize, item: i64, wire: i64) -> Self {
        let of = WireOf::Turn(turn);
        Self {
            of,
            from_x: item,
            to_x: wire,
            uppers: vec![item, wire],
            lowers: Vec::new(),
            first_part: None,
        }
    }

    /// A turn above an item of the row below.
    pub(super) fn above(turn: usize, item: i64, wire: i64) -> Self {
        let of = WireOf::Turn(turn);
        Self {
            of,
            from_x: wire,
            to_x: item,
            uppers: Vec::new(),
            lowers: vec![item, wire],
            first_part: None,
        }
    }

    fn left(&self) -> i64 {
        self.from_x.min(self.to_x)
    }

    fn right(&self) -> i64 {
        self.from_x.max(self.to_x)
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.left() <= other.right() && other.left() <= self.right()
    }

    fn spans(&self, x: i64) -> bool {
        self.left() < x && x < self.right()
    }

    /// The number of crossings if this wire is above the other one.
    fn n_crossings_above(&self, other: &Self) -> i64 {
        let from_above = other.uppers.iter().filter(|x| self.spans(**x)).count();
        let to_below = self.lowers.iter().filter(|x| other.spans(**x)).count();
        (from_above + to_below) as i64
    }
}

/// A horizontal part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bend {
    pub(super) of: WireOf,
    pub(super) track: i64,
    pub(super) from_x: i64,
    pub(super) to_x: i64,
}

/// The horizontal parts of a channel. Those of one segment are in order from top to bottom.
#[derive(Debug)]
pub(super) struct Tracks {
    pub(super) bends: Vec<Bend>,
    pub(super) n_tracks: i64,
}

/// Assigns tracks. Every `x` is a multiple of `pitch`; doglegs are halfway between.
pub(super) fn route(wires: Vec<Wire>, pitch: i64) -> Tracks {
    let bent = wires.into_iter().filter(|wire| wire.from_x != wire.to_x).collect();
    let wires = without_cycles(bent, pitch);
    let mut tracks: Vec<i64> = Vec::new();
    let order = ordered(&wires);
    for (at, wire) in order.iter().enumerate() {
        let before = order[..at].iter().zip(&tracks);
        let highest = before
            .filter(|(other, _)| wires[**other].overlaps(&wires[*wire]))
            .map(|(_, track)| track + 1)
            .max();
        tracks.push(highest.unwrap_or(0));
    }
    let bend = |(wire, track): (&usize, &i64)| {
        let Wire { of, from_x, to_x, .. } = wires[*wire];
        Bend { of, track: *track, from_x, to_x }
    };
    let n_tracks = tracks.iter().max().map_or(0, |track| track + 1);
    Tracks { bends: order.iter().zip(&tracks).map(bend).collect(), n_tracks }
}

/// Splits wires until the constraints form no cycle.
fn without_cycles(mut wires: Vec<Wire>, pitch: i64) -> Vec<Wire> {
    let mut dogleg_x: Vec<i64> = Vec::new();
    loop {
        let Constraints { above, below } = Constraints::new(&wires);
        let mut n_above: Vec<usize> = above.iter().map(Vec::len).collect();
        let mut is_done = vec![false; wires.len()];
        let mut open: Vec<usize> = (0..wires.len()).filter(|wire| n_above[*wire] == 0).collect();
        while let Some(wire) = open.pop() {
            is_done[wire] = true;
            for other in &below[wire] {
                n_above[*other] -= 1;
                if n_above[*other] == 0 {
                    open.push(*other);
                }
            }
        }
        let Some(stuck) = is_done.iter().position(|is_done| !is_done) else { return wires };
        let wire = on_a_cycle(stuck, &above, &is_done);
        let Wire { of, from_x, to_x, .. } = wires[wire];
        let mut x = to_x + pitch / 2;
        while dogleg_x.contains(&x) {
            x += pitch;
        }
        dogleg_x.push(x);
        let (uppers, lowers) = (vec![from_x], vec![to_x]);
        let second =
            Wire { of, from_x: x, to_x, uppers: Vec::new(), lowers, first_part: Some(wire) };
        wires[wire] = Wire { of, from_x, to_x: x, uppers, lowers: Vec::new(), first_part: None };
        wires.push(second);
    }
}

/// A wire on a cycle of constraints. Only wires from the row above to the row below are on cycles:
/// a turn is only above or only below others, and a wire with a dogleg is two such wires.
fn on_a_cycle(stuck: usize, above: &[Vec<usize>], is_done: &[bool]) -> usize {
    let mut wire = stuck;
    // Each wire that is not done has another such wire above it, so that this walk enters a cycle.
    for _ in 0..above.len() {
        let next = above[wire].iter().copied().find(|other| !is_done[*other]);
        wire = next.expect("a wire that is not done waits for another one");
    }
    wire
}

/// Which wires must be above which.
#[derive(Debug)]
struct Constraints {
    /// For each wire, those that must be above it.
    above: Vec<Vec<usize>>,
    /// For each wire, those that must be below it.
    below: Vec<Vec<usize>>,
}

impl Constraints {
    fn new(wires: &[Wire]) -> Self {
        let mut found =
            Self { above: vec![Vec::new(); wires.len()], below: vec![Vec::new(); wires.len()] };
        let mut at_lower: BTreeMap<i64, usize> = BTreeMap::new();
        for (index, wire) in wires.iter().enumerate() {
            at_lower.extend(wire.lowers.iter().map(|x| (*x, index)));
        }
        for (index, wire) in wires.iter().enumerate() {
            let lower = wire.uppers.iter().filter_map(|x| at_lower.get(x).copied());
            for other in lower.filter(|other| *other != index) {
                found.add(index, other);
            }
            if let Some(first) = wire.first_part {
                found.add(first, index);
            }
        }
        found
    }

    fn add(&mut self, upper: usize, lower: usize) {
        if !self.above[lower].contains(&upper) {
            self.above[lower].push(upper);
            self.below[upper].push(lower);
        }
    }
}

/// The wires from top to bottom: of those that the constraints permit next, the wire that causes
/// the fewest crossings with the remaining ones.
fn ordered(wires: &[Wire]) -> Vec<usize> {
    let Constraints { above, below } = Constraints::new(wires);
    let mut n_above: Vec<usize> = above.iter().map(Vec::len).collect();
    // How many more crossings a wire causes if it is above another one instead of below.
    let mut losses: Vec<Vec<(usize, i64)>> = vec![Vec::new(); wires.len()];
    let mut cost = vec![0; wires.len()];
    for (index, wire) in wires.iter().enumerate() {
        for (other, second) in wires.iter().enumerate().skip(index + 1) {
            if wire.overlaps(second) {
                let loss = wire.n_crossings_above(second) - second.n_crossings_above(wire);
                losses[index].push((other, loss));
                losses[other].push((index, -loss));
                cost[index] += loss;
                cost[other] -= loss;
            }
        }
    }
    let mut remaining: Vec<usize> = (0..wires.len()).collect();
    let mut order = Vec::with_capacity(wires.len());
    while !remaining.is_empty() {
        let free = (0..remaining.len()).filter(|at| n_above[remaining[*at]] == 0);
        let next = free.min_by_key(|at| (cost[remaining[*at]], wires[remaining[*at]].left()));
        let wire = remaining.remove(next.expect("the constraints form no cycle"));
        for (other, loss) in &losses[wire] {
            cost[*other] += loss;
        }
        for other in &below[wire] {
            n_above[*other] -= 1;
        }
        order.push(wire);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracks_of(wires: Vec<Wire>) -> Vec<(usize, i64, i64, i64)> {
        let index = |of| match of {
            WireOf::Segment(index) | WireOf::Turn(index) => index,
        };
        let routed = route(wires, 8);
        let bends = routed.bends.iter();
        bends.map(|bend| (index(bend.of), bend.track, bend.from_x, bend.to_x)).collect()
    }

    #[test]
    fn a_straight_wire_needs_no_track() {
        assert_eq!(route(vec![Wire::down(0, 8, 8)], 8).n_tracks, 0);
    }

    #[test]
    fn wires_share_a_track_only_if_they_do_not_touch() {
        let apart = vec![Wire::down(0, 0, 16), Wire::down(1, 24, 40)];
        assert_eq!(route(apart, 8).n_tracks, 1);
        let nested = vec![Wire::down(0, 0, 40), Wire::down(1, 8, 16)];
        assert_eq!(route(nested, 8).n_tracks, 2);
    }

    #[test]
    fn a_wire_that_ends_where_another_begins_is_below_it() {
        let wires = vec![Wire::down(0, 80, 40), Wire::down(1, 40, 0)];
        assert_eq!(tracks_of(wires), [(1, 0, 40, 0), (0, 1, 80, 40)]);
        let wires = vec![Wire::down(0, 0, 40), Wire::down(1, 40, 80)];
        assert_eq!(tracks_of(wires), [(1, 0, 40, 80), (0, 1, 0, 40)]);
    }

    #[test]
    fn two_wires_that_change_places_do_not_cover_each_other() {
        let wires = vec![Wire::down(0, 0, 80), Wire::down(1, 80, 0)];
        let tracks = tracks_of(wires);
        assert_eq!(tracks, [(0, 0, 0, 84), (1, 1, 80, 0), (0, 2, 84, 80)]);
    }
}
