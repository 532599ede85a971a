//! Interprets bytes as choices.

/// Returns choices until the bytes are used up, and zeros after that.
pub(crate) struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all bytes are used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `max`, which is at most 256.
    pub(crate) fn below(&mut self, max: usize) -> usize {
        usize::from(self.byte()) % max
    }

    /// A number of any size; small numbers and those near a power of two are frequent: one byte
    /// selects the power, one is added to it or subtracted from it.
    pub(crate) fn number(&mut self) -> u64 {
        let (power, beside) = (self.byte(), i64::from(self.byte().cast_signed()));
        let base = 1_u64 << (power % 42);
        base.saturating_add_signed(beside)
    }
}
