//! What code that `#[actor]` has written needs beside the public types. Not for anybody else.
//!
//! The tests of the macro have this file beside stand-ins for those types, so it names them by
//! `super`.

pub use alloc::boxed::Box;

use super::{Failure, Next};

/// What a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "it returns nothing, `Next`, `Result<(), Failure>` or `Result<Next, Failure>`"
)]
pub trait IntoNext {
    /// What it means.
    ///
    /// # Errors
    ///
    /// The failure that it is, if it is one.
    fn into_next(self) -> Result<Next, Failure>;
}

impl IntoNext for () {
    fn into_next(self) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

impl IntoNext for Next {
    fn into_next(self) -> Result<Next, Failure> {
        Ok(self)
    }
}

impl IntoNext for Result<(), Failure> {
    fn into_next(self) -> Result<Next, Failure> {
        self.map(|()| Next::Stay)
    }
}

impl IntoNext for Result<Next, Failure> {
    fn into_next(self) -> Result<Next, Failure> {
        self
    }
}
