//! An intrusive multi-producer, single-consumer queue, in which a push never waits.
//!
//! There are two layers. [`IntrusiveQueue`] is the bare queue: a push is one swap and one store.
//! [`Queue`] puts a *semaphore* in front of it, which counts the items, bounds them and closes the
//! queue, as the semaphore of tokio's mpsc channel does. The bare queue is Dmitry Vyukov's
//! intrusive MPSC node-based queue (1024cores), without a stub node; see below.
//!
//! Nodes carry their own link ([`Linked`](crate::link::Linked)), so a mailbox may take them from a
//! pool, a box or a static. With feature `alloc`, `bounded` and `unbounded` return shared handles
//! to a queue of boxed values and need no unsafe code.
//!
//! # Protocol of the intrusive queue
//!
//! Roles: *producers* (any number, any context, interrupts too), one *consumer*.
//!
//! ```text
//!   consumer                                   producers
//!   head ──► A ──► B ──► C ──╳   D ◄── tail    D is swapped in, C is not yet linked to it: retry
//!
//!   head = null   first ──► A ──► B ◄── tail   the consumer takes `first` over as its head
//!   head = null   first = null   tail = null   empty
//! ```
//!
//! 1. A producer clears the link of its node, swaps the node into `tail`, and then stores the
//!    node's address in the link of the previous tail, or in `first` if the queue was empty.
//!    Between the swap and the store the list is *broken* at that link, and only there.
//! 2. Only the producer whose swap returned a node writes that node's link, and writes it once. So
//!    the consumer may free a node as soon as it sees the node's link set: no producer touches the
//!    node again.
//! 3. The consumer takes the head if the link of the head is set. If the link is not set, the head
//!    may be the last node, and a compare-exchange of `tail` from that node to null decides.
//!    Success: the node belongs to the consumer and the queue is empty. Failure: a producer has
//!    swapped a node in behind the head and will write the link of the head, so the head must stay:
//!    the pop returns [`Pop::Retry`].
//! 4. The consumer clears `first` when it takes `first` over as its head. That is before rule 3 can
//!    make `tail` null, and therefore before a producer can find null there and store into `first`
//!    again.
//! 5. The consumer reports empty only after it found `head`, `first` and `tail` null, in this
//!    order.
//!
//! The stub node of the classic queue must be re-inserted whenever the last node is popped, and the
//! re-insertion races with producers. Here `first` takes the place of the stub: `first` never
//! travels through the list, and the one compare-exchange of rule 3 does the work. So the queue may
//! be moved, can be built in a constant and costs no node.
//!
//! *Why no item is lost*: between two moments of emptiness `tail` totally orders the nodes, and
//! each swap gives its producer the one place that must point to its node. *Why no thread hangs*: a
//! producer takes a fixed number of steps. The consumer never waits either: if a producer is
//! interrupted between its two steps, the pop returns [`Pop::Retry`] and the consumer can do other
//! work. An item behind the broken link is delayed until that producer runs again; it is not lost.
//!
//! # Protocol of the semaphore
//!
//! ```text
//!   acquired  [ count ............ | closed ]   read-modify-writes by producers and closers
//!   released  [ count ............ |   0    ]   stores by the consumer
//! ```
//!
//! 6. A push *acquires a permit* by a read-modify-write of `acquired`, before it touches the list.
//!    In an unbounded queue that is one addition; a producer that finds the closed bit in the old
//!    value subtracts again and is refused. In a bounded queue it is a compare-exchange, which
//!    fails if the word has changed, so a refused push does not disturb other producers.
//! 7. A bounded push reads `acquired` before `released`. So "full" was true when the producer read
//!    `acquired`, and the exchange succeeds only if there still is a permit.
//! 8. Closing sets the bit. The one word totally orders all acquisitions and the close: it is their
//!    linearization point.
//! 9. The consumer releases the permit of each item that it takes, by counting it in `released`. An
//!    empty list is reported as [`Pop::Empty`] only if `released` equals `acquired`, else as
//!    [`Pop::Retry`]: a producer that holds a permit has not linked its item yet. So once the queue
//!    is closed, the first [`Pop::Empty`] is final: the consumer has seen every item whose push
//!    succeeded.
//!
//! # Sleeping
//!
//! The queue does not wake its consumer. A consumer that wants to sleep announces that by a
//! read-modify-write of a word that producers change after their push (or both sides use
//! `fence(SeqCst)` between their two steps), and pops once more after the announcement. On
//! [`Pop::Retry`] the consumer stays scheduled.

#[cfg(feature = "alloc")]
mod boxed;
mod handles;
mod intrusive_queue;
mod queue;
mod semaphore;

#[cfg(feature = "alloc")]
pub use boxed::{BoxConsumer, BoxProducer, Boxed, Node, bounded, unbounded};
pub use handles::{Consumer, Producer};
pub use intrusive_queue::{IntrusiveQueue, Pop};
pub use queue::Queue;
