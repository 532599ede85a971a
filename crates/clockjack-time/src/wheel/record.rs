//! One timer of a store with one owner: its value, its location, and its generation.
#![expect(unsafe_code, reason = "a value is initialised exactly while its location is not vacant")]

use core::{fmt, mem::MaybeUninit};

use super::store::Location;

/// A timer's location and value, which is initialised exactly while the location is not vacant.
pub struct TimerEntry<T> {
    location: Location,
    value: MaybeUninit<T>,
}

impl<T> TimerEntry<T> {
    pub(crate) const VACANT: Self =
        Self { location: Location::VACANT, value: MaybeUninit::uninit() };

    #[inline(always)]
    pub(crate) const fn location(&self) -> Location {
        self.location
    }

    #[inline(always)]
    pub(crate) fn set_location(&mut self, location: Location) {
        debug_assert!(
            !self.location.is_vacant() && !location.is_vacant(),
            "only `put` and `take` do"
        );
        self.location = location;
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, location: Location, value: T) {
        debug_assert!(self.location.is_vacant(), "the slot is taken");
        assert!(!location.is_vacant(), "a value has a location");
        self.value = MaybeUninit::new(value);
        self.location = location;
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<(Location, T)> {
        let location = self.location;
        if location.is_vacant() {
            return None;
        }
        self.location = Location::VACANT;
        // SAFETY: the location was not vacant, so `put` has written the value, and it is marked
        // vacant now, so the value is not read a second time.
        Some((location, unsafe { self.value.assume_init_read() }))
    }

    pub(crate) fn value(&self) -> Option<&T> {
        if self.location.is_vacant() {
            return None;
        }
        // SAFETY: the location is not vacant, so `put` has written the value.
        Some(unsafe { self.value.assume_init_ref() })
    }

    pub(crate) fn value_mut(&mut self) -> Option<&mut T> {
        if self.location.is_vacant() {
            return None;
        }
        // SAFETY: the location is not vacant, so `put` has written the value.
        Some(unsafe { self.value.assume_init_mut() })
    }
}

impl<T> Drop for TimerEntry<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            drop(self.take());
        }
    }
}

impl<T> fmt::Debug for TimerEntry<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerEntry").field("location", &self.location).finish_non_exhaustive()
    }
}

/// A timer with its generation: both are on the same cache line.
pub(crate) struct Record<T> {
    /// In halves, so that the record needs no more alignment than the value. 0: not armed.
    generation: [u32; 2],
    pub(crate) entry: TimerEntry<T>,
}

impl<T> Record<T> {
    pub(crate) const VACANT: Self = Self { generation: [0; 2], entry: TimerEntry::VACANT };

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    pub(crate) const fn set_generation(&mut self, generation: u64) {
        self.generation = [generation as u32, (generation >> 32) as u32];
    }

    #[inline(always)]
    pub(crate) const fn generation(&self) -> u64 {
        self.generation[0] as u64 | (self.generation[1] as u64) << 32
    }
}

/// The methods of [`Columns`](super::store::Columns) for a store with one owner, whose generations
/// are plain memory.
macro_rules! record_columns {
    () => {
        #[inline(always)]
        fn entry(&self, timer: u32) -> Option<&TimerEntry<T>> {
            Some(&self.records.get(timer as usize)?.entry)
        }

        #[inline(always)]
        fn entry_mut(&mut self, timer: u32) -> Option<&mut TimerEntry<T>> {
            Some(&mut self.records.get_mut(timer as usize)?.entry)
        }

        #[inline(always)]
        fn location(&self, timer: u32) -> Location {
            self.records[timer as usize].entry.location()
        }

        #[inline(always)]
        fn set_location(&mut self, timer: u32, location: Location) {
            self.records[timer as usize].entry.set_location(location);
        }

        #[inline(always)]
        fn fill(&mut self, timer: u32, generation: Generation, location: Location, value: T) {
            let record = &mut self.records[timer as usize];
            record.set_generation(generation.get());
            record.entry.put(location, value);
        }

        #[inline(always)]
        fn is_armed(&self, timer: u32, generation: Generation) -> bool {
            let record = self.records.get(timer as usize);
            record.is_some_and(|record| record.generation() == generation.get())
        }

        #[inline(always)]
        fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Location, T)> {
            let record = self.records.get_mut(timer as usize)?;
            if record.generation() != generation.get() {
                return None;
            }
            record.set_generation(0);
            record.entry.take()
        }

        #[inline(always)]
        fn fire(&mut self, timer: u32) -> Option<(Generation, T)> {
            let record = &mut self.records[timer as usize];
            let generation = Generation::new(record.generation())?;
            record.set_generation(0);
            Some((generation, record.entry.take()?.1))
        }

        #[inline(always)]
        fn rearm(&mut self, timer: u32, from: Generation, to: Generation) -> bool {
            let armed = self.is_armed(timer, from);
            if armed {
                self.records[timer as usize].set_generation(to.get());
            }
            armed
        }
    };
}
pub(crate) use record_columns;

const _: () = assert!(size_of::<Record<u32>>() == 16, "12 bytes and the value");
const _: () = assert!(size_of::<Record<[u32; 2]>>() == 20, "12 bytes and the value");
