//! What calls of this crate are refused with.
//!
//! What was refused comes back; an error never prints it, and needs nothing of its type.

use alloc::string::String;
use core::{error::Error, fmt};

use crate::{ActorPath, path::InvalidName};

/// An actor was not started; the props come back.
pub struct SpawnError<P> {
    kind: SpawnErrorKind,
    props: P,
}

/// Why an actor was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// Another child has this name, or has not ended yet. Permanent until it has.
    NameTaken(ActorPath),
    /// The text cannot be a name. Permanent.
    InvalidName(InvalidName),
    /// What was set for it cannot be. Permanent.
    InvalidProps(String),
    /// There are as many actors as there may be. Transient.
    Full,
    /// The parent or the system stops. Permanent.
    Stopping,
    /// There is no such dispatcher, or it cannot take this actor. Permanent.
    NoDispatcher,
    /// It is not `Send`, and this is not a thread that it could stay on. Permanent.
    NotLocal,
    /// The system allocates no more, since it was sealed. Permanent.
    Sealed,
}

impl<P> SpawnError<P> {
    pub(crate) fn new(kind: SpawnErrorKind, props: P) -> Self {
        Self { kind, props }
    }

    /// Why.
    #[must_use]
    pub fn kind(&self) -> &SpawnErrorKind {
        &self.kind
    }

    /// What was to be spawned.
    #[must_use]
    pub fn into_inner(self) -> P {
        self.props
    }

    /// The error alone.
    #[must_use]
    pub fn discard(self) -> SpawnError<()> {
        SpawnError { kind: self.kind, props: () }
    }
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(path) => write!(f, "there is an actor at {path} already"),
            Self::InvalidName(invalid) => invalid.fmt(f),
            Self::InvalidProps(why) => write!(f, "the props are not valid: {why}"),
            Self::Full => f.write_str("there are as many actors as there may be"),
            Self::Stopping => f.write_str("the parent is stopping"),
            Self::NoDispatcher => f.write_str("there is no such dispatcher"),
            Self::NotLocal => {
                f.write_str("an actor that is not `Send` needs a thread that it stays on")
            }
            Self::Sealed => f.write_str("the system is sealed and allocates no more"),
        }
    }
}

impl<P> fmt::Display for SpawnError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the actor was not started: {}", self.kind)
    }
}

impl<P> fmt::Debug for SpawnError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<P> Error for SpawnError<P> {}

/// The actor is not a child of the one that was to stop it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAChild {
    pub(crate) path: ActorPath,
}

impl fmt::Display for NotAChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not a child of this actor: only its parent may stop it", self.path)
    }
}

impl Error for NotAChild {}

/// A watch was refused; the message comes back.
pub struct WatchError<M> {
    pub(crate) path: ActorPath,
    pub(crate) message: M,
}

impl<M> WatchError<M> {
    /// What was to be sent at the end.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.message
    }

    /// The error alone.
    #[must_use]
    pub fn discard(self) -> WatchError<()> {
        WatchError { path: self.path, message: () }
    }
}

impl<M> fmt::Display for WatchError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is watched in another way already: `unwatch` it first", self.path)
    }
}

impl<M> fmt::Debug for WatchError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchError").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<M> Error for WatchError<M> {}

/// The stash has no room for the message, which comes back.
pub struct StashFull<M> {
    pub(crate) capacity: usize,
    pub(crate) message: M,
}

impl<M> StashFull<M> {
    /// The message.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.message
    }

    /// The error alone.
    #[must_use]
    pub fn discard(self) -> StashFull<()> {
        StashFull { capacity: self.capacity, message: () }
    }
}

impl<M> fmt::Display for StashFull<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.capacity {
            0 => f.write_str("the actor has no stash: give it one by `Props::stash`"),
            capacity => write!(f, "the stash has no room: it holds {capacity} messages"),
        }
    }
}

impl<M> fmt::Debug for StashFull<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StashFull").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}

impl<M> Error for StashFull<M> {}

/// No actor was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// The text is no path: it does not begin with `/`, or has an empty name in it.
    NotAPath(String),
    /// There is no such actor.
    NotFound(String),
    /// There is one, and it takes messages of another type.
    OtherMessages(ActorPath),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPath(text) => write!(f, "`{text}` is no path"),
            Self::NotFound(text) => write!(f, "there is no actor at {text}"),
            Self::OtherMessages(path) => write!(f, "{path} takes messages of another type"),
        }
    }
}

impl Error for LookupError {}
