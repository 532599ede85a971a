//! A system of actors, and the tick driver alone, as tasks on Embassy's std platform.
//!
//! These tests are about the clock, so they use the real one. Their assertions hold on a machine of
//! any speed: nothing happens before its time, and nothing is missing after it.
#![cfg(not(loom))]

extern crate alloc;

#[path = "../examples/blinker.rs"]
mod blinker;
#[cfg(target_os = "linux")]
#[path = "../../clockjack-rt/tests/support/child.rs"]
mod child;
#[path = "std_platform/driver.rs"]
mod driver;
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "what is waited for is another process")]
#[path = "../../clockjack-rt/tests/support/eventually.rs"]
mod eventually;
#[path = "std_platform/faults.rs"]
mod faults;
#[path = "support/platform.rs"]
mod platform;
#[cfg(target_os = "linux")]
#[path = "std_platform/signals.rs"]
mod signals;
#[path = "std_platform/system.rs"]
mod system;
#[path = "../../clockjack-actor/tests/support/timer_order.rs"]
mod timer_order;

#[test]
fn the_example_blinks_fails_is_restarted_and_ends() {
    let report = platform::run(async |spawner| blinker::blink(spawner).await);
    assert!(report.expect("the driver is not stopped").is_clean());
}
