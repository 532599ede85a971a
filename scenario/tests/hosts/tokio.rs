//! As a task inside a tokio application.

use clockjack_actor::ActorSystem;
use clockjack_rt::TokioToolbox;
use clockjack_scenario::{Tape, builder, order, start};
use clockjack_time::Resolution;

use crate::{PATIENCE, check, check_order, take_time};

#[test]
fn a_task_of_tokio_leaves_the_golden_trace() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime on this thread starts").block_on(async {
        let tape = Tape::new();
        let toolbox = TokioToolbox::new(Resolution::MILLI);
        let mut system = toolbox.system(builder(&tape)).expect("there is room");
        start(system.system(), &tape).expect("there is room");
        let report = tokio::time::timeout(PATIENCE, system.run()).await;
        check(&tape, &report.expect("the scenario shuts the system down"));
    });
}

#[test]
fn a_timer_inside_tokio_overtakes_no_message() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime on this thread starts").block_on(async {
        let toolbox = TokioToolbox::new(Resolution::MILLI);
        let mut system = toolbox.system(ActorSystem::builder("order")).expect("there is room");
        let steps = order::start(system.system(), take_time).expect("there is room");
        let report = tokio::time::timeout(PATIENCE, system.run()).await;
        check_order(&steps, &report.expect("the last step shuts the system down"));
    });
}
