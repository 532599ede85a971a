//! Messages that travel between nodes: named and versioned types, written by `#[derive(Wire)]`.
//!
//! ```
//! use clockjack::{actor::ReplyTo, wire::{Decoded, Wire, decode, encode}};
//!
//! #[derive(Wire)]
//! #[wire(id = "demo.Counter")]
//! enum Msg {
//!     Add(u64),
//!     Sum(ReplyTo<u64>),
//! }
//!
//! let (bytes, reply) = encode(Msg::Add(300))?;
//! assert!(reply.is_none(), "it is no request");
//! assert!(matches!(decode::<Msg>(1, &bytes)?, Decoded::Tell(Msg::Add(300))));
//! assert!(matches!(decode::<Msg>(1, &[1])?, Decoded::Ask(_)));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! The crate `clockjack-wire` documents the format completely. One difference: the code that the
//! derive generates uses the path `::clockjack::wire` for `Wire` and so on. If a program renames
//! this crate, set the path: `#[wire(id = "demo.Counter", crate = ::jack::wire)]`.

// The derive next to the trait of this name: its code refers to this module. The other items by a
// glob, which may bring a derive of this name along: the one above counts.
#[doc(inline)]
pub use clockjack_macros::FacadeWire as Wire;
#[doc(no_inline)]
pub use clockjack_net::wire::*;
