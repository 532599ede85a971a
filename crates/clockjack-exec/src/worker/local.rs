//! The state that only the worker's own thread uses: its ring, its free registry slots, its cached
//! references.
//!
//! It is on the stack of the worker's thread, which finds it through its toolbox. Nothing in it is
//! shared, so nothing in it is atomic.
#![expect(unsafe_code, reason = "a worker has its ring and its cache to itself")]

use core::{
    cell::{Cell, UnsafeCell},
    fmt,
    ptr::{self, NonNull},
};

use clockjack_observe::event::{Event, TaskId};
use clockjack_sync::{primitive::atomic::Ordering::AcqRel, ring::Owner};
use clockjack_time::TimerId;

use super::WorkerShared;
use crate::{
    executor::ExecutorShared, executor_ref::RefCache, registry::SlotCache, task::Runnable,
};

/// How many lazily cancelled timers are collected before they are cancelled together.
const LAZY_CANCELS_MAX: usize = 16;

/// In `push_mode`: timers fire, and the tasks that they wake go to the ring, in order.
const FIRING: u8 = 1;
/// In `push_mode`: wake-ups are recorded.
const TRACED: u8 = 1 << 1;

/// The state that only the worker's own thread uses, and reaches through its toolbox.
#[doc(hidden)]
pub struct WorkerLocal {
    pub(super) executor: *const ExecutorShared,
    pub(super) index: usize,
    pub(super) local_shard: Cell<u32>,
    /// How a woken task is enqueued: [`FIRING`] and [`TRACED`]. One word, because the usual path
    /// checks only whether it is zero.
    pub(super) push_mode: Cell<u8>,
    pub(super) ring: UnsafeCell<Owner<Runnable>>,
    pub(super) cache: UnsafeCell<SlotCache>,
    pub(super) ref_cache: RefCache,
    /// Timers of the local shard that nobody waits for, to be cancelled together.
    pub(super) lazy_cancels: UnsafeCell<LazyCancels>,
}

#[derive(Default)]
pub(super) struct LazyCancels {
    ids: [Option<TimerId>; LAZY_CANCELS_MAX],
    len: usize,
}

impl WorkerLocal {
    /// Whether this is a worker of that executor.
    #[inline]
    pub(crate) fn is_of(&self, executor: &ExecutorShared) -> bool {
        ptr::eq(self.executor, executor)
    }

    /// The index of the worker.
    #[must_use]
    pub fn index(&self) -> usize {
        self.index
    }

    /// The executor that the worker belongs to.
    #[must_use]
    pub fn executor(&self) -> &ExecutorShared {
        // SAFETY: the worker borrows the executor for as long as this exists.
        unsafe { &*self.executor }
    }

    #[inline]
    pub(crate) fn ref_cache(&self) -> &RefCache {
        &self.ref_cache
    }

    /// Notes a timer of the local shard that is to be cancelled.
    #[inline]
    pub(crate) fn lazy_cancel(&self, executor: &ExecutorShared, id: TimerId) {
        // SAFETY: a `WorkerLocal` is on one thread, and nothing here calls back into it.
        let lazy_cancels = unsafe { &mut *self.lazy_cancels.get() };
        lazy_cancels.ids[lazy_cancels.len] = Some(id);
        lazy_cancels.len += 1;
        if lazy_cancels.len == LAZY_CANCELS_MAX {
            self.flush_lazy_cancels(executor);
        }
    }

    /// Cancels the timers that were noted.
    #[inline]
    pub(super) fn flush_lazy_cancels(&self, executor: &ExecutorShared) {
        // SAFETY: as above; the values of these timers have no drop of their own.
        let lazy_cancels = unsafe { &mut *self.lazy_cancels.get() };
        let len = core::mem::take(&mut lazy_cancels.len);
        if len > 0 {
            // The last one first: it is probably the last in the heap of far deadlines, too.
            let ids = lazy_cancels.ids[..len].iter_mut().rev().filter_map(Option::take);
            executor.shards.cancel_all(self.local_shard(), ids);
            // Nothing is borrowed here: this may call user code, which may cancel further timers.
            executor.drop_stale_values(self.local_shard());
        }
    }

    pub(super) fn set_firing(&self, is_on: bool) {
        self.set_mode(FIRING, is_on);
    }

    /// Whether this thread fires timers, and so holds the guard of a shard.
    pub(crate) fn is_firing(&self) -> bool {
        self.push_mode.get() & FIRING != 0
    }

    pub(super) fn set_traced(&self, is_on: bool) {
        self.set_mode(TRACED, is_on);
    }

    fn set_mode(&self, bit: u8, is_on: bool) {
        let others = self.push_mode.get() & !bit;
        self.push_mode.set(if is_on { others | bit } else { others });
    }

    /// The timer shard that the worker got when it started.
    #[inline]
    #[must_use]
    pub fn local_shard(&self) -> u32 {
        self.local_shard.get()
    }

    #[inline]
    pub(crate) fn shared_of<'e>(&self, executor: &'e ExecutorShared) -> &'e WorkerShared {
        &executor.workers[self.index]
    }

    #[inline]
    pub(super) fn with_ring<R>(&self, f: impl FnOnce(&mut Owner<Runnable>) -> R) -> R {
        // SAFETY: a `WorkerLocal` is on one thread, and no `f` of this module calls back into it:
        // each moves runnables, and the overflow hook pushes to the injector.
        f(unsafe { &mut *self.ring.get() })
    }

    #[inline]
    pub(crate) fn with_cache<R>(&self, f: impl FnOnce(&mut SlotCache) -> R) -> R {
        // SAFETY: as above: each `f` moves slot numbers.
        f(unsafe { &mut *self.cache.get() })
    }

    /// Appends to the ring; half of a full ring goes to the injector.
    #[inline]
    pub(crate) fn push(&self, executor: &ExecutorShared, runnable: Runnable) {
        self.with_ring(|ring| {
            ring.push(runnable, |overflow| {
                let refused = executor.injector.push_batch(overflow.collect());
                debug_assert!(refused.is_ok(), "the injector is open while there are workers");
            });
        });
    }

    /// Puts a task that was woken on this worker into the LIFO slot.
    #[inline]
    pub(crate) fn push_woken(&self, executor: &ExecutorShared, runnable: Runnable) {
        if self.push_mode.get() != 0 {
            return self.push_by_mode(executor, runnable);
        }
        self.push_lifo(executor, runnable);
    }

    /// As [`push_woken`](Self::push_woken), while timers fire or a trace is on.
    #[cold]
    fn push_by_mode(&self, executor: &ExecutorShared, runnable: Runnable) {
        let mode = self.push_mode.get();
        if mode & TRACED != 0 {
            executor.record(Event::TaskWoken { task: TaskId(runnable.index()) });
        }
        if mode & FIRING != 0 {
            self.push(executor, runnable);
        } else {
            self.push_lifo(executor, runnable);
        }
    }

    #[inline(always)]
    fn push_lifo(&self, executor: &ExecutorShared, runnable: Runnable) {
        let worker = self.shared_of(executor);
        // Release: publishes the runnable to a worker that steals it as a last resort; the
        // watchdog's last check pairs with it. Acquire: as in `take_lifo`.
        let before = worker.lifo.swap(runnable.into_raw().as_ptr(), AcqRel);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: as in `take_lifo`.
            self.push(executor, unsafe { Runnable::from_raw(before) });
            executor.notify_one();
        } else if executor.watchdog.request_polling() {
            executor.toolbox().unpark_watchdog();
        }
    }
}

impl fmt::Debug for WorkerLocal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerLocal").field("index", &self.index).finish_non_exhaustive()
    }
}
