//! The diagnostics stream: what the scheduler does, for those who listen.
//!
//! A [`Bus`] has room for [`SUBSCRIPTIONS_MAX`] subscriptions, each with a bounded queue of its
//! own. Publishing never waits and calls no foreign code; what finds a queue full is counted and
//! told to that reader in its place. While nobody listens, the price is one load.
//!
//! # Protocol
//!
//! Roles: *publishers*, any thread, perhaps with a guard; *wakers*, the same threads later,
//! without one; *subscribers*, who come and go.
//!
//! ```text
//!   subscriber_counts  [ closed | .. | tick rate | warning | cancel | fire | schedule ]   5 bits a count
//!   slot       [ active publishers .. | kinds | zero | WRITING | ACTIVE | FILLED ]  ──►  channel
//!   due        [ a bit for each slot whose reader is to be woken ]
//! ```
//!
//! 1. A subscriber takes a slot by setting WRITING, which it does only if the slot is not in use
//!    and nobody reads it: it is empty, or filled with no active publisher. It puts its channel there, and
//!    then makes the slot ACTIVE with the kinds it wants. After that it adds itself to the counts
//!    in `subscriber_counts`.
//! 2. A publisher looks at `subscriber_counts`, and then visits the slots that want the event: it adds
//!    itself to the active publishers, and touches the channel only if what it found there was ACTIVE and
//!    not WRITING. Then it takes itself off.
//! 3. A subscription that ends takes itself off `subscriber_counts` and then clears ACTIVE. Without
//!    active publishers it takes the channel out, under WRITING; with active publishers it leaves it, FILLED, for the
//!    next subscriber or the drop of the bus. It closes its queue and empties it, so that what is
//!    left behind is small.
//! 4. A publisher marks the slot as due after its push, or after it has counted a loss. A ringer
//!    takes all marks and wakes those readers; what it wakes sees what was pushed before the marks.
//! 5. A reader that finds nothing registers its waker and looks again. One that finds the queue
//!    busy has nothing either: the publisher that keeps it busy has yet to mark it, and to ring.
//! 6. What a full queue refuses is counted in `lost`. A publisher takes that count along with its
//!    next event, or gives it back if the event is refused too; a reader that finds the queue empty
//!    takes it itself. So each loss is told once, before what came after it.
//! 7. CloseAction sets a bit of `subscriber_counts` and then closes the channels of all ACTIVE slots. A
//!    subscriber that finds the bit when it counts itself closes its own channel. One word orders
//!    the two, so one of them does it.
//!
//! *Why nobody hangs*: nobody waits for another thread; the loops at a slot repeat only if a
//! active publisher came or went. *Why no wake is lost*: the push comes before the mark, the mark before the
//! ring, and the rest is the protocol of [`AtomicWaker`](clockjack_sync::waker::AtomicWaker). It
//! rests on each publish being followed by a ring, on the same thread or on one that the publish
//! happens before.

mod bus;
mod channel;
mod event;
mod slot;
mod subscription;

pub use bus::{Bus, SUBSCRIPTIONS_MAX, TooManySubscriptions};
pub use event::{DiagnosticEvent, EventKinds};
pub use subscription::{Next, Subscription};
