//! Maps values to buckets and buckets to their range of values, with integer arithmetic only.
//!
//! With `SUB = 2^k` the values below `SUB` have a bucket each. From there on every octave
//! `2^e ..= 2^(e+1) - 1` is cut into `SUB` equal parts:
//!
//! ```text
//!   bucket   0 .. SUB      SUB .. 2 SUB    2 SUB .. 3 SUB    3 SUB .. 4 SUB   ...
//!   values   0 .. SUB      SUB .. 2 SUB    2 SUB .. 4 SUB    4 SUB .. 8 SUB   ...
//!   width        1               1               2                 4          ...
//! ```
//!
//! so a bucket is never wider than its lowest value divided by `SUB`. This is the layout of
//! HdrHistogram (Gil Tene) with one fixed range, all of `u64`.

/// Rows of `SUB` buckets. One row of units and `64 - k` octaves are used; sixty-four are allocated,
/// because an array's length cannot yet be computed from a const parameter.
pub(crate) const ROWS: usize = u64::BITS as usize;

/// The largest supported number of buckets per octave: finer than any clock that feeds it.
pub(crate) const SUB_MAX: usize = 256;

/// The arithmetic of a layout with `SUB` buckets per octave.
pub(crate) struct Layout<const SUB: usize>;

impl<const SUB: usize> Layout<SUB> {
    /// log2 of `SUB`; evaluating it checks `SUB`.
    pub(crate) const SUB_BITS: u32 = {
        assert!(SUB.is_power_of_two(), "SUB is a power of two");
        assert!(SUB >= 2, "SUB is at least 2");
        assert!(SUB <= SUB_MAX, "SUB is at most 256");
        SUB.trailing_zeros()
    };

    /// The number of buckets in use.
    #[cfg(test)]
    pub(crate) const BUCKETS: usize = (ROWS - Self::SUB_BITS as usize + 1) * SUB;

    /// The bucket of a value.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "below BUCKETS, at most 64 * 256")]
    pub(crate) const fn index_of(value: u64) -> usize {
        // `| SUB` gives the values below SUB the exponent k, hence shift 0 and their own bucket.
        let exponent = (value | SUB as u64).ilog2();
        let shift = exponent - Self::SUB_BITS;
        ((shift as usize) << Self::SUB_BITS) + (value >> shift) as usize
    }

    /// The smallest value of a bucket.
    pub(crate) const fn lowest(index: usize) -> u64 {
        if index < SUB {
            return index as u64;
        }
        let shift = (index >> Self::SUB_BITS) - 1;
        ((index - (shift << Self::SUB_BITS)) as u64) << shift
    }

    /// The largest value of a bucket.
    pub(crate) const fn highest(index: usize) -> u64 {
        if index < SUB {
            return index as u64;
        }
        let shift = (index >> Self::SUB_BITS) - 1;
        Self::lowest(index) + ((1 << shift) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::Layout;

    fn check_borders<const SUB: usize>() {
        let mut next = 0;
        for index in 0..Layout::<SUB>::BUCKETS {
            let (lowest, highest) = (Layout::<SUB>::lowest(index), Layout::<SUB>::highest(index));
            assert_eq!(lowest, next, "bucket {index} begins where the last ended");
            assert_eq!(Layout::<SUB>::index_of(lowest), index);
            assert_eq!(Layout::<SUB>::index_of(highest), index);
            assert!((highest - lowest) <= lowest / SUB as u64, "bucket {index} is too wide");
            if index + 1 == Layout::<SUB>::BUCKETS {
                assert_eq!(highest, u64::MAX);
            } else {
                next = highest + 1;
            }
        }
    }

    #[test]
    fn buckets_cover_all_of_u64_without_gap_or_overlap() {
        check_borders::<2>();
        check_borders::<4>();
        check_borders::<16>();
        check_borders::<32>();
        check_borders::<256>();
    }
}
