//! Filling a worker's ring from the injector.

use super::Owner;
use crate::{injector::Injector, link::Linked, mpsc::Pop};

impl<N: Linked> Injector<N> {
    /// Takes one item, and moves up to `max` more into a worker's ring as far as it has room.
    ///
    /// Returns the oldest item and how many followed it into the ring.
    pub fn take_into<const C: usize>(
        &self,
        max: usize,
        into: &mut Owner<N::Handle, C>,
    ) -> Pop<(N::Handle, usize)> {
        // Room only grows while the owner is borrowed here, so all that is taken fits.
        let max = max.min(into.room());
        self.take_batch(max + 1).map(|mut batch| {
            let first = batch.pop().expect("a returned batch has an item");
            let moved = batch.len();
            for handle in batch {
                let fits = into.try_push(handle);
                assert!(fits.is_ok(), "the room of the ring has shrunk");
            }
            (first, moved)
        })
    }
}
