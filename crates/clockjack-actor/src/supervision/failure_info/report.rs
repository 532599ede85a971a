//! The text of a failure, without its error.

use alloc::{boxed::Box, string::String};
use core::{
    error::Error,
    fmt::{self, Write as _},
};

use clockjack_exec::{Failure, failure::StaticError};
use clockjack_sync::Arc;

/// The longest text of a failure, in bytes; longer texts are truncated.
pub const TEXT_LEN_MAX: usize = 4096;

/// The text and code of a failure, without its error. Cheap to clone, and can be shared between
/// threads.
///
/// A [`Failure`] has one owner, because the error inside need not be `Sync`; therefore this type is
/// what the system publishes. Made from a [`StaticError`], it allocates nothing.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Failure, failure_info::FailureReport};
///
/// let failure = Failure::msg("no worker left");
/// let report = FailureReport::from(&failure);
/// assert_eq!(report.to_string(), "no worker left");
/// assert_eq!(report.code(), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FailureReport(Repr);

#[derive(Clone)]
enum Repr {
    StaticError(StaticError),
    Text(Arc<Text>),
}

struct Text {
    text: Box<str>,
    is_panic: bool,
}

impl FailureReport {
    /// A report with this text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self::write(&text, false)
    }

    /// The code, if the failure was made from a [`StaticError`].
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match &self.0 {
            Repr::StaticError(coded) => Some(coded.code()),
            Repr::Text(_) => None,
        }
    }

    /// Whether the failure was a panic, and not a returned error.
    #[must_use]
    pub fn is_panic(&self) -> bool {
        matches!(&self.0, Repr::Text(text) if text.is_panic)
    }

    /// The text, without the code.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.0 {
            Repr::StaticError(coded) => coded.text(),
            Repr::Text(text) => &text.text,
        }
    }

    fn write(what: &dyn fmt::Display, is_panic: bool) -> Self {
        let mut text = TruncatingWriter(String::new());
        // A formatting error means that the text is incomplete; what was written is kept.
        let _ = write!(text, "{what}");
        Self(Repr::Text(Arc::new(Text { text: text.0.into_boxed_str(), is_panic })))
    }
}

impl From<&Failure> for FailureReport {
    fn from(failure: &Failure) -> Self {
        if let Some(coded) = failure.downcast_ref::<StaticError>() {
            return Self(Repr::StaticError(*coded));
        }
        Self::write(failure, failure.downcast_ref::<Panicked>().is_some())
    }
}

impl PartialEq for Repr {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::StaticError(one), Self::StaticError(other)) => one == other,
            (Self::Text(one), Self::Text(other)) => {
                one.text == other.text && one.is_panic == other.is_panic
            }
            _ => false,
        }
    }
}

impl Eq for Repr {}

impl fmt::Display for FailureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::StaticError(coded) => fmt::Display::fmt(coded, f),
            Repr::Text(text) => f.write_str(&text.text),
        }
    }
}

impl fmt::Debug for FailureReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = f.debug_tuple("FailureReport");
        tuple.field(&self.text());
        if self.is_panic() {
            tuple.field(&"panic");
        }
        if let Some(code) = self.code() {
            tuple.field(&code);
        }
        tuple.finish()
    }
}

/// The error inside a failure that was caused by a panic.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Failure, failure_info::{FailureReport, Panicked}};
///
/// let failure = Failure::from(Panicked::new("index out of bounds"));
/// assert!(FailureReport::from(&failure).is_panic());
/// assert_eq!(failure.to_string(), "panicked: index out of bounds");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panicked {
    message: String,
}

impl Panicked {
    /// A panic with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// The message of the panic.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Panicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "panicked: {}", self.message)
    }
}

impl Error for Panicked {}

/// A writer that truncates its text to [`TEXT_LEN_MAX`].
struct TruncatingWriter(String);

impl fmt::Write for TruncatingWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = TEXT_LEN_MAX - self.0.len();
        let end = text.floor_char_boundary(room.min(text.len()));
        self.0.push_str(&text[..end]);
        // The error stops a formatter that writes without end.
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, string::ToString as _};

    use super::*;

    static SILENT: StaticError = StaticError::new(7, "sensor silent");

    #[test]
    fn a_code_stays_a_code() {
        let report = FailureReport::from(&SILENT.failure());
        assert_eq!(report.code(), Some(7));
        assert_eq!(report.text(), "sensor silent");
        assert_eq!(report.to_string(), SILENT.to_string());
        assert!(!report.is_panic());
    }

    #[test]
    fn a_text_is_cut_where_a_character_ends() {
        let report = FailureReport::new(&format!("x{}", "ä".repeat(TEXT_LEN_MAX)));
        assert_eq!(report.text().len(), TEXT_LEN_MAX - 1);
        assert!(report.text().ends_with('ä'));
    }

    /// Says something and then that it cannot say more.
    #[derive(Debug)]
    struct Mumbles;

    impl fmt::Display for Mumbles {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("half a ")?;
            Err(fmt::Error)
        }
    }

    impl Error for Mumbles {}

    #[test]
    fn an_error_that_cannot_be_written_is_reported_as_far_as_it_can() {
        assert_eq!(FailureReport::from(&Failure::from(Mumbles)).text(), "half a ");
    }

    #[test]
    fn reports_are_equal_by_what_they_say() {
        let panic = FailureReport::from(&Failure::from(Panicked::new("x")));
        assert_eq!(panic, panic.clone());
        assert_ne!(panic, FailureReport::new("panicked: x"));
        assert_eq!(FailureReport::new("x"), FailureReport::from(&Failure::msg("x")));
        assert!(format!("{panic:?}").contains("panic"));
    }
}
