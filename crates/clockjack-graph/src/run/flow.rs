//! How messages move: from an [`outbox`] through a [`channel`] to a [`trigger`], from outside
//! through an [`inbox`], and with [`credit`] between domains.

pub mod blackboard;
pub(crate) mod channel;
pub(crate) mod credit;
pub mod feed;
pub(crate) mod inbox;
pub(crate) mod message;
pub(crate) mod outbox;
pub(crate) mod pending;
pub mod reconfigure;
pub mod tasks;
pub(crate) mod trigger;
