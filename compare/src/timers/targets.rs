//! The targets of the timer stores, against the best rival in the same run.

use super::subject::Case;
use crate::report::Target;

/// The target of a case at a size, if there is one.
pub(crate) const fn target(case: Case, n: u32) -> Option<Target> {
    match (case, n) {
        (Case::Insert | Case::Cancel | Case::Fire1ms | Case::Churn, 1_000_000) => {
            Some(Target::RatioAtLeast(1.5))
        }
        (Case::Fire, 1_000_000) => Some(Target::RatioAtLeast(1.0)),
        (Case::Insert | Case::Cancel, 100_000) => Some(Target::RatioAtLeast(1.2)),
        (Case::Fire1ms, 100_000) => Some(Target::RatioAtLeast(2.0)),
        (Case::Bytes, 1_000_000) => Some(Target::OursAtMost(32.0)),
        _ => None,
    }
}
