//! [`Address`]: an exported actor, as plain data.

use alloc::string::String;
use core::{fmt, hash, marker::PhantomData, str::FromStr};

use clockjack_wire::{DecodeError, Decoder, EncodeError, Encoder, Field, Wire};

use crate::node::{NodeId, ParseError};

/// The address of an exported actor: its node, the number of its export, and its message type.
///
/// An address is plain data: it may travel in messages, and its text form can be stored. It belongs
/// to one incarnation of the node, and reaches nothing after that.
pub struct Address<M> {
    pub(crate) node: NodeId,
    pub(crate) export: u64,
    message: PhantomData<fn(M)>,
}

impl<M> Address<M> {
    pub(crate) fn new(node: NodeId, export: u64) -> Self {
        Self { node, export, message: PhantomData }
    }

    /// The node of the actor.
    #[must_use]
    pub fn node(&self) -> &NodeId {
        &self.node
    }
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Self::new(self.node.clone(), self.export)
    }
}

impl<M> PartialEq for Address<M> {
    fn eq(&self, other: &Self) -> bool {
        self.node == other.node && self.export == other.export
    }
}

impl<M> Eq for Address<M> {}

impl<M> hash::Hash for Address<M> {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.node.hash(state);
        self.export.hash(state);
    }
}

/// `TYPE/EXPORT/NODE`.
impl<M: Wire> fmt::Display for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", M::ID, self.export, self.node)
    }
}

impl<M: Wire> fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

impl<M: Wire> FromStr for Address<M> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut parts = text.splitn(3, '/');
        let (Some(name), Some(export), Some(node)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(ParseError("an address is `TYPE/EXPORT/NODE`"));
        };
        if name != M::ID.name() {
            return Err(ParseError("the address is that of an actor with other messages"));
        }
        let export = export.parse().map_err(|_| ParseError("the export is not a number"))?;
        Ok(Self::new(node.parse()?, export))
    }
}

impl<M: Wire> Field for Address<M> {
    fn write(&self, out: &mut Encoder<'_>) -> Result<(), EncodeError<()>> {
        String::from(M::ID.name()).write(out)?;
        self.node.write(out)?;
        self.export.write(out)
    }

    fn read(from: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        if String::read(from)? != M::ID.name() {
            return Err(DecodeError::invalid(
                "address: it is that of an actor with other messages",
            ));
        }
        Ok(Self::new(NodeId::read(from)?, u64::read(from)?))
    }
}
