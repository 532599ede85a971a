//! How many tasks may be started: a semaphore with a cache of permits per worker.
//!
//! Roles: *creators*, which take a permit before they start a task, and *runners*, which return the
//! permit of a task that has ended. Either may be a worker, which has a cache, or another thread.
//!
//! 1. `free`, the caches, the reservations and the tasks that have not ended together hold as many
//!    permits as there were in the beginning. A permit moves between `free` and one of the others
//!    by one read-modify-write of `free`; a cache is used by its worker only.
//! 2. A creator that finds its cache empty takes as many permits as the cache may hold, or all that
//!    are free. A runner that finds its cache full returns half of it.
//!
//! So there are never more tasks than permits. The linearization point of an admission is the
//! exchange that took the permit out of `free`.
//!
//! *Why no thread hangs*: no call waits; an exchange is repeated only after another thread has
//! changed the word.

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// The permits that are in no cache. All accesses are Relaxed: a permit gives access to nothing.
pub(super) struct Permits {
    free: Padded<AtomicUsize>,
}

impl Permits {
    pub(super) fn new(n_permits: usize) -> Self {
        Self { free: Padded(AtomicUsize::new(n_permits)) }
    }

    /// Takes one permit; false if none is free.
    #[inline]
    pub(super) fn acquire(&self, cache: Option<&mut usize>, cache_max: usize) -> bool {
        match cache {
            Some(cache) if cache_max > 0 => {
                if *cache == 0 {
                    *cache = self.take(cache_max);
                }
                let is_taken = *cache > 0;
                *cache -= usize::from(is_taken);
                is_taken
            }
            _ => self.take(1) > 0,
        }
    }

    /// Returns one permit.
    #[inline]
    pub(super) fn release(&self, cache: Option<&mut usize>, cache_max: usize) {
        match cache {
            Some(cache) if *cache < cache_max => *cache += 1,
            Some(cache) => {
                let n_returned = cache_max / 2;
                *cache -= n_returned;
                self.free.fetch_add(n_returned + 1, Relaxed);
            }
            None => _ = self.free.fetch_add(1, Relaxed),
        }
    }

    /// Returns all permits of a cache.
    #[inline]
    pub(super) fn flush(&self, cache: &mut usize) {
        if *cache > 0 {
            self.free.fetch_add(core::mem::take(cache), Relaxed);
        }
    }

    /// Takes up to `max` permits.
    fn take(&self, max: usize) -> usize {
        let mut free = self.free.load(Relaxed);
        loop {
            let n_taken = free.min(max);
            if n_taken == 0 {
                return 0;
            }
            match self.free.compare_exchange_weak(free, free - n_taken, Relaxed, Relaxed) {
                Ok(_) => return n_taken,
                Err(now) => free = now,
            }
        }
    }
}
