//! The packs of a node: frames that wait until they are sent, one pack per node.
//!
//! A pack is full before its receiver would refuse it: a receiver reads at most [`FRAMES_MAX`]
//! frames and [`PACK_MAX`](clockjack_wire::frame::PACK_MAX) bytes.

use alloc::{collections::BTreeMap, vec::Vec};

use clockjack_wire::frame::{FRAMES_MAX, Frame, begin_pack, push_frame};

/// A pack is sent when it has this many bytes, even if more frames are waiting.
const PACK_FULL: usize = 64 << 10;

/// See the [module](self).
#[derive(Default)]
pub(crate) struct Packs(BTreeMap<u64, WaitingPack>);

struct WaitingPack {
    bytes: Vec<u8>,
    n_frames: usize,
}

/// What became of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is the first one that waits, for any node.
    First,
    Waits,
    /// These packs for its node must be sent now, in this order.
    Full(Vec<Vec<u8>>),
}

impl Packs {
    /// Adds a frame to the pack from `me` to a node.
    pub(crate) fn push(&mut self, me: u64, to: u64, frame: &Frame<'_>) -> Pushed {
        let is_first = self.0.is_empty();
        let begin = || WaitingPack { bytes: begin_pack(me, to), n_frames: 0 };
        let pack = self.0.entry(to).or_insert_with(begin);
        let mut full = Vec::new();
        if push_frame(&mut pack.bytes, frame).is_err() {
            // The frame fits into an empty pack: messages, answers and names have a limit.
            full.push(core::mem::replace(pack, begin()).bytes);
            let fits = push_frame(&mut pack.bytes, frame);
            debug_assert!(fits.is_ok(), "a frame is smaller than a pack");
        }
        pack.n_frames += 1;
        let is_full = pack.bytes.len() >= PACK_FULL || pack.n_frames >= FRAMES_MAX;
        if is_full {
            full.extend(self.0.remove(&to).map(|pack| pack.bytes));
        }
        match full.is_empty() {
            false => Pushed::Full(full),
            true if is_first => Pushed::First,
            true => Pushed::Waits,
        }
    }

    /// Takes all packs, with the nodes that they are for.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (u64, Vec<u8>)> + use<> {
        core::mem::take(&mut self.0).into_iter().map(|(to, pack)| (to, pack.bytes))
    }

    /// Drops the pack for a node that is lost.
    pub(crate) fn remove(&mut self, to: u64) {
        self.0.remove(&to);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use clockjack_wire::frame::{MESSAGE_MAX, Pack};

    use super::*;

    fn n_frames(bytes: &[u8]) -> usize {
        let pack = Pack::read(bytes).expect("it is a pack");
        pack.filter(Result::is_ok).count()
    }

    #[test]
    fn no_pack_has_more_frames_than_its_receiver_reads() {
        let mut packs = Packs::default();
        let mut sent = Vec::new();
        for n in 0..10_000 {
            let close = Frame::Close { channel: n % 100 };
            match packs.push(1, 2, &close) {
                Pushed::Full(full) => sent.extend(full),
                Pushed::First => assert_eq!(n % FRAMES_MAX as u64, 0),
                Pushed::Waits => {}
            }
        }
        sent.extend(packs.take().map(|(_, pack)| pack));
        let counts: Vec<usize> = sent.iter().map(|pack| n_frames(pack)).collect();
        assert_eq!(counts, [FRAMES_MAX, FRAMES_MAX, 10_000 - 2 * FRAMES_MAX]);
    }

    #[test]
    fn a_frame_that_does_not_fit_sends_what_waits_before_it() {
        let mut packs = Packs::default();
        assert_eq!(packs.push(1, 2, &Frame::Ping), Pushed::First);
        assert_eq!(packs.push(1, 3, &Frame::Ping), Pushed::Waits);
        let body = vec![0; MESSAGE_MAX];
        let answer = Frame::Answer { channel: 1, request: u64::MAX, body: Some(&body) };
        let Pushed::Full(full) = packs.push(1, 2, &answer) else { panic!("it is full") };
        assert_eq!(full.iter().map(|pack| n_frames(pack)).sum::<usize>(), 2);
        let left: Vec<u64> = packs.take().map(|(to, _)| to).collect();
        assert_eq!(left, [3]);
    }
}
