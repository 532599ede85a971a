//! The levels of the hierarchical timing wheel: four levels of slots and one occupancy bitmap each.
//!
//! ```text
//!   level   slots   one slot spans      list
//!     0       64        1 tick           0..64
//!     1       64       64 ticks         64..128
//!     2       64     4096 ticks        128..192
//!     3        4   262144 ticks        192..196      range: 4 × 2^18 = 2^20 ticks
//!            already-due list          196
//! ```
//!
//! Bit `list % 64` of word `list / 64` says that the list is not empty.
//!
//! The level of a deadline is that of the highest digit in which deadline and elapsed time differ
//! (as in tokio's and in Varghese and Lauck's hierarchical wheels); deadlines that are a whole
//! range ahead belong to the overflow.

/// Bits of a digit.
pub(crate) const BITS: u32 = 6;
/// Slots of every level but the top one.
pub(crate) const SLOTS: u32 = 1 << BITS;
/// The top level, which wraps.
pub(crate) const TOP: u32 = 3;
/// Bits of the top level's digit.
const TOP_BITS: u32 = 2;
/// log2 of the ticks that the wheel itself covers.
pub(crate) const RANGE_BITS: u32 = TOP * BITS + TOP_BITS;
/// How many ticks ahead a deadline may be and still be in the wheel; the overflow holds the rest.
pub(crate) const RANGE: u64 = 1 << RANGE_BITS;

/// The list of timers that were already due when they were inserted.
pub(crate) const ALREADY_DUE: u32 = TOP * SLOTS + (1 << TOP_BITS);
/// How many lists there are.
pub(crate) const LISTS: u32 = ALREADY_DUE + 1;

/// The bits of the top level's slots in its bitmap word; the already-due list uses the bit above.
const TOP_MASK: u64 = (1 << (1 << TOP_BITS)) - 1;

const _: () = assert!(RANGE == 1 << 20, "the range is a contract");
const _: () = assert!(LISTS <= 4 * SLOTS, "every list has its bit in one of four words");

/// Which lists are not empty.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy([u64; 4]);

/// The next slot that time reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// The slot's list.
    pub(crate) list: u32,
    /// First tick of the slot; for level 0 the deadline of all its timers.
    pub(crate) tick: u64,
}

impl Event {
    /// Whether the slot holds a single tick, so that its entries fire.
    #[inline(always)]
    pub(crate) const fn fires(self) -> bool {
        self.list < SLOTS
    }
}

impl Occupancy {
    pub(crate) const EMPTY: Self = Self([0; 4]);

    #[inline(always)]
    pub(crate) fn set(&mut self, list: u32) {
        self.0[(list >> BITS) as usize & 3] |= 1 << (list & (SLOTS - 1));
    }

    #[inline(always)]
    pub(crate) fn clear(&mut self, list: u32) {
        self.0[(list >> BITS) as usize & 3] &= !(1 << (list & (SLOTS - 1)));
    }

    #[inline(always)]
    pub(crate) fn has(&self, list: u32) -> bool {
        self.0[(list >> BITS) as usize & 3] & (1 << (list & (SLOTS - 1))) != 0
    }

    /// The first occupied slot at or after `elapsed`, in order of time.
    ///
    /// Lower levels come first because all their timers are within the span of the current slot of
    /// the level above. Level 0 includes the current slot, the others begin behind theirs; the top
    /// level starts again from its beginning, which is its next lap.
    #[inline]
    pub(crate) fn next(&self, elapsed: u64) -> Option<Event> {
        let ahead = self.0[0] & (u64::MAX << (elapsed & u64::from(SLOTS - 1)));
        if ahead != 0 {
            let slot = ahead.trailing_zeros();
            return Some(Event { list: slot, tick: (elapsed & !63) | u64::from(slot) });
        }
        for level in 1..TOP {
            let shift = level * BITS;
            let digit = (elapsed >> shift) & u64::from(SLOTS - 1);
            let ahead = self.0[level as usize] & (u64::MAX << digit) & !(1 << digit);
            if ahead != 0 {
                let slot = ahead.trailing_zeros();
                let base = elapsed >> (shift + BITS) << (shift + BITS);
                let tick = base | (u64::from(slot) << shift);
                return Some(Event { list: level * SLOTS + slot, tick });
            }
        }
        self.next_top(elapsed)
    }

    fn next_top(&self, elapsed: u64) -> Option<Event> {
        let shift = TOP * BITS;
        let all = self.0[TOP as usize] & TOP_MASK;
        if all == 0 {
            return None;
        }
        let digit = (elapsed >> shift) & ((1 << TOP_BITS) - 1);
        let base = elapsed >> RANGE_BITS << RANGE_BITS;
        let ahead = all & (u64::MAX << digit) & !(1 << digit);
        let (slot, base) = if ahead != 0 {
            (ahead.trailing_zeros(), base)
        } else {
            // The next lap. It cannot overflow: some deadline is in it, and deadlines fit.
            (all.trailing_zeros(), base.wrapping_add(RANGE))
        };
        let tick = base.wrapping_add(u64::from(slot) << shift);
        Some(Event { list: TOP * SLOTS + slot, tick })
    }
}

/// The list that a deadline belongs to, seen from `elapsed`.
///
/// Expects `elapsed <= deadline` and `deadline - elapsed < RANGE`.
#[inline(always)]
pub(crate) fn list_for(deadline: u64, elapsed: u64) -> u32 {
    debug_assert!(deadline >= elapsed, "deadline {deadline} lies before {elapsed}");
    debug_assert!(deadline - elapsed < RANGE, "deadline {deadline} is out of range of {elapsed}");
    let highest_bit = 63 - ((deadline ^ elapsed) | 1).leading_zeros();
    let level = (highest_bit / BITS).min(TOP);
    #[expect(clippy::cast_possible_truncation, reason = "masked to six bits")]
    let digit = (deadline >> (level * BITS)) as u32 & (SLOTS - 1);
    // The top level has four slots: its digit is truncated to two bits, without a branch.
    let mask = if level == TOP { (1 << TOP_BITS) - 1 } else { SLOTS - 1 };
    level * SLOTS + (digit & mask)
}

/// How many ticks a slot of this list spans.
pub(crate) const fn span(list: u32) -> u64 {
    1 << ((list >> BITS) * BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_goes_to_the_level_of_its_highest_differing_digit() {
        let check = |deadline: u64, elapsed: u64, list: u32| {
            assert_eq!(
                list_for(deadline, elapsed),
                list,
                "deadline {deadline} seen from {elapsed}"
            );
        };
        check(0, 0, 0);
        check(63, 0, 63);
        check(64, 0, 64 + 1);
        check(64, 63, 64 + 1); // one tick ahead, yet in the next slot of level 1
        check(4095, 0, 64 + 63);
        check(4096, 0, 128 + 1);
        check(262_144, 0, 192 + 1);
        check((1 << 20) - 1, 0, 192 + 3);
        check(1 << 20, 1, 192); // the next lap of the top level
        check((1 << 63) + 5, 1 << 63, 5);
        check(u64::MAX, u64::MAX, 63);
    }

    #[test]
    fn the_next_event_is_found_on_the_lowest_level_first() {
        let mut occupancy = Occupancy::EMPTY;
        assert_eq!(occupancy.next(0), None);
        occupancy.set(192 + 2);
        assert_eq!(occupancy.next(0), Some(Event { list: 194, tick: 2 << 18 }));
        occupancy.set(128 + 5);
        assert_eq!(occupancy.next(0), Some(Event { list: 133, tick: 5 << 12 }));
        occupancy.set(64 + 9);
        assert_eq!(occupancy.next(0), Some(Event { list: 73, tick: 9 << 6 }));
        occupancy.set(7);
        assert_eq!(occupancy.next(7), Some(Event { list: 7, tick: 7 }));
        occupancy.clear(7);
        assert_eq!(occupancy.next(7), Some(Event { list: 73, tick: 9 << 6 }));
    }

    #[test]
    fn the_top_level_wraps_into_its_next_lap() {
        let mut occupancy = Occupancy::EMPTY;
        occupancy.set(192);
        let elapsed = (3 << 18) + 17;
        assert_eq!(occupancy.next(elapsed), Some(Event { list: 192, tick: 1 << 20 }));
        // The slot of the cursor itself holds the next lap's entries.
        assert_eq!(occupancy.next(5), Some(Event { list: 192, tick: 1 << 20 }));
    }

    #[test]
    fn lists_that_are_not_slots_are_no_events() {
        let mut occupancy = Occupancy::EMPTY;
        occupancy.set(ALREADY_DUE);
        assert_eq!(occupancy.next(0), None);
        assert!(occupancy.has(ALREADY_DUE));
    }
}
