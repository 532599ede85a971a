//! A place for an allocation that is made on first use, and that counts events from the beginning.
//!
//! # Protocol
//!
//! Threads: *counters*, any thread and any interrupt, which must neither allocate nor wait; and
//! *makers*, threads that need the value. Both share one word:
//!
//! ```text
//!   0                     nothing was counted, and there is no value
//!   count * 2 + 1         events that were counted before there was a value
//!   address (even)        the value, and its own counter
//! ```
//!
//! 1. A counter that finds an address increments the counter there. Otherwise it replaces the count
//!    by the next one, by a compare-and-swap.
//! 2. A maker stores the count that it has read in the counter of its new value, and replaces that
//!    count by the address, by a compare-and-swap.
//! 3. An address is never replaced.
//!
//! *Why nothing is counted twice or lost*: a compare-and-swap of rule 1 or 2 succeeds only if the
//! word is as it was read. So a maker never takes a count that has been incremented since, and a
//! counter never writes a count over an address. *Why it cannot hang*: an attempt is repeated only
//! if another thread has counted or made a value in between; code that was interrupted does neither
//! while the interrupt runs.
#![expect(unsafe_code, reason = "an address and a count in one word")]

use alloc::boxed::Box;
use core::ptr;

use clockjack_observe::Counter;
use clockjack_sync::primitive::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// See the [module](self).
pub(crate) struct CountingSlot<T>(AtomicPtr<ValueWithCount<T>>);

/// A value, and the number of all events.
struct ValueWithCount<T> {
    events: Counter,
    value: T,
}

/// What the word says.
enum Content<T> {
    Count(usize),
    Value(*mut ValueWithCount<T>),
}

impl<T> CountingSlot<T> {
    pub(crate) fn new() -> Self {
        const { assert!(align_of::<ValueWithCount<T>>() > 1, "an address is even") };
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn content(word: *mut ValueWithCount<T>) -> Content<T> {
        let bits = word.addr();
        if bits == 0 || bits & 1 == 1 { Content::Count(bits >> 1) } else { Content::Value(word) }
    }

    fn counted(&self) -> Result<&ValueWithCount<T>, usize> {
        // Acquire: pairs with the compare-and-swap of `get_or_insert_with`.
        match Self::content(self.0.load(Acquire)) {
            // SAFETY: the address came from a box, which is not freed before the slot.
            Content::Value(address) => Ok(unsafe { &*address }),
            Content::Count(n) => Err(n),
        }
    }

    /// The value, if it was made.
    pub(crate) fn get(&self) -> Option<&T> {
        self.counted().ok().map(|counted| &counted.value)
    }

    /// The value, which is made if there is none.
    pub(crate) fn get_or_insert_with(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let mut made = Box::new(ValueWithCount { events: Counter::new(), value: make() });
        // Acquire: as in `counted`.
        let mut seen = self.0.load(Acquire);
        loop {
            match Self::content(seen) {
                // SAFETY: as in `counted`.
                Content::Value(address) => return unsafe { &(*address).value },
                Content::Count(n) => {
                    made.events = Counter::new();
                    made.events.add(n);
                }
            }
            let address = Box::into_raw(made);
            // Release: publishes the new allocation. Acquire: the value of another maker.
            match self.0.compare_exchange(seen, address, AcqRel, Acquire) {
                // SAFETY: as in `counted`.
                Ok(_) => return unsafe { &(*address).value },
                Err(other) => {
                    seen = other;
                    // SAFETY: it came from a box, and no other thread has seen it.
                    made = unsafe { Box::from_raw(address) };
                }
            }
        }
    }

    /// Counts an event. Neither allocates nor waits; interrupts may call it.
    pub(crate) fn count(&self) {
        // Acquire: as in `counted`.
        let mut seen = self.0.load(Acquire);
        loop {
            let n = match Self::content(seen) {
                // SAFETY: as in `counted`.
                Content::Value(address) => return unsafe { &(*address).events }.increment(),
                Content::Count(n) => n,
            };
            let next = ptr::without_provenance_mut(n.wrapping_add(1) << 1 | 1);
            // Acquire: a value that a maker has stored meanwhile. A count publishes nothing.
            match self.0.compare_exchange_weak(seen, next, Acquire, Acquire) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// How many events were counted.
    pub(crate) fn n_counted(&self) -> usize {
        self.counted().map_or_else(|n| n, |counted| counted.events.get())
    }

    /// Drops the value.
    pub(crate) fn clear(&mut self) {
        // Relaxed: a thread that has the slot exclusively has synchronized with all others.
        if let Content::Value(address) = Self::content(self.0.load(Relaxed)) {
            self.0 = AtomicPtr::new(ptr::null_mut());
            // SAFETY: it came from a box, and nobody refers to it any more.
            drop(unsafe { Box::from_raw(address) });
        }
    }
}

impl<T> Drop for CountingSlot<T> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::CountingSlot;

    #[test]
    fn events_are_counted_before_and_after_the_value_is_made() {
        let slot = CountingSlot::<u64>::new();
        assert_eq!((slot.n_counted(), slot.get()), (0, None));
        for n in 1..=3 {
            slot.count();
            assert_eq!((slot.n_counted(), slot.get()), (n, None));
        }
        assert_eq!(slot.get_or_insert_with(|| 7), &7);
        assert_eq!(slot.get_or_insert_with(|| 8), &7);
        slot.count();
        assert_eq!((slot.n_counted(), slot.get()), (4, Some(&7)));
    }
}
