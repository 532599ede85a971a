//! An intrusive queue of many producers and one consumer, in which a push never waits.
//!
//! Two layers. [`IntrusiveQueue`] is the bare queue: a push is one swap and one store. [`Queue`] puts a
//! *gate* in front of it, which counts, bounds and closes. The idea of the chain is Dmitry Vyukov's
//! (intrusive MPSC node-based queue, 1024cores); it differs in having no stub node, see below.
//!
//! Nodes carry their own link ([`Linked`](crate::link::Linked)), so a mailbox may take them from a
//! pool, a box or a static. With feature `alloc`, `bounded` and `unbounded` give shared handles
//! to a queue of boxed values and need no unsafe code.
//!
//! # Protocol of the chain
//!
//! Roles: *producers* (any number, any context, interrupts too), one *consumer*.
//!
//! ```text
//!   consumer                                   producers
//!   head ──► A ──► B ──► C ──╳   D ◄── tail    D is swapped in, C is not yet linked to it: busy
//!
//!   head = null   first ──► A ──► B ◄── tail   the consumer takes `first` over as its head
//!   head = null   first = null   tail = null   empty
//! ```
//!
//! 1. A producer clears the link of its node, swaps the node into `tail`, and then stores the
//!    node's address in the link of the node that was the tail before, or in `first` if there was
//!    none. Between swap and store the chain is *broken* there, and only there.
//! 2. Only the producer whose swap returned a node writes that node's link, once. So the consumer
//!    may let go of a node whose link it has seen set: nobody will touch it again.
//! 3. The consumer takes the head if its link is set. If it is not set, the head is perhaps the
//!    last node: a compare-exchange of `tail` from that node to null decides. Success: the node is
//!    the consumer's and the chain is empty. Failure: somebody has swapped behind it and will write
//!    its link, so it must stay: the pop is *busy*.
//! 4. The consumer clears `first` when it takes it over, thus before rule 3 can make `tail` null,
//!    thus before a producer can find null there and store into `first` again.
//! 5. Empty is said only after `head`, `first` and `tail` were all found null, in this order.
//!
//! The stub of the classic queue, which must be re-inserted whenever the last node is popped and
//! whose re-insertion races with producers, is `first` here: it never travels through the chain,
//! and the one compare-exchange of rule 3 does the work. So the queue may be moved, is built in a
//! constant and costs no node.
//!
//! *Why nothing is lost*: `tail` totally orders the nodes between two moments of emptiness, and
//! each swap gives its producer the one place that must point to its node. *Why nobody hangs*: a
//! producer takes a fixed number of steps. The consumer never waits either; if a producer is
//! interrupted between its two steps then the consumer is told [`Pop::Retry`] and does something
//! else. An item behind the break is delayed until that producer runs again, not lost.
//!
//! # Protocol of the gate
//!
//! ```text
//!   admitted  [ count ............ | closed ]   read-modify-writes by producers and closers
//!   left      [ count ............ |   0    ]   stores by the consumer
//! ```
//!
//! 6. A push is *admitted* by a read-modify-write of `admitted`, before it touches the chain. In an
//!    unbounded queue it is one addition; whoever finds the closed bit in the old value takes its
//!    addition back and is refused. In a bounded one it is a compare-exchange that fails if the
//!    word has changed, so a refused push disturbs nobody.
//! 7. A bounded push reads `admitted` before `left`. Then "full" was true when it read `admitted`,
//!    and the exchange succeeds only if there is still room.
//! 8. Closing sets the bit. All admissions and the closing are totally ordered by the one word:
//!    that is the point where they take effect.
//! 9. The consumer counts in `left` what it has taken. An empty chain is reported as [`Pop::Empty`]
//!    only if `left` equals `admitted`, else as busy: an admitted item is on its way. So once the
//!    queue is closed, the first [`Pop::Empty`] is final, and everything admitted before it was
//!    seen.
//!
//! # Sleeping
//!
//! The queue wakes nobody. A consumer that wants to sleep announces it by a read-modify-write of a
//! word that producers change after their push (or both sides use `fence(SeqCst)` between their two
//! steps), and pops once more after the announcement. On busy it stays scheduled.

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
