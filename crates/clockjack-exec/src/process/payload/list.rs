//! The arguments of a process: payloads by position, each taken once.

use alloc::vec::{self, Vec};
use core::{any::type_name, error::Error, fmt, iter::Flatten};

use super::Payload;

/// Arguments by position.
///
/// A position keeps its number when its argument is taken, so arguments can be taken in any order.
///
/// # Examples
///
/// ```
/// use clockjack_exec::payload::Payloads;
///
/// let mut input = Payloads::new().with("name").with(7_u32);
/// assert_eq!(input.take::<u32>(1)?, 7);
/// assert!(input.take::<u32>(1).unwrap_err().is_missing());
/// assert!(input.take::<u32>(0).unwrap_err().is_wrong_type());
/// assert_eq!(input.take::<&str>(0)?, "name");
/// # Ok::<(), clockjack_exec::payload::TakeError>(())
/// ```
#[derive(Default)]
pub struct Payloads(Vec<Option<Payload>>);

impl Payloads {
    /// No arguments; allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The same arguments and one more.
    #[must_use]
    pub fn with<T: Send + 'static>(mut self, value: T) -> Self {
        self.push(Payload::new(value));
        self
    }

    /// Appends an argument.
    pub fn push(&mut self, payload: Payload) {
        self.0.push(Some(payload));
    }

    /// How many arguments were given, including those that are taken already.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no argument was given.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The argument at a position, if there is one that is not taken.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Payload> {
        self.0.get(index)?.as_ref()
    }

    /// Takes the argument at a position, which must be a `T`.
    ///
    /// # Errors
    ///
    /// If there is none, or it was taken before, or it is of another type; then it stays.
    pub fn take<T: 'static>(&mut self, index: usize) -> Result<T, TakeError> {
        let missing = TakeError { index, wanted: type_name::<T>(), found: None };
        let slot = self.0.get_mut(index).ok_or(missing)?;
        let payload = slot.take().ok_or(missing)?;
        payload.downcast().map_err(|other| {
            let found = Some(other.type_name());
            *slot = Some(other);
            TakeError { found, ..missing }
        })
    }
}

impl From<()> for Payloads {
    fn from((): ()) -> Self {
        Self::new()
    }
}

impl From<Payload> for Payloads {
    fn from(payload: Payload) -> Self {
        let mut payloads = Self::new();
        payloads.push(payload);
        payloads
    }
}

impl fmt::Debug for Payloads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// Iterates over the arguments that are not taken, in their order.
impl IntoIterator for Payloads {
    type Item = Payload;
    type IntoIter = Flatten<vec::IntoIter<Option<Payload>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}

/// An argument that is missing, or not of the requested type.
///
/// Both are permanent: asking again does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakeError {
    index: usize,
    wanted: &'static str,
    found: Option<&'static str>,
}

impl TakeError {
    /// Whether no argument was given at this position, or it was taken before.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        self.found.is_none()
    }

    /// Whether the argument is of another type; it is still there.
    #[must_use]
    pub const fn is_wrong_type(&self) -> bool {
        self.found.is_some()
    }
}

impl fmt::Display for TakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, wanted, found } = self;
        match found {
            None => write!(f, "argument {index} is missing or taken, expected a {wanted}"),
            Some(found) => write!(f, "argument {index} is a {found}, expected a {wanted}"),
        }
    }
}

impl Error for TakeError {}
