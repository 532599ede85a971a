//! Collects errors, so that one build reports all of them.

use quote::ToTokens;
use syn::{Error, Result};

/// The errors found so far.
#[derive(Debug, Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    /// Adds an error at these tokens.
    pub(crate) fn add(&mut self, tokens: impl ToTokens, what: impl Into<String>) {
        self.push(Error::new_spanned(tokens, what.into()));
    }

    /// Adds an existing error.
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Combines all errors into one, if there is any.
    pub(crate) fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
