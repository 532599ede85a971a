//! Lock-free data structures of Clockjack, each with its protocol written down next to the code.
//!
//! Queues, a work-stealing ring and two stacks, from which the executor, the timers
//! and the mailboxes are built. All of it is `no_std`, has no mandatory dependency, and runs
//! unchanged under [loom](https://docs.rs/loom), which explores its interleavings in small models.
//!
//! # Terms
//!
//! | term | meaning |
//! |---|---|
//! | *producer*, *consumer* | the thread that pushes, the thread that pops |
//! | *owner*, *thief* | of a ring: the thread that pushes and pops, the threads that steal half |
//! | *retry* | another thread is in the middle of its operation: try again later, do not spin |
//! | *node*, *link*, *handle* | an item with its link, the link, the owner of an unqueued node |
//!
//! # Contents
//!
//! | type | producers, consumers | bound | purpose |
//! |---|---|---|---|
//! | [`mpsc::IntrusiveQueue`] | many, one | none | bare intrusive queue: one swap, one store |
//! | `mail::Mailbox` | many, one | yes | closable; values in blocks; reports wake-ups |
//! | `ring::Owner`, `ring::Thief` | one, one and thieves | capacity, then a hook | a run queue |
//! | [`Injector`] | many, many | none | global run queue, taken in batches |
//! | [`IndexStack`] | many, many | by its indices | returns slots to their owner |
//! | [`stack::ClosableStack`] | many, many | none | intrusive, one word, drained by one swap |
//!
//! In addition: [`link`] (intrusive nodes).
//!
//! Hidden modules hold what only the crates of Clockjack use: `primitive` (the one module that
//! knows which atomics the target has), `arc` (exists also where `alloc::sync::Arc` does not),
//! `backoff` (waiting without priority inversion), `counter` (a striped counter for statistics),
//! `pad`, `panic` (the payload of a caught panic),
//! `prefetch` (a hint to the cache), `spin_lock` (for short critical sections), `splitmix` and
//! `waker`. Hidden items may change in any release; the crates of Clockjack pin each other with
//! `=`.
//!
//! # Example
//!
//! How a worker finds work: first in its own ring, then in the injector, then in other rings.
//!
//! ```
//! # #[cfg(feature = "alloc")] {
//! use clockjack_sync::{
//!     Injector,
//!     injector::BATCH_MAX,
//!     link::{Boxed, Node},
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
//! let (mut mine, mut loaded) = (Owner::new(), Owner::new());
//! injector.push(Node::new("injected")).unwrap();
//! loaded.push(Node::new("stolen"), |rest| injector.push_batch(rest.collect()).unwrap());
//! mine.push(Node::new("mine"), |rest| injector.push_batch(rest.collect()).unwrap());
//!
//! let others = [loaded.thief()];
//! let found: Vec<_> = std::iter::from_fn(|| find(&mut mine, &injector, &others)).collect();
//! let found: Vec<_> = found.into_iter().map(|task| task.into_value()).collect();
//! assert_eq!(found, ["mine", "injected", "stolen"]);
//! # }
//! ```
//!
//! # Features
//!
//! * `alloc` (off by default): everything that owns heap memory, that is `Arc`, boxed nodes,
//!   mailboxes, and the ring.
//!
//! # Microcontrollers
//!
//! On targets without compare-exchange (Cortex-M0, RV32IMC) all atomics come from `portable-atomic`
//! with its `critical-section`. On targets with compare-exchange but without 64-bit atomics (other
//! Cortex-M, RV32IMAC), only the 64-bit atomics do; there **the program's own `Cargo.toml` has to
//! declare that it runs on one core**, and does not compile otherwise:
//!
//! ```toml
//! portable-atomic = { version = "1", features = ["unsafe-assume-single-core"] }
//! ```
//!
//! Several cores without 64-bit atomics, and code that runs unprivileged there, are not supported.
//!
//! # Not supported
//!
//! * Waiting. Nothing here blocks or parks, and only `waker` wakes; each module says what a
//!   consumer has to do before it sleeps.
//! * Rings that grow, and taking from the newest end of a ring.
//! * Removing an item from the middle of a queue, or reading one without taking it.
//! * A consumer that learns when its last producer is dropped.
#![no_std]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(any(test, loom, shuttle))]
extern crate std;

#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod arc;
#[doc(hidden)]
pub mod backoff;
#[doc(hidden)]
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
#[doc(hidden)]
pub mod pad;
#[cfg(feature = "alloc")]
#[doc(hidden)]
pub mod panic;
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[doc(hidden)]
#[path = "prefetch/none.rs"]
pub mod prefetch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[doc(hidden)]
#[path = "prefetch/x86_64.rs"]
pub mod prefetch;
#[doc(hidden)]
pub mod primitive;
mod push_error;
#[cfg(feature = "alloc")]
pub mod ring;
#[doc(hidden)]
pub mod spin_lock;
#[doc(hidden)]
pub mod splitmix;
pub mod stack;
#[doc(hidden)]
pub mod waker;

#[cfg(feature = "alloc")]
#[doc(hidden)]
pub use arc::Arc;
pub use index_stack::IndexStack;
pub use injector::Injector;
pub use push_error::PushError;
// Hidden, and public because no code without `alloc` makes a push fail for lack of room.
#[doc(hidden)]
pub use push_error::Refusal;
