//! Waiting for what another thread is about to do, with a bound after which the test has failed.

use core::time::Duration;
use std::{thread, time::Instant};

/// Far beyond what a loaded machine needs: reached only by a fault.
const LIMIT: Duration = Duration::from_secs(60);

/// Looks until `is_so`.
#[track_caller]
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "still not: {what}");
        thread::yield_now();
    }
}
