//! [`OpenError`].

use core::{error::Error, fmt};
use std::io;
#[cfg(unix)]
use std::path::Path;

/// The console could not be opened.
#[derive(Debug)]
pub struct OpenError {
    kind: Kind,
    what: String,
    source: Option<io::Error>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    InUse,
    NoDirectory,
    Insecure,
    Other,
}

impl OpenError {
    fn new(kind: Kind, what: impl Into<String>) -> Self {
        Self { kind, what: what.into(), source: None }
    }

    fn caused_by(self, source: io::Error) -> Self {
        Self { source: Some(source), ..self }
    }

    pub(super) fn listen(source: io::Error) -> Self {
        let is_in_use = source.kind() == io::ErrorKind::AddrInUse;
        let kind = if is_in_use { Kind::InUse } else { Kind::Other };
        Self::new(kind, "cannot listen").caused_by(source)
    }

    pub(super) fn thread(source: io::Error) -> Self {
        Self::new(Kind::Other, "cannot start the console's thread").caused_by(source)
    }

    pub(super) fn no_entropy() -> Self {
        Self::new(Kind::Other, "the operating system has no random numbers for a token")
    }

    /// `cfg(not(unix))`.
    #[cfg_attr(unix, expect(dead_code, reason = "there are sockets here"))]
    pub(super) fn no_sockets() -> Self {
        let what = "there are no unix sockets on this system: bind it to `Bind::Loopback(0)`";
        Self::new(Kind::NoDirectory, what)
    }
}

#[cfg(unix)]
impl OpenError {
    pub(super) fn no_directory(path: &Path, source: io::Error) -> Self {
        let what = format!("cannot make the directory '{}'", path.display());
        Self::new(Kind::NoDirectory, what).caused_by(source)
    }

    pub(super) fn insecure(path: &Path, why: &str) -> Self {
        Self::new(Kind::Insecure, format!("'{}' {why}", path.display()))
    }

    pub(super) fn in_use(path: &Path) -> Self {
        Self::new(Kind::InUse, format!("'{}' exists", path.display()))
    }
}

impl OpenError {
    /// Whether the address is in use; another one may be free.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.kind == Kind::InUse
    }

    /// Whether there is no directory for the socket, and none could be made.
    #[must_use]
    pub fn is_no_directory(&self) -> bool {
        self.kind == Kind::NoDirectory
    }

    /// Whether others than this user can reach the socket's directory.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        self.kind == Kind::Insecure
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot open the console: ")?;
        f.write_str(&self.what)
    }
}

impl Error for OpenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
