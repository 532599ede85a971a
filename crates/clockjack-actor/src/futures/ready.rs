//! Which of an actor's futures were woken: a bell for each, and a board that they hang on.
//!
//! # Protocol
//!
//! Roles: *ringers*, any number, who have a reference to a bell, and the *runner*, the one that
//! steps the actor.
//!
//! ```text
//!   bell    state [ OVER | RUNG ]   link
//!   board   list ─► bell ─► bell ─► null       or CLOSED
//! ```
//!
//! 1. A ringer raises RUNG by a read-modify-write, also if it is up: so what it did before is seen
//!    by the poll that the bell leads to. If nothing was up, it is the one that hangs the bell on
//!    the list, with a reference, by a compare-exchange, and then notifies the owner.
//! 2. The link of a bell is written by the one who has hung it up, and read by the runner when it
//!    takes the list, both while RUNG is up. So nobody else touches it.
//! 3. The runner takes the whole list by one swap. It takes RUNG down before it polls the future of
//!    the bell, by a read-modify-write: who rings during the poll hangs the bell up again.
//! 4. When its future is gone the runner raises OVER. From then on ringing does nothing; a bell
//!    that hangs is dropped when it is found.
//! 5. A bell serves another future only if nobody but the runner has a reference to it.
//! 6. At the end of the actor the runner swaps in CLOSED: a ringer that comes too late lets go of
//!    its bell. Otherwise board and bell would hold one another for ever.
//!
//! *Why no ring is lost*: of a ring and the runner's taking down of RUNG one comes first. If the
//! ring does, the poll comes after it; else the ringer finds nothing up and hangs up the bell.
//! *Why nobody hangs*: a ringer repeats its exchange only if another bell was faster.
#![expect(unsafe_code, reason = "counts the references to a bell, and owns those on the list")]

use alloc::boxed::Box;
use core::{ops::Deref, ptr, ptr::NonNull};

use clockjack_sync::{
    Counted, mutant,
    prim::{
        UnsafeCell,
        atomic::{
            AtomicPtr, AtomicU32, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

const RUNG: u32 = 1;
const OVER: u32 = 1 << 1;

/// The owner of a board, who wants to know when a bell was hung up.
pub(crate) trait Notify {
    /// Something hangs on the board.
    fn notify(&self);
}

/// Where bells that were rung hang; see the [module](self).
pub(crate) struct Board<N> {
    list: AtomicPtr<Bell<N>>,
    owner: N,
}

/// What a waker rings.
pub(crate) struct Bell<N> {
    count: AtomicUsize,
    state: AtomicU32,
    /// Whose it is: written by the runner while it alone has the bell.
    label: AtomicU32,
    link: UnsafeCell<*mut Bell<N>>,
    board: Counted<Board<N>>,
}

/// A counted reference to a bell.
pub(crate) struct BellRef<N>(NonNull<Bell<N>>);

// SAFETY: the link is touched by one thread at a time (rule 2), the owner by all who ring (`Sync`)
// and dropped by who lets go last (`Send`); the rest is atomic.
unsafe impl<N: Send + Sync> Send for BellRef<N> {}
// SAFETY: as above.
unsafe impl<N: Send + Sync> Sync for BellRef<N> {}

/// Marks a board that takes no bell any more. Never followed.
fn closed<N>() -> *mut Bell<N> {
    ptr::without_provenance_mut(usize::MAX)
}

impl<N> Board<N> {
    pub(crate) fn new(owner: N) -> Self {
        Self { list: AtomicPtr::new(ptr::null_mut()), owner }
    }

    /// Hangs up a bell that the caller has rung; false if that is too late.
    fn hang(&self, bell: BellRef<N>) -> bool {
        let raw = bell.0.as_ptr();
        // Relaxed: the exchange decides.
        let mut seen = self.list.load(Relaxed);
        loop {
            if seen == closed() && !mutant!("actor-bell-no-end") {
                return false;
            }
            bell.link.with_mut(|link| {
                // SAFETY: by rule 2 the link is the caller's, who has raised RUNG.
                unsafe { *link = seen };
            });
            // Release: pairs with the swap of the runner, which reads the link.
            let order = if mutant!("actor-bell-relaxed-hang") { Relaxed } else { Release };
            match self.list.compare_exchange_weak(seen, raw, order, Relaxed) {
                Ok(_) => {
                    // The list has the reference now.
                    core::mem::forget(bell);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the bells that hang, that which was rung first at the front. For the runner.
    pub(crate) fn take(&self, mut each: impl FnMut(BellRef<N>)) {
        // Acquire: pairs with `hang`.
        Self::each(self.list.swap(ptr::null_mut(), AcqRel), &mut each);
    }

    /// Takes no bell from here on. For the runner, at the end.
    pub(crate) fn close(&self) {
        // Acquire: pairs with `hang`.
        Self::each(self.list.swap(closed(), AcqRel), &mut drop);
    }

    fn each(mut newest: *mut Bell<N>, each: &mut dyn FnMut(BellRef<N>)) {
        if newest == closed() {
            return;
        }
        let mut oldest: *mut Bell<N> = ptr::null_mut();
        while let Some(bell) = NonNull::new(newest) {
            // SAFETY: the list has a reference to each bell on it, and the runner has the list.
            let bell = unsafe { bell.as_ref() };
            let next = bell.link.with_mut(|link| {
                // SAFETY: by rule 2 the link of a bell that was taken is the runner's.
                unsafe { core::mem::replace(&mut *link, oldest) }
            });
            oldest = newest;
            newest = next;
        }
        while let Some(raw) = NonNull::new(oldest) {
            let bell = BellRef(raw);
            oldest = bell.link.with_mut(|link| {
                // SAFETY: as above.
                unsafe { *link }
            });
            each(bell);
        }
    }
}

impl<N> Bell<N> {
    /// Whose it is.
    pub(crate) fn label(&self) -> u32 {
        // Relaxed: who has a reference got it after the label was written.
        self.label.load(Relaxed)
    }

    pub(crate) fn owner(&self) -> &N {
        &self.board.owner
    }

    /// Before the poll: whoever rings from here on leads to another one. False if the future is
    /// gone. For the runner.
    pub(crate) fn take_down(&self) -> bool {
        // Acquire: pairs with `ring`, whoever rang. Release: the link was read before this.
        self.state.fetch_and(!RUNG, AcqRel) & OVER == 0
    }

    /// Its future is gone. For the runner.
    pub(crate) fn end(&self) {
        // Relaxed: nothing is published; who rings meanwhile rings for nobody.
        self.state.fetch_or(OVER, Relaxed);
    }

    /// Whether its future is gone.
    pub(crate) fn is_over(&self) -> bool {
        // Relaxed: only the runner raises it, and only the runner asks.
        self.state.load(Relaxed) & OVER != 0
    }
}

impl<N> BellRef<N> {
    /// A bell that counts as rung, and does not hang: the runner has it in its hands.
    pub(crate) fn rung(board: Counted<Board<N>>, label: u32) -> Self {
        let bell = Box::new(Bell {
            count: AtomicUsize::new(1),
            state: AtomicU32::new(RUNG),
            label: AtomicU32::new(label),
            link: UnsafeCell::new(ptr::null_mut()),
            board,
        });
        Self(NonNull::from(Box::leak(bell)))
    }

    /// The same for another future, if nobody else has it. For the runner.
    pub(crate) fn renewed(self, label: u32) -> Option<Self> {
        // Acquire: pairs with the drops of all others. One stays one, for nobody can clone it.
        if self.count.load(Acquire) != 1 && !mutant!("actor-bell-renewed-in-use") {
            return None;
        }
        // Relaxed: nobody else has it.
        self.label.store(label, Relaxed);
        self.state.store(RUNG, Relaxed);
        Some(self)
    }

    /// Makes the runner poll the future of this bell.
    pub(crate) fn ring(&self)
    where
        N: Notify,
    {
        // Relaxed: a hint that only the planted fault believes.
        if mutant!("actor-bell-ring-unseen") && self.state.load(Relaxed) & RUNG != 0 {
            return;
        }
        // Release: what was done before it; pairs with `take_down`. Acquire: the link comes after
        // the runner's look at it.
        if self.state.fetch_or(RUNG, AcqRel) == 0 && self.board.hang(self.clone()) {
            self.board.owner.notify();
        }
    }

    pub(crate) fn into_raw(self) -> NonNull<Bell<N>> {
        let raw = self.0;
        core::mem::forget(self);
        raw
    }

    pub(crate) fn as_raw(&self) -> NonNull<Bell<N>> {
        self.0
    }

    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw), and its count is given away.
    pub(crate) unsafe fn from_raw(raw: NonNull<Bell<N>>) -> Self {
        Self(raw)
    }
}

impl<N> Deref for BellRef<N> {
    type Target = Bell<N>;

    fn deref(&self) -> &Bell<N> {
        // SAFETY: it came from a box, which the count keeps; only shared borrows are made.
        unsafe { self.0.as_ref() }
    }
}

impl<N> Clone for BellRef<N> {
    fn clone(&self) -> Self {
        // Relaxed: made from one that keeps the bell alive.
        let before = self.count.fetch_add(1, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many wakers of one future");
        Self(self.0)
    }
}

impl<N> Drop for BellRef<N> {
    fn drop(&mut self) {
        // Release: pairs with the load of the one that comes last, and of `renewed`.
        if self.count.fetch_sub(1, Release) == 1 {
            // Acquire: a load and not a fence, because ThreadSanitizer does not know fences.
            self.count.load(Acquire);
            // SAFETY: it came from a box, and the last reference is gone.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
