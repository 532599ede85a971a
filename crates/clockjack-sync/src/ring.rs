//! A bounded first-in-first-out ring of one owner, from which others steal half.
//!
//! The owner pushes and pops. A thief takes half of what is there by one claim, keeps the oldest
//! item and puts the rest into a ring of its own. A full ring hands half of its items to an
//! overflow hook. The shape, a head of two parts, is tokio's (`multi_thread/queue.rs`); st3 has it
//! as well. It is *not* a Chase-Lev deque whose thieves take many items by one compare-exchange:
//! the owner of such a deque pops without looking at the claim, and items get lost and doubled
//! (`tests/loom/ring.rs` shows one failing the model that this ring passes).
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
//!   [ open: 32 | next: 32 ]
//!
//!      open        next                tail
//!        │           │                   │
//!   ─────▼───────────▼───────────────────▼─────────
//!    free │ being copied │ waiting items │ free         open = next: no steal is going on
//! ```
//!
//! 1. *Push* (owner): if `tail − open` is below the capacity, write the slot at `tail`, then store
//!    `tail + 1` with Release. Slots of an open steal are not free, however long the thief sleeps.
//! 2. *Pop* (owner): compare-exchange `next` to `next + 1`, and `open` with it if no steal is open.
//!    Then move the item out. While a steal is open, `open` is the thief's and stays.
//! 3. *Claim* (thief): only if `open = next`, else back off: there is one steal at a time. Load
//!    `tail` *after* `head`, and compare-exchange `next` forward by half of what waits. Now the
//!    items between `open` and `next` are the thief's: no pop and no other claim can reach them.
//! 4. *Copy* (thief): move the claimed items out. Only now are slots read: nothing is read
//!    speculatively.
//! 5. *Close* (thief): compare-exchange `open` to `next`, as it is by then, again and again until
//!    it succeeds. Now the slots are free.
//! 6. *Overflow* (owner, ring full): if a steal is open, only the new item goes to the hook. Else
//!    compare-exchange both parts forward by half: the items are the owner's at once, and since
//!    only it can push, their slots stay untouched until the hook is through with them.
//! 7. Between claim and close there is no user code, no allocation and nothing that panics.
//!
//! *Why nothing is lost or doubled*: an item is moved out by whoever moved `next` over its
//! position, and `next` moves by compare-exchange only. A slot is written again only after `open`
//! has passed it, and `open` passes it after its item was moved out: by the owner itself, or by the
//! thief, whose close is a Release that the owner's load of `head` acquires.
//!
//! *Why a thief that sees a head sees a tail not behind it*: whoever moved `next` to there had seen
//! (or written) such a tail before its Release; the thief's load of `head` acquires it (rule 3).
//!
//! *Why nobody hangs*: a compare-exchange fails only if another one succeeded. A close can be held
//! up only by pops, of which there are fewer than the capacity before the ring is empty. A thief
//! that dies between claim and close is impossible (rule 7); one that sleeps there keeps other
//! thieves from this ring, but not the owner: it goes on guard, and pushing past what is free
//! goes to the hook.
//!
//! *Wrap-around*: a stale head would have to be met again after exactly 2³² positions *in both
//! parts*, within one load and one exchange.

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
