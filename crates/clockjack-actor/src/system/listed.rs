//! Which actors may stand in a table of the system's, so that only their end is looked up there.
//!
//! A bit for each of a few hundred classes of pids, set and never cleared. Roles: *listers*, who
//! put an actor into a table, and the *runner* in the actor's last turn.
//!
//! 1. A lister sets the actor's bit, puts it into its table under the table's lock, and then looks
//!    whether the actor has ENDED: if so it takes it out again.
//! 2. The runner raises ENDED, and then looks at the bit: if it is set, it takes the actor out of
//!    all tables, under their locks.
//!
//! *Why no actor that has ended stays in a table*: between writing its own word and reading the
//! other's each of the two has a fence that is sequentially consistent, so one of them sees the
//! other. If it is the lister, it takes the actor out. If it is the runner, then either it finds
//! the actor in the table, or it has left the table's lock before the lister took it, and so the
//! lister sees ENDED.

use clockjack_exec::Pid;
use clockjack_sync::{
    mutant,
    prim::atomic::{
        AtomicUsize,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
};

use crate::router_logic::hash_of;

const WORDS: usize = 8;
const BITS: usize = usize::BITS as usize;

/// See the [module](self).
pub(crate) struct Listed([AtomicUsize; WORDS]);

impl Listed {
    pub(crate) fn new() -> Self {
        Self(core::array::from_fn(|_| AtomicUsize::new(0)))
    }

    fn place(&self, pid: Pid) -> (&AtomicUsize, usize) {
        let class = usize::try_from(hash_of(&pid) & 0xffff).unwrap_or(0) % (WORDS * BITS);
        (&self.0[class / BITS], 1 << (class % BITS))
    }

    /// An actor is about to be listed. Afterwards the lister looks whether it has ended.
    pub(crate) fn begin(&self, pid: Pid) {
        let (word, bit) = self.place(pid);
        // Relaxed: the fence orders it.
        word.fetch_or(bit, Relaxed);
        // SeqCst: pairs with that of `may_have`.
        fence(SeqCst);
    }

    /// Whether an actor that has ended may be listed.
    pub(crate) fn may_have(&self, pid: Pid) -> bool {
        if !mutant!("listed-unfenced") {
            // SeqCst: pairs with that of `begin`.
            fence(SeqCst);
        }
        let (word, bit) = self.place(pid);
        // Relaxed: the fence orders it.
        word.load(Relaxed) & bit != 0 && !mutant!("listed-overlooked")
    }
}
