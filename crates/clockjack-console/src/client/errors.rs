//! Why a client has no answer.

use core::{error::Error, fmt};
use std::io;

use crate::Address;

/// A request without the answer that was wanted.
#[derive(Debug)]
pub struct ClientError(Kind);

#[derive(Debug)]
enum Kind {
    Io(io::Error),
    Malformed(String),
    Refused(u16, String),
}

impl ClientError {
    pub(crate) const fn io(error: io::Error) -> Self {
        Self(Kind::Io(error))
    }

    pub(super) const fn malformed(why: String) -> Self {
        Self(Kind::Malformed(why))
    }

    pub(super) fn refused(status: u16, why: &str) -> Self {
        Self(Kind::Refused(status, why.to_owned()))
    }

    /// Whether the program did not answer at all.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        matches!(self.0, Kind::Io(_))
    }

    /// Whether the program has nothing of the name that was asked for.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.0, Kind::Refused(404, _))
    }

    /// Whether the request was invalid, for example its filter.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        matches!(self.0, Kind::Refused(400, _))
    }

    /// Whether the token is missing or wrong, or the program does not allow the request.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        matches!(self.0, Kind::Refused(401 | 403 | 429, _))
    }

    /// Whether the program has no room for another client; a retry can succeed.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self.0, Kind::Refused(503, _))
    }

    /// Whether nobody listens at the address any more.
    pub(super) fn is_refused_connection(&self) -> bool {
        matches!(&self.0, Kind::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused)
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Io(error) => write!(f, "the program does not answer: {error}"),
            Kind::Malformed(why) => write!(f, "the answer is not that of a console: {why}"),
            Kind::Refused(503, _) => f.write_str("the program has eight clients already"),
            Kind::Refused(status, why) if why.is_empty() => write!(f, "refused with {status}"),
            Kind::Refused(_, why) => f.write_str(why),
        }
    }
}

impl Error for ClientError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            Kind::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// There is no connection.
#[derive(Debug)]
pub struct ConnectError {
    what: String,
    source: Option<ClientError>,
    is_other_version: bool,
}

impl ConnectError {
    fn new(what: String) -> Self {
        Self { what, source: None, is_other_version: false }
    }

    pub(super) fn request(to: &Address, source: ClientError) -> Self {
        Self { source: Some(source), ..Self::new(format!("cannot connect to {to}")) }
    }

    pub(super) fn no_console(to: &Address) -> Self {
        Self::new(format!("{to} is not the console of a Clockjack program"))
    }

    pub(super) fn other_version(to: &Address, schema: &str) -> Self {
        let what = format!("{to} speaks {schema}, and this program {}", crate::view::SCHEMA);
        Self { is_other_version: true, ..Self::new(what) }
    }

    pub(super) const fn no_program(what: String) -> Self {
        Self { what, source: None, is_other_version: false }
    }

    /// Whether the program speaks another major version of the protocol.
    #[must_use]
    pub fn is_other_version(&self) -> bool {
        self.is_other_version
    }

    /// Whether the token is missing or wrong.
    #[must_use]
    pub fn is_not_allowed(&self) -> bool {
        self.source.as_ref().is_some_and(ClientError::is_not_allowed)
    }

    /// Whether the program was killed, and its socket is all that is left.
    pub(super) fn is_stale(&self) -> bool {
        self.source.as_ref().is_some_and(ClientError::is_refused_connection)
    }
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Error for ConnectError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
