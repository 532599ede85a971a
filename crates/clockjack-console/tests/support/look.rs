//! Looking at a system in virtual time.

use core::time::Duration;

use clockjack_console::Watcher;
use clockjack_testkit::ManualTime;

/// Lets a watcher look once at everything, at the time of the target's clock.
pub(crate) fn look(watcher: &Watcher) {
    look_at(watcher, watcher.target().now_ns());
}

/// As [`look`], at another time. Nothing is sampled: a sample per second would be too few.
pub(crate) fn look_at(watcher: &Watcher, now_ns: u64) {
    while !watcher.sweep(now_ns) {}
    watcher.advance(now_ns);
}

/// Lets virtual time pass, and a watcher look before and after each second of it.
pub(crate) fn seconds(time: &ManualTime, watcher: &Watcher, n: u32) {
    for _ in 0..n {
        time.settle();
        look(watcher);
        time.advance(Duration::from_secs(1));
        time.settle();
        look(watcher);
    }
}
