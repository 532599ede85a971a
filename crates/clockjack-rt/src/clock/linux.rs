//! The monotonic clock on Linux: `CLOCK_MONOTONIC`, which is what a futex's deadline is read by.
//!
//! One call of the vDSO, no system call. Time for which the machine was suspended does not pass.

use rustix::time::{ClockId, clock_gettime};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Nanoseconds since the machine started. Never less than an earlier reading, also by another
/// thread; a `u64` of them lasts 584 years.
#[inline]
pub(crate) fn nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is negative: this clock starts at zero, and its nanoseconds are a fraction.
    now.tv_sec as u64 * NANOS_PER_SEC + now.tv_nsec as u64
}
