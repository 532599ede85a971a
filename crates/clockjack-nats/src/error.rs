//! Why a node does not join.

use core::{error::Error, fmt};
use std::io;

use crate::SERVER_MIN;

/// Why a node did not join. Permanent, unless the documentation of a predicate says otherwise. The
/// text says what to do.
#[derive(Debug)]
pub struct JoinError(Box<JoinErrorKind>);

#[derive(Debug)]
pub(crate) enum JoinErrorKind {
    /// What is wrong with a field of the settings.
    Config(String),
    /// The host that is not on this machine.
    Insecure(String),
    Unreachable(Box<dyn Error + Send + Sync>),
    TimedOut,
    Credentials(Box<dyn Error + Send + Sync>),
    CredsFile(io::Error),
    Tls(Box<dyn Error + Send + Sync>),
    ServerTooOld(String),
    NoJetStream,
    PayloadTooSmall {
        max: usize,
        needed: usize,
    },
    /// What the server, or this crate, has against the stream of the log.
    Log(String),
    /// What the server refuses, in its words.
    Permissions(String),
    Node(clockjack_net::JoinError),
    Thread(io::Error),
}

impl JoinError {
    pub(crate) fn new(kind: JoinErrorKind) -> Self {
        Self(Box::new(kind))
    }

    /// A field of the settings is invalid; nothing was sent.
    #[must_use]
    pub fn is_invalid_config(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Config(_))
    }

    /// A server that is not on this machine would get no credentials, or the connection would not
    /// be encrypted; nothing was sent.
    #[must_use]
    pub fn is_insecure(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Insecure(_))
    }

    /// No server was reached, or none answered in time. Transient.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Unreachable(_) | JoinErrorKind::TimedOut)
    }

    /// The server does not accept the credentials, or they cannot be read.
    #[must_use]
    pub fn is_credentials(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Credentials(_) | JoinErrorKind::CredsFile(_))
    }

    /// The connection cannot be encrypted as the settings ask for.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Tls(_))
    }

    /// The server is older than [`SERVER_MIN`].
    #[must_use]
    pub fn is_server_too_old(&self) -> bool {
        matches!(*self.0, JoinErrorKind::ServerTooOld(_))
    }

    /// The server, or the account of the node, has no JetStream.
    #[must_use]
    pub fn is_jetstream_missing(&self) -> bool {
        matches!(*self.0, JoinErrorKind::NoJetStream)
    }

    /// The server accepts only messages that are smaller than a pack of frames.
    #[must_use]
    pub fn is_payload_too_small(&self) -> bool {
        matches!(*self.0, JoinErrorKind::PayloadTooSmall { .. })
    }

    /// The log cannot be created or read, or a stream of its name has other settings.
    #[must_use]
    pub fn is_log_refused(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Log(_))
    }

    /// The server refuses something that a node must do: a permission of its user is missing.
    #[must_use]
    pub fn is_permission_missing(&self) -> bool {
        matches!(*self.0, JoinErrorKind::Permissions(_))
    }

    /// The server was reached, but the system does not become a node.
    #[must_use]
    pub fn node_error(&self) -> Option<&clockjack_net::JoinError> {
        match &*self.0 {
            JoinErrorKind::Node(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = SERVER_MIN;
        match &*self.0 {
            JoinErrorKind::Config(what) => write!(f, "the settings are invalid: {what}"),
            JoinErrorKind::Insecure(host) => write!(
                f,
                "{host} is not on this machine: set `auth` and allow TLS, or set `insecure`"
            ),
            JoinErrorKind::Unreachable(_) => f.write_str(
                "no server was reached: check `urls`, and that a nats-server runs there",
            ),
            JoinErrorKind::TimedOut => {
                f.write_str("no server answered in time: check `urls`, or raise `connect_timeout`")
            }
            JoinErrorKind::Credentials(_) => {
                f.write_str("the server does not accept the credentials: check `auth`")
            }
            JoinErrorKind::CredsFile(_) => {
                f.write_str("the file of the credentials cannot be read: check `auth`")
            }
            JoinErrorKind::Tls(_) => f.write_str(
                "the connection cannot be encrypted: check `tls`, `ca_file` and the certificates",
            ),
            JoinErrorKind::ServerTooOld(found) => write!(
                f,
                "the server has version {found}, and {major}.{minor} or newer is needed: upgrade \
                 nats-server"
            ),
            JoinErrorKind::NoJetStream => f.write_str(
                "the server has no JetStream for this account: start nats-server with `-js`, or \
                 enable JetStream for the account",
            ),
            JoinErrorKind::PayloadTooSmall { max, needed } => write!(
                f,
                "the server accepts {max} bytes per message, and {needed} are needed: raise \
                 `max_payload` of the server"
            ),
            JoinErrorKind::Log(what) => write!(f, "the log cannot be used: {what}"),
            JoinErrorKind::Permissions(what) => write!(
                f,
                "the server refuses what a node has to do ({what}): give its user the permissions \
                 that `clockjack cluster permissions` prints"
            ),
            JoinErrorKind::Node(error) => write!(f, "{error}"),
            JoinErrorKind::Thread(_) => f.write_str("the thread of the connection did not start"),
        }
    }
}

impl Error for JoinError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            JoinErrorKind::Unreachable(source)
            | JoinErrorKind::Credentials(source)
            | JoinErrorKind::Tls(source) => Some(&**source),
            JoinErrorKind::CredsFile(source) | JoinErrorKind::Thread(source) => Some(source),
            JoinErrorKind::Node(source) => source.source(),
            _ => None,
        }
    }
}
