//! Support for code that `#[actor]` generates. Not part of the public API.
//!
//! The tests of the macro include this file together with stand-ins for the public types; therefore
//! this file names those types through `super`.

pub use alloc::boxed::Box;

use super::{Failure, Next};

/// The types that a handler may return.
#[diagnostic::on_unimplemented(
    message = "a handler cannot return `{Self}`",
    label = "a handler returns nothing, `Next`, `Result<(), Failure>` or `Result<Next, Failure>`"
)]
pub trait IntoNext {
    /// Converts the return value of a handler.
    ///
    /// # Errors
    ///
    /// The failure that the handler returned.
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
