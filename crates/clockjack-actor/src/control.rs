//! What comes by the control lane: behind the system, before user messages.

use core::fmt;

use clockjack_sched::Parcel;

use crate::envelope::Envelope;

/// An item of the control lane.
pub(crate) enum Control<M> {
    /// A message that was sent by `tell_control`.
    Message(Envelope<M>),
    /// A timer of the actor's own is due.
    Timer(TimerFired),
    /// The job of a receive time-out has come: the number says which.
    ReceiveTimeout(u32),
}

/// A timer that is due: where it stands, and which one it was when it was set.
pub(crate) struct TimerFired {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
    pub(crate) parcel: Parcel,
}

impl<M> fmt::Debug for Control<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}
