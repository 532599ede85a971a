//! The monotonic clock on Linux: `CLOCK_MONOTONIC`, which futex deadlines refer to, too.
//!
//! A reading is one vDSO call, without a system call. The clock stands still while the machine is
//! suspended.

use rustix::time::{ClockId, clock_gettime};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// Nanoseconds since the machine started. Monotonic across threads; a `u64` lasts 584 years.
#[inline]
pub(crate) fn nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither part is negative: this clock starts at zero, and its nanoseconds are a fraction.
    now.tv_sec as u64 * NANOS_PER_SEC + now.tv_nsec as u64
}
