//! Nodes and members.

use alloc::{string::String, vec::Vec};
use core::{fmt, str::FromStr};

use clockjack_wire::{DecodeError, Decoder, EncodeError, Encoder, Field};

/// The longest name of a node, in bytes.
pub const NODE_NAME_MAX: usize = 64;

/// One membership of a node: its name, and the random number of this incarnation.
///
/// A node that lost its membership joins again as another incarnation, with the same name. The text
/// form is `name@0123456789abcdef`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId {
    incarnation: u64,
    name: String,
}

impl NodeId {
    /// The id of this incarnation.
    pub(crate) fn new(name: &str, incarnation: u64) -> Self {
        Self { incarnation, name: name.into() }
    }

    /// The name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the incarnation.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }
}

/// Whether a name has one to [`NODE_NAME_MAX`] ASCII letters, digits, `-`, `_` and `.`.
pub(crate) fn is_node_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=NODE_NAME_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{:016x}", self.name, self.incarnation)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text is not a node or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError(pub(crate) &'static str);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for ParseError {}

impl FromStr for NodeId {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let parse = || {
            let (name, incarnation) = text.split_once('@')?;
            let is_hex = incarnation.len() == 16 && !incarnation.starts_with('+');
            let incarnation = u64::from_str_radix(incarnation, 16).ok().filter(|_| is_hex)?;
            is_node_name(name).then(|| Self::new(name, incarnation))
        };
        parse().ok_or(ParseError("a node is `name@` and sixteen hexadecimal digits"))
    }
}

impl Field for NodeId {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        self.incarnation.write(out)?;
        self.name.write(out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (incarnation, name) = (u64::read(from)?, String::read(from)?);
        if !is_node_name(&name) {
            return Err(DecodeError::invalid("name of a node"));
        }
        Ok(Self { incarnation, name })
    }
}

/// A member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// The roles that the node was given.
    pub roles: Vec<String>,
    /// The sequence number in the log at which the node joined.
    pub since: u64,
}

/// The members that this node has read from the log, in the order in which they joined.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Members {
    /// The sequence number up to which the log was read. Nodes that have read up to the same number
    /// have the same members.
    pub sequence: u64,
    /// The members, including this node.
    pub members: Vec<Member>,
}
