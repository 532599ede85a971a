//! Control messages: handled after system messages and before user messages.

use core::fmt;

use clockjack_sched::PendingDelivery;
use clockjack_sync::mail::Position;

use crate::cell::envelope::Envelope;

/// A control message.
pub(crate) enum Control<M> {
    /// A message that was sent by `tell_control`.
    Message(Envelope<M>),
    /// A timer of the actor that was set with priority has fired.
    Timer(TimerFired),
}

/// A timer that has fired: its slot, and the generation that it was set with.
pub(crate) struct TimerFired {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    /// Its place among the user messages; see [`in_order`](crate::cell::in_order).
    pub(crate) position: Position,
    pub(crate) delivery: PendingDelivery,
}

impl<M> fmt::Debug for Control<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}
