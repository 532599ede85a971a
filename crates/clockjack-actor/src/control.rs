//! What comes by the control lane: behind the system, before user messages.

use core::fmt;

use crate::envelope::Envelope;

/// An item of the control lane.
pub(crate) enum Control<M> {
    /// A message that was sent by `tell_control`.
    Message(Envelope<M>),
}

impl<M> fmt::Debug for Control<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").finish_non_exhaustive()
    }
}
