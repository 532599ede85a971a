//! The monotonic clock on systems where only std's [`Instant`] is available; it counts from the
//! first reading.
//!
//! Whether the clock runs while the machine is suspended depends on std: on Windows it does.

use std::{sync::OnceLock, time::Instant};

static FIRST_READING: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds since the first reading. Monotonic across threads; a `u64` lasts 584 years.
#[inline]
pub(crate) fn nanos() -> u64 {
    let passed = FIRST_READING.get_or_init(Instant::now).elapsed();
    u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portable_clock_passes_and_does_not_go_back() {
        let start = nanos();
        let mut last = start;
        while last == start {
            let now = nanos();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    }
}
