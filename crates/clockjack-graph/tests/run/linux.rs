//! What Linux gives to the threads of lanes, and what it refuses.
#![cfg(target_os = "linux")]

use std::thread;

use clockjack_graph::Clock;
use rustix::{
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{CapabilitySet, capabilities, set_capabilities},
};

use crate::{
    teller::graph,
    threads::{Shared, compile, lane_of, look, of_this_thread, run_lane, runtime, wall, why},
};

/// The last processor that this process may use.
fn a_processor() -> u32 {
    let (processors, ..) = of_this_thread();
    processors.rsplit([',', '-']).next().unwrap().parse().unwrap()
}

/// Both kinds of lanes that have threads.
fn lanes(more: &str) -> [String; 2] {
    [wall("own", more), format!("own: {{ type: isolated_thread{more} }}")]
}

#[test]
fn processors_and_niceness_are_those_of_the_lanes_thread_alone() {
    let (cpu, before) = (a_processor(), of_this_thread());
    let niceness = (before.1 + 4).min(19);
    for lane in lanes(&format!(", cpu_affinity: [{cpu}], nice_priority: {niceness}")) {
        let (seen, result) = run_lane(&lane, Clock::Wall);
        let report = result.unwrap();
        let enforced = &lane_of(&report, "own").enforced;
        assert!(["cpu_affinity", "nice_priority"].iter().all(|f| enforced.contains(f)));
        assert_eq!(seen.len(), 3);
        for seen in seen {
            assert_eq!((seen.processors, seen.niceness), (cpu.to_string(), niceness));
        }
    }
    assert_eq!(of_this_thread(), before);
}

#[test]
fn what_is_refused_is_advice_or_the_run_does_not_start() {
    for lane in lanes(", cpu_affinity: [1023], nice_priority: 19") {
        let (seen, result) = run_lane(&lane, Clock::Wall);
        let report = result.unwrap();
        let own = lane_of(&report, "own");
        let says = "the operating system refused it: this process has no cpu 1023";
        assert_eq!(why(own, "cpu_affinity"), says);
        assert!(own.enforced.contains(&"nice_priority"), "one refusal is one refusal");
        assert!(seen.iter().all(|seen| seen.niceness == 19));

        let insists = lane.replace("nice_priority", "on_policy_error: fail, nice_priority");
        let (seen, result) = run_lane(&insists, Clock::Wall);
        let want = format!("lane `own` requires `cpu_affinity`: {says}");
        assert_eq!(result.unwrap_err().to_string(), want);
        assert_eq!(seen.len(), 0, "nothing was called");
    }
}

/// Calls something on a thread, the threads it starts included, that may not have a class.
fn without_permission<T: Send>(call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let apart = scope.spawn(|| {
            let mut sets = capabilities(None).unwrap();
            sets.effective.remove(CapabilitySet::SYS_NICE);
            set_capabilities(None, sets).unwrap();
            if getrlimit(Resource::Rtprio).current != Some(0) {
                let none = Rlimit { current: Some(0), maximum: Some(0) };
                setrlimit(Resource::Rtprio, none).unwrap();
            }
            call()
        });
        apart.join().unwrap()
    })
}

#[test]
fn a_class_that_may_not_be_had_is_advice_or_the_run_does_not_start() {
    for lane in lanes(", rt_policy: fifo, rt_priority: 1") {
        let (seen, result) = without_permission(|| run_lane(&lane, Clock::Wall));
        let report = result.unwrap();
        for field in ["rt_policy", "rt_priority"] {
            let why = why(lane_of(&report, "own"), field);
            assert!(why.contains("refused it: Operation not permitted"), "{why}");
        }
        assert!(seen.iter().all(|seen| seen.policy == 0));

        let insists = lane.replace("rt_policy", "on_policy_error: fail, rt_policy");
        let (seen, result) = without_permission(|| run_lane(&insists, Clock::Wall));
        let refused = result.unwrap_err().to_string();
        assert!(refused.starts_with("lane `own` requires `rt_policy`: "), "{refused}");
        assert_eq!(seen.len(), 0);
    }
}

#[test]
fn a_class_is_in_force_exactly_if_the_report_says_so() {
    for (name, number) in [("fifo", 1), ("rr", 2)] {
        for lane in lanes(&format!(", rt_policy: {name}, rt_priority: 1")) {
            let (seen, result) = run_lane(&lane, Clock::Wall);
            let report = result.unwrap();
            let is_enforced = lane_of(&report, "own").enforced.contains(&"rt_policy");
            let want = if is_enforced { number } else { 0 };
            assert_eq!(seen.len(), 3);
            assert!(seen.iter().all(|seen| seen.policy == want), "{name}: {seen:?}");
        }
    }
}

#[test]
fn a_plan_that_was_tried_on_a_host_lists_what_that_refuses() {
    let cpu = a_processor();
    let lanes = format!(
        "{}, {}",
        wall("own", &format!(", cpu_affinity: [{cpu}, 1023], nice_priority: 19")),
        wall("other", &format!(", cpu_affinity: [{cpu}]"))
    );
    let text = graph(&lanes, &[&look("x", "own"), &look("y", "other")], &[]);
    let mut plan = compile(&text, &Shared::default()).plan().clone();
    assert!(plan.asks_of_the_host());
    assert_eq!(plan.lanes[0].capabilities.advisory_fields, Vec::<String>::new());
    plan.try_on(runtime().system());
    let [own, other] = [0, 1].map(|lane| &plan.lanes[lane].capabilities);
    assert_eq!(own.advisory_fields, ["cpu_affinity"]);
    assert!(!own.implemented.iter().any(|one| one == "cpu_affinity"));
    assert!(own.implemented.iter().any(|one| one == "nice_priority"));
    assert_eq!(other.advisory_fields, Vec::<String>::new());
    let found = plan.diagnostics.last().unwrap();
    assert_eq!(found.path, "lanes.own.cpu_affinity");
    assert!(found.message.ends_with("this process has no cpu 1023"), "{}", found.message);
}
