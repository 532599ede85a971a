//! Changes of settings while a run goes on: all of them or none.

use clockjack_graph::describe::GraphFile;
use clockjack_graph::run::Reconfigure;
use clockjack_graph::run::reconfigure::ConfigRefused;
use clockjack_graph::{Clock, GraphRun, RunError, RunOptions, RunReport};
use clockjack_testkit::ManualTime;

use crate::basics::CHAIN;
use crate::parts::{Seen, registry};

/// What came of a change, of the run, and of what came out.
struct Changed {
    change: Result<u64, ConfigRefused>,
    run: Result<RunReport, RunError>,
    seen: Vec<f64>,
}

/// A run of three epochs of `text`, with a change that waits for its first.
fn changed(text: &str, clock: Clock, change: impl FnOnce(&GraphRun) -> Reconfigure) -> Changed {
    let (seen, time) = (Seen::default(), ManualTime::start());
    let file = GraphFile::parse("test.yaml", text).expect("it is right");
    let graph = file.compile(&registry(&seen)).expect("it is right");
    let run = graph.start(time.system(), RunOptions::steps(3).clock(clock)).expect("it starts");
    let change = change(&run).commit();
    let run = time.block_on(run);
    let change = time.block_on(change);
    let seen = seen.lock().unwrap().iter().map(|(_, _, x)| *x).collect();
    Changed { change, run, seen }
}

fn chain() -> String {
    CHAIN.replace("KIND", "immediate")
}

#[test]
fn a_change_is_in_force_from_the_beginning_of_an_epoch() {
    let ran = changed(&chain(), Clock::Virtual, |run| run.reconfigure().set("twice", "k", 10.0));
    assert_eq!(ran.change, Ok(1));
    assert_eq!(ran.seen, [10.0, 20.0, 30.0]);
    let metrics = ran.run.expect("nothing fails").metrics;
    assert_eq!(metrics.total("runtime.config.version"), 1.0);
    assert_eq!(metrics.total("runtime.config.committed_update_count"), 1.0);
}

#[test]
fn a_change_of_nobody_is_refused_and_changes_nothing() {
    let ran = changed(&chain(), Clock::Virtual, |run| {
        run.reconfigure().set("twice", "k", 10.0).set("nobody", "k", 1.0)
    });
    assert_eq!(ran.change.expect_err("nobody is there").component(), "nobody");
    assert_eq!(ran.seen, [2.0, 4.0, 6.0]);
    ran.run.expect("the run goes on");
}

#[test]
fn settings_that_a_component_cannot_take_are_taken_back_and_end_the_run() {
    let ran = changed(&chain(), Clock::Virtual, |run| {
        run.reconfigure().set("src", "any", 1.0).set("twice", "k", "ten")
    });
    assert_eq!(ran.change.expect_err("it is no number").component(), "twice");
    let error = ran.run.expect_err("who knows what it has half taken");
    assert_eq!(error.fault().expect("of a component").component, "twice");
    let metrics = &error.report().expect("it had begun").metrics;
    assert_eq!(metrics.total("runtime.config.rolled_back_update_count"), 2.0);
    assert!(ran.seen.is_empty());
}

#[test]
fn components_that_keep_different_times_are_changed_apart() {
    let lanes = "lanes: { main: { type: event_loop }, own: { type: fixed_rate, period_ms: 5, \
                 wall_clock_enabled: true } }";
    let text = CHAIN
        .replace("lanes: { main: { type: event_loop } }", lanes)
        .replace("KIND", "delay")
        .replace(
            "execution: { lane: main }\n    boundary",
            "execution: { lane: own }\n    boundary",
        );
    let both = |run: &GraphRun| run.reconfigure().set("twice", "k", 9.0).set("out", "x", 1.0);
    let ran = changed(&text, Clock::Described, both);
    assert_eq!(ran.change.expect_err("they are apart").component(), "out");
    let own = |run: &GraphRun| run.reconfigure().set("out", "x", 1.0);
    let ran = changed(&text, Clock::Described, own);
    assert_eq!(ran.change, Ok(1), "each domain takes its own");
    let metrics = ran.run.expect("nothing fails").metrics;
    assert_eq!(metrics.total("runtime.config.committed_update_count"), 1.0);
}
