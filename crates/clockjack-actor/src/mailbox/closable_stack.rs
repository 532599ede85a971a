//! A closable Treiber stack that many producers push to and one consumer drains by one swap; and
//! nodes that are allocated once and pushed many times.
//!
//! The stack knows nothing about actors; the nodes and their contents are defined by the [system
//! queue](crate::mailbox::system_queue).
//!
//! # Protocol of the stack
//!
//! Roles: *producers*, any number, and the *runner*, the only consumer.
//!
//! 1. A producer writes the head that it has read into the link of its node, and then exchanges the
//!    head from that value to its node by a compare-and-swap. It retries if another producer was
//!    faster. If it reads CLOSED, the push is refused and the producer keeps the node.
//! 2. The runner takes the whole list by one swap with null and reverses it. Only the runner
//!    removes nodes. So the link that a producer has written is correct whenever its
//!    compare-and-swap succeeds, even if the old head was taken and pushed again in between (the
//!    ABA problem does not arise).
//! 3. In the end the runner swaps in CLOSED and gets everything that was accepted before; nothing
//!    is accepted after that. So one word decides between accepted and refused.
//!
//! # Protocol of a reusable node
//!
//! A *reusable node* belongs to its producer and exists before there is anything to send, so
//! sending allocates nothing. It is *free* or *linked*, and has contents; a small lock protects
//! both.
//!
//! ```text
//!            put; push on the stack             put: merged into the contents
//!     free ────────────────────────► linked ◄──────────────────────┐
//!      ▲                              │ └──────────────────────────┘
//!      └── link read; contents taken ─┘   or refused: contents taken
//! ```
//!
//! 4. A producer puts something into the contents and marks the node as linked, in one critical
//!    section. If the node was free, the producer pushes it after that, by rule 1: until then the
//!    link is its own. If the node was linked, the runner has not come to it yet, and will also
//!    find what was put there.
//! 5. The runner first reads the link of a node. Then it takes the contents and marks the node as
//!    free, in one critical section. From there on a producer may push it again, possibly on the
//!    same stack.
//! 6. If the stack refuses the node, the producer takes the contents back and marks the node as
//!    free. Other producers that have merged something in between do not learn of it. So either a
//!    node has one producer at a time, or its contents do not matter once the stack is closed.
//! 7. A producer that pushes a node keeps its memory alive until the runner has left the critical
//!    section of rule 5 or the producer that of rule 6: by a reference in the contents, or by a
//!    reference count that the runner releases.
//!
//! *Why it does not deadlock*: nobody holds the lock for longer than it takes to move the contents,
//! and no user value is dropped inside. *Why nothing is lost*: a producer that finds the node
//! linked has entered the lock before the runner did in rule 5, so the runner takes what the
//! producer has put; otherwise the producer would have found the node free.
#![expect(unsafe_code, reason = "follows the links of a lock-free list")]

use core::{fmt, ptr, ptr::NonNull};

use clockjack_sync::{
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicPtr,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
    },
    spin_lock::SpinLock,
};

/// The first field of all nodes.
#[repr(C)]
pub(crate) struct Link {
    next: UnsafeCell<*mut Link>,
    /// The kind of the node; the stack does not use it.
    kind: u8,
}

impl Link {
    pub(crate) fn new(kind: u8) -> Self {
        Self { next: UnsafeCell::new(ptr::null_mut()), kind }
    }
}

/// The head of the stack; see the [module](self).
pub(crate) struct ClosableStack {
    head: AtomicPtr<Link>,
}

/// The head of a closed stack. Never dereferenced.
fn closed() -> *mut Link {
    ptr::without_provenance_mut(usize::MAX)
}

/// The stack is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Closed;

impl ClosableStack {
    pub(crate) fn new() -> Self {
        Self { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Pushes a node (rule 1).
    ///
    /// # Safety
    ///
    /// The caller owns the node, which is on no stack; it stays where it is until the runner has
    /// it.
    pub(crate) unsafe fn push(&self, node: NonNull<Link>) -> Result<(), Closed> {
        // Acquire: a producer that is refused may read what was published before the close.
        let mut seen = self.head.load(Acquire);
        loop {
            if seen == closed() {
                return Err(Closed);
            }
            // SAFETY: the caller owns the node until the compare-and-swap succeeds.
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

    /// Takes all nodes (rule 2). For the runner.
    pub(crate) fn take(&self) -> Nodes {
        // Relaxed: a hint; a producer announces its node elsewhere.
        if self.head.load(Relaxed).is_null() {
            return Nodes(ptr::null_mut());
        }
        // Acquire: pairs with the compare-and-swaps of the producers.
        Nodes::reversed(self.head.swap(ptr::null_mut(), AcqRel))
    }

    /// Accepts nothing from here on, and takes all nodes (rule 3). For the runner.
    pub(crate) fn close(&self) -> Nodes {
        // Release: a producer that is refused sees what was published before the close.
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

/// The nodes that were taken off a stack, oldest first. They belong to the thread that has taken
/// them; a reusable node does so until its contents are taken, and its link is read before that.
pub(crate) struct Nodes(*mut Link);

impl Nodes {
    fn reversed(mut newest: *mut Link) -> Self {
        let mut next = ptr::null_mut();
        if newest == closed() {
            newest = ptr::null_mut();
        }
        while let Some(node) = NonNull::new(newest) {
            // SAFETY: the runner has taken the list, so it owns the links of its nodes.
            let link = unsafe { &node.as_ref().next };
            // SAFETY: as above.
            newest = link.with_mut(|link| unsafe { core::mem::replace(&mut *link, next) });
            next = node.as_ptr();
        }
        Self(next)
    }

    /// The next node and its kind. Its successor is read before the node is used (rule 5).
    pub(crate) fn pop(&mut self) -> Option<(NonNull<Link>, u8)> {
        let node = NonNull::new(self.0)?;
        // SAFETY: this iterator owns the list.
        let link = unsafe { node.as_ref() };
        // SAFETY: as above.
        self.0 = link.next.with(|next| unsafe { *next });
        Some((node, link.kind))
    }
}

/// A node that is allocated once and pushed many times; see the [module](self).
#[repr(C)]
pub(crate) struct ReusableNode<T> {
    link: Link,
    contents: SpinLock<Contents<T>>,
}

struct Contents<T> {
    is_linked: bool,
    value: T,
}

/// The result of putting something into a reusable node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NodePush<T> {
    /// The node is on the stack, which takes over what the caller has kept alive for it.
    Linked,
    /// The node was on the stack already.
    Merged,
    /// The stack is closed: returns the contents.
    Refused(T),
}

// SAFETY: the lock transfers the contents between threads. The link belongs to the thread that has
// changed the mark (rules 4 and 5), which the lock protects too, and then to the runner of the
// stack, by the compare-and-swaps of the stack.
unsafe impl<T: Send> Send for ReusableNode<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ReusableNode<T> {}

impl<T: Default> ReusableNode<T> {
    pub(crate) fn new(kind: u8) -> Self {
        Self {
            link: Link::new(kind),
            contents: SpinLock::new(Contents { is_linked: false, value: T::default() }),
        }
    }

    /// Puts something into the contents and makes sure that the runner of the stack finds it (rule
    /// 4).
    ///
    /// # Safety
    ///
    /// The node exists and stays where it is until its contents are taken, or until this returns
    /// something else than [`NodePush::Linked`]. The runner of the stack treats nodes of its kind
    /// as such nodes.
    pub(crate) unsafe fn send(
        this: NonNull<Self>,
        stack: &ClosableStack,
        put: impl FnOnce(&mut T),
    ) -> NodePush<T> {
        // SAFETY: by the contract it exists; only shared borrows of it are ever made.
        let contents = unsafe { &(*this.as_ptr()).contents };
        let was_linked = contents.with(|contents| {
            put(&mut contents.value);
            core::mem::replace(&mut contents.is_linked, true)
        });
        if was_linked {
            return NodePush::Merged;
        }
        // SAFETY: the node was free, so this caller owns its link, which is its first field.
        match unsafe { stack.push(this.cast()) } {
            Ok(()) => NodePush::Linked,
            Err(Closed) => NodePush::Refused(contents.with(Contents::take)),
        }
    }

    /// Takes the contents; from here on the node is free, and may be deallocated (rule 5). For the
    /// runner.
    ///
    /// # Safety
    ///
    /// The node is such a reusable node, and was [popped](Nodes::pop) off a stack. What keeps its
    /// memory alive is in the contents, or else is released by the caller after this.
    pub(crate) unsafe fn take(node: NonNull<Link>) -> T {
        // SAFETY: by the contract.
        let contents = unsafe { &(*node.cast::<Self>().as_ptr()).contents };
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
