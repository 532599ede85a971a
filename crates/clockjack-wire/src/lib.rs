//! The wire format: how messages of actors travel between nodes.
//!
//! * [`Wire`] is a message type with a stable name and a version; [`Field`] is a value that can be
//!   a part of a message. Both have one derive, `#[derive(Wire)]`.
//! * [`Encoder`] and [`Decoder`] write and read the format of
//!   [postcard](https://postcard.jamesmunns.com/wire-format), without a dependency.
//! * [`frame`] packs messages, and what controls their flow, into one publish.
//!
//! # Examples
//!
//! ```
//! use clockjack_actor::ReplyTo;
//! use clockjack_macros::Wire;
//! use clockjack_wire::{Decoded, decode, encode};
//!
//! #[derive(Wire)]
//! #[wire(id = "demo.Counter")]
//! enum Msg {
//!     Add(u64),
//!     Sum(ReplyTo<u64>),
//! }
//!
//! let (bytes, reply) = encode(Msg::Add(300))?;
//! assert_eq!(bytes, [0, 0xac, 0x02]);
//! assert!(reply.is_none(), "it is no request");
//! assert!(matches!(decode::<Msg>(1, &bytes)?, Decoded::Tell(Msg::Add(300))));
//!
//! // The number of a variant, without the `ReplyTo`: that stays in its process.
//! assert!(matches!(decode::<Msg>(1, &[1])?, Decoded::Ask(_)));
//!
//! assert!(decode::<Msg>(2, &bytes).is_err_and(|error| error.is_unknown_version()));
//! assert!(decode::<Msg>(1, &[7]).is_err_and(|error| error.is_malformed()));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! # Bytes are not trusted
//!
//! No bytes make the decoder panic, overflow the stack, or allocate more than [`MEMORY_MAX`] per
//! message. Every refusal is a [`DecodeError`], whose predicates tell an unknown type, an unknown
//! version, a value that is too large, and garbage apart.
#![no_std]

extern crate alloc;

mod decoder;
mod encoder;
mod error;
mod field;
pub mod frame;
mod id;
mod message;

#[cfg(feature = "derive")]
pub use clockjack_macros::Wire;
pub use decoder::Decoder;
pub use encoder::Encoder;
pub use error::{DecodeError, EncodeError};
pub use field::Field;
pub use frame::MESSAGE_MAX;
pub use id::{NAME_MAX, WireId};
pub use message::{
    AnswerError, Answering, AskFor, Codec, Decoded, PendingReply, Wire, check_version, decode,
    encode,
};

/// The most levels of values in values.
pub const DEPTH_MAX: usize = 64;

/// The most memory that decoding one message allocates for collections and boxes, in bytes.
pub const MEMORY_MAX: usize = 16 << 20;

#[doc(hidden)]
pub use clockjack_actor::ReplyTo;
