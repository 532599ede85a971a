//! The part that the owner and the thieves share: the two words and the slots.
#![expect(unsafe_code, reason = "slots are initialized exactly between two positions")]

use core::{
    marker::PhantomData,
    mem::{MaybeUninit, needs_drop},
};

use super::head::Head;
use crate::{
    pad::Padded,
    primitive::{
        UnsafeCell,
        atomic::{
            AtomicU32, AtomicU64,
            Ordering::{self, Acquire, Relaxed},
        },
    },
    primitive_array,
};

/// The shared part of a ring. The items of positions `steal..tail` are in their slots; all other
/// slots are uninitialized or moved out.
pub(super) struct Slots<T, const N: usize> {
    head: Padded<AtomicU64>,
    pub(super) tail: Padded<AtomicU32>,
    slots: [UnsafeCell<MaybeUninit<T>>; N],
    _owns: PhantomData<T>,
}

// SAFETY: items are moved through the slots from thread to thread (`T: Send`); references to an
// item in a slot are never given out.
unsafe impl<T: Send, const N: usize> Sync for Slots<T, N> {}
// SAFETY: as above.
unsafe impl<T: Send, const N: usize> Send for Slots<T, N> {}

impl<T, const N: usize> Slots<T, N> {
    /// The capacity as a distance of positions.
    pub(super) const CAPACITY: u32 = {
        assert!(N.is_power_of_two(), "the capacity is a power of two");
        assert!(N >= 2, "half of the capacity is at least one");
        assert!(N <= 1 << 16, "the capacity is far below the range of a position");
        #[expect(clippy::cast_possible_truncation, reason = "asserted above")]
        let capacity = N as u32;
        capacity
    };

    pub(super) fn new(start: u32) -> Self {
        Self {
            head: Padded(AtomicU64::new(Head::idle(start).pack())),
            tail: Padded(AtomicU32::new(start)),
            slots: primitive_array![UnsafeCell::new(MaybeUninit::uninit()); N],
            _owns: PhantomData,
        }
    }

    #[inline]
    pub(super) fn head(&self, order: Ordering) -> Head {
        Head::unpack(self.head.load(order))
    }

    /// Moves the head from `from` to `to`, or returns the current head.
    #[inline]
    pub(super) fn move_head(&self, from: Head, to: Head, success: Ordering) -> Result<(), Head> {
        // Acquire on failure: the caller continues with the returned head, as with a loaded one.
        self.head
            .compare_exchange(from.pack(), to.pack(), success, Acquire)
            .map(drop)
            .map_err(Head::unpack)
    }

    /// How many items wait, for any thread: the head is read first, so the number is not negative.
    pub(super) fn len(&self) -> usize {
        // Acquire: pairs with the exchange that moved the head, so the tail is not behind it.
        let head = self.head(Acquire);
        // Relaxed: a count.
        let waiting = self.tail.load(Relaxed).wrapping_sub(head.next);
        // The two are read one after the other, and the owner may have lapped the ring meanwhile.
        waiting.min(Self::CAPACITY) as usize
    }

    /// Writes an item into the slot of a position.
    ///
    /// # Safety
    ///
    /// The slot is free, and the caller is the only one to use it until it publishes the position.
    #[inline]
    pub(super) unsafe fn put(&self, position: u32, item: T) {
        self.slot(position).with_mut(|slot| {
            // SAFETY: the cell is valid, and by the caller's promise no other thread uses it.
            let slot = unsafe { &mut *slot };
            slot.write(item);
        });
    }

    /// Moves the item of a position out.
    ///
    /// # Safety
    ///
    /// There is an item, and the caller has moved `next` over its position and takes it once.
    #[inline]
    pub(super) unsafe fn take(&self, position: u32) -> T {
        // A move out is exclusive, so a model treats it as a write.
        self.slot(position).with_mut(|slot| {
            // SAFETY: the cell is valid, and by the caller's promise no other thread uses it.
            let slot = unsafe { &*slot };
            // SAFETY: by the caller's promise the slot is initialized and is not taken twice.
            unsafe { slot.assume_init_read() }
        })
    }

    #[inline]
    fn slot(&self, position: u32) -> &UnsafeCell<MaybeUninit<T>> {
        // N is a power of two, so the mask is the remainder; and the index is within bounds.
        &self.slots[position as usize & (N - 1)]
    }
}

impl<T, const N: usize> Drop for Slots<T, N> {
    /// Drops every waiting item, also if the drop of one panics.
    fn drop(&mut self) {
        struct DropRemaining<'a, T, const N: usize>(&'a Slots<T, N>, u32);
        impl<T, const N: usize> DropRemaining<'_, T, N> {
            fn drop_all(&mut self, tail: u32) {
                while self.1 != tail {
                    self.1 = self.1.wrapping_add(1);
                    // SAFETY: the item waited, `&mut` in the caller proves that no other thread
                    // uses the ring, and the position was just counted so that it is taken once.
                    drop(unsafe { self.0.take(self.1.wrapping_sub(1)) });
                }
            }
        }
        impl<T, const N: usize> Drop for DropRemaining<'_, T, N> {
            fn drop(&mut self) {
                // Relaxed: the thread that drops the last handle has acquired what the others did.
                self.drop_all(self.0.tail.load(Relaxed));
            }
        }
        if !needs_drop::<T>() {
            return;
        }
        // Relaxed: as above.
        let head = self.head(Relaxed);
        debug_assert!(!head.is_stealing(), "a steal cannot outlive its handle: {head:?}");
        let mut remaining = DropRemaining(self, head.next);
        // Relaxed: as above.
        remaining.drop_all(self.tail.load(Relaxed));
    }
}
