//! The payload of a caught panic: the one error of every `catch_unwind` of a platform.

use alloc::{boxed::Box, string::String};
use core::{any::Any, fmt};

/// The payload of a caught panic.
///
/// Its drop is user code and may panic again; see [`drop_caught`](Self::drop_caught).
pub struct PanicPayload(Box<dyn Any + Send>);

impl PanicPayload {
    const NO_TEXT: &str = "a panic whose payload is not a text";

    /// From the result of `catch_unwind`.
    #[must_use]
    pub fn new(payload: Box<dyn Any + Send>) -> Self {
        Self(payload)
    }

    /// The message of the panic, or a text that says that there is none.
    #[must_use]
    pub fn message(&self) -> &str {
        match self.0.downcast_ref::<String>() {
            Some(text) => text,
            None => self.static_message().unwrap_or(Self::NO_TEXT),
        }
    }

    /// The message of the panic, if it needs no memory: a literal, or the text that there is none.
    #[must_use]
    pub fn static_message(&self) -> Option<&'static str> {
        match self.0.downcast_ref::<&'static str>() {
            Some(text) => Some(text),
            None if self.0.is::<String>() => None,
            None => Some(Self::NO_TEXT),
        }
    }

    /// The payload, for `resume_unwind`.
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Any + Send> {
        self.0
    }

    /// Drops the payload inside `catch_unwind`, which is that of the platform. If the drop panics,
    /// nobody knows what the second payload does when it is dropped, so it is leaked.
    pub fn drop_caught(self, catch_unwind: impl FnOnce(&mut dyn FnMut()) -> Result<(), Self>) {
        let mut payload = Some(self);
        if let Err(again) = catch_unwind(&mut || drop(payload.take())) {
            core::mem::forget(again);
        }
    }
}

impl fmt::Debug for PanicPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PanicPayload").field(&self.message()).finish()
    }
}
