//! The identity of a file where the standard library does not give it.

use std::fs::Metadata;

/// What all names of a file have in common; unknown here.
pub(crate) fn file_id(_metadata: &Metadata) -> Option<(u64, u64)> {
    None
}
