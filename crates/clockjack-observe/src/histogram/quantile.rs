//! A quantile as a whole number of millionths: no floating point.

use core::fmt;

/// A quantile between 0 and 1, in millionths.
///
/// ```
/// use clockjack_observe::Quantile;
///
/// assert_eq!(Quantile::from_millionths(999_000), Some(Quantile::P99_9));
/// assert_eq!(Quantile::from_millionths(1_000_001), None);
/// assert_eq!(Quantile::P99_9.to_string(), "p99.9");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u32);

/// The whole distribution, in millionths.
const WHOLE: u32 = 1_000_000;

impl Quantile {
    /// The minimum.
    pub const MIN: Self = Self(0);
    /// The median.
    pub const P50: Self = Self(500_000);
    /// 90 of 100 values are less or equal.
    pub const P90: Self = Self(900_000);
    /// 95 of 100 values are less or equal.
    pub const P95: Self = Self(950_000);
    /// 99 of 100 values are less or equal.
    pub const P99: Self = Self(990_000);
    /// 999 of 1000 values are less or equal.
    pub const P99_9: Self = Self(999_000);
    /// 9999 of 10000 values are less or equal.
    pub const P99_99: Self = Self(999_900);
    /// The maximum.
    pub const MAX: Self = Self(WHOLE);

    /// A quantile in millionths; `None` above one million.
    #[must_use]
    pub const fn from_millionths(millionths: u32) -> Option<Self> {
        if millionths <= WHOLE { Some(Self(millionths)) } else { None }
    }

    /// The quantile in millionths.
    #[must_use]
    pub const fn millionths(self) -> u32 {
        self.0
    }

    /// The rank among `count` sorted values, starting at 1: the lowest rank with at least this
    /// share of the values at or below it.
    pub(crate) fn rank(self, count: u64) -> u64 {
        let rank = (u128::from(count) * u128::from(self.0)).div_ceil(u128::from(WHOLE));
        u64::try_from(rank).expect("a share of at most one of a u64 fits a u64").max(1)
    }
}

/// `p50`, `p99.9`: percent without trailing zeros.
impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, mut rest) = (self.0 / 10_000, self.0 % 10_000);
        write!(f, "p{percent}")?;
        if rest == 0 {
            return Ok(());
        }
        f.write_str(".")?;
        while rest != 0 {
            write!(f, "{}", rest / 1000)?;
            rest = rest % 1000 * 10;
        }
        Ok(())
    }
}
