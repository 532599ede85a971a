//! The monotonic clock where std's [`Instant`] is all that is known: counted from the first look.
//!
//! Whether time passes while the machine is suspended is as std has it: on Windows it does.

use std::{sync::OnceLock, time::Instant};

static FIRST_READING: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds since somebody first asked. Never less than an earlier reading, also by another
/// thread; a `u64` of them lasts 584 years.
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
