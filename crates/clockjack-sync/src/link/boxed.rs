//! Plain values as nodes, each in its own box, so that the user needs no unsafe code.
#![expect(unsafe_code, reason = "implements `Linked` for boxed nodes")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, ptr::NonNull};

use super::{Link, Linked};

/// Boxed values as nodes of a queue: the handle is a `Box<Node<T>>`.
pub struct Boxed<T>(PhantomData<fn(T) -> T>);

/// A value with its link.
#[repr(C)]
pub struct Node<T> {
    link: Link,
    value: T,
}

impl<T> Node<T> {
    /// A value, ready to be pushed.
    pub fn new(value: T) -> Box<Self> {
        Box::new(Self { link: Link::new(), value })
    }

    /// The value alone.
    pub fn into_value(self) -> T {
        self.value
    }
}

// SAFETY: a box owns its node alone and keeps it in place while it is leaked (1, 2); two boxes
// never share memory, and a node is not zero-sized (3). `link` is the first field of a `repr(C)`
// struct, so the casts are right both ways, and the pointer was derived from the whole node.
// Nothing panics.
unsafe impl<T> Linked for Boxed<T> {
    type Handle = Box<Node<T>>;

    #[inline]
    fn into_link(handle: Box<Node<T>>) -> NonNull<Link> {
        NonNull::from(Box::leak(handle)).cast()
    }

    #[inline]
    unsafe fn from_link(link: NonNull<Link>) -> Box<Node<T>> {
        // SAFETY: the caller passes a link that `into_link` made from a leaked box, once.
        unsafe { Box::from_raw(link.cast().as_ptr()) }
    }
}

impl<T> fmt::Debug for Boxed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Boxed").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Node").field(&self.value).finish()
    }
}
