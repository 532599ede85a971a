//! Collects errors, so that one build reports all of them.

use quote::ToTokens;
use syn::{Error, Result};

/// The errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    combined: Option<Error>,
    count: usize,
}

impl Errors {
    /// Adds an error at these tokens.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, what: impl Into<String>) {
        self.push(Error::new_spanned(tokens, what.into()));
    }

    /// Adds an existing error.
    pub(crate) fn push(&mut self, error: Error) {
        self.count += 1;
        match &mut self.combined {
            Some(first) => first.combine(error),
            None => self.combined = Some(error),
        }
    }

    /// The number of errors so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Combines all errors into one, if there is any.
    pub(crate) fn finish(self) -> Result<()> {
        self.combined.map_or(Ok(()), Err)
    }
}
