//! A counted pointer to an engine that its workers count without touching the count.
//!
//! Every process holds its engine, so each birth and each death counts. With one count for all
//! workers its cache line would travel with every process. So a worker keeps a *stock*: references
//! that are counted and belong to nobody yet. On a worker of the engine a clone takes one out of
//! the stock and a drop puts one into it, without an atomic operation; an empty stock is filled,
//! and a full one halved, by one addition. Elsewhere both change the count itself.
//!
//! # Why it is never freed too early or too late
//!
//! 1. The count is that of all pointers plus that of all stocks.
//! 2. A worker works on a borrowed engine, so whoever started it has a pointer until it has left:
//!    the count is above zero while there is a stock.
//! 3. A worker that leaves gives its stock back before it is no worker any more, and touches the
//!    engine's stock no more after that.
#![expect(unsafe_code, reason = "frees the engine when the last pointer goes")]

use alloc::boxed::Box;
use core::{cell::Cell, fmt, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

use clockjack_sync::{
    pad::Padded,
    prim::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::engine::Engine;

/// How many references a worker takes at a time; twice as many are too many.
const STOCK: usize = 64;

/// A counted pointer to an [`Engine`].
pub struct EngineRef {
    block: NonNull<Block>,
    _owns: PhantomData<Block>,
}

struct Block {
    count: Padded<AtomicUsize>,
    engine: Engine,
}

/// References that a worker has in stock.
#[derive(Debug, Default)]
pub(crate) struct Stock(Cell<usize>);

// SAFETY: an engine is `Send` and `Sync`, and the count is atomic; stocks are touched by their own
// worker only, through `Engine::local`.
unsafe impl Send for EngineRef {}
// SAFETY: as above.
unsafe impl Sync for EngineRef {}

const fn _is_shareable<T: Send + Sync>() {}
const _: () = _is_shareable::<Engine>();

impl EngineRef {
    pub(crate) fn new(engine: Engine) -> Self {
        let block = Box::new(Block { count: Padded(AtomicUsize::new(1)), engine });
        Self { block: NonNull::from(Box::leak(block)), _owns: PhantomData }
    }

    #[inline]
    fn block(&self) -> &Block {
        // SAFETY: the block came from `Box::leak` in `new`, and is freed only when the count
        // reaches zero; `self` is counted (rule 1). Only shared references are made before that.
        unsafe { self.block.as_ref() }
    }

    /// Gives the pointer up without giving up its count.
    pub(crate) fn into_raw(this: Self) -> *const () {
        ManuallyDrop::new(this).block.as_ptr().cast_const().cast()
    }

    /// Takes a pointer back.
    ///
    /// # Safety
    ///
    /// It came from [`into_raw`](Self::into_raw), each once.
    pub(crate) unsafe fn from_raw(raw: *const ()) -> Self {
        // SAFETY: the pointer came from `into_raw`, so it is not null.
        let block = unsafe { NonNull::new_unchecked(raw.cast_mut().cast()) };
        Self { block, _owns: PhantomData }
    }

    /// Counts `n` more, for a stock or a pointer.
    fn add(&self, n: usize) {
        // Relaxed: made from a pointer that keeps the block alive.
        let before = self.block().count.fetch_add(n, Relaxed);
        assert!(before <= isize::MAX.cast_unsigned(), "too many pointers to an engine");
    }

    /// A worker leaves (rule 3).
    pub(crate) fn take_back(engine: &Engine, stock: &Stock) {
        let n = stock.0.take();
        if n > 0 {
            // SAFETY: an engine that has workers stands in a block: `EngineRef::new` is the only
            // way to share one.
            let block = unsafe { block_of(engine) };
            // Relaxed: it is not the last (rule 2).
            block.count.fetch_sub(n, Relaxed);
        }
    }
}

/// # Safety
///
/// The engine stands in a block.
unsafe fn block_of(engine: &Engine) -> &Block {
    let engine = core::ptr::from_ref(engine);
    // SAFETY: by the contract, the block begins this much before, in the same allocation.
    let block = unsafe { engine.byte_sub(core::mem::offset_of!(Block, engine)) };
    // SAFETY: the engine is borrowed, so its block is there.
    unsafe { &*block.cast::<Block>() }
}

impl Clone for EngineRef {
    #[inline]
    fn clone(&self) -> Self {
        match self.local() {
            Some(local) => {
                let stock = local.stock();
                let n = stock.0.get();
                if n == 0 {
                    self.add(STOCK);
                    stock.0.set(STOCK - 1);
                } else {
                    stock.0.set(n - 1);
                }
            }
            None => self.add(1),
        }
        Self { block: self.block, _owns: PhantomData }
    }
}

impl Drop for EngineRef {
    #[inline]
    fn drop(&mut self) {
        if let Some(local) = self.local() {
            let stock = local.stock();
            let n = stock.0.get() + 1;
            if n < 2 * STOCK {
                stock.0.set(n);
            } else {
                stock.0.set(n - STOCK);
                // Relaxed: it is not the last (rule 2).
                self.block().count.fetch_sub(STOCK, Relaxed);
            }
            return;
        }
        // Release: what this thread did with the engine happens before its end; pairs with the
        // load of the thread that comes last.
        if self.block().count.fetch_sub(1, Release) != 1 {
            return;
        }
        // Acquire: pairs with the decrements of all other threads, which this thread's own
        // continues. A load and not a fence, because ThreadSanitizer does not know fences.
        self.block().count.load(Acquire);
        // SAFETY: the pointer came from `Box::leak` in `new`; no pointer and no stock is left
        // (rule 1), and the load orders every earlier use before this.
        drop(unsafe { Box::from_raw(self.block.as_ptr()) });
    }
}

impl Deref for EngineRef {
    type Target = Engine;

    #[inline]
    fn deref(&self) -> &Engine {
        &self.block().engine
    }
}

impl fmt::Debug for EngineRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
