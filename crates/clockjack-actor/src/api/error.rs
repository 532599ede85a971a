//! The errors of this crate.
//!
//! An error contains what was refused, returns it to the caller, never prints it, and needs no
//! trait of its type.

use alloc::string::String;
use core::{error::Error, fmt};

use crate::{ActorPath, path::InvalidName};

/// An actor was not started; the error contains the props.
pub struct SpawnError<P> {
    kind: SpawnErrorKind,
    props: P,
}

/// Why an actor was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnErrorKind {
    /// Another child has this name and has not stopped yet. Permanent until it has.
    NameTaken(ActorPath),
    /// The text is not a valid name. Permanent.
    InvalidName(InvalidName),
    /// The props are not valid. Permanent.
    InvalidProps(String),
    /// The maximal number of actors is reached. Transient.
    Full,
    /// The parent or the system is stopping. Permanent.
    Stopping,
    /// There is no such dispatcher, or it cannot run this actor. Permanent.
    NoDispatcher,
    /// The actor is not `Send`, and this is not a thread that it could stay on. Permanent.
    NotLocal,
    /// The system is sealed and allocates no more. Permanent.
    Sealed,
}

impl<P> SpawnError<P> {
    pub(crate) fn new(kind: SpawnErrorKind, props: P) -> Self {
        Self { kind, props }
    }

    /// The reason.
    #[must_use]
    pub fn kind(&self) -> &SpawnErrorKind {
        &self.kind
    }

    /// The props of the actor.
    #[must_use]
    pub fn into_inner(self) -> P {
        self.props
    }

    /// The error without the props.
    #[must_use]
    pub fn discard(self) -> SpawnError<()> {
        SpawnError { kind: self.kind, props: () }
    }
}

impl fmt::Display for SpawnErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken(path) => write!(f, "there is already an actor at {path}"),
            Self::InvalidName(invalid) => invalid.fmt(f),
            Self::InvalidProps(why) => write!(f, "the props are not valid: {why}"),
            Self::Full => f.write_str("the maximal number of actors is reached"),
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

/// The actor is not a child of the actor that tried to stop it.
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

/// A watch was refused; the error contains the message.
pub struct WatchError<M> {
    pub(crate) path: ActorPath,
    pub(crate) message: M,
}

impl<M> WatchError<M> {
    /// The message that was to be sent on termination.
    #[must_use]
    pub fn into_inner(self) -> M {
        self.message
    }

    /// The error without the message.
    #[must_use]
    pub fn discard(self) -> WatchError<()> {
        WatchError { path: self.path, message: () }
    }
}

impl<M> fmt::Display for WatchError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is already watched in another way: `unwatch` it first", self.path)
    }
}

impl<M> fmt::Debug for WatchError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchError").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<M> Error for WatchError<M> {}

/// The stash has no room for the message; the error contains the message.
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

    /// The error without the message.
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
    /// The text is not a path: it does not begin with `/`, or contains an empty name.
    NotAPath(String),
    /// There is no such actor.
    NotFound(String),
    /// There is one, but it accepts messages of another type.
    OtherMessages(ActorPath),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPath(text) => write!(f, "`{text}` is not a path"),
            Self::NotFound(text) => write!(f, "there is no actor at {text}"),
            Self::OtherMessages(path) => write!(f, "{path} takes messages of another type"),
        }
    }
}

impl Error for LookupError {}
