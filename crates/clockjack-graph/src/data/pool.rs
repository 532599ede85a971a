//! Buffers that are used again: borrowed, written, shown, and back when nobody looks any more.
//!
//! A pool frees nothing but what it must to make room, and holds no more bytes than it was allowed.
//! What a loan contains does not depend on who had the buffer before: it is zeroed, so that a run
//! is the same whether buffers are new or used.

#[cfg(test)]
mod tests;

use core::{
    fmt,
    ops::{Deref, DerefMut},
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clockjack_sync::mutant;

use super::blob::{Blob, Buffer};

/// Buffers of fixed sizes that are used again. A clone is the same pool.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<Shared>,
}

/// What a pool, its loans and its views share.
pub(super) struct Shared {
    /// The sizes that are given out, the smallest first.
    sizes: Vec<usize>,
    align: usize,
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For each size, those that wait.
    free: Vec<Vec<Arc<Buffer>>>,
    stats: PoolStats,
}

/// What a pool has done so far, and what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Buffers that were allocated.
    pub allocated: u64,
    /// Loans that were served by a buffer which was there.
    pub reused: u64,
    /// Loans that were given.
    pub loaned: u64,
    /// Buffers that came back.
    pub released: u64,
    /// Buffers that left for good, by [`Blob::detach`].
    pub detached: u64,
    /// Loans that were refused, since the limit was reached.
    pub exhausted: u64,
    /// Bytes that it holds, lent ones included. It is these that are limited.
    pub bytes: usize,
    /// Of these, the bytes that are lent.
    pub bytes_lent: usize,
    /// The most bytes that were ever lent at once.
    pub high_water: usize,
}

/// Why there is no loan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PoolError {
    /// The pool may hold no more bytes, and all that it has are lent.
    Exhausted {
        /// The bytes that were asked for.
        wanted: usize,
        /// The bytes that are lent.
        lent: usize,
        /// The bytes that the pool may hold.
        max: usize,
    },
    /// The pool has no buffers of that size.
    TooLarge {
        /// The bytes that were asked for.
        wanted: usize,
        /// The size of its largest buffers.
        largest: usize,
    },
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exhausted { wanted, lent, max } => {
                write!(f, "no room for {wanted} bytes: {lent} of {max} are lent")
            }
            Self::TooLarge { wanted, largest } => {
                write!(f, "{wanted} bytes are more than the largest buffer has: {largest}")
            }
        }
    }
}

impl core::error::Error for PoolError {}

impl BufferPool {
    /// Buffers of one size, and at most so many bytes of them.
    #[must_use]
    pub fn blocks(block_bytes: usize, max_bytes: usize) -> Self {
        Self::buckets(&[block_bytes], max_bytes)
    }

    /// Buffers of several sizes, in any order; a loan gets the smallest that is large enough. At
    /// most so many bytes of all sizes together.
    #[must_use]
    pub fn buckets(sizes: &[usize], max_bytes: usize) -> Self {
        Self::aligned(sizes, max_bytes, 1)
    }

    /// The same, with each buffer beginning at a multiple of `align`, which costs `align - 1` bytes
    /// a buffer; these count too.
    ///
    /// # Panics
    ///
    /// If `align` is not a power of two.
    #[must_use]
    pub fn aligned(sizes: &[usize], max_bytes: usize, align: usize) -> Self {
        assert!(align.is_power_of_two(), "{align} is not a power of two");
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let state =
            State { free: sizes.iter().map(|_| Vec::new()).collect(), stats: PoolStats::default() };
        let shared = Shared { sizes, align, max_bytes, state: Mutex::new(state) };
        Self { shared: Arc::new(shared) }
    }

    /// `len` bytes to write, all zero.
    ///
    /// # Errors
    ///
    /// [`PoolError`], if the pool has no buffers so large, or may hold no more.
    pub fn loan(&self, len: usize) -> Result<Loan, PoolError> {
        let mut buffer = self.shared.take(len)?;
        let bytes = Arc::get_mut(&mut buffer).expect("a buffer of the pool has no views");
        if !mutant!("graph-pool-lends-old-bytes") {
            bytes.aligned_mut()[..len].fill(0);
        }
        Ok(Loan { blob: Blob::view(buffer, len) })
    }

    /// What it has done so far, and what it holds.
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.shared.lock().stats
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("sizes", &self.shared.sizes)
            .field("align", &self.shared.align)
            .field("max_bytes", &self.shared.max_bytes)
            .field("stats", &self.stats())
            .finish()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete before anything in it could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a buffer of this size takes of memory.
    fn cost(&self, bucket: usize) -> usize {
        self.sizes[bucket].saturating_add(self.align - 1)
    }

    fn take(self: &Arc<Self>, len: usize) -> Result<Arc<Buffer>, PoolError> {
        let Some(bucket) = self.sizes.iter().position(|size| *size >= len) else {
            let largest = self.sizes.last().copied().unwrap_or(0);
            return Err(PoolError::TooLarge { wanted: len, largest });
        };
        let cost = self.cost(bucket);
        let mut state = self.lock();
        let buffer = if let Some(buffer) = state.free[bucket].pop() {
            state.stats.reused += 1;
            buffer
        } else {
            if !self.make_room(&mut state, cost) {
                state.stats.exhausted += 1;
                let lent = state.stats.bytes_lent;
                return Err(PoolError::Exhausted { wanted: len, lent, max: self.max_bytes });
            }
            state.stats.allocated += 1;
            state.stats.bytes += cost;
            let bytes = vec![0_u8; cost];
            let offset = bytes.as_ptr().align_offset(self.align);
            Arc::new(Buffer::new(bytes, offset, Arc::downgrade(self)))
        };
        let stats = &mut state.stats;
        stats.loaned += 1;
        stats.bytes_lent += cost;
        stats.high_water = stats.high_water.max(stats.bytes_lent);
        Ok(buffer)
    }

    /// Frees what waits in other sizes until so many bytes more may be held; the largest first, so
    /// that few go. Whether there is room then; if there is none in any case, nothing is freed.
    fn make_room(&self, state: &mut State, cost: usize) -> bool {
        if state.stats.bytes_lent.saturating_add(cost) > self.max_bytes {
            return false;
        }
        for bucket in (0..self.sizes.len()).rev() {
            while state.stats.bytes.saturating_add(cost) > self.max_bytes
                && let Some(buffer) = state.free[bucket].pop()
            {
                state.stats.bytes -= buffer.size();
                Buffer::abandon(buffer);
            }
        }
        true
    }

    /// Takes a buffer back that has no views any more.
    pub(super) fn release(&self, buffer: Arc<Buffer>) {
        let size = buffer.size();
        let bucket = (0..self.sizes.len()).find(|bucket| self.cost(*bucket) == size);
        let mut state = self.lock();
        state.stats.released += 1;
        state.stats.bytes_lent = state.stats.bytes_lent.saturating_sub(size);
        let bucket = bucket.expect("every buffer is of one of the pool's sizes");
        state.free[bucket].push(buffer);
    }

    /// A buffer of this size has left for good.
    pub(super) fn forget(&self, size: usize) {
        let mut state = self.lock();
        state.stats.detached += 1;
        state.stats.bytes -= size;
        state.stats.bytes_lent -= size;
    }
}

/// Bytes of a pool that are being written. Dropped, they go back.
pub struct Loan {
    /// It is the only view, and becomes one for others when the loan ends.
    blob: Blob,
}

impl Loan {
    /// Ends the writing: from now on the bytes are shown, and stay what they are.
    #[must_use]
    pub fn freeze(self) -> Blob {
        self.blob
    }

    /// Makes it shorter. It is never made longer.
    pub fn truncate(&mut self, len: usize) {
        self.blob.truncate(len);
    }
}

impl Deref for Loan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.blob
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.blob.only_view_mut().expect("a loan is the only view of its buffer")
    }
}

impl fmt::Debug for Loan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.blob.len())
    }
}
