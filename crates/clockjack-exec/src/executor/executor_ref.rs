//! A counted pointer to an executor; a biased reference count, by which workers clone and drop the
//! pointer without touching the shared count.
//!
//! The scheme is a sloppy counter (Boyd-Wickizer and others, "An analysis of Linux scalability to
//! many cores", 2010); biased reference counting (Choi, Shull and Torrellas, 2018) has the same
//! purpose.
//!
//! Every task holds its executor, so each start and each end of a task changes the count. With one
//! count for all workers, its cache line would move between the workers with every task. So each
//! worker has a *reference cache*: references that are counted in advance and that no pointer uses
//! yet. On a worker of the executor, a clone takes a reference out of the cache and a drop puts one
//! into it, without an atomic operation; one atomic addition fills an empty cache or halves a full
//! one. On other threads both operations change the shared count.
//!
//! The cache saves no instructions: a future that is spawned and finishes costs 14 more than with
//! one count (`cargo xtask counts exec/future/spawn_finish`, 2,105 without). It saves traffic
//! between cores: 2 read-modify-writes of a shared cache line per task become 2 per 64 tasks.
//!
//! # Why the executor is never freed too early or too late
//!
//! 1. The count is the number of all pointers plus the contents of all caches.
//! 2. A worker runs on a borrowed executor, so the thread that started the worker holds a pointer
//!    until the worker has stopped: the count is above zero while there is a cache.
//! 3. A worker that stops returns the contents of its cache before its thread ceases to be a
//!    worker, and does not use the cache after that.
#![expect(unsafe_code, reason = "frees the executor when the last pointer goes")]

use alloc::boxed::Box;
use core::{cell::Cell, fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use clockjack_sync::{
    pad::Padded,
    primitive::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::executor::ExecutorShared;

/// How many references a worker counts in advance; a cache with twice as many is halved.
const REF_CACHE_LEN: usize = 64;

/// A counted pointer to an [`ExecutorShared`].
pub struct ExecutorRef {
    executor: NonNull<ExecutorShared>,
    _owns: PhantomData<ExecutorShared>,
}

/// The count of an executor. It is a field of the executor and not a header before it: a worker has
/// only a reference to the executor, and must not reach beyond what the reference covers.
pub(crate) struct ExecutorRefs(Padded<AtomicUsize>);

impl ExecutorRefs {
    /// For the pointer that [`ExecutorRef::new`] makes.
    pub(crate) fn new() -> Self {
        Self(Padded(AtomicUsize::new(1)))
    }
}

/// References that a worker has counted in advance.
#[derive(Debug, Default)]
pub(crate) struct RefCache(Cell<usize>);

// SAFETY: an executor is `Send` and `Sync`, and the count is atomic; only the cache's own worker
// touches it, through `ExecutorShared::worker_local`.
unsafe impl Send for ExecutorRef {}
// SAFETY: as above.
unsafe impl Sync for ExecutorRef {}

const fn _is_shareable<T: Send + Sync>() {}
const _: () = _is_shareable::<ExecutorShared>();

impl ExecutorRef {
    pub(crate) fn new(executor: ExecutorShared) -> Self {
        Self { executor: NonNull::from(Box::leak(Box::new(executor))), _owns: PhantomData }
    }

    /// Turns the pointer into a raw one that still owns its count.
    pub(crate) fn into_raw(this: Self) -> *const () {
        ManuallyDrop::new(this).executor.as_ptr().cast_const().cast()
    }

    /// Takes a pointer back.
    ///
    /// # Safety
    ///
    /// It came from [`into_raw`](Self::into_raw), each once.
    pub(crate) unsafe fn from_raw(raw: *const ()) -> Self {
        // SAFETY: the pointer came from `into_raw`, so it is not null.
        let executor = unsafe { NonNull::new_unchecked(raw.cast_mut().cast()) };
        Self { executor, _owns: PhantomData }
    }

    /// Adds `n` to the count, for a cache or a pointer.
    fn add(&self, n: usize) {
        // Relaxed: made from a pointer that keeps the executor alive.
        let before = self.refs.0.fetch_add(n, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many pointers to an executor");
    }

    /// Returns the cache of a worker that stops (rule 3).
    pub(crate) fn return_ref_cache(executor: &ExecutorShared, ref_cache: &RefCache) {
        let n = ref_cache.0.take();
        if n > 0 {
            // Relaxed: it is not the last (rule 2).
            executor.refs.0.fetch_sub(n, Relaxed);
        }
    }
}

impl Clone for ExecutorRef {
    #[inline]
    fn clone(&self) -> Self {
        match self.worker_local() {
            Some(local) => {
                let ref_cache = local.ref_cache();
                let n = ref_cache.0.get();
                if n == 0 {
                    self.add(REF_CACHE_LEN);
                    ref_cache.0.set(REF_CACHE_LEN - 1);
                } else {
                    ref_cache.0.set(n - 1);
                }
            }
            None => self.add(1),
        }
        Self { executor: self.executor, _owns: PhantomData }
    }
}

impl Drop for ExecutorRef {
    #[inline]
    fn drop(&mut self) {
        if let Some(local) = self.worker_local() {
            let ref_cache = local.ref_cache();
            let n = ref_cache.0.get() + 1;
            if n < 2 * REF_CACHE_LEN {
                ref_cache.0.set(n);
            } else {
                ref_cache.0.set(n - REF_CACHE_LEN);
                // Relaxed: it is not the last (rule 2).
                self.refs.0.fetch_sub(REF_CACHE_LEN, Relaxed);
            }
            return;
        }
        // Release: what this thread did with the executor happens before the executor is freed;
        // pairs with the load of the thread that releases the last reference.
        if self.refs.0.fetch_sub(1, Release) != 1 {
            return;
        }
        // Acquire: pairs with the decrements of all other threads, whose release sequence this
        // thread's decrement continues. A load and not a fence, because ThreadSanitizer does not
        // support fences.
        self.refs.0.load(Acquire);
        // SAFETY: the pointer came from `Box::leak` in `new`; no pointer and no cached reference is
        // left (rule 1), and the load orders every earlier use before this.
        drop(unsafe { Box::from_raw(self.executor.as_ptr()) });
    }
}

impl Deref for ExecutorRef {
    type Target = ExecutorShared;

    #[inline]
    fn deref(&self) -> &ExecutorShared {
        // SAFETY: the pointer came from `Box::leak` in `new`, and is freed only when the count
        // reaches zero; `self` is counted (rule 1). Only shared references are made before that.
        unsafe { self.executor.as_ref() }
    }
}

impl fmt::Debug for ExecutorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
