//! The identity of a file on Unix.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

/// What all names of a file have in common: its device and its number there.
pub(crate) fn file_id(metadata: &Metadata) -> Option<(u64, u64)> {
    Some((metadata.dev(), metadata.ino()))
}
