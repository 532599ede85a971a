//! The two-part head as a value: two positions in one word.

/// The positions between which a steal in progress copies, `steal..next`; equal if there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The oldest position whose slot is not free.
    pub(super) steal: u32,
    /// The oldest position whose item is waiting.
    pub(super) next: u32,
}

impl Head {
    /// No steal is in progress, and the oldest waiting item is at `next`.
    #[inline]
    pub(super) const fn idle(next: u32) -> Self {
        Self { steal: next, next }
    }

    #[inline]
    pub(super) const fn is_stealing(self) -> bool {
        self.steal != self.next
    }

    #[inline]
    pub(super) const fn pack(self) -> u64 {
        (self.steal as u64) << 32 | self.next as u64
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "each part is one half of the word")]
    pub(super) const fn unpack(word: u64) -> Self {
        Self { steal: (word >> 32) as u32, next: word as u32 }
    }
}
