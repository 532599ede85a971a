//! [`Wire`]: messages that travel, and requests that travel as numbers.
//!
//! A `ReplyTo` belongs to its process. The sending side takes it out of the message and keeps it as
//! a [`PendingReply`]; a number travels in its place. The receiving side gets an [`AskFor`], which
//! asks the local actor with a `ReplyTo` of its own and encodes the answer. So `ask` needs no
//! second message type.

use alloc::{boxed::Box, vec::Vec};
use core::{fmt, pin::Pin, time::Duration};

use clockjack_actor::{ActorRef, AskError, ReplyTo};

use crate::{DecodeError, Decoder, EncodeError, Encoder, Field, WireId, error::DecodeErrorKind};

/// How the bytes of a message are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// The format of postcard: compact, and without the names of fields.
    Postcard,
}

/// A message type that travels between nodes: it has a stable name and a version.
///
/// `#[derive(Wire)]` implements the trait; see [`macro@crate::Wire`] (feature `derive`). For plain
/// data, an implementation by hand writes what it likes.
///
/// # Evolution
///
/// Any change of a type that changes its bytes is a new [`VERSION`](Self::VERSION). A program reads
/// all versions from [`OLDEST`](Self::OLDEST) on, and refuses the others with a typed error. The
/// name stays.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message that travels",
    note = "put `#[derive(Wire)]` and `#[wire(id = \"app.Name\")]` on its definition"
)]
pub trait Wire: Sized + Send + 'static {
    /// The stable name of the type.
    const ID: WireId;
    /// The version that [`encode`](Self::encode) writes.
    const VERSION: u16 = 1;
    /// The oldest version that [`decode`](Self::decode) reads.
    const OLDEST: u16 = 1;
    /// How the bytes are written.
    const CODEC: Codec = Codec::Postcard;

    /// Writes the message, and gives its `ReplyTo`, if it has one, to the encoder.
    ///
    /// # Errors
    ///
    /// Returns the message if it is too large or has no encoding. The buffer may contain a part of
    /// it.
    fn encode(self, out: &mut Encoder<'_>) -> Result<(), EncodeError<Self>>;

    /// Reads a message that was written in this version.
    ///
    /// # Errors
    ///
    /// If the version is unknown, or the bytes are not a message of this type.
    fn decode(version: u16, from: &mut Decoder<'_>) -> Result<Decoded<Self>, DecodeError>;
}

/// A message that was read.
#[derive(Debug)]
pub enum Decoded<M> {
    /// A message without a `ReplyTo`.
    Tell(M),
    /// A message with a `ReplyTo`, which is made when the local actor is asked.
    Ask(AskFor<M>),
}

/// A request that was read: everything but its `ReplyTo`.
pub struct AskFor<M> {
    ask: Box<AskFn<M>>,
}

/// The request for an actor, and its answer within a time.
type AskFn<M> = dyn FnOnce(&ActorRef<M>, Duration) -> Result<(M, Answering), AskError> + Send;

/// The future of an answer, as bytes.
pub type Answering = Pin<Box<dyn Future<Output = Result<Vec<u8>, AnswerError>> + Send>>;

impl<M: Send + 'static> AskFor<M> {
    /// A request that `request` completes with the `ReplyTo`; the answer has type `R`.
    pub fn new<R, F>(request: F) -> Self
    where
        R: Field + Send + 'static,
        F: FnOnce(ReplyTo<R>) -> M + Send + 'static,
    {
        Self {
            ask: Box::new(move |target, timeout| {
                let (request, answer) = target.unsent_ask(request, timeout)?;
                let answering: Answering = Box::pin(async move {
                    let answer = answer.await.map_err(AnswerError::Unanswered)?;
                    let mut bytes = Vec::new();
                    let mut out = Encoder::new(&mut bytes, crate::MESSAGE_MAX);
                    answer.write(&mut out).map_err(AnswerError::Unsendable)?;
                    Ok(bytes)
                });
                Ok((request, answering))
            }),
        }
    }

    /// The request with a `ReplyTo` of this process, which the caller sends to a local actor, and
    /// the future of the encoded answer. The time counts from now.
    ///
    /// # Errors
    ///
    /// As [`ActorRef::unsent_ask`].
    pub fn unsent(
        self,
        target: &ActorRef<M>,
        timeout: Duration,
    ) -> Result<(M, Answering), AskError> {
        (self.ask)(target, timeout)
    }
}

impl<M> fmt::Debug for AskFor<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskFor").finish_non_exhaustive()
    }
}

/// Why there is no answer to send back.
#[derive(Debug)]
#[non_exhaustive]
pub enum AnswerError {
    /// The local actor did not answer.
    Unanswered(AskError),
    /// The answer cannot be encoded.
    Unsendable(EncodeError<()>),
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered(error) => error.fmt(f),
            Self::Unsendable(error) => write!(f, "the answer: {error}"),
        }
    }
}

impl core::error::Error for AnswerError {}

/// The `ReplyTo` of a request that has left the process. Dropping it tells the asker that there
/// will be no answer.
pub struct PendingReply(Box<dyn AnyReply>);

/// A `ReplyTo` whose answer type is not known here.
trait AnyReply: Send {
    fn is_wanted(&self) -> bool;
    fn answer(self: Box<Self>, bytes: &[u8]) -> Result<(), DecodeError>;
}

struct TypedReply<R>(ReplyTo<R>);

impl<R: Field + Send + 'static> AnyReply for TypedReply<R> {
    fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    fn answer(self: Box<Self>, bytes: &[u8]) -> Result<(), DecodeError> {
        let answer = read_all(bytes, R::read)?;
        self.0.reply(answer);
        Ok(())
    }
}

impl PendingReply {
    pub(crate) fn new<R: Field + Send + 'static>(reply_to: ReplyTo<R>) -> Self {
        Self(Box::new(TypedReply(reply_to)))
    }

    /// Whether an asker waits for the answer. Once false, it stays false.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Answers with these bytes.
    ///
    /// # Errors
    ///
    /// If the bytes are not an answer; then the asker learns that there is none.
    pub fn answer(self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.0.answer(bytes)
    }
}

impl fmt::Debug for PendingReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingReply").field("is_wanted", &self.is_wanted()).finish()
    }
}

/// Encodes a message into a new buffer of at most [`MESSAGE_MAX`](crate::MESSAGE_MAX) bytes.
///
/// # Errors
///
/// As [`Wire::encode`].
pub fn encode<M: Wire>(message: M) -> Result<(Vec<u8>, Option<PendingReply>), EncodeError<M>> {
    let mut bytes = Vec::new();
    let mut out = Encoder::new(&mut bytes, crate::MESSAGE_MAX);
    message.encode(&mut out)?;
    let reply = out.into_reply();
    Ok((bytes, reply))
}

/// Decodes a message from all of these bytes.
///
/// # Errors
///
/// As [`Wire::decode`]; also if there are more than [`MESSAGE_MAX`](crate::MESSAGE_MAX) bytes, or
/// if bytes follow the message.
pub fn decode<M: Wire>(version: u16, bytes: &[u8]) -> Result<Decoded<M>, DecodeError> {
    check_version::<M>(version)?;
    if bytes.len() > crate::MESSAGE_MAX {
        return Err(DecodeError::new(DecodeErrorKind::TooLarge {
            what: "a message",
            n: bytes.len() as u64,
            max: crate::MESSAGE_MAX as u64,
        }));
    }
    read_all(bytes, |from| M::decode(version, from))
}

/// Whether this program reads the version.
///
/// # Errors
///
/// If it does not.
pub fn check_version<M: Wire>(version: u16) -> Result<(), DecodeError> {
    if (M::OLDEST..=M::VERSION).contains(&version) {
        return Ok(());
    }
    Err(DecodeError::new(DecodeErrorKind::UnknownVersion {
        id: M::ID,
        version,
        oldest: M::OLDEST,
        newest: M::VERSION,
    }))
}

fn read_all<T>(
    bytes: &[u8],
    read: impl FnOnce(&mut Decoder<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut from = Decoder::new(bytes);
    let value = read(&mut from)?;
    from.finish()?;
    Ok(value)
}
