//! Frames: what travels on a link between two nodes, packed.
//!
//! ```text
//! pack    protocol (1) | from: incarnation (8) | to: incarnation (8) | frame ..
//! frame   length: varint | kind (1) | channel: varint | fields of the kind
//! message                  .. | number | request, or 0 | type hash (8) | version
//!                             | time left in ms + 1, or 0 | 0, or 1 and trace (16) | body
//! ```
//!
//! The length makes a frame skippable: a newer node may send one of an unknown kind, and the reader
//! reports it, as it does with malformed fields, and continues with the next frame. A pack with a
//! malformed length is refused from there on, because nothing says where the next frame begins.

use alloc::vec::Vec;

use crate::{DecodeError, Decoder, EncodeError, Encoder, error::DecodeErrorKind};

/// The version of this layout, the first byte of a pack.
pub const PROTOCOL: u8 = 1;

/// The most frames of a pack.
pub const FRAMES_MAX: usize = 4_096;

/// The most bytes of a message, without its frame: a server's limit of 1 MiB less 256 bytes.
pub const MESSAGE_MAX: usize = (1 << 20) - 256;

/// What a message counts in the window of a link, in addition to its body.
pub const MESSAGE_OVERHEAD: u64 = 64;

/// The most bytes of the name of an export.
pub const EXPORT_NAME_MAX: usize = 128;

/// The most bytes of a pack.
pub const PACK_MAX: usize = 1 << 20;

/// The length of the header of a pack.
pub const PACK_HEADER: usize = 17;

/// One frame. Numbers count from one and are absolute, so a lost frame loses no credit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// A message for the target of a channel.
    Message(Message<'a>),
    /// Sender to receiver: opens a channel to an export for messages of this type.
    Open {
        /// The channel, numbered by the sender.
        channel: u64,
        /// The number of the export at the receiver.
        export: u64,
        /// The hash of the message type.
        type_hash: u64,
        /// The version of the messages.
        version: u16,
    },
    /// Receiver to sender: the number of the last message that the sender may send, and of the last
    /// one that has arrived. The first one confirms the opening.
    Grant {
        /// The channel.
        channel: u64,
        /// The number of the last message that may be sent.
        limit: u64,
        /// The number of the last message that has arrived.
        received: u64,
    },
    /// Sender to receiver: the number of the last message that was sent. The receiver answers with
    /// a grant.
    Query {
        /// The channel.
        channel: u64,
        /// The number of the last message that was sent.
        sent: u64,
    },
    /// Receiver to sender: the target of the channel has stopped, or was never there.
    End {
        /// The channel.
        channel: u64,
        /// Why.
        cause: EndCause,
    },
    /// Sender to receiver: the channel is no longer used; also the answer to an end.
    Close {
        /// The channel.
        channel: u64,
    },
    /// Receiver to sender: the answer to a request of the channel.
    Answer {
        /// The channel.
        channel: u64,
        /// The number of the request.
        request: u64,
        /// The encoded answer; none if there will be no answer.
        body: Option<&'a [u8]>,
    },
    /// Asks which export has a name.
    Find {
        /// The number of the question.
        request: u64,
        /// The hash of the message type.
        type_hash: u64,
        /// The name.
        name: &'a str,
    },
    /// The answer to a question.
    Found {
        /// The number of the question.
        request: u64,
        /// The number of the export; zero if there is none of that name and type.
        export: u64,
    },
    /// Shows that the sender's subject has a subscriber.
    Ping,
    /// Sender to receiver: how many bytes of messages were sent on this link, in all channels. The
    /// receiver answers with a grant of the link.
    LinkQuery {
        /// How many bytes, each message with [`MESSAGE_OVERHEAD`] more than its body.
        sent: u64,
    },
    /// Receiver to sender: how many bytes of messages may be sent on this link, in all channels,
    /// and how many have arrived or are known to be lost.
    LinkGrant {
        /// How many bytes may be sent.
        limit: u64,
        /// How many have arrived or are lost.
        received: u64,
    },
    /// Sender to receiver: nobody waits for the answer to a request any more. A receiver that has
    /// not passed the request on drops it.
    Forget {
        /// The channel.
        channel: u64,
        /// The number of the request.
        request: u64,
    },
}

/// A message in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The channel.
    pub channel: u64,
    /// The number of the message on its channel, from one.
    pub number: u64,
    /// The number of the request, from one; zero if no answer is expected.
    pub request: u64,
    /// The hash of the type's name.
    pub type_hash: u64,
    /// The version of the type.
    pub version: u16,
    /// The time that is left for the answer, in milliseconds.
    pub time_left_ms: Option<u64>,
    /// The trace context.
    pub trace: Option<[u8; 16]>,
    /// The encoded message.
    pub body: &'a [u8],
}

/// Why a channel ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndCause {
    /// The target has stopped.
    Stopped,
    /// The target has stopped because it failed.
    Failed,
    /// The node has no such export.
    NotExported,
    /// The export takes messages of another type, or does not read this version.
    OtherType,
    /// The receiver no longer knows the channel.
    Unknown,
}

impl EndCause {
    const ALL: [Self; 5] =
        [Self::Stopped, Self::Failed, Self::NotExported, Self::OtherType, Self::Unknown];
}

const MESSAGE: u8 = 1;
const OPEN: u8 = 2;
const GRANT: u8 = 3;
const QUERY: u8 = 4;
const END: u8 = 5;
const CLOSE: u8 = 6;
const ANSWER: u8 = 7;
const FIND: u8 = 8;
const FOUND: u8 = 9;
const PING: u8 = 10;
const LINK_QUERY: u8 = 11;
const LINK_GRANT: u8 = 12;
const FORGET: u8 = 13;

/// Begins a pack from one incarnation to another.
#[must_use]
pub fn begin_pack(from: u64, to: u64) -> Vec<u8> {
    let mut pack = Vec::with_capacity(PACK_HEADER);
    pack.push(PROTOCOL);
    pack.extend_from_slice(&from.to_le_bytes());
    pack.extend_from_slice(&to.to_le_bytes());
    pack
}

/// Appends a frame to a pack.
///
/// # Errors
///
/// If the pack would have more than [`PACK_MAX`] bytes; then the pack is unchanged.
pub fn push_frame(pack: &mut Vec<u8>, frame: &Frame<'_>) -> Result<(), EncodeError<()>> {
    let mut bytes = Vec::new();
    write_frame(frame, &mut Encoder::new(&mut bytes, PACK_MAX))?;
    let start = pack.len();
    let mut out = Encoder::new(pack, PACK_MAX.saturating_sub(start));
    let written = out.length(bytes.len()).and_then(|()| out.bytes(&bytes));
    if written.is_err() {
        pack.truncate(start);
    }
    written
}

fn write_frame(frame: &Frame<'_>, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
    let numbers = |out: &mut Encoder<'_>, kind: u8, numbers: &[u64]| {
        out.bytes(&[kind])?;
        numbers.iter().try_for_each(|number| out.varint(u128::from(*number)))
    };
    match *frame {
        Frame::Message(ref message) => write_message(message, out),
        Frame::Open { channel, export, type_hash, version } => {
            numbers(out, OPEN, &[channel, export])?;
            out.bytes(&type_hash.to_le_bytes())?;
            out.varint(u128::from(version))
        }
        Frame::Grant { channel, limit, received } => {
            numbers(out, GRANT, &[channel, limit, received])
        }
        Frame::Query { channel, sent } => numbers(out, QUERY, &[channel, sent]),
        Frame::End { channel, cause } => {
            let code = EndCause::ALL.iter().position(|one| *one == cause).unwrap_or_default();
            numbers(out, END, &[channel, code as u64])
        }
        Frame::Close { channel } => numbers(out, CLOSE, &[channel]),
        Frame::Answer { channel, request, body } => {
            numbers(out, ANSWER, &[channel, request, u64::from(body.is_some())])?;
            out.bytes(body.unwrap_or_default())
        }
        Frame::Find { request, type_hash, name } => {
            numbers(out, FIND, &[request])?;
            out.bytes(&type_hash.to_le_bytes())?;
            out.bytes(name.as_bytes())
        }
        Frame::Found { request, export } => numbers(out, FOUND, &[request, export]),
        Frame::Ping => out.bytes(&[PING]),
        Frame::LinkQuery { sent } => numbers(out, LINK_QUERY, &[sent]),
        Frame::LinkGrant { limit, received } => numbers(out, LINK_GRANT, &[limit, received]),
        Frame::Forget { channel, request } => numbers(out, FORGET, &[channel, request]),
    }
}

fn write_message(message: &Message<'_>, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
    out.bytes(&[MESSAGE])?;
    for number in [message.channel, message.number, message.request] {
        out.varint(u128::from(number))?;
    }
    out.bytes(&message.type_hash.to_le_bytes())?;
    out.varint(u128::from(message.version))?;
    // The largest time is read as one millisecond less.
    out.varint(message.time_left_ms.map_or(0, |ms| u128::from(ms.saturating_add(1))))?;
    out.bytes(&[u8::from(message.trace.is_some())])?;
    out.bytes(message.trace.as_ref().map_or(&[], |trace| trace.as_slice()))?;
    out.bytes(message.body)
}

/// A pack that is being read.
#[derive(Debug)]
pub struct Pack<'a> {
    /// The incarnation that claims to have sent the pack.
    pub from: u64,
    /// The incarnation that the pack is for.
    pub to: u64,
    frames: Decoder<'a>,
    n_frames: usize,
    is_broken: bool,
}

impl<'a> Pack<'a> {
    /// Reads the header of a pack.
    ///
    /// # Errors
    ///
    /// If it is not a pack of this protocol, or too large.
    pub fn read(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        if bytes.len() > PACK_MAX {
            return Err(DecodeError::new(DecodeErrorKind::TooLarge {
                what: "a pack",
                n: bytes.len() as u64,
                max: PACK_MAX as u64,
            }));
        }
        let mut frames = Decoder::new(bytes);
        if frames.array()? != [PROTOCOL] {
            return Err(DecodeError::invalid("pack: it has another protocol"));
        }
        let from = u64::from_le_bytes(frames.array()?);
        let to = u64::from_le_bytes(frames.array()?);
        Ok(Self { from, to, frames, n_frames: 0, is_broken: false })
    }
}

/// Yields each frame. A frame of an unknown kind, or with malformed fields, is an error and does
/// not end the pack; a malformed length ends it.
impl<'a> Iterator for Pack<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken || self.frames.left() == 0 {
            return None;
        }
        self.n_frames += 1;
        if self.n_frames > FRAMES_MAX {
            self.is_broken = true;
            return Some(Err(DecodeError::new(DecodeErrorKind::TooLarge {
                what: "a pack of frames",
                n: self.n_frames as u64,
                max: FRAMES_MAX as u64,
            })));
        }
        // A u32: the length of a pack is checked, so the conversion cannot fail.
        let length = self.frames.varint(32).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        match length.and_then(|n| self.frames.bytes(n)) {
            Ok(bytes) => Some(read_frame(Decoder::new(bytes))),
            Err(error) => {
                self.is_broken = true;
                Some(Err(error))
            }
        }
    }
}

fn number(from: &mut Decoder<'_>) -> Result<u64, DecodeError> {
    u64::try_from(from.varint(64)?).map_err(|_| DecodeError::invalid("number"))
}

fn version(from: &mut Decoder<'_>) -> Result<u16, DecodeError> {
    u16::try_from(from.varint(16)?).map_err(|_| DecodeError::invalid("version"))
}

fn hash(from: &mut Decoder<'_>) -> Result<u64, DecodeError> {
    from.array().map(u64::from_le_bytes)
}

fn rest<'a>(
    from: &mut Decoder<'a>,
    what: &'static str,
    max: usize,
) -> Result<&'a [u8], DecodeError> {
    let n = from.left();
    if n > max {
        let kind = DecodeErrorKind::TooLarge { what, n: n as u64, max: max as u64 };
        return Err(DecodeError::new(kind));
    }
    from.bytes(n)
}

fn read_frame(mut from: Decoder<'_>) -> Result<Frame<'_>, DecodeError> {
    let [kind] = from.array()?;
    let frame = match kind {
        MESSAGE => Frame::Message(read_message(&mut from)?),
        OPEN => Frame::Open {
            channel: number(&mut from)?,
            export: number(&mut from)?,
            type_hash: hash(&mut from)?,
            version: version(&mut from)?,
        },
        GRANT => Frame::Grant {
            channel: number(&mut from)?,
            limit: number(&mut from)?,
            received: number(&mut from)?,
        },
        QUERY => Frame::Query { channel: number(&mut from)?, sent: number(&mut from)? },
        END => {
            let (channel, code) = (number(&mut from)?, number(&mut from)?);
            let cause = usize::try_from(code).ok().and_then(|at| EndCause::ALL.get(at));
            Frame::End { channel, cause: cause.copied().unwrap_or(EndCause::Unknown) }
        }
        CLOSE => Frame::Close { channel: number(&mut from)? },
        ANSWER => {
            let (channel, request) = (number(&mut from)?, number(&mut from)?);
            let body = match number(&mut from)? {
                0 => None,
                1 => Some(rest(&mut from, "an answer", MESSAGE_MAX)?),
                _ => return Err(DecodeError::invalid("answer")),
            };
            Frame::Answer { channel, request, body }
        }
        FIND => {
            let (request, type_hash) = (number(&mut from)?, hash(&mut from)?);
            let name = rest(&mut from, "the name of an export", EXPORT_NAME_MAX)?;
            let name = str::from_utf8(name).map_err(|_| DecodeError::invalid("UTF-8 text"))?;
            Frame::Find { request, type_hash, name }
        }
        FOUND => Frame::Found { request: number(&mut from)?, export: number(&mut from)? },
        PING => Frame::Ping,
        LINK_QUERY => Frame::LinkQuery { sent: number(&mut from)? },
        LINK_GRANT => Frame::LinkGrant { limit: number(&mut from)?, received: number(&mut from)? },
        FORGET => Frame::Forget { channel: number(&mut from)?, request: number(&mut from)? },
        _ => return Err(DecodeError::new(DecodeErrorKind::UnknownKind(kind))),
    };
    from.finish()?;
    Ok(frame)
}

fn read_message<'a>(from: &mut Decoder<'a>) -> Result<Message<'a>, DecodeError> {
    Ok(Message {
        channel: number(from)?,
        number: number(from)?,
        request: number(from)?,
        type_hash: hash(from)?,
        version: version(from)?,
        time_left_ms: number(from)?.checked_sub(1),
        trace: match from.array()? {
            [0] => None,
            [1] => Some(from.array()?),
            _ => return Err(DecodeError::invalid("trace context")),
        },
        body: rest(from, "a message", MESSAGE_MAX)?,
    })
}
