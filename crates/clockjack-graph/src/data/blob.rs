//! An immutable range of a shared buffer. To write bytes, use a [`BufferLoan`](super::pool::BufferLoan), or a
//! `Vec<u8>` that is then converted.
//!
//! The bytes of a buffer do not change while a [`Blob`] of it exists. When the last blob of a
//! pooled buffer is dropped, on whatever thread, the buffer returns to its pool.

use core::{
    fmt,
    ops::{Bound, Deref, RangeBounds},
    sync::atomic::{AtomicBool, Ordering},
};
use std::sync::{Arc, Weak};

use super::{Data, DataError, pool::PoolShared};

/// Bytes, with the pool to which they return.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// The offset of the first aligned byte: the usable part starts here.
    offset: usize,
    /// The pool; dangling if the buffer belongs to none.
    pool: Weak<PoolShared>,
    /// Whether the buffer has left its pool for good.
    is_detached: AtomicBool,
}

impl Buffer {
    pub(super) fn new(bytes: Vec<u8>, offset: usize, pool: Weak<PoolShared>) -> Self {
        Self { bytes, offset, pool, is_detached: AtomicBool::new(false) }
    }

    /// The allocated size in bytes.
    pub(super) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Frees a buffer instead of returning it. Called by the pool, which has the only reference.
    pub(super) fn free(mut buffer: Arc<Self>) {
        let alone = Arc::get_mut(&mut buffer).expect("a buffer in the pool has no views");
        alone.pool = Weak::new();
    }

    /// The aligned part.
    pub(super) fn aligned(&self) -> &[u8] {
        &self.bytes[self.offset..]
    }

    pub(super) fn aligned_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.offset..]
    }
}

/// Handles a race between the last two views: if two threads drop them at the same time, each
/// `Blob::drop` may still see the other reference and not return the buffer. The `Arc` then drops
/// the buffer here, and its bytes return to the pool in a new buffer.
impl Drop for Buffer {
    fn drop(&mut self) {
        if self.bytes.is_empty() || *self.is_detached.get_mut() {
            return;
        }
        if let Some(pool) = self.pool.upgrade() {
            let bytes = core::mem::take(&mut self.bytes);
            pool.release(Arc::new(Self::new(bytes, self.offset, Arc::downgrade(&pool))));
        }
    }
}

/// A range of a shared buffer. Cloning or slicing it does not copy the bytes.
pub struct Blob {
    /// `None` only while the blob is being dropped.
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

    /// A part of the blob, which keeps the whole buffer alive. `None` if the range is out of
    /// bounds.
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

    /// Detaches the buffer from its pool, if it has one: it is freed with its last view and no
    /// longer counts towards the pool's limit. For bytes that are kept for long. This affects all
    /// views of the buffer; calling it again has no effect.
    pub fn detach(&self) {
        let Some(buffer) = &self.buffer else { return };
        // Relaxed: the swap only ensures that the pool counts each detached buffer once. The thread
        // that drops the last view sees the flag, because all other views were dropped before.
        if !buffer.is_detached.swap(true, Ordering::Relaxed)
            && let Some(pool) = buffer.pool.upgrade()
        {
            pool.remove_detached(buffer.size());
        }
    }

    /// The bytes for writing, if there is no other view.
    pub(super) fn only_view_mut(&mut self) -> Option<&mut [u8]> {
        let buffer = Arc::get_mut(self.buffer.as_mut()?)?;
        Some(&mut buffer.aligned_mut()[self.start..self.start + self.len])
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Whether both are views of the same buffer.
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
        let stays_away = *last.is_detached.get_mut();
        if !stays_away && let Some(pool) = last.pool.upgrade() {
            pool.release(buffer);
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

/// Compares the bytes, not the buffers.
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

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
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
