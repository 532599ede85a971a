//! One timer of a store with one owner: its value, where it is, and which arming it is.
#![expect(unsafe_code, reason = "a value is there exactly while its place is not vacant")]

use core::{fmt, mem::MaybeUninit};

use super::store::Place;

/// A timer's place and value, which is initialised exactly while the place is not vacant.
pub struct Seat<T> {
    place: Place,
    value: MaybeUninit<T>,
}

impl<T> Seat<T> {
    pub(crate) const VACANT: Self = Self { place: Place::VACANT, value: MaybeUninit::uninit() };

    #[inline(always)]
    pub(crate) const fn place(&self) -> Place {
        self.place
    }

    #[inline(always)]
    pub(crate) fn set_place(&mut self, place: Place) {
        debug_assert!(!self.place.is_vacant() && !place.is_vacant(), "only `put` and `take` do");
        self.place = place;
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, place: Place, value: T) {
        debug_assert!(self.place.is_vacant(), "the slot is taken");
        assert!(!place.is_vacant(), "a value has a place");
        self.value = MaybeUninit::new(value);
        self.place = place;
    }

    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<(Place, T)> {
        let place = self.place;
        if place.is_vacant() {
            return None;
        }
        self.place = Place::VACANT;
        // SAFETY: the place was not vacant, so `put` has written the value, and it is marked
        // vacant now, so nobody reads it a second time.
        Some((place, unsafe { self.value.assume_init_read() }))
    }

    pub(crate) fn value(&self) -> Option<&T> {
        if self.place.is_vacant() {
            return None;
        }
        // SAFETY: the place is not vacant, so `put` has written the value.
        Some(unsafe { self.value.assume_init_ref() })
    }

    pub(crate) fn value_mut(&mut self) -> Option<&mut T> {
        if self.place.is_vacant() {
            return None;
        }
        // SAFETY: the place is not vacant, so `put` has written the value.
        Some(unsafe { self.value.assume_init_mut() })
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        if core::mem::needs_drop::<T>() {
            drop(self.take());
        }
    }
}

impl<T> fmt::Debug for Seat<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A timer with its generation beside it: one cache line tells all.
pub(crate) struct Record<T> {
    /// In halves, so that the record needs no more alignment than the value. 0: not armed.
    generation: [u32; 2],
    pub(crate) seat: Seat<T>,
}

impl<T> Record<T> {
    pub(crate) const VACANT: Self = Self { generation: [0; 2], seat: Seat::VACANT };

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

/// What [`Columns`](super::store::Columns) asks of a store with one owner, whose generations are
/// plain memory.
macro_rules! record_columns {
    () => {
        #[inline(always)]
        fn seat(&self, timer: u32) -> Option<&Seat<T>> {
            Some(&self.records.get(timer as usize)?.seat)
        }

        #[inline(always)]
        fn seat_mut(&mut self, timer: u32) -> Option<&mut Seat<T>> {
            Some(&mut self.records.get_mut(timer as usize)?.seat)
        }

        #[inline(always)]
        fn place(&self, timer: u32) -> Place {
            self.records[timer as usize].seat.place()
        }

        #[inline(always)]
        fn set_place(&mut self, timer: u32, place: Place) {
            self.records[timer as usize].seat.set_place(place);
        }

        #[inline(always)]
        fn fill(&mut self, timer: u32, generation: Generation, place: Place, value: T) {
            let record = &mut self.records[timer as usize];
            record.set_generation(generation.get());
            record.seat.put(place, value);
        }

        #[inline(always)]
        fn is_armed(&self, timer: u32, generation: Generation) -> bool {
            let record = self.records.get(timer as usize);
            record.is_some_and(|record| record.generation() == generation.get())
        }

        #[inline(always)]
        fn claim(&mut self, timer: u32, generation: Generation) -> Option<(Place, T)> {
            let record = self.records.get_mut(timer as usize)?;
            if record.generation() != generation.get() && !mutant!("wheel_stale_id") {
                return None;
            }
            record.set_generation(0);
            record.seat.take()
        }

        #[inline(always)]
        fn fire(&mut self, timer: u32) -> Option<(Generation, T)> {
            let record = &mut self.records[timer as usize];
            let generation = Generation::new(record.generation())?;
            record.set_generation(0);
            Some((generation, record.seat.take()?.1))
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
