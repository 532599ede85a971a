//! SpinLock-free parts of Clockjack, each with its protocol written down beside it.
//!
//! Queues, a steal ring, a return stack and a counter, from which the executor, the timers and the
//! mailboxes are built. All of it is `no_std`, has no mandatory dependency, and runs unchanged
//! under [loom](https://docs.rs/loom), which explores its interleavings in small.
//!
//! # The words
//!
//! | word | meaning |
//! |---|---|
//! | *producer*, *consumer* | who pushes, who pops |
//! | *owner*, *thief* | of a ring: the one that pushes and pops, and those that take half |
//! | *busy* | another thread is in the middle of its operation: come back, do not spin |
//! | *admitted* | let in by a bound and a close, not yet necessarily in the queue |
//! | *node*, *link*, *handle* | an item with its link, the link, the node's owner elsewhere |
//!
//! # The parts
//!
//! | part | who writes, who reads | bound | what it is for |
//! |---|---|---|---|
//! | [`mpsc::IntrusiveQueue`] | any, one | none | the bare intrusive queue: one swap, one store |
//! | [`mpsc::Queue`] | any, one | yes or no | counted, bounded, closable; nodes from anywhere |
//! | `mail::Mailbox` | any, one | yes | an actor's mailbox: values in blocks, says who wakes |
//! | `ring::Owner`, `ring::Thief` | one, thieves too | capacity, then a hook | a run queue |
//! | [`Injector`] | any, any | none | work from outside, taken in batches |
//! | [`IndexStack`] | any, any | by its indices | slots that go back to their owner |
//! | [`counter::StripedCounter`] | any, any | wraps | statistics |
//! | [`waker::AtomicWaker`] | one, any | one waker | a task that waits |
//!
//! Beside them: [`spin_lock::SpinLock`] (a spin lock for some instructions), `Arc` (a shared
//! pointer that also exists where `Arc` does not), [`pad::Padded`], [`link`] (intrusive nodes), and
//! [`primitive`], the one place that knows which atomics there are.
//!
//! # Example
//!
//! A worker's look for work: its own ring, then the injector, then other workers.
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use clockjack_sync::{
//!     Injector,
//!     injector::BATCH_MAX,
//!     mpsc::{Boxed, Node},
//!     ring::{Owner, Thief},
//! };
//!
//! type Task = Box<Node<&'static str>>;
//!
//! fn find(
//!     own: &mut Owner<Task>,
//!     injector: &Injector<Boxed<&'static str>>,
//!     others: &[Thief<Task>],
//! ) -> Option<Task> {
//!     own.pop()
//!         .or_else(|| injector.take_into(BATCH_MAX, own).item().map(|(first, _moved)| first))
//!         .or_else(|| others.iter().find_map(|other| other.steal_into(own).item()))
//! }
//!
//! let injector = Injector::new();
//! let (mut mine, mut busy) = (Owner::new(), Owner::new());
//! injector.push(Node::new("injected")).unwrap();
//! busy.push(Node::new("stolen"), |rest| injector.push_batch(rest.collect()).unwrap());
//! mine.push(Node::new("mine"), |rest| injector.push_batch(rest.collect()).unwrap());
//!
//! let others = [busy.thief()];
//! let found: Vec<_> = std::iter::from_fn(|| find(&mut mine, &injector, &others)).collect();
//! let found: Vec<_> = found.into_iter().map(|task| task.into_value()).collect();
//! assert_eq!(found, ["mine", "injected", "stolen"]);
//! # }
//! ```
//!
//! # Features
//!
//! * `alloc` (off by default): what owns heap memory, that is `Arc`, boxed nodes, shared
//!   handles of a queue, mailboxes, and the ring.
//!
//! # Microcontrollers
//!
//! On targets without compare-exchange (Cortex-M0, RV32IMC) all atomics come from `portable-atomic`
//! with its `critical-section`. On those that have it, but no 64-bit atomics (other Cortex-M,
//! RV32IMAC), only these do; there **the program's own `Cargo.toml` has to say that it runs on one
//! core**, and does not compile otherwise:
//!
//! ```toml
//! portable-atomic = { version = "1", features = ["unsafe-assume-single-core"] }
//! ```
//!
//! Several cores without 64-bit atomics, and code that runs unprivileged there, are not supported.
//!
//! # Not supported
//!
//! * Waiting. Nothing here blocks or parks, and only [`waker`] wakes; each module says what a
//!   sleeper has to do.
//! * Growing rings, and taking from the newest end.
//! * ConsumerGuard an item out of the middle of a queue, or looking at one without taking it.
//! * A consumer that learns when its last producer is gone.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, loom, mutants, shuttle))]
extern crate std;

#[cfg(feature = "alloc")]
pub mod arc;
pub mod counter;
pub mod index_stack;
pub mod injector;
pub mod link;
#[cfg(feature = "alloc")]
pub mod mail;
#[cfg(all(feature = "alloc", not(any(loom, shuttle, target_has_atomic = "64"))))]
#[path = "mail/word_usize.rs"]
mod mail_word;
#[cfg(all(feature = "alloc", any(loom, shuttle, target_has_atomic = "64")))]
#[path = "mail/word_64.rs"]
mod mail_word;
pub mod mpsc;
pub mod mutant;
pub mod pad;
pub mod primitive;
mod push_error;
#[cfg(feature = "alloc")]
pub mod ring;
pub mod spin_lock;
#[doc(hidden)]
pub mod splitmix;
pub mod waker;

#[cfg(feature = "alloc")]
pub use arc::Arc;
pub use index_stack::IndexStack;
pub use injector::Injector;
pub use push_error::PushError;
