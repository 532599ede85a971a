//! A system of actors, and the tick driver alone, as tasks on Embassy's std platform.
//!
//! These tests are about the clock, so they use the real one. Their assertions hold on a machine of
//! any speed: nothing happens before its time, and nothing is missing after it.
#![cfg(not(loom))]

extern crate alloc;

#[path = "../examples/blinker.rs"]
mod blinker;
#[path = "std_platform/driver.rs"]
mod driver;
#[path = "std_platform/faults.rs"]
mod faults;
#[path = "support/platform.rs"]
mod platform;
#[path = "std_platform/linux.rs"]
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
