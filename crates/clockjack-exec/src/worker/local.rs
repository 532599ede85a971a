//! What a worker has to itself: its ring, its free slots, its stock of references.
//!
//! It is on the stack of the worker's thread, which finds it through its host. Nothing in it is
//! shared, so nothing in it is atomic.
#![expect(unsafe_code, reason = "a worker has its ring and its cache to itself")]

use core::{
    cell::{Cell, UnsafeCell},
    fmt,
    ptr::{self, NonNull},
};

use clockjack_sync::{prim::atomic::Ordering::AcqRel, ring::Owner};
use clockjack_time::TimerId;

use super::Seat;
use crate::{cell::Entry, engine::Engine, engine_ref::Stock, registry::Cache};

/// How many timers that nobody waits for are kept until they are disarmed together.
const FORGOTTEN_MAX: usize = 16;

/// What the thread of a worker has to itself, and reaches through its host.
#[doc(hidden)]
pub struct Local {
    pub(super) engine: *const Engine,
    pub(super) seat: usize,
    pub(super) home: Cell<u32>,
    /// While timers fire, what they wake goes to the ring, in order.
    pub(super) is_firing: Cell<bool>,
    pub(super) ring: UnsafeCell<Owner<Entry>>,
    pub(super) cache: UnsafeCell<Cache>,
    pub(super) stock: Stock,
    /// Timers of the home shard that nobody waits for, to be disarmed together.
    pub(super) forgotten: UnsafeCell<Forgotten>,
}

#[derive(Default)]
pub(super) struct Forgotten {
    ids: [Option<TimerId>; FORGOTTEN_MAX],
    len: usize,
}

impl Local {
    /// Whether this is a worker of that engine.
    #[inline]
    pub(crate) fn is_of(&self, engine: &Engine) -> bool {
        ptr::eq(self.engine, engine)
    }

    /// The number of the seat.
    #[must_use]
    pub fn seat(&self) -> usize {
        self.seat
    }

    /// The engine that the worker belongs to.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        // SAFETY: the worker has borrowed the engine for as long as this exists.
        unsafe { &*self.engine }
    }

    #[inline]
    pub(crate) fn stock(&self) -> &Stock {
        &self.stock
    }

    /// Notes a timer of the home shard that is to be disarmed.
    #[inline]
    pub(crate) fn forget(&self, engine: &Engine, id: TimerId) {
        // SAFETY: a `Local` is on one thread, and nothing here calls back into it.
        let forgotten = unsafe { &mut *self.forgotten.get() };
        forgotten.ids[forgotten.len] = Some(id);
        forgotten.len += 1;
        if forgotten.len == FORGOTTEN_MAX {
            self.disarm_forgotten(engine);
        }
    }

    /// Disarms what was noted.
    #[inline]
    pub(super) fn disarm_forgotten(&self, engine: &Engine) {
        // SAFETY: as above; what is disarmed are timers whose values have no drop of their own.
        let forgotten = unsafe { &mut *self.forgotten.get() };
        let len = core::mem::take(&mut forgotten.len);
        if len > 0 {
            // The last first: it is probably the last in a heap of far deadlines too.
            let ids = forgotten.ids[..len].iter_mut().rev().filter_map(Option::take);
            engine.shards.cancel_all(self.home(), ids);
            // With nothing borrowed here: this may call what is the user's, which may forget more.
            engine.clear_out(self.home());
        }
    }

    pub(crate) fn home(&self) -> u32 {
        self.home.get()
    }

    #[inline]
    pub(crate) fn seat_of<'e>(&self, engine: &'e Engine) -> &'e Seat {
        &engine.seats[self.seat]
    }

    #[inline]
    pub(super) fn with_ring<R>(&self, f: impl FnOnce(&mut Owner<Entry>) -> R) -> R {
        // SAFETY: a `Local` is on one thread, and no `f` of this module calls back into it: they
        // move entries, and the overflow hook pushes to the injector.
        f(unsafe { &mut *self.ring.get() })
    }

    #[inline]
    pub(crate) fn with_cache<R>(&self, f: impl FnOnce(&mut Cache) -> R) -> R {
        // SAFETY: as above: they move slot numbers.
        f(unsafe { &mut *self.cache.get() })
    }

    /// Appends to the ring; half of a full one goes to the injector.
    #[inline]
    pub(crate) fn push(&self, engine: &Engine, entry: Entry) {
        self.with_ring(|ring| {
            ring.push(entry, |overflow| {
                let refused = engine.injector.push_batch(overflow.collect());
                debug_assert!(refused.is_ok(), "the injector is open while workers are");
            });
        });
    }

    /// Puts a process first that was woken on this worker.
    #[inline]
    pub(crate) fn push_woken(&self, engine: &Engine, entry: Entry) {
        if self.is_firing.get() {
            return self.push(engine, entry);
        }
        let seat = self.seat_of(engine);
        // Release: publishes the entry to who steals it as a last resort; the metronome's last look
        // pairs with it. Acquire: as in `take_lifo`.
        let before = seat.lifo.swap(entry.into_raw().as_ptr(), AcqRel);
        if let Some(before) = NonNull::new(before) {
            // SAFETY: as in `take_lifo`.
            self.push(engine, unsafe { Entry::from_raw(before) });
            engine.notify_one();
        } else if engine.metronome.request_watch() {
            engine.host().unpark_metronome();
        }
    }
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("seat", &self.seat).finish_non_exhaustive()
    }
}
