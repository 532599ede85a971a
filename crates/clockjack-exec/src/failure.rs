//! Why a step, a handler or a command failed: any error, or a code that needs no memory.
//!
//! A [`Failure`] is what user code returns with `?`: every error converts into it, and therefore it
//! cannot be an error itself. [`Failure::as_error`] returns the error inside. On a board without
//! memory for errors, a [`StaticError`] in a `static` is a failure that allocates nothing.

use alloc::{boxed::Box, string::String};
use core::{any::Any, error::Error, fmt};

/// Why something failed: an error of any type, a text, or a code.
///
/// It can be sent to another thread, but not shared between threads, so the errors inside need not
/// be `Sync`. Only the error inside knows whether trying again helps.
///
/// # Examples
///
/// ```
/// use clockjack_exec::failure::{StaticError, Failure};
/// use core::num::ParseIntError;
///
/// static SILENT: StaticError = StaticError::new(7, "sensor silent");
///
/// fn read(line: Option<&str>) -> Result<u32, Failure> {
///     let line = line.ok_or_else(|| SILENT.failure())?;
///     if line.is_empty() {
///         return Err(Failure::msg("an empty line"));
///     }
///     Ok(line.parse()?)
/// }
///
/// assert_eq!(read(None).unwrap_err().code(), Some(7));
/// assert_eq!(read(Some("")).unwrap_err().to_string(), "an empty line");
/// assert!(read(Some("x")).unwrap_err().downcast::<ParseIntError>().is_ok());
/// ```
pub struct Failure(Repr);

/// A box is never null, which marks the thin variant, so both variants fit into two words.
enum Repr {
    Static(&'static StaticError),
    Boxed(Box<dyn Error + Send>),
}

const _: () = assert!(size_of::<Failure>() == 2 * size_of::<usize>());

/// What a failure was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A [`StaticError`] with this code.
    StaticError(u16),
    /// A text, by [`Failure::msg`].
    Message,
    /// An error of some other type.
    Error,
}

impl Failure {
    /// A failure that is only a text.
    pub fn msg(text: impl Into<String>) -> Self {
        Self(Repr::Boxed(Box::new(Message(text.into()))))
    }

    /// A failure from an error that is in a box already.
    #[must_use]
    pub fn from_boxed(error: Box<dyn Error + Send>) -> Self {
        Self(Repr::Boxed(error))
    }

    /// What it was made from.
    #[must_use]
    pub fn kind(&self) -> Kind {
        if let Some(error) = self.downcast_ref::<StaticError>() {
            Kind::StaticError(error.code)
        } else if self.downcast_ref::<Message>().is_some() {
            Kind::Message
        } else {
            Kind::Error
        }
    }

    /// The code, if it was made from a [`StaticError`].
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        self.downcast_ref::<StaticError>().map(|error| error.code)
    }

    /// The error that it was made from; for a text, an error of a private type.
    #[must_use]
    pub fn as_error(&self) -> &(dyn Error + 'static) {
        match &self.0 {
            Repr::Static(error) => *error,
            Repr::Boxed(error) => &**error,
        }
    }

    /// The error that it was made from, if that is an `E`.
    #[must_use]
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.as_error().downcast_ref()
    }

    /// Takes out the error that it was made from.
    ///
    /// # Errors
    ///
    /// The failure itself, if it was not made from an `E`.
    pub fn downcast<E: Error + 'static>(self) -> Result<E, Self> {
        match self.0 {
            Repr::Static(error) => {
                // A `StaticError` is copied out through an `Any`, which knows whether `E` is one.
                let mut copy = Some(*error);
                let place: &mut dyn Any = &mut copy;
                let taken = place.downcast_mut::<Option<E>>().and_then(Option::take);
                taken.ok_or(Self(Repr::Static(error)))
            }
            Repr::Boxed(error) => match error.downcast() {
                Ok(error) => Ok(*error),
                Err(error) => Err(Self(Repr::Boxed(error))),
            },
        }
    }
}

impl<E: Error + Send + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(Repr::Boxed(Box::new(error)))
    }
}

/// For `?` in a `main` that returns any error.
impl From<Failure> for Box<dyn Error> {
    fn from(failure: Failure) -> Self {
        Box::<dyn Error + Send>::from(failure)
    }
}

impl From<Failure> for Box<dyn Error + Send> {
    fn from(failure: Failure) -> Self {
        match failure.0 {
            Repr::Static(error) => Box::new(*error),
            Repr::Boxed(error) => error,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_error(), f)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.as_error()).finish()
    }
}

/// A failure that is known at compile time: a number for programs, a text for people, in a
/// `static`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticError {
    code: u16,
    text: &'static str,
}

impl StaticError {
    /// The failure with this number and this text.
    #[must_use]
    pub const fn new(code: u16, text: &'static str) -> Self {
        Self { code, text }
    }

    /// The number.
    #[must_use]
    pub const fn code(&self) -> u16 {
        self.code
    }

    /// The text, without the number.
    #[must_use]
    pub const fn text(&self) -> &'static str {
        self.text
    }

    /// A [`Failure`] that refers to this error; allocates nothing.
    #[must_use]
    pub const fn failure(&'static self) -> Failure {
        Failure(Repr::Static(self))
    }
}

impl fmt::Display for StaticError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.text, self.code)
    }
}

impl Error for StaticError {}

/// The error inside of a failure that is only a text.
struct Message(String);

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Error for Message {}
