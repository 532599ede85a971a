//! There are no unix sockets here: programs use loopback TCP.

use std::path::PathBuf;

use super::{OpenError, connections::Listener};
use crate::Address;

/// Nothing is to be removed.
#[derive(Debug)]
pub(super) enum Removal {}

pub(super) fn directory() -> Result<PathBuf, OpenError> {
    Err(OpenError::no_sockets())
}

pub(super) fn listen(_: PathBuf) -> Result<(Listener, Address, Removal), OpenError> {
    Err(OpenError::no_sockets())
}
