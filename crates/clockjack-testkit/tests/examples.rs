//! The examples hold what they show.

#[path = "../examples/virtual_time.rs"]
mod virtual_time;

#[test]
fn a_day_of_a_thermostat_takes_no_time() {
    virtual_time::main();
}
