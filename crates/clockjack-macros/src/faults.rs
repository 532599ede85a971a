//! What is wrong with a block: all of it is collected, so that one build shows every fault.

use quote::ToTokens;
use syn::{Error, Result};

/// The faults found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(Option<Error>);

impl Faults {
    /// Adds a fault that is underlined at these tokens.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, what: impl Into<String>) {
        self.push(Error::new_spanned(tokens, what.into()));
    }

    /// Adds a fault that is an error already.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// All faults as one error, if there is any.
    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
