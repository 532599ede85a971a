//! Queues on the heap: shared handles, and plain values, each in its own box, so that the user
//! needs no unsafe code.
#![expect(unsafe_code, reason = "implements `Linked` for boxed nodes, makes the only consumer")]

use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, ops::Deref, ptr::NonNull};

use super::{Consumer, Pop, Producer, Queue};
use crate::{
    Arc,
    link::{Link, Linked},
    push_error::PushError,
};

/// Boxed values as nodes of a queue: the handle is a `Box<Node<T>>`.
pub struct Boxed<T>(PhantomData<fn(T) -> T>);

/// A shared handle that pushes values.
pub type BoxProducer<T> = Producer<Boxed<T>, Arc<Queue<Boxed<T>>>>;

/// The shared handle that pops values.
pub type BoxConsumer<T> = Consumer<Boxed<T>, Arc<Queue<Boxed<T>>>>;

/// A value with its link.
#[repr(C)]
pub struct Node<T> {
    link: Link,
    value: T,
}

/// A queue of values without a bound, as shared handles.
///
/// # Examples
///
/// ```
/// use clockjack_sync::mpsc::{self, Pop};
///
/// let (producer, mut consumer) = mpsc::unbounded();
/// producer.push_value("a").unwrap();
/// producer.clone().push_value("b").unwrap();
/// assert_eq!(consumer.pop_value(), Pop::Item("a"));
/// assert_eq!(consumer.pop_value(), Pop::Item("b"));
/// assert_eq!(consumer.pop_value(), Pop::Empty);
/// ```
#[must_use]
pub fn unbounded<T>() -> (BoxProducer<T>, BoxConsumer<T>) {
    Queue::unbounded().share()
}

/// A queue of at most `bound` values, as shared handles.
///
/// # Panics
///
/// If `bound` is zero or above `usize::MAX / 4`.
#[must_use]
pub fn bounded<T>(bound: usize) -> (BoxProducer<T>, BoxConsumer<T>) {
    Queue::bounded(bound).share()
}

impl<N: Linked> Queue<N> {
    /// Shared handles of the two roles. Dropping the consumer closes the queue.
    #[must_use]
    pub fn share(self) -> (Producer<N, Arc<Self>>, Consumer<N, Arc<Self>>) {
        let queue = Arc::new(self);
        // SAFETY: the queue was passed by value, so no other code pops; it is now reached through
        // the two handles only. Code that calls the unsafe `pop` next to them breaks the promise
        // made there.
        let consumer = unsafe { Consumer::new(queue.clone()) };
        (Producer::new(queue), consumer)
    }
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

impl<T, Q: Deref<Target = Queue<Boxed<T>>>> Producer<Boxed<T>, Q> {
    /// Puts a value in a box and appends it.
    ///
    /// # Errors
    ///
    /// Returns the value to the caller if the queue is closed or full.
    pub fn push_value(&self, value: T) -> Result<(), PushError<T>> {
        self.push(Node::new(value)).map_err(|refused| refused.map(|node| node.into_value()))
    }
}

impl<T, Q: Deref<Target = Queue<Boxed<T>>>> Consumer<Boxed<T>, Q> {
    /// Takes the oldest value. It never waits; see [`Queue::pop`].
    pub fn pop_value(&mut self) -> Pop<T> {
        self.pop().map(|node| node.into_value())
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
