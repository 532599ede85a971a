//! Nodes that are allocated once and pushed many times, for the stack of the [system
//! queue](crate::mailbox::system_queue), which also defines the kinds of nodes and their contents.
//!
//! The stack is a [`ClosableStack`]; that module has its protocol. Its producers are any threads,
//! and its only consumer is the *runner* of the actor.
//!
//! # Protocol
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
//! 1. A producer puts something into the contents and marks the node as linked, in one critical
//!    section. If the node was free, the producer pushes it after that: until then the link is its
//!    own. If the node was linked, the runner has not come to it yet, and will also find what was
//!    put there.
//! 2. The runner first reads the link of a node. Then it takes the contents and marks the node as
//!    free, in one critical section. From there on a producer may push it again, possibly on the
//!    same stack.
//! 3. If the stack refuses the node, the producer takes the contents back and marks the node as
//!    free. Other producers that have merged something in between do not learn of it. So either a
//!    node has one producer at a time, or its contents do not matter once the stack is closed.
//! 4. A producer that pushes a node keeps its memory alive until the runner has left the critical
//!    section of rule 2 or the producer that of rule 3: by a reference in the contents, or by a
//!    reference count that the runner releases.
//!
//! *Why it does not deadlock*: nobody holds the lock for longer than it takes to move the contents,
//! and no user value is dropped inside. *Why nothing is lost*: a producer that finds the node
//! linked has entered the lock before the runner did in rule 2, so the runner takes what the
//! producer has put; otherwise the producer would have found the node free.
#![expect(unsafe_code, reason = "pushes nodes on a lock-free list by their addresses")]

use core::{fmt, ptr::NonNull};

use clockjack_sync::{
    link::{Link, Linked},
    spin_lock::SpinLock,
    stack::ClosableStack,
};

/// The first field of all nodes.
#[repr(C)]
pub(crate) struct NodeHead {
    link: Link,
    /// The kind of the node; the stack does not use it.
    kind: u8,
}

impl NodeHead {
    pub(crate) fn new(kind: u8) -> Self {
        Self { link: Link::new(), kind }
    }
}

/// A stack of nodes of several kinds, by their addresses. It does not know how to drop them.
pub(crate) type NodeStack = ClosableStack<NodePtr>;

/// The address of a node that its holder owns, at least as far as its link is concerned.
pub(crate) struct NodePtr(NonNull<NodeHead>);

impl NodePtr {
    /// # Safety
    ///
    /// The address is that of a node that begins with its head, and covers the whole node. The
    /// caller owns the link, and the node is on no stack; it stays where it is until it is drained.
    pub(crate) unsafe fn new(node: NonNull<NodeHead>) -> Self {
        Self(node)
    }

    pub(crate) fn kind(&self) -> u8 {
        // SAFETY: by the contract of `new` the node exists. Only shared borrows of heads are made.
        unsafe { self.0.as_ref() }.kind
    }

    pub(crate) fn cast<T>(&self) -> NonNull<T> {
        self.0.cast()
    }
}

// SAFETY: by the contract of `NodePtr::new` the node stays in place and its link belongs to the
// stack; the link is the first field of the head, and the pointer covers the whole node.
unsafe impl Linked for NodePtr {
    type Handle = Self;

    #[inline]
    fn into_link(node: Self) -> NonNull<Link> {
        node.0.cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Self {
        Self(link.cast())
    }
}

/// A node that is allocated once and pushed many times; see the [module](self).
#[repr(C)]
pub(crate) struct ReusableNode<T> {
    head: NodeHead,
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
// changed the mark (rules 1 and 2), which the lock protects too, and then to the runner of the
// stack, by the compare-and-swaps of the stack.
unsafe impl<T: Send> Send for ReusableNode<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ReusableNode<T> {}

impl<T: Default> ReusableNode<T> {
    pub(crate) fn new(kind: u8) -> Self {
        Self {
            head: NodeHead::new(kind),
            contents: SpinLock::new(Contents { is_linked: false, value: T::default() }),
        }
    }

    /// Puts something into the contents and makes sure that the runner of the stack finds it (rule
    /// 1).
    ///
    /// # Safety
    ///
    /// The node exists and stays where it is until its contents are taken, or until this returns
    /// something else than [`NodePush::Linked`]. The runner of the stack treats nodes of its kind
    /// as such nodes.
    pub(crate) unsafe fn send(
        this: NonNull<Self>,
        stack: &NodeStack,
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
        // SAFETY: the node was free, so this caller owns its head, which is its first field; by the
        // contract it stays where it is.
        match stack.push(unsafe { NodePtr::new(this.cast()) }) {
            Ok(_) => NodePush::Linked,
            Err(_) => NodePush::Refused(contents.with(Contents::take)),
        }
    }

    /// Takes the contents; from here on the node is free, and may be deallocated (rule 2). For the
    /// runner.
    ///
    /// # Safety
    ///
    /// The node is such a reusable node, and was drained off a stack. What keeps its
    /// memory alive is in the contents, or else is released by the caller after this.
    pub(crate) unsafe fn take(node: NodePtr) -> T {
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
