//! How messages move: from an [`outbox`] through a [`channel`] to a [`trigger`], from outside
//! through an [`inbox`], and with [`credit`] between domains.

pub(crate) mod blackboard;
pub(crate) mod channel;
pub(crate) mod credit;
pub(crate) mod feed;
pub(crate) mod inbox;
pub(crate) mod message;
pub(crate) mod origins;
pub(crate) mod outbox;
pub(crate) mod pending;
pub(crate) mod reconfigure;
pub(crate) mod tasks;
pub(crate) mod trigger;
