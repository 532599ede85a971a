//! The errors of this crate: one per family of operations.
//!
//! An error contains what was refused, returns it to the caller, never prints it, and needs no
//! trait of its type. Its reason is private and is asked for by `is_*`.

use alloc::string::String;
use core::{error::Error, fmt};

use crate::ActorPath;

/// An actor was not started; the error contains the props.
pub struct SpawnError<P> {
    kind: SpawnErrorKind,
    props: P,
}

/// Why an actor was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpawnErrorKind {
    NameTaken(ActorPath),
    InvalidName { name: String, reason: &'static str },
    InvalidProps(String),
    Full,
    Stopping,
    NoDispatcher,
    NotLocal,
    Sealed,
}

impl<P> SpawnError<P> {
    pub(crate) fn new(kind: SpawnErrorKind, props: P) -> Self {
        Self { kind, props }
    }

    /// Whether another child has this name and has not stopped yet. Permanent until it has.
    #[must_use]
    pub fn is_name_taken(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::NameTaken(_))
    }

    /// Whether the text is not a valid name. Permanent.
    #[must_use]
    pub fn is_invalid_name(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::InvalidName { .. })
    }

    /// Whether the props contradict each other. Permanent.
    #[must_use]
    pub fn is_invalid_props(&self) -> bool {
        matches!(self.kind, SpawnErrorKind::InvalidProps(_))
    }

    /// Whether the maximal number of actors is reached. Transient.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.kind == SpawnErrorKind::Full
    }

    /// Whether the parent or the system is stopping. Permanent.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.kind == SpawnErrorKind::Stopping
    }

    /// Whether there is no such dispatcher, or it cannot run this actor. Permanent.
    #[must_use]
    pub fn is_no_dispatcher(&self) -> bool {
        self.kind == SpawnErrorKind::NoDispatcher
    }

    /// Whether the actor is not `Send`, and this is not a thread that it could stay on. Permanent.
    #[must_use]
    pub fn is_not_local(&self) -> bool {
        self.kind == SpawnErrorKind::NotLocal
    }

    /// Whether the system is sealed and allocates no more. Permanent.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.kind == SpawnErrorKind::Sealed
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

impl<P> fmt::Display for SpawnError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the actor was not started: ")?;
        match &self.kind {
            SpawnErrorKind::NameTaken(path) => write!(f, "there is already an actor at {path}"),
            SpawnErrorKind::InvalidName { name, reason } => {
                write!(f, "`{name}` is not a valid name: {reason}")
            }
            SpawnErrorKind::InvalidProps(why) => write!(f, "the props are not valid: {why}"),
            SpawnErrorKind::Full => f.write_str("the maximal number of actors is reached"),
            SpawnErrorKind::Stopping => f.write_str("the parent is stopping"),
            SpawnErrorKind::NoDispatcher => f.write_str("there is no such dispatcher"),
            SpawnErrorKind::NotLocal => {
                f.write_str("an actor that is not `Send` needs a thread that it stays on")
            }
            SpawnErrorKind::Sealed => f.write_str("the system is sealed and allocates no more"),
        }
    }
}

impl<P> fmt::Debug for SpawnError<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<P> Error for SpawnError<P> {}

/// A request of an actor, or one about an actor, was refused; the error contains what was given:
/// the message of a stash or a watch, the future and its continuation, or nothing.
pub struct ActorError<T> {
    pub(crate) kind: ActorErrorKind,
    pub(crate) given: T,
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ActorErrorKind {
    NotAChild(ActorPath),
    AlreadyWatched(ActorPath),
    StashFull { capacity: usize },
    TooManyFutures,
    AlreadyWaiting,
    NotLocal,
    Stopping,
    Sealed,
}

impl<T> ActorError<T> {
    pub(crate) fn new(kind: ActorErrorKind, given: T) -> Self {
        Self { kind, given }
    }

    /// Whether the actor is not a child of the actor that tried to stop it. Permanent.
    #[must_use]
    pub fn is_not_a_child(&self) -> bool {
        matches!(self.kind, ActorErrorKind::NotAChild(_))
    }

    /// Whether the other actor is already watched in another way. Permanent until it is unwatched.
    #[must_use]
    pub fn is_already_watched(&self) -> bool {
        matches!(self.kind, ActorErrorKind::AlreadyWatched(_))
    }

    /// Whether the stash has no room. Transient.
    #[must_use]
    pub fn is_stash_full(&self) -> bool {
        matches!(self.kind, ActorErrorKind::StashFull { .. })
    }

    /// Whether as many futures are running as [`Props::futures_max`](crate::Props::futures_max)
    /// allows. Transient.
    #[must_use]
    pub fn is_too_many_futures(&self) -> bool {
        self.kind == ActorErrorKind::TooManyFutures
    }

    /// Whether the actor already waits for another future. Transient.
    #[must_use]
    pub fn is_already_waiting(&self) -> bool {
        self.kind == ActorErrorKind::AlreadyWaiting
    }

    /// Whether the future is not `Send`, and the actor may change threads. Permanent.
    #[must_use]
    pub fn is_not_local(&self) -> bool {
        self.kind == ActorErrorKind::NotLocal
    }

    /// Whether the actor stops or restarts. Permanent.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.kind == ActorErrorKind::Stopping
    }

    /// Whether the future does not fit into the buffer of the actor, and the system is sealed and
    /// allocates no more. Permanent.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.kind == ActorErrorKind::Sealed
    }

    /// What was given: a message, or a future and its continuation.
    #[must_use]
    pub fn into_inner(self) -> T {
        self.given
    }

    /// The error without what was given.
    #[must_use]
    pub fn discard(self) -> ActorError<()> {
        ActorError { kind: self.kind, given: () }
    }
}

impl<T> fmt::Display for ActorError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ActorErrorKind::NotAChild(path) => {
                write!(f, "{path} is not a child of this actor: only its parent may stop it")
            }
            ActorErrorKind::AlreadyWatched(path) => {
                write!(f, "{path} is already watched in another way: `unwatch` it first")
            }
            ActorErrorKind::StashFull { capacity: 0 } => {
                f.write_str("the actor has no stash: give it one by `Props::stash`")
            }
            ActorErrorKind::StashFull { capacity } => {
                write!(f, "the stash has no room: it holds {capacity} messages")
            }
            ActorErrorKind::TooManyFutures => {
                f.write_str("the future was not started: the actor has reached its limit")
            }
            ActorErrorKind::AlreadyWaiting => {
                f.write_str("the future was not started: the actor already waits for another one")
            }
            ActorErrorKind::NotLocal => f.write_str(
                "the future was not started: one that is not `Send` needs an actor that stays on \
                 its thread",
            ),
            ActorErrorKind::Stopping => {
                f.write_str("the future was not started: the actor is stopping")
            }
            ActorErrorKind::Sealed => f.write_str(
                "the future was not started: it does not fit into the buffer of the actor, and \
                 the system is sealed",
            ),
        }
    }
}

impl<T> fmt::Debug for ActorError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActorError").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl<T> Error for ActorError<T> {}

/// No actor was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookupError {
    kind: LookupErrorKind,
    path: String,
}

/// Why no actor was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookupErrorKind {
    NotAPath,
    NotFound,
    OtherMessages,
}

impl LookupError {
    pub(crate) fn new(kind: LookupErrorKind, path: &str) -> Self {
        Self { kind, path: path.into() }
    }

    /// Whether the text is not a path: it does not begin with `/`, or contains an empty name.
    #[must_use]
    pub fn is_not_a_path(&self) -> bool {
        self.kind == LookupErrorKind::NotAPath
    }

    /// Whether there is no such actor.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.kind == LookupErrorKind::NotFound
    }

    /// Whether there is one, but it accepts messages of another type.
    #[must_use]
    pub fn is_other_messages(&self) -> bool {
        self.kind == LookupErrorKind::OtherMessages
    }
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.kind {
            LookupErrorKind::NotAPath => write!(f, "`{path}` is not a path"),
            LookupErrorKind::NotFound => write!(f, "there is no actor at {path}"),
            LookupErrorKind::OtherMessages => write!(f, "{path} takes messages of another type"),
        }
    }
}

impl Error for LookupError {}
