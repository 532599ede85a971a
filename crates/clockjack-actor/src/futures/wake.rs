//! Which of an actor's futures were woken: a bell for each, and a board that they hang on.
//!
//! # Protocol
//!
//! Roles: *ringers*, any number, who have a reference to a bell, and the *runner*, the one that
//! steps the actor.
//!
//! ```text
//!   bell    state [ DONE | QUEUED ]   link
//!   board   list ─► bell ─► bell ─► null       or CLOSED
//! ```
//!
//! 1. A ringer raises QUEUED by a read-modify-write, also if it is up: so what it did before is seen
//!    by the poll that the bell leads to. If nothing was up, it is the one that hangs the bell on
//!    the list, with a reference, by a compare-exchange, and then notifies the owner.
//! 2. The link of a bell is written by the one who has hung it up, and read by the runner when it
//!    takes the list, both while QUEUED is up. So nobody else touches it.
//! 3. The runner takes the whole list by one swap. It takes QUEUED down before it polls the future of
//!    the bell, by a read-modify-write: who rings during the poll hangs the bell up again.
//! 4. When its future is gone the runner raises DONE. From then on ringing does nothing; a bell
//!    that hangs is dropped when it is found.
//! 5. A bell serves another future only if nobody but the runner has a reference to it.
//! 6. At the end of the actor the runner swaps in CLOSED: a ringer that comes too late lets go of
//!    its bell. Otherwise board and bell would hold one another for ever.
//!
//! *Why no ring is lost*: of a ring and the runner's taking down of QUEUED one comes first. If the
//! ring does, the poll comes after it; else the ringer finds nothing up and hangs up the bell.
//! *Why nobody hangs*: a ringer repeats its exchange only if another bell was faster.
#![expect(unsafe_code, reason = "counts the references to a flag, and owns those on the list")]

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

const QUEUED: u32 = 1;
const DONE: u32 = 1 << 1;

/// The owner of a board, who wants to know when a bell was hung up.
pub(crate) trait Notify {
    /// Something hangs on the board.
    fn notify(&self);
}

/// Where bells that were rung hang; see the [module](self).
pub(crate) struct WokenList<N> {
    list: AtomicPtr<WakeFlag<N>>,
    owner: N,
}

/// What a waker rings.
pub(crate) struct WakeFlag<N> {
    count: AtomicUsize,
    state: AtomicU32,
    /// Whose it is: written by the runner while it alone has the bell.
    label: AtomicU32,
    link: UnsafeCell<*mut WakeFlag<N>>,
    woken: Counted<WokenList<N>>,
}

/// A counted reference to a bell.
pub(crate) struct WakeFlagRef<N>(NonNull<WakeFlag<N>>);

// SAFETY: the link is touched by one thread at a time (rule 2), the owner by all who ring (`Sync`)
// and dropped by who lets go last (`Send`); the rest is atomic.
unsafe impl<N: Send + Sync> Send for WakeFlagRef<N> {}
// SAFETY: as above.
unsafe impl<N: Send + Sync> Sync for WakeFlagRef<N> {}

/// Marks a board that takes no bell any more. Never followed.
fn closed<N>() -> *mut WakeFlag<N> {
    ptr::without_provenance_mut(usize::MAX)
}

impl<N> WokenList<N> {
    pub(crate) fn new(owner: N) -> Self {
        Self { list: AtomicPtr::new(ptr::null_mut()), owner }
    }

    /// Hangs up a bell that the caller has rung; false if that is too late.
    fn push(&self, flag: WakeFlagRef<N>) -> bool {
        let raw = flag.0.as_ptr();
        // Relaxed: the exchange decides.
        let mut seen = self.list.load(Relaxed);
        loop {
            if seen == closed() && !mutant!("actor-bell-no-end") {
                return false;
            }
            flag.link.with_mut(|link| {
                // SAFETY: by rule 2 the link is the caller's, who has raised QUEUED.
                unsafe { *link = seen };
            });
            // Release: pairs with the swap of the runner, which reads the link.
            let order = if mutant!("actor-bell-relaxed-hang") { Relaxed } else { Release };
            match self.list.compare_exchange_weak(seen, raw, order, Relaxed) {
                Ok(_) => {
                    // The list has the reference now.
                    core::mem::forget(flag);
                    return true;
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Takes the bells that hang, that which was rung first at the front. For the runner.
    pub(crate) fn take(&self, mut each: impl FnMut(WakeFlagRef<N>)) {
        // Acquire: pairs with `hang`.
        Self::each(self.list.swap(ptr::null_mut(), AcqRel), &mut each);
    }

    /// Takes no bell from here on. For the runner, at the end.
    pub(crate) fn close(&self) {
        // Acquire: pairs with `hang`.
        Self::each(self.list.swap(closed(), AcqRel), &mut drop);
    }

    fn each(mut newest: *mut WakeFlag<N>, each: &mut dyn FnMut(WakeFlagRef<N>)) {
        if newest == closed() {
            return;
        }
        let mut oldest: *mut WakeFlag<N> = ptr::null_mut();
        while let Some(flag) = NonNull::new(newest) {
            // SAFETY: the list has a reference to each bell on it, and the runner has the list.
            let flag = unsafe { flag.as_ref() };
            let next = flag.link.with_mut(|link| {
                // SAFETY: by rule 2 the link of a bell that was taken is the runner's.
                unsafe { core::mem::replace(&mut *link, oldest) }
            });
            oldest = newest;
            newest = next;
        }
        while let Some(raw) = NonNull::new(oldest) {
            let flag = WakeFlagRef(raw);
            oldest = flag.link.with_mut(|link| {
                // SAFETY: as above.
                unsafe { *link }
            });
            each(flag);
        }
    }
}

impl<N> WakeFlag<N> {
    /// Whose it is.
    pub(crate) fn label(&self) -> u32 {
        // Relaxed: who has a reference got it after the label was written.
        self.label.load(Relaxed)
    }

    pub(crate) fn owner(&self) -> &N {
        &self.woken.owner
    }

    /// Before the poll: whoever rings from here on leads to another one. False if the future is
    /// gone. For the runner.
    pub(crate) fn clear_queued(&self) -> bool {
        // Acquire: pairs with `ring`, whoever rang. Release: the link was read before this.
        self.state.fetch_and(!QUEUED, AcqRel) & DONE == 0
    }

    /// Its future is gone. For the runner.
    pub(crate) fn set_done(&self) {
        // Relaxed: nothing is published; who rings meanwhile rings for nobody.
        self.state.fetch_or(DONE, Relaxed);
    }

    /// Whether its future is gone.
    pub(crate) fn is_done(&self) -> bool {
        // Relaxed: only the runner raises it, and only the runner asks.
        self.state.load(Relaxed) & DONE != 0
    }
}

impl<N> WakeFlagRef<N> {
    /// A bell that counts as rung, and does not hang: the runner has it in its hands.
    pub(crate) fn new_queued(woken: Counted<WokenList<N>>, label: u32) -> Self {
        let flag = Box::new(WakeFlag {
            count: AtomicUsize::new(1),
            state: AtomicU32::new(QUEUED),
            label: AtomicU32::new(label),
            link: UnsafeCell::new(ptr::null_mut()),
            woken,
        });
        Self(NonNull::from(Box::leak(flag)))
    }

    /// The same for another future, if nobody else has it. For the runner.
    pub(crate) fn reuse(self, label: u32) -> Option<Self> {
        // Acquire: pairs with the drops of all others. One stays one, for nobody can clone it.
        if self.count.load(Acquire) != 1 && !mutant!("actor-bell-renewed-in-use") {
            return None;
        }
        // Relaxed: nobody else has it.
        self.label.store(label, Relaxed);
        self.state.store(QUEUED, Relaxed);
        Some(self)
    }

    /// Makes the runner poll the future of this bell.
    pub(crate) fn wake(&self)
    where
        N: Notify,
    {
        // Relaxed: a hint that only the planted fault believes.
        if mutant!("actor-bell-ring-unseen") && self.state.load(Relaxed) & QUEUED != 0 {
            return;
        }
        // Release: what was done before it; pairs with `clear_queued`. Acquire: the link comes after
        // the runner's look at it.
        if self.state.fetch_or(QUEUED, AcqRel) == 0 && self.woken.push(self.clone()) {
            self.woken.owner.notify();
        }
    }

    pub(crate) fn into_raw(self) -> NonNull<WakeFlag<N>> {
        let raw = self.0;
        core::mem::forget(self);
        raw
    }

    pub(crate) fn as_raw(&self) -> NonNull<WakeFlag<N>> {
        self.0
    }

    /// # Safety
    ///
    /// The address came from [`into_raw`](Self::into_raw), and its count is given away.
    pub(crate) unsafe fn from_raw(raw: NonNull<WakeFlag<N>>) -> Self {
        Self(raw)
    }
}

impl<N> Deref for WakeFlagRef<N> {
    type Target = WakeFlag<N>;

    fn deref(&self) -> &WakeFlag<N> {
        // SAFETY: it came from a box, which the count keeps; only shared borrows are made.
        unsafe { self.0.as_ref() }
    }
}

impl<N> Clone for WakeFlagRef<N> {
    fn clone(&self) -> Self {
        // Relaxed: made from one that keeps the bell alive.
        let before = self.count.fetch_add(1, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many wakers of one future");
        Self(self.0)
    }
}

impl<N> Drop for WakeFlagRef<N> {
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
