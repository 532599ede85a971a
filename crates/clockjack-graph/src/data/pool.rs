//! A pool of reusable buffers: a loan is written, frozen to a shared blob, and returned when the
//! last view is dropped.
//!
//! The pool frees buffers only to make room, and never holds more bytes than its limit. A loan is
//! zeroed, so its contents do not depend on earlier uses, and a run gives the same results with new
//! and with reused buffers. A writer of every byte asks for one that is not zeroed.

#[cfg(test)]
mod tests;

use core::{
    fmt,
    ops::{Deref, DerefMut},
};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{
    blob::{Blob, Buffer},
    error::{DataError, Kind},
};
use crate::lock::lock;

/// A pool of reusable buffers of fixed sizes. Clones refer to the same pool.
#[derive(Clone)]
pub struct BufferPool {
    shared: Arc<PoolShared>,
}

/// The state that a pool, its loans and its views share.
pub(super) struct PoolShared {
    /// The buffer sizes in ascending order.
    sizes: Vec<usize>,
    align: usize,
    max_bytes: usize,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// The free buffers per size.
    free: Vec<Vec<Arc<Buffer>>>,
    stats: PoolStats,
}

/// Statistics of a pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolStats {
    /// Buffers that were allocated.
    pub allocated: u64,
    /// Loans that reused a buffer.
    pub reused: u64,
    /// Loans in total.
    pub loaned: u64,
    /// Buffers that were returned.
    pub released: u64,
    /// Buffers that were detached by [`Blob::detach`].
    pub detached: u64,
    /// Loans that were refused because of the limit.
    pub exhausted: u64,
    /// Bytes that the pool holds, including lent ones. The limit applies to these.
    pub bytes: usize,
    /// Bytes that are lent.
    pub bytes_lent: usize,
    /// The maximum number of bytes that were lent at the same time.
    pub high_water: usize,
}

impl BufferPool {
    /// Creates a pool of buffers of one size, with a limit on their total bytes.
    #[must_use]
    pub fn blocks(block_bytes: usize, max_bytes: usize) -> Self {
        Self::buckets(&[block_bytes], max_bytes)
    }

    /// Creates a pool of buffers of several sizes, in any order, with a limit on their total bytes.
    /// A loan uses the smallest size that fits.
    #[must_use]
    pub fn buckets(sizes: &[usize], max_bytes: usize) -> Self {
        Self::aligned(sizes, max_bytes, 1)
    }

    /// Like [`buckets`](Self::buckets), but each buffer starts at a multiple of `align`. This costs
    /// `align - 1` bytes per buffer, which count towards the limit.
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
        let state = PoolState {
            free: sizes.iter().map(|_| Vec::new()).collect(),
            stats: PoolStats::default(),
        };
        let shared = PoolShared { sizes, align, max_bytes, state: Mutex::new(state) };
        Self { shared: Arc::new(shared) }
    }

    /// Lends `len` zeroed bytes.
    ///
    /// # Errors
    ///
    /// [`DataError`], if the pool has no buffers of this size, or if its limit is reached.
    pub fn loan(&self, len: usize) -> Result<BufferLoan, DataError> {
        let mut loan = self.loan_unfilled(len)?;
        loan.fill(0);
        Ok(loan)
    }

    /// Lends `len` bytes without zeroing them: they are zeros, or what an earlier use of the buffer
    /// has left. For a writer of all of them, which saves a pass over a large payload. Bytes that
    /// are not written make the results of a run depend on earlier ones.
    ///
    /// # Errors
    ///
    /// As [`loan`](Self::loan).
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_graph::BufferPool;
    ///
    /// let pool = BufferPool::blocks(1 << 20, 4 << 20);
    /// let mut frame = pool.loan_unfilled(640 * 480)?;
    /// for (at, pixel) in frame.iter_mut().enumerate() {
    ///     *pixel = (at % 251) as u8;
    /// }
    /// let frame = frame.freeze();
    /// assert_eq!(frame[252], 1);
    /// # Ok::<(), clockjack_graph::DataError>(())
    /// ```
    pub fn loan_unfilled(&self, len: usize) -> Result<BufferLoan, DataError> {
        let buffer = self.shared.take(len)?;
        Ok(BufferLoan { blob: Blob::view(buffer, len) })
    }

    /// The statistics of the pool.
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

impl PoolShared {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        // Changes under the lock are complete before any code that could panic.
        lock(&self.state)
    }

    /// The allocated bytes of a buffer of this size.
    fn cost(&self, bucket: usize) -> usize {
        self.sizes[bucket].saturating_add(self.align - 1)
    }

    fn take(self: &Arc<Self>, len: usize) -> Result<Arc<Buffer>, DataError> {
        let Some(bucket) = self.sizes.iter().position(|size| *size >= len) else {
            let largest = self.sizes.last().copied().unwrap_or(0);
            return Err(DataError(Kind::TooLarge { wanted: len, largest }));
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
                return Err(DataError(Kind::Exhausted { wanted: len, lent, max: self.max_bytes }));
            }
            state.stats.allocated += 1;
            state.stats.bytes += cost;
            // Room for all buffers of this size to return: how many are free at the same time
            // depends on threads, and a return must not allocate.
            let n_most = state.stats.bytes / cost.max(1);
            let free = &mut state.free[bucket];
            free.reserve(n_most.saturating_sub(free.len()));
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

    /// Frees unused buffers until `cost` more bytes may be held, the largest first, so that few are
    /// freed. Returns whether there is room; if freeing cannot make enough room, nothing is freed.
    fn make_room(&self, state: &mut PoolState, cost: usize) -> bool {
        if state.stats.bytes_lent.saturating_add(cost) > self.max_bytes {
            return false;
        }
        for bucket in (0..self.sizes.len()).rev() {
            while state.stats.bytes.saturating_add(cost) > self.max_bytes
                && let Some(buffer) = state.free[bucket].pop()
            {
                state.stats.bytes -= buffer.size();
                Buffer::free(buffer);
            }
        }
        true
    }

    /// Takes back a buffer that has no views.
    pub(super) fn release(&self, buffer: Arc<Buffer>) {
        let size = buffer.size();
        let bucket = (0..self.sizes.len()).find(|bucket| self.cost(*bucket) == size);
        let mut state = self.lock();
        state.stats.released += 1;
        state.stats.bytes_lent = state.stats.bytes_lent.saturating_sub(size);
        let bucket = bucket.expect("every buffer is of one of the pool's sizes");
        state.free[bucket].push(buffer);
    }

    /// Removes a detached buffer of this size from the statistics.
    pub(super) fn remove_detached(&self, size: usize) {
        let mut state = self.lock();
        state.stats.detached += 1;
        state.stats.bytes -= size;
        state.stats.bytes_lent -= size;
    }
}

/// Bytes of a pool that are being written. Dropping it returns them to the pool.
pub struct BufferLoan {
    /// The only view of the buffer until the loan is frozen.
    blob: Blob,
}

impl BufferLoan {
    /// Ends the writing: from now on the bytes can be shared and do not change.
    #[must_use]
    pub fn freeze(self) -> Blob {
        self.blob
    }

    /// Shortens the loan. A loan never grows.
    pub fn truncate(&mut self, len: usize) {
        self.blob.truncate(len);
    }
}

impl Deref for BufferLoan {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.blob
    }
}

impl DerefMut for BufferLoan {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.blob.only_view_mut().expect("a loan is the only view of its buffer")
    }
}

impl fmt::Debug for BufferLoan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Loan({} bytes)", self.blob.len())
    }
}
