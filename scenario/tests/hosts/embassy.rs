//! As a task on Embassy's std platform.

#[path = "../../../crates/clockjack-embassy/tests/support/platform.rs"]
mod platform;

use clockjack_embassy::EmbassyToolbox;
use clockjack_scenario::{Tape, builder, start};
use clockjack_time::Resolution;

use crate::check;

#[test]
fn a_task_of_embassy_leaves_the_golden_trace() {
    let (tape, report) = platform::run(async |_spawner| {
        let tape = Tape::new();
        let toolbox = EmbassyToolbox::new(Resolution::MILLI);
        let mut system = toolbox.system(builder(&tape)).expect("there is room");
        start(system.system(), &tape).expect("there is room");
        let report = system.run().await.expect("the driver is not stopped");
        (tape, report)
    });
    check(&tape, &report);
}
