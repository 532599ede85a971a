//! A list that many hang something on and one takes whole, and nodes that are made once and hung
//! up many times.
//!
//! It knows nothing of actors; what the nodes carry is the affair of [`notes`](crate::system_queue).
//!
//! # Protocol of the lane
//!
//! Roles: *senders*, any number, and the *runner*, the one that takes.
//!
//! 1. A sender hangs its node on the head by a compare-exchange from what it saw to its node, whose
//!    link it has set to what it saw. It repeats if another was faster, and gives up, with the node
//!    in its hands, if it sees CLOSED.
//! 2. The runner takes the whole list by one swap with null and turns it round. Nobody else takes
//!    from the head, so the link that a sender has written is right whenever its exchange succeeds,
//!    also if what it saw was taken and hung up again meanwhile.
//! 3. When all is over the runner swaps in CLOSED, and has everything that was accepted; after that
//!    nothing is. So accepted and refused are told apart by one word.
//!
//! # Protocol of a post
//!
//! A *post* is a node that belongs to whoever sends by it, and is there before there is anything to
//! send: so to send needs no memory. It is *free* or *hung*, and beside that it has a load; both
//! stand under one small lock.
//!
//! ```text
//!            put; hang on the lane              put: joins the load
//!     free ────────────────────────► hung ◄───────────────────────┐
//!      ▲                              │ └──────────────────────────┘
//!      └── link read; load taken ─────┘   or refused: load taken
//! ```
//!
//! 4. A sender puts something into the load and marks the post as hung, in one entry of the lock.
//!    If it was free, the sender hangs it up after that, by rule 1: the link is its own until then.
//!    If it was hung, the runner has not come to it, and will find what was put there too.
//! 5. The runner reads the link of a post first. Then it takes the load and marks the post as free,
//!    in one entry of the lock. From there on a sender may hang it up again, on a lane that may
//!    well be the same one.
//! 6. If the lane refuses it, the sender takes the load back and marks the post as free. Others who
//!    have joined meanwhile do not learn of it: so either a post has one sender at a time, or its
//!    load does not matter once the lane is closed.
//! 7. Who hangs a post up keeps its memory, until the runner has left the lock of rule 5 or the
//!    sender that of rule 6: by something in the load, or by a count that the runner gives back.
//!
//! *Why it cannot hang*: nobody holds the lock for longer than to move a load, and no user's value
//! is dropped inside. *Why nothing is lost*: who finds the post hung has entered the lock before
//! the runner did, or else it had found it free.
#![expect(unsafe_code, reason = "follows the links of a lock-free list")]

use core::{fmt, ptr, ptr::NonNull};

use clockjack_sync::{
    lock::Lock,
    mutant,
    prim::{
        UnsafeCell,
        atomic::{
            AtomicPtr,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
};

/// What all nodes begin with.
#[repr(C)]
pub(crate) struct Link {
    next: UnsafeCell<*mut Link>,
    /// What kind of node it is; nothing to the lane.
    kind: u8,
}

impl Link {
    pub(crate) fn new(kind: u8) -> Self {
        Self { next: UnsafeCell::new(ptr::null_mut()), kind }
    }
}

/// The head of a list; see the [module](self).
pub(crate) struct ClosableStack {
    head: AtomicPtr<Link>,
}

/// Marks a lane that accepts nothing any more. Never followed.
fn closed() -> *mut Link {
    ptr::without_provenance_mut(usize::MAX)
}

/// The lane is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl ClosableStack {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Hangs a node on the lane (rule 1).
    ///
    /// # Safety
    ///
    /// The node is the caller's, and on no lane; it stays where it is until the runner has it.
    pub(crate) unsafe fn push(&self, node: NonNull<Link>) -> Result<(), Closed> {
        // Acquire: a sender that is refused may go on to what the end has published.
        let mut seen = self.head.load(Acquire);
        loop {
            if seen == closed() {
                return Err(Closed);
            }
            // SAFETY: the node is the caller's until the exchange succeeds.
            let link = unsafe { &node.as_ref().next };
            // SAFETY: as above.
            link.with_mut(|next| unsafe { *next = seen });
            // Release: pairs with the swap of the runner, which then reads the node.
            match self.head.compare_exchange_weak(seen, node.as_ptr(), Release, Acquire) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Takes everything that has come (rule 2). For the runner.
    pub(crate) fn take(&self) -> Nodes {
        // Relaxed: a hint; who has hung something up says so elsewhere.
        if self.head.load(Relaxed).is_null() {
            return Nodes(ptr::null_mut());
        }
        // Acquire: pairs with the exchanges of the senders.
        Nodes::reversed(self.head.swap(ptr::null_mut(), AcqRel))
    }

    /// Accepts nothing from here on, and gives what has come before (rule 3). For the runner.
    pub(crate) fn close(&self) -> Nodes {
        // Release: a sender that is refused sees what the end has published.
        Nodes::reversed(self.head.swap(closed(), AcqRel))
    }
}

impl Drop for ClosableStack {
    fn drop(&mut self) {
        let head = self.head.load(Relaxed);
        debug_assert!(
            head.is_null() || head == closed(),
            "what hangs on a stack outlived its runner"
        );
    }
}

impl fmt::Debug for ClosableStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClosableStack").finish_non_exhaustive()
    }
}

/// What was taken off a lane, oldest first. The nodes are those of the one that has taken them; a
/// post is so until it is emptied, and its link was read before that.
pub(crate) struct Nodes(*mut Link);

impl Nodes {
    fn reversed(mut newest: *mut Link) -> Self {
        let mut next = ptr::null_mut();
        if newest == closed() {
            newest = ptr::null_mut();
        }
        while let Some(node) = NonNull::new(newest) {
            // SAFETY: the runner has taken the list, so the links of its nodes are its own.
            let link = unsafe { &node.as_ref().next };
            // SAFETY: as above.
            newest = link.with_mut(|link| unsafe { core::mem::replace(&mut *link, next) });
            next = node.as_ptr();
        }
        Self(next)
    }

    /// The next node and its kind. Before it is used, what comes after it is known (rule 5).
    pub(crate) fn pop(&mut self) -> Option<(NonNull<Link>, u8)> {
        let node = NonNull::new(self.0)?;
        // SAFETY: the list is this one's own.
        let link = unsafe { node.as_ref() };
        // SAFETY: as above.
        self.0 = link.next.with(|next| unsafe { *next });
        Some((node, link.kind))
    }
}

/// A node that is made once and sent by many times; see the [module](self).
#[repr(C)]
pub(crate) struct ReusableNode<T> {
    link: Link,
    contents: Lock<Contents<T>>,
}

struct Contents<T> {
    is_linked: bool,
    value: T,
}

/// What became of something that was put into a post.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NodePush<T> {
    /// The post hangs on the lane: what the caller has kept of it is the lane's.
    Linked,
    /// It was there already.
    Merged,
    /// The lane is closed: the load comes back.
    Refused(T),
}

// SAFETY: the load is handed from thread to thread by the lock; the link belongs to whoever has
// changed the mark (rules 4 and 5), which is under the lock too, and then to the lane's runner, by
// the lane's exchanges.
unsafe impl<T: Send> Send for ReusableNode<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ReusableNode<T> {}

impl<T: Default> ReusableNode<T> {
    pub(crate) fn new(kind: u8) -> Self {
        Self {
            link: Link::new(kind),
            contents: Lock::new(Contents { is_linked: false, value: T::default() }),
        }
    }

    /// Puts something into the load and sees to it that the runner of the lane finds it (rule 4).
    ///
    /// # Safety
    ///
    /// The post is there, and stays where it is until it is emptied, or this returns something else
    /// than [`NodePush::Linked`]. The runner of the lane knows nodes of its kind as such posts.
    pub(crate) unsafe fn send(
        this: NonNull<Self>,
        stack: &ClosableStack,
        put: impl FnOnce(&mut T),
    ) -> NodePush<T> {
        // SAFETY: by the contract it is there; only shared borrows of it are ever made.
        let contents = unsafe { &(*this.as_ptr()).contents };
        let was_linked = contents.with(|contents| {
            put(&mut contents.value);
            core::mem::replace(&mut contents.is_linked, true)
        });
        if was_linked && !mutant!("post-hangs-twice") {
            return NodePush::Merged;
        }
        // SAFETY: it was free, so its link is this caller's, and it begins with that.
        match unsafe { stack.push(this.cast()) } {
            Ok(()) => NodePush::Linked,
            Err(Closed) => NodePush::Refused(contents.with(Contents::take)),
        }
    }

    /// Takes the load; the post is free from here on, and may be gone (rule 5). For the runner.
    ///
    /// # Safety
    ///
    /// The node is such a post, and was [popped](Nodes::pop) off a lane. What keeps its memory is
    /// in the load, or else comes back to the caller, who lets go of it after this.
    pub(crate) unsafe fn take(node: NonNull<Link>) -> T {
        // SAFETY: by the contract.
        let contents = unsafe { &(*node.cast::<Self>().as_ptr()).contents };
        if mutant!("post-freed-late") {
            let value = contents.with(|contents| core::mem::take(&mut contents.value));
            contents.with(|contents| contents.is_linked = false);
            return value;
        }
        contents.with(Contents::take)
    }
}

impl<T: Default> Contents<T> {
    fn take(&mut self) -> T {
        self.is_linked = false;
        core::mem::take(&mut self.value)
    }
}

impl<T> fmt::Debug for ReusableNode<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReusableNode").finish_non_exhaustive()
    }
}
