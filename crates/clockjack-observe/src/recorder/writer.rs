//! The one writer of a ring.

use core::{cell::Cell, error, fmt, marker::PhantomData, ops::Deref};

use clockjack_sync::{
    mutant,
    prim::atomic::{
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
};

use super::{Ring, sealed::Storage};
use crate::event::Event;

/// The right to write into a ring: there is at most one at a time.
///
/// `P` is how it holds the ring: a borrow, `&'static`, or a counted pointer. It may move to another
/// thread, but two threads cannot use it at once: it is neither `Clone` nor `Sync`. Dropping it
/// lets another be claimed, which continues where it ended.
///
/// ```compile_fail,E0277
/// use clockjack_observe::recorder::{Recorder, Writer};
///
/// fn shared_by_threads<T: Sync>() {}
/// shared_by_threads::<Writer<&'static Recorder<8>>>();
/// ```
pub struct Writer<P: Deref<Target: Ring>> {
    ring: P,
    /// The value of `head`, which only this writer changes.
    head: usize,
    not_sync: PhantomData<Cell<()>>,
}

impl<P: Deref<Target: Ring>> Writer<P> {
    /// Claims the right to write.
    ///
    /// # Errors
    ///
    /// If there is a writer; the pointer comes back. Transient: that writer can be dropped.
    pub fn claim(ring: P) -> Result<Self, ClaimError<P>> {
        let take = if mutant!("recorder-claim-relaxed") { Relaxed } else { Acquire };
        // Acquire: pairs with the release in `drop` of the writer before.
        if ring.control().claimed.swap(true, take) {
            return Err(ClaimError { ring });
        }
        // Relaxed: written by writers alone, and the claim ordered us behind the last of them.
        let head = ring.control().head.load(Relaxed);
        Ok(Self { ring, head, not_sync: PhantomData })
    }

    /// Records an event. Never waits, never fails; the oldest record gives way.
    ///
    /// Always inlined: where the variant is written out at the call, as it should be, encoding
    /// folds into a few shifts instead of a jump over all kinds.
    #[inline(always)]
    pub fn write(&mut self, at_ns: u64, event: Event) {
        let (control, slots) = (self.ring.control(), self.ring.slots());
        // W1 pairs with R3: who sees a word of this record sees `head` at least as it is now.
        if !mutant!("recorder-write-fence-removed") {
            fence(Release);
        }
        // W2.
        slots[self.head & (slots.len() - 1)].store(at_ns, event);
        self.head = self.head.wrapping_add(1);
        let publish = if mutant!("recorder-publish-relaxed") { Relaxed } else { Release };
        // W3, release: pairs with R1.
        control.head.store(self.head, publish);
    }

    /// The ring that is written to.
    pub fn ring(&self) -> &P::Target {
        &self.ring
    }
}

impl<P: Deref<Target: Ring>> Drop for Writer<P> {
    fn drop(&mut self) {
        // Release: pairs with the acquire in `claim` of the next writer.
        self.ring.control().claimed.store(false, Release);
    }
}

impl<P: Deref<Target: Ring>> fmt::Debug for Writer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("written", &self.head).finish_non_exhaustive()
    }
}

/// The ring has a writer already.
pub struct ClaimError<P> {
    ring: P,
}

impl<P> ClaimError<P> {
    /// The pointer that was offered.
    pub fn into_inner(self) -> P {
        self.ring
    }
}

impl<P> fmt::Debug for ClaimError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClaimError").finish_non_exhaustive()
    }
}

impl<P> fmt::Display for ClaimError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the recorder has a writer already")
    }
}

impl<P> error::Error for ClaimError<P> {}
