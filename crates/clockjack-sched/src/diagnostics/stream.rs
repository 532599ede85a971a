//! The diagnostics stream: publishes what the scheduler does to its subscribers.
//!
//! A [`Bus`] has room for [`SUBSCRIPTIONS_MAX`] subscriptions, each with its own bounded queue.
//! Publishing never waits and calls no user code. Events that find a queue full are counted, and
//! the reader receives the count in their place. Without subscribers, publishing costs one load.
//!
//! # Protocol
//!
//! Roles: *publishers* are any threads, perhaps with a shard guard; the same threads *wake readers*
//! later, without a guard; *subscribers* come and go.
//!
//! ```text
//!   subscriber_counts  [ closed | .. | tick rate | warning | cancel | fire | schedule ]
//!                        5 bits per count
//!   slot               [ active publishers .. | kinds | zero | WRITING | ACTIVE | FILLED ]
//!                        next to the channel
//!   wake_mask          [ a bit per slot whose reader must be woken ]
//! ```
//!
//! 1. A subscriber takes a slot by setting WRITING. It does so only if the slot is not ACTIVE and
//!    no publisher reads it: it is empty, or FILLED without active publishers. The subscriber puts
//!    its channel there, and then makes the slot ACTIVE with the kinds that it wants. After that it
//!    adds itself to `subscriber_counts`.
//! 2. A publisher reads `subscriber_counts`, and then visits the slots that want the event: it adds
//!    itself to the active publishers, and touches the channel only if the slot was ACTIVE and not
//!    WRITING at that moment. Then it removes itself.
//! 3. The drop of a subscription removes it from `subscriber_counts` and then clears ACTIVE.
//!    Without active publishers it takes the channel out, under WRITING. With active publishers it
//!    leaves the channel, FILLED, for the next subscriber or the drop of the bus. It closes and
//!    empties its queue, so that what is left behind is small.
//! 4. A publisher marks the slot in `wake_mask` after its push, or after it has counted a loss. A
//!    thread that wakes readers takes all marks and wakes those readers, which see what was pushed
//!    before the marks.
//! 5. A reader that finds nothing registers its waker and looks again. A reader that finds the
//!    queue busy has nothing either: the publisher that keeps it busy has yet to mark the slot and
//!    to wake the reader.
//! 6. An event that a full queue refuses is counted in `lost`. A publisher takes that count along
//!    with its next event, or returns it if that event is refused too. A reader that finds the
//!    queue empty takes the count itself. So each loss is reported once, before later events.
//! 7. Closing sets a bit of `subscriber_counts` and then closes the channels of all ACTIVE slots. A
//!    subscriber that finds the bit when it adds itself closes its own channel. One word orders the
//!    two, so at least one of them closes the channel.
//!
//! *Why no thread hangs*: no thread waits for another; the loops at a slot repeat only if a
//! publisher came or went. *Why no wake-up is lost*: the push comes before the mark, the mark
//! before the wake-up, and the rest is the protocol of
//! [`AtomicWaker`](clockjack_sync::waker::AtomicWaker). This requires that each publish is followed
//! by `wake_readers`, on the same thread or on one that the publish happens before.

mod bus;
mod channel;
mod event;
mod slot;
mod subscription;

pub use bus::{Bus, SUBSCRIPTIONS_MAX, TooManySubscriptions};
pub use event::{DiagnosticEvent, EventKinds};
pub use subscription::{Next, Subscription};
