//! Errors of the net.

use core::fmt;

use crate::NodeId;

/// Why a system cannot join. Permanent, unless the documentation of a predicate says otherwise.
#[derive(Debug)]
pub struct JoinError(pub(crate) JoinErrorKind);

#[derive(Debug)]
pub(crate) enum JoinErrorKind {
    InvalidName,
    RolesTooLong,
    Stopping,
}

impl JoinError {
    /// The name of the node is empty, too long, or contains other characters than ASCII letters,
    /// digits, `-`, `_` and `.`.
    #[must_use]
    pub fn is_invalid_name(&self) -> bool {
        matches!(self.0, JoinErrorKind::InvalidName)
    }

    /// The roles do not fit into a value of the log, which has at most
    /// [`LOG_VALUE_MAX`](crate::LOG_VALUE_MAX) bytes.
    #[must_use]
    pub fn is_roles_too_long(&self) -> bool {
        matches!(self.0, JoinErrorKind::RolesTooLong)
    }

    /// The system shuts down, or a `Net` of this system exists already.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.0, JoinErrorKind::Stopping)
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            JoinErrorKind::InvalidName => {
                "a node needs a name of 1 to 64 ASCII letters, digits, `-`, `_` and `.`"
            }
            JoinErrorKind::RolesTooLong => {
                "the name and the roles of a node have at most 4096 bytes together"
            }
            JoinErrorKind::Stopping => "the system has a net already, or shuts down",
        })
    }
}

impl core::error::Error for JoinError {}

/// Why an actor was not exported, or a key not shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportError(pub(crate) ExportErrorKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExportErrorKind {
    NameTaken,
    InvalidName,
    Full,
    Stopped,
}

impl ExportError {
    /// Another actor is exported under this name, or the key is shared already.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        self.0 == ExportErrorKind::NameTaken
    }

    /// The name is empty or too long.
    #[must_use]
    pub fn is_invalid_name(&self) -> bool {
        self.0 == ExportErrorKind::InvalidName
    }

    /// There are too many exports of actors that run. Transient.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.0 == ExportErrorKind::Full
    }

    /// The actor has stopped, or this node has left.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.0 == ExportErrorKind::Stopped
    }
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ExportErrorKind::NameTaken => "the name is taken",
            ExportErrorKind::InvalidName => "the name is empty or has more than 128 bytes",
            ExportErrorKind::Full => "there are too many exports",
            ExportErrorKind::Stopped => "the actor has stopped, or this node has left",
        })
    }
}

impl core::error::Error for ExportError {}

/// A node is not a member: it is lost, has left, or was not read from the log yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable(pub(crate) NodeId);

impl Unreachable {
    /// The node.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.0
    }
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a member", self.0)
    }
}

impl core::error::Error for Unreachable {}

/// Why an export was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FindError {
    pub(crate) node: NodeId,
    pub(crate) kind: FindErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindErrorKind {
    NotExported,
    Unreachable,
    TimedOut,
}

impl FindError {
    /// The node exports no actor of this name and type.
    #[must_use]
    pub fn is_not_exported(&self) -> bool {
        self.kind == FindErrorKind::NotExported
    }

    /// The node is not a member.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        self.kind == FindErrorKind::Unreachable
    }

    /// There was no answer in time. Transient.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.kind == FindErrorKind::TimedOut
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, kind } = self;
        match kind {
            FindErrorKind::NotExported => {
                write!(f, "{node} exports no actor of this name with these messages")
            }
            FindErrorKind::Unreachable => write!(f, "{node} is not a member"),
            FindErrorKind::TimedOut => write!(f, "{node} has not answered"),
        }
    }
}

impl core::error::Error for FindError {}
