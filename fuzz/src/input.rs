//! Bytes as choices.

/// Hands out choices until the bytes are used up, and zeros then.
pub(crate) struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether there is nothing left to be chosen.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Below `max`, which is at most 256.
    pub(crate) fn below(&mut self, max: usize) -> usize {
        usize::from(self.byte()) % max
    }

    /// A number of any size, of which small ones and those beside a power of two are frequent: one
    /// byte chooses the power, one what is added to it or taken away.
    pub(crate) fn number(&mut self) -> u64 {
        let (power, beside) = (self.byte(), i64::from(self.byte().cast_signed()));
        let base = 1_u64 << (power % 42);
        base.saturating_add_signed(beside)
    }
}
