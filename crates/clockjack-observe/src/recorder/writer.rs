//! The single writer of a ring.

use core::{cell::Cell, fmt, marker::PhantomData, ops::Deref};

use clockjack_sync::primitive::atomic::{
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

use super::Ring;
use crate::event::Event;

/// The exclusive right to write into a ring.
///
/// `P` is the pointer to the ring: a borrow or a reference-counted pointer. A writer may move to
/// another thread, but two threads cannot use it at once: it is neither `Clone` nor `Sync`. After
/// it is dropped, another writer can be claimed, which continues where it stopped.
///
/// ```compile_fail,E0277
/// use clockjack_observe::recorder::{Ring, Writer};
///
/// fn shared_by_threads<T: Sync>() {}
/// shared_by_threads::<Writer<&'static Ring>>();
/// ```
pub struct Writer<P: Deref<Target = Ring>> {
    ring: P,
    /// The value of `head`, which only this writer changes.
    head: usize,
    not_sync: PhantomData<Cell<()>>,
}

impl<P: Deref<Target = Ring>> Writer<P> {
    /// Claims the writer; `None` if there is a writer already, which can be dropped.
    #[must_use]
    pub fn claim(ring: P) -> Option<Self> {
        // Acquire: pairs with the release in `drop` of the previous writer.
        if ring.is_claimed.swap(true, Acquire) {
            return None;
        }
        // Relaxed: only writers write it, and the claim orders this load after the last of them.
        let head = ring.head.load(Relaxed);
        Some(Self { ring, head, not_sync: PhantomData })
    }

    /// Records an event. Never waits and never fails; it overwrites the oldest record.
    ///
    /// Always inlined: if the call site names the variant, as it should, the encoding is reduced to
    /// a few shifts instead of a jump over all kinds.
    #[inline(always)]
    pub fn write(&mut self, at_ns: u64, event: Event) {
        let Ring { head, slots, .. } = &*self.ring;
        // W1 pairs with R3: a reader that sees a word of this record sees at least the current
        // `head`.
        fence(Release);
        // W2.
        slots[self.head & (slots.len() - 1)].store(at_ns, event);
        self.head = self.head.wrapping_add(1);
        // W3, release: pairs with R1.
        head.store(self.head, Release);
    }
}

impl<P: Deref<Target = Ring>> Drop for Writer<P> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `claim` of the next writer.
        self.ring.is_claimed.store(false, Release);
    }
}

impl<P: Deref<Target = Ring>> fmt::Debug for Writer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("written", &self.head).finish_non_exhaustive()
    }
}
