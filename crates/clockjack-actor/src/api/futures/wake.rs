//! Which of an actor's futures were woken: a wake flag per future, and a [closable
//! stack](clockjack_sync::stack) of the flags that are set.
//!
//! # Protocol
//!
//! Roles: *wakers*, on any thread, which own a reference to a wake flag; the *runner*, the thread
//! that polls the actor.
//!
//! ```text
//!   wake flag    state [ DONE | QUEUED ]   link
//!   woken list   head ─► flag ─► flag ─► null       or CLOSED
//! ```
//!
//! 1. A waker sets QUEUED by a read-modify-write, even if it is already set: so the poll that
//!    follows sees everything that the waker did before. If no bit was set, this waker pushes the
//!    flag, with a reference, onto the list, and then notifies the owner.
//! 2. The link of a flag is written by the waker that pushes it, and read by the runner when it
//!    takes the list, both while QUEUED is set. So nobody else accesses it.
//! 3. The runner takes the whole list by one swap. It clears QUEUED by a read-modify-write *before*
//!    it polls the future: a waker that runs during the poll finds QUEUED clear and pushes the flag
//!    again.
//! 4. When the future is gone, the runner sets DONE. From then on a waker does nothing; a flag that
//!    is still on the list is dropped when it is found.
//! 5. A flag is reused for another future only if the runner owns the only reference to it.
//! 6. When the actor stops, the runner swaps in CLOSED: a waker that comes later drops its
//!    reference. Otherwise list and flag would keep each other alive forever.
//!
//! *Why no wake-up is lost*: the waker's read-modify-write that sets QUEUED and the runner's that
//! clears it are totally ordered. If the waker's is first, the poll happens after it and sees what
//! the waker did. If the runner's is first, the waker finds no bit set and pushes the flag, and the
//! future is polled again.
#![expect(unsafe_code, reason = "counts references to wake flags, and owns those on the list")]

use alloc::boxed::Box;
use core::{mem::offset_of, ops::Deref, ptr::NonNull};

use clockjack_sync::{
    Arc,
    link::{Link, Linked},
    primitive::atomic::{
        AtomicU32, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    stack::ClosableStack,
};

const QUEUED: u32 = 1;
const DONE: u32 = 1 << 1;

/// The owner of a list, which is notified when a flag was pushed.
pub(crate) trait Notify {
    /// The list is not empty.
    fn notify(&self);
}

/// The flags of the futures that were woken; see the [module](self).
pub(crate) struct WokenList<N> {
    list: ClosableStack<WakeFlag<N>>,
    owner: N,
}

/// The target of a waker.
pub(crate) struct WakeFlag<N> {
    count: AtomicUsize,
    state: AtomicU32,
    /// Identifies the future: written by the runner while it owns the only reference.
    label: AtomicU32,
    link: Link,
    woken: Arc<WokenList<N>>,
}

/// A counted reference to a wake flag.
pub(crate) struct WakeFlagRef<N>(NonNull<WakeFlag<N>>);

// SAFETY: all wakers access the owner (`Sync`), and the last reference drops it (`Send`); the rest
// is atomic.
unsafe impl<N: Send + Sync> Send for WakeFlagRef<N> {}
// SAFETY: as above.
unsafe impl<N: Send + Sync> Sync for WakeFlagRef<N> {}

// SAFETY: a flag is boxed and stays in place, and the reference that the list owns keeps it alive.
// By rules 1 and 2 only the waker that has set QUEUED pushes it, so it is on the list at most once.
unsafe impl<N> Linked for WakeFlag<N> {
    type Handle = WakeFlagRef<N>;

    #[inline]
    fn into_link(flag: WakeFlagRef<N>) -> NonNull<Link> {
        let raw = flag.into_raw();
        // SAFETY: the flag exists, so the address of its field is in bounds.
        let link = unsafe { &raw mut (*raw.as_ptr()).link };
        // SAFETY: the address of a field of an existing value is not null.
        unsafe { NonNull::new_unchecked(link) }
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> WakeFlagRef<N> {
        // SAFETY: by the contract the link is that of a flag, which begins at this offset before
        // the link.
        let raw = unsafe { link.byte_sub(offset_of!(WakeFlag<N>, link)) };
        WakeFlagRef(raw.cast())
    }
}

impl<N> WokenList<N> {
    pub(crate) fn new(owner: N) -> Self {
        Self { list: ClosableStack::new(), owner }
    }

    /// Takes the flags on the list, the one that was woken first at the front. For the runner.
    pub(crate) fn take(&self, each: impl FnMut(WakeFlagRef<N>)) {
        self.list.drain().for_each(each);
    }

    /// Accepts no flag from here on. For the runner, when the actor stops.
    pub(crate) fn close(&self) {
        drop(self.list.close());
    }
}

impl<N> WakeFlag<N> {
    /// The label.
    pub(crate) fn label(&self) -> u32 {
        // Relaxed: a reference is obtained after the label was written.
        self.label.load(Relaxed)
    }

    pub(crate) fn owner(&self) -> &N {
        &self.woken.owner
    }

    /// Before the poll: a wake-up from here on causes another poll. False if the future is gone.
    /// For the runner.
    pub(crate) fn clear_queued(&self) -> bool {
        // Acquire: pairs with `wake` of any waker. Release: the link was read before this.
        self.state.fetch_and(!QUEUED, AcqRel) & DONE == 0
    }

    /// The future is gone. For the runner.
    pub(crate) fn set_done(&self) {
        // Relaxed: nothing is published; a concurrent wake-up has no effect.
        self.state.fetch_or(DONE, Relaxed);
    }

    /// Whether the future is gone.
    pub(crate) fn is_done(&self) -> bool {
        // Relaxed: only the runner sets it, and only the runner reads it.
        self.state.load(Relaxed) & DONE != 0
    }
}

impl<N> WakeFlagRef<N> {
    /// A flag that is set but not on the list: the runner owns it.
    pub(crate) fn new_queued(woken: Arc<WokenList<N>>, label: u32) -> Self {
        let flag = Box::new(WakeFlag {
            count: AtomicUsize::new(1),
            state: AtomicU32::new(QUEUED),
            label: AtomicU32::new(label),
            link: Link::new(),
            woken,
        });
        Self(NonNull::from(Box::leak(flag)))
    }

    /// The same flag for another future, if there is no other reference to it. For the runner.
    pub(crate) fn reuse(self, label: u32) -> Option<Self> {
        // Acquire: pairs with the drops of all others. A count of one stays one, because nobody
        // else can clone it.
        if self.count.load(Acquire) != 1 {
            return None;
        }
        // Relaxed: there is no other reference.
        self.label.store(label, Relaxed);
        self.state.store(QUEUED, Relaxed);
        Some(self)
    }

    /// Makes the runner poll the future of this flag.
    pub(crate) fn wake(&self)
    where
        N: Notify,
    {
        // Relaxed: a hint that only the injected fault relies on.
        // Release: publishes what the waker did before; pairs with `clear_queued`. Acquire: the
        // runner has read the link before this thread writes it.
        if self.state.fetch_or(QUEUED, AcqRel) == 0 && self.woken.list.push(self.clone()).is_ok() {
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
    /// The address came from [`into_raw`](Self::into_raw), and its reference is passed on.
    pub(crate) unsafe fn from_raw(raw: NonNull<WakeFlag<N>>) -> Self {
        Self(raw)
    }
}

impl<N> Deref for WakeFlagRef<N> {
    type Target = WakeFlag<N>;

    fn deref(&self) -> &WakeFlag<N> {
        // SAFETY: it came from a box, which the count keeps alive; only shared borrows are made.
        unsafe { self.0.as_ref() }
    }
}

impl<N> Clone for WakeFlagRef<N> {
    fn clone(&self) -> Self {
        // Relaxed: cloned from a reference that keeps the flag alive.
        let before = self.count.fetch_add(1, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many wakers of one future");
        Self(self.0)
    }
}

impl<N> Drop for WakeFlagRef<N> {
    fn drop(&mut self) {
        // Release: pairs with the load of the last reference, and with that of `reuse`.
        if self.count.fetch_sub(1, Release) == 1 {
            // Acquire: a load and not a fence, because ThreadSanitizer does not support fences.
            self.count.load(Acquire);
            // SAFETY: it came from a box, and the last reference is gone.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
