//! Intrusive nodes: nodes that carry their own link, and a private list of them.
//!
//! An intrusive queue allocates nothing: the node contains the one word that the queue needs. An
//! implementation of [`Linked`] says what owns the memory of the node: a box, a pool or a static.
#![expect(unsafe_code, reason = "follows the pointers that `Linked` promises to be valid")]

#[cfg(feature = "alloc")]
mod boxed;

use core::{
    fmt,
    marker::PhantomData,
    ptr::{self, NonNull},
};

#[cfg(feature = "alloc")]
pub use boxed::{Boxed, Node};

use crate::{
    const_unless_loom,
    primitive::atomic::{AtomicPtr, Ordering::Relaxed},
};

/// The link of a node in a queue, one word; embed one in each node.
///
/// A node is in at most one queue at a time, because a queue takes the node's handle by value.
pub struct Link {
    pub(crate) next: AtomicPtr<Link>,
}

impl Link {
    const_unless_loom! {
        /// A link that is in no queue.
        #[must_use]
        pub const fn new() -> Self {
            Self { next: AtomicPtr::new(ptr::null_mut()) }
        }
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// How an owning handle becomes a [`Link`] in a queue, and a handle again.
///
/// The implementing type is only a name for this pair of conversions; often it is the node itself.
///
/// # Safety
///
/// From [`into_link`](Self::into_link) until [`from_link`](Self::from_link) for the same link:
///
/// 1. the link stays where it is, valid for shared access by any thread;
/// 2. only the queue uses it: no other handle to the same node is turned into a link, and the node
///    is neither moved nor freed;
/// 3. `into_link` of two handles that live at the same time returns two different links.
///
/// Neither conversion panics, and neither allocates, blocks or calls back into the queue: they run
/// between the steps of a protocol, perhaps in an interrupt.
///
/// # Examples
///
/// A boxed node:
///
/// ```
/// use std::ptr::NonNull;
///
/// use clockjack_sync::link::{Link, Linked};
///
/// #[repr(C)] // the link first, so that its address is the address of the job
/// struct Job {
///     link: Link,
///     number: u32,
/// }
///
/// // SAFETY: a box owns its node alone and keeps it in place; the pointer covers the whole node,
/// // so it can be turned back.
/// unsafe impl Linked for Job {
///     type Handle = Box<Job>;
///
///     fn into_link(job: Box<Job>) -> NonNull<Link> {
///         NonNull::from(Box::leak(job)).cast()
///     }
///
///     unsafe fn from_link(link: NonNull<Link>) -> Box<Job> {
///         // SAFETY: the caller passes a link that `into_link` made, once.
///         unsafe { Box::from_raw(link.cast().as_ptr()) }
///     }
/// }
/// # let job = Box::new(Job { link: Link::new(), number: 1 });
/// # let link = Job::into_link(job);
/// # assert_eq!(unsafe { Job::from_link(link) }.number, 1);
/// ```
pub unsafe trait Linked {
    /// The owner of a node outside of a queue.
    type Handle;

    /// Passes the node to a queue. The pointer must have been derived so that
    /// [`from_link`](Self::from_link) may reach the whole node through it, not only the link.
    fn into_link(handle: Self::Handle) -> NonNull<Link>;

    /// Takes the node back from a queue.
    ///
    /// # Safety
    ///
    /// `link` came from [`into_link`](Self::into_link) of this implementation, was not turned back
    /// since, and no code will use it as a link any more.
    unsafe fn from_link(link: NonNull<Link>) -> Self::Handle;
}

/// A list of nodes that one thread owns, for pushing and for taking a batch.
///
/// First in, first out. Dropping the list drops the nodes that are left in it.
pub struct Batch<N: Linked> {
    /// Null exactly if `len` is zero. The list is `len` links long; the link of the last is stale.
    first: *mut Link,
    last: *mut Link,
    len: usize,
    _owns: PhantomData<N::Handle>,
}

// SAFETY: the list owns its nodes, so sending it sends handles and nothing else.
unsafe impl<N: Linked> Send for Batch<N> where N::Handle: Send {}
// SAFETY: `&Batch` gives no access to a node.
unsafe impl<N: Linked> Sync for Batch<N> {}

impl<N: Linked> Batch<N> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), len: 0, _owns: PhantomData }
    }

    /// Appends a node.
    pub fn push(&mut self, handle: N::Handle) {
        self.push_link(N::into_link(handle));
    }

    /// Takes the first node.
    pub fn pop(&mut self) -> Option<N::Handle> {
        let link = NonNull::new(self.first)?;
        self.len -= 1;
        self.first = if self.len == 0 {
            ptr::null_mut()
        } else {
            // SAFETY: the list owns the node (`Linked`, 1 and 2), so its link is valid.
            let link = unsafe { link.as_ref() };
            // Relaxed: this thread wrote the link, or got the list from the thread that did.
            link.next.load(Relaxed)
        };
        // SAFETY: the link came from `into_link`, and the list does not contain it any more.
        Some(unsafe { N::from_link(link) })
    }

    /// The number of nodes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn push_link(&mut self, link: NonNull<Link>) {
        if let Some(last) = NonNull::new(self.last).filter(|_| self.len > 0) {
            // SAFETY: the list owns the node (`Linked`, 1 and 2), so its link is valid.
            let last = unsafe { last.as_ref() };
            // Relaxed: only this thread sees the list; a queue publishes it by its own store.
            last.next.store(link.as_ptr(), Relaxed);
        } else {
            self.first = link.as_ptr();
        }
        self.last = link.as_ptr();
        self.len += 1;
    }

    /// The first and the last link of a non-empty list; the caller owns the nodes from then on.
    pub(crate) fn into_ends(self) -> Option<(NonNull<Link>, NonNull<Link>)> {
        let list = core::mem::ManuallyDrop::new(self);
        if list.len == 0 {
            return None;
        }
        NonNull::new(list.first).zip(NonNull::new(list.last))
    }
}

impl<N: Linked> Default for Batch<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N: Linked> Iterator for Batch<N> {
    type Item = N::Handle;

    fn next(&mut self) -> Option<N::Handle> {
        self.pop()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<N: Linked> ExactSizeIterator for Batch<N> {}

impl<N: Linked> core::iter::FusedIterator for Batch<N> {}

impl<N: Linked> Extend<N::Handle> for Batch<N> {
    fn extend<I: IntoIterator<Item = N::Handle>>(&mut self, handles: I) {
        handles.into_iter().for_each(|handle| self.push(handle));
    }
}

impl<N: Linked> FromIterator<N::Handle> for Batch<N> {
    fn from_iter<I: IntoIterator<Item = N::Handle>>(handles: I) -> Self {
        let mut list = Self::new();
        list.extend(handles);
        list
    }
}

impl<N: Linked> Drop for Batch<N> {
    /// Drops every node, also if the drop of one panics.
    fn drop(&mut self) {
        struct DropRemaining<'a, N: Linked>(&'a mut Batch<N>);
        impl<N: Linked> Drop for DropRemaining<'_, N> {
            fn drop(&mut self) {
                self.0.by_ref().for_each(drop);
            }
        }
        let remaining = DropRemaining(self);
        remaining.0.by_ref().for_each(drop);
    }
}

impl<N: Linked> fmt::Debug for Batch<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len).finish_non_exhaustive()
    }
}
