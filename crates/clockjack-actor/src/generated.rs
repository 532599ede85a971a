//! Support for code that `#[actor]` generates. The module is not part of the public API;
//! [`IntoNext`] is, and the crate re-exports it.
//!
//! The tests of the macro include this file together with stand-ins for the public types; therefore
//! this file names those types through `super`.

pub use alloc::boxed::Box;

use super::{Failure, Next};

/// The types that a handler may return: nothing, [`Next`], or a `Result` of either.
///
/// The closure of [`Props::from_fn`](super::Props::from_fn), the continuations of futures and the
/// methods of an `#[actor]` return one of these types. A handler that returns nothing continues; it
/// can still stop its actor with [`Context::stop_self`](super::Context::stop_self).
///
/// The methods of the trait [`Actor`](super::Actor) return `Result<Next, Failure>`.
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
