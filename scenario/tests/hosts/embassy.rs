//! As a task on Embassy's std platform.

#[path = "../../../crates/clockjack-embassy/tests/support/platform.rs"]
mod platform;

use clockjack_actor::ActorSystem;
use clockjack_embassy::EmbassyToolbox;
use clockjack_scenario::{Tape, builder, order, start};
use clockjack_time::Resolution;

use crate::{check, check_order, take_time};

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

#[test]
fn a_timer_on_embassy_overtakes_no_message() {
    let (steps, report) = platform::run(async |_spawner| {
        let toolbox = EmbassyToolbox::new(Resolution::MILLI);
        let mut system = toolbox.system(ActorSystem::builder("order")).expect("there is room");
        let steps = order::start(system.system(), take_time).expect("there is room");
        let report = system.run().await.expect("the driver is not stopped");
        (steps, report)
    });
    check_order(&steps, &report);
}
