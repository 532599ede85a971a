//! The examples run and produce the documented output.

#[path = "../examples/thermostat.rs"]
mod thermostat;

#[test]
fn a_day_of_a_thermostat_takes_no_time() {
    thermostat::main();
}
