//! A bounded first-in-first-out work-stealing ring: one owner, thieves that steal half.
//!
//! Work stealing is described by Blumofe and Leiserson ("Scheduling multithreaded computations by
//! work stealing", 1999).
//!
//! The owner pushes and pops. A thief takes half of the waiting items by one claim, keeps the
//! oldest item and puts the rest into a ring of its own. A full ring hands half of its items to an
//! overflow hook. The two-part head is that of tokio's run queue (`multi_thread/queue.rs`), whose
//! parts are called `steal` and `real`; st3 has it as well. The ring is *not* a Chase-Lev deque
//! whose thieves take several items by one compare-exchange: the owner of such a deque pops without
//! looking at the claim, and items get lost and duplicated (`tests/loom/ring.rs` shows such a
//! deque failing the model that this ring passes).
//!
//! It needs `alloc`, and where the target has no 64-bit atomics it is no faster than a lock.
//!
//! # Protocol
//!
//! Roles: one *owner*, any number of *thieves*. Positions are `u32` and only grow, modulo 2³²; the
//! slot of a position is its remainder by the capacity.
//!
//! ```text
//!   head: one 64-bit word             tail: 32 bits, written by the owner only
//!   [ steal: 32 | next: 32 ]
//!
//!      steal       next                tail
//!        │           │                   │
//!   ─────▼───────────▼───────────────────▼─────────
//!    free │ being copied │ waiting items │ free         steal = next: no steal is in progress
//! ```
//!
//! 1. *Push* (owner): if `tail − steal` is below the capacity, write the slot at `tail`, then store
//!    `tail + 1` with Release. The slots of a steal in progress are not free, however long the
//!    thief is suspended.
//! 2. *Pop* (owner): compare-exchange `next` to `next + 1`, and `steal` with it if no steal is in
//!    progress. Then move the item out. During a steal `steal` belongs to the thief and stays.
//! 3. *Claim* (thief): only if `steal = next`, else back off: there is one steal at a time. Load
//!    `tail` *after* `head`, and compare-exchange `next` forward by half of the waiting items. Now
//!    the items between `steal` and `next` belong to the thief: no pop and no other claim can reach
//!    them.
//! 4. *Copy* (thief): move the claimed items out. Slots are read only now: nothing is read
//!    speculatively.
//! 5. *Finish* (thief): compare-exchange `steal` to the current `next`, until the exchange
//!    succeeds. Now the slots are free.
//! 6. *Overflow* (owner, ring full): if a steal is in progress, only the new item goes to the hook.
//!    Else compare-exchange both parts forward by half: the items belong to the owner at once, and
//!    since only the owner can push, their slots stay untouched until the hook has taken them.
//! 7. Between claim and finish there is no user code, no allocation and nothing that panics.
//!
//! *Why no item is lost or duplicated*: the thread that moved `next` over a position moves the item
//! of that position out, and `next` moves by compare-exchange only. A slot is written again only
//! after `steal` has passed it, and `steal` passes it after its item was moved out: by the owner
//! itself, or by the thief, whose finish is a Release that the owner's load of `head` acquires.
//!
//! *Why a thief that sees a head sees a tail that is not behind it*: the thread that moved `next`
//! to that position had seen (or written) such a tail before its Release; the thief's load of
//! `head` acquires it (rule 3).
//!
//! *Why no thread hangs*: a compare-exchange fails only if another one succeeded. Only pops can
//! delay a finish, and there are fewer pops than the capacity before the ring is empty. A thief
//! cannot die between claim and finish (rule 7). A thief that is suspended there keeps other
//! thieves from this ring, but not the owner: the owner still pops, and items that find no free
//! slot go to the hook.
//!
//! *Wrap-around*: an ABA problem needs exactly 2³² positions *in both parts* between one load and
//! one exchange of the same thread.

mod head;
mod overflow;
mod owner;
mod refill;
mod slots;
mod thief;

pub use overflow::Overflow;
pub use owner::Owner;
pub use thief::{Steal, Thief};

/// The usual capacity of a ring: 256; in a loom model 4, so that full and wrap-around are reached.
pub const CAPACITY: usize = if crate::primitive::IS_MODEL { 4 } else { 256 };
