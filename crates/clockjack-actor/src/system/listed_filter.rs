//! A filter that says whether an actor may be listed in one of the system's tables (a Bloom filter
//! with one hash function), so that stopping an actor that was never listed searches no table.
//!
//! Bloom filters are from Bloom ("Space/time trade-offs in hash coding with allowable errors",
//! 1970).
//!
//! Each pid maps to one of a few hundred bits; bits are set and never cleared. Threads: the
//! *listers*, which add an actor to a table, and the *runner*, the worker that runs the actor's
//! last poll.
//!
//! 1. A lister sets the actor's bit, adds the actor to its table under the table's lock, and then
//!    checks whether the actor has stopped (flag STOPPED). If so, the lister removes the actor
//!    again.
//! 2. The runner sets STOPPED and then reads the bit. If the bit is set, the runner removes the
//!    actor from all tables, under their locks.
//!
//! *Why no stopped actor stays in a table*: each of the two threads executes a sequentially
//! consistent fence between the write of its own word and the read of the other's (the
//! store-buffering or Dekker pattern), so at least one of them sees the other's write. If the
//! lister sees STOPPED, it removes the actor. If the runner sees the bit, then either it finds the
//! actor in the table, or it released the table's lock before the lister acquired the lock, and in
//! that case the lister sees STOPPED.

use clockjack_exec::Pid;
use clockjack_sync::primitive::atomic::{
    AtomicUsize,
    Ordering::{Relaxed, SeqCst},
    fence,
};

use crate::router::hash_of;

const WORDS: usize = 8;
const BITS: usize = usize::BITS as usize;

/// See the [module](self).
pub(crate) struct ListedFilter([AtomicUsize; WORDS]);

impl ListedFilter {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicUsize::new(0)))
    }

    fn bit_of(&self, pid: Pid) -> (&AtomicUsize, usize) {
        let index = usize::try_from(hash_of(&pid) & 0xffff).unwrap_or(0) % (WORDS * BITS);
        (&self.0[index / BITS], 1 << (index % BITS))
    }

    /// Called before an actor is added to a table. After the addition, the caller checks whether
    /// the actor has stopped.
    pub(crate) fn insert(&self, pid: Pid) {
        let (word, bit) = self.bit_of(pid);
        // Relaxed: the fence provides the ordering.
        word.fetch_or(bit, Relaxed);
        // SeqCst: pairs with the fence in `may_contain`.
        fence(SeqCst);
    }

    /// Whether an actor that has stopped may be in a table.
    pub(crate) fn may_contain(&self, pid: Pid) -> bool {
        // SeqCst: pairs with the fence in `insert`.
        fence(SeqCst);
        let (word, bit) = self.bit_of(pid);
        // Relaxed: the fence provides the ordering.
        word.load(Relaxed) & bit != 0
    }
}
