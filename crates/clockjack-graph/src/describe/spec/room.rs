//! How many messages the channel of an edge keeps, and whether it refuses the next one.

use super::{EdgeMode, EdgeOverflow, EdgePolicy};

impl EdgeMode {
    /// Whether a channel keeps one message, whatever its capacity.
    pub(crate) const fn is_slot(self) -> bool {
        matches!(self, Self::Latest | Self::Latched | Self::PreviousTick)
    }
}

impl EdgeOverflow {
    /// Whether a full channel evicts its oldest message and refuses none.
    pub(crate) const fn evicts(self) -> bool {
        matches!(self, Self::Overwrite | Self::DropOldest)
    }
}

impl EdgePolicy {
    /// How many unread messages the channel keeps.
    pub(crate) const fn n_places(&self) -> u32 {
        if self.mode.is_slot() || self.capacity == 0 { 1 } else { self.capacity }
    }
}
