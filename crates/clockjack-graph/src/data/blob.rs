//! A range of a shared buffer that nobody changes any more. Not a place to write: that is a
//! [`Loan`](super::pool::Loan), or a `Vec<u8>` before it becomes one of these.
//!
//! While there is a [`Blob`] of a buffer, its bytes stay what they are. When the last one is
//! dropped, a buffer of a pool goes back there, on whatever thread that is.

use core::{
    fmt,
    ops::{Bound, Deref, RangeBounds},
    sync::atomic::{AtomicBool, Ordering},
};
use std::sync::{Arc, Weak};

use clockjack_sync::mutant;

use super::{Data, DecodeError, pool::Shared};

/// Bytes, with the pool that they go back to.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Where the part begins that is given out: the first aligned byte.
    offset: usize,
    /// Of a buffer that belongs to no pool it leads nowhere.
    home: Weak<Shared>,
    /// It does not go back.
    is_detached: AtomicBool,
}

impl Buffer {
    pub(super) fn new(bytes: Vec<u8>, offset: usize, home: Weak<Shared>) -> Self {
        Self { bytes, offset, home, is_detached: AtomicBool::new(false) }
    }

    /// What it takes of memory.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Frees it for good, instead of giving it back. For the pool, which alone has it then.
    pub(super) fn abandon(mut buffer: Arc<Self>) {
        let alone = Arc::get_mut(&mut buffer).expect("a buffer in the pool has no views");
        alone.home = Weak::new();
    }

    /// The aligned part.
    pub(super) fn aligned(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }

    pub(super) fn aligned_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.offset..]
    }
}

/// Two last views that are dropped at the same time both see the other one: then neither gives the
/// buffer back, and it ends here. Its bytes go back all the same, in a new buffer.
impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.is_empty() || *self.is_detached.get_mut() {
            return;
        }
        if let Some(home) = self.home.upgrade() {
            let bytes = core::mem::take(&mut self.bytes);
            home.release(Arc::new(Self::new(bytes, self.offset, Arc::downgrade(&home))));
        }
    }
}

/// A range of a shared buffer. To clone or slice it costs no copy of the bytes.
pub struct Blob {
    /// `None` only while it is dropped or taken apart.
    buffer: Option<Arc<Buffer>>,
    start: usize,
    len: usize,
}

impl Blob {
    /// The first `len` bytes of a buffer.
    pub(super) fn view(buffer: Arc<Buffer>, len: usize) -> Self {
        Self { buffer: Some(buffer), start: 0, len }
    }

    /// The bytes.
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        let buffer = self.buffer.as_ref().expect("a blob that is not dropped has a buffer");
        &buffer.aligned()[self.start..self.start + self.len]
    }

    /// A part of it, which keeps the whole buffer alive. `None`, if it has no such part.
    #[must_use]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Option<Self> {
        let from = match range.start_bound() {
            Bound::Included(at) => *at,
            Bound::Excluded(at) => at.checked_add(1)?,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(at) => at.checked_add(1)?,
            Bound::Excluded(at) => *at,
            Bound::Unbounded => self.len,
        };
        let is_part = from <= to && to <= self.len;
        is_part.then(|| Self {
            buffer: self.buffer.clone(),
            start: self.start + from,
            len: to - from,
        })
    }

    /// Takes its buffer from its pool, if it has one: it is freed after the last view and counts no
    /// more for the pool's limit. For bytes that are kept long. All views of the buffer are
    /// detached by it; a second time it does nothing.
    pub fn detach(&self) {
        let Some(buffer) = &self.buffer else { return };
        // The pool counts each buffer that leaves it once; nothing else is ordered by the flag.
        // Who drops the last view sees it, since all other views were dropped before.
        if !buffer.is_detached.swap(true, Ordering::Relaxed)
            && let Some(home) = buffer.home.upgrade()
        {
            home.forget(buffer.size());
        }
    }

    /// The bytes to write, if nobody else can see them.
    pub(super) fn only_view_mut(&mut self) -> Option<&mut [u8]> {
        let buffer = Arc::get_mut(self.buffer.as_mut()?)?;
        Some(&mut buffer.aligned_mut()[self.start..self.start + self.len])
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Whether both are views of one buffer.
    #[must_use]
    pub fn shares_buffer(&self, other: &Self) -> bool {
        match (&self.buffer, &other.buffer) {
            (Some(one), Some(another)) => Arc::ptr_eq(one, another),
            _ => false,
        }
    }
}

impl Drop for Blob {
    fn drop(&mut self) {
        let Some(mut buffer) = self.buffer.take() else { return };
        let Some(last) = Arc::get_mut(&mut buffer) else { return };
        let stays_away = *last.is_detached.get_mut() && !mutant!("graph-pool-takes-detached");
        if !stays_away && let Some(home) = last.home.upgrade() {
            home.release(buffer);
        }
    }
}

impl Clone for Blob {
    fn clone(&self) -> Self {
        Self { buffer: self.buffer.clone(), start: self.start, len: self.len }
    }
}

impl Default for Blob {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self::view(Arc::new(Buffer::new(bytes, 0, Weak::new())), len)
    }
}

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_slice()
    }
}

/// Equal bytes, wherever they are.
impl PartialEq for Blob {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Blob {}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({} bytes)", self.len)
    }
}

impl Data for Blob {
    const SCHEMA: &'static str = "blob";

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Ok(Self::from(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_blob_comes_back_from_its_bytes(bytes: Vec<u8>) {
            let mut out = Vec::new();
            let blob = Blob::from(bytes);
            blob.encode(&mut out);
            prop_assert_eq!(Blob::decode(&out), Ok(blob));
        }

        #[test]
        fn a_slice_has_the_bytes_of_its_range_and_shares_them(
            bytes in prop::collection::vec(any::<u8>(), 0..50),
            from in 0_usize..60,
            to in 0_usize..60,
        ) {
            let blob = Blob::from(bytes.clone());
            let slice = blob.slice(from..to);
            prop_assert_eq!(slice.as_deref(), bytes.get(from..to));
            if let Some(slice) = slice {
                prop_assert!(slice.shares_buffer(&blob));
                let inner = slice.slice(1..);
                prop_assert_eq!(inner.as_deref(), bytes.get(from..to).and_then(|all| all.get(1..)));
            }
        }
    }

    #[test]
    fn a_range_beyond_the_end_is_none() {
        let blob = Blob::from(vec![1, 2, 3]);
        assert_eq!(blob.slice(..=2).as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(blob.slice(..=3), None);
        assert_eq!(blob.slice(..=usize::MAX), None);
        let rest = blob.slice(1..).unwrap();
        assert_eq!(rest.slice(usize::MAX..), None);
        assert_eq!(rest.slice((Bound::Excluded(usize::MAX), Bound::Unbounded)), None);
    }
}
