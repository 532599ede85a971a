//! Changes of settings while a run goes on: all of them or none.

use core::time::Duration;

use clockjack_graph::{
    Clock, CommitLog, GraphRun, RunError, RunOptions, RunReport,
    describe::{ConfigValue, GraphFile},
    run::{ConfigRefused, Reconfigure, commit_log::MAGIC},
};
use clockjack_testkit::ManualTime;

use crate::{
    basics::CHAIN,
    parts::{Seen, registry},
};

/// What came of a change, of the run, and of what came out.
struct Changed {
    change: Result<u64, ConfigRefused>,
    run: Result<RunReport, RunError>,
    seen: Vec<f64>,
    log: Vec<u8>,
}

/// A run of three epochs of `text`, with a change that waits for its first.
fn changed(text: &str, clock: Clock, change: impl FnOnce(&GraphRun) -> Reconfigure) -> Changed {
    let (seen, time) = (Seen::default(), ManualTime::start());
    let file = GraphFile::parse("test.yaml", text).expect("it is right");
    let graph = file.compile(&registry(&seen)).expect("it is right");
    let log = CommitLog::in_memory();
    let options = RunOptions::steps(3).clock(clock).commit_log(&log);
    let run = graph.start(time.system(), options).expect("it starts");
    let change = change(&run).commit();
    let run = time.block_on(run);
    let change = time.block_on(change);
    let seen = seen.lock().unwrap().iter().map(|(_, _, x)| *x).collect();
    Changed { change, run, seen, log: log.bytes() }
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
fn one_setting_is_changed_by_its_name_and_the_change_is_in_the_log() {
    let bytes_and_seen = |setting: &str| {
        let (seen, time) = (Seen::default(), ManualTime::start());
        let file = GraphFile::parse("test.yaml", &chain()).expect("it is right");
        let graph = file.compile(&registry(&seen)).expect("it is right");
        let log = CommitLog::in_memory();
        let options = RunOptions::steps(3).clock(Clock::Virtual).commit_log(&log);
        let run = graph.start(time.system(), options).expect("it starts");
        let change = run.set(setting, 10.0);
        time.block_on(run).expect("the run goes on");
        let seen: Vec<f64> = seen.lock().unwrap().iter().map(|(_, _, x)| *x).collect();
        (time.block_on(change), seen, log.bytes())
    };
    let (change, seen, log) = bytes_and_seen("twice.k");
    assert_eq!((change, seen), (Ok(1), vec![10.0, 20.0, 30.0]));
    for (wrong, component) in [("twice.z", "twice"), ("nobody.k", "nobody"), ("twice", "twice")] {
        let (change, seen, unchanged) = bytes_and_seen(wrong);
        assert_eq!(change.expect_err("it does not exist").component(), component);
        assert_eq!(seen, [2.0, 4.0, 6.0]);
        assert!(unchanged.len() < log.len(), "the change is a record of its own");
    }
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
fn what_no_component_of_a_type_could_take_is_refused_and_the_run_goes_on() {
    let refused = |component: &'static str, field: &'static str, value: ConfigValue| {
        let ran = changed(&chain(), Clock::Virtual, |run| {
            run.reconfigure().set("twice", "k", 10.0).set(component, field, value)
        });
        assert_eq!(ran.seen, [2.0, 4.0, 6.0], "nothing has changed");
        ran.run.expect("it goes on");
        ran.change.expect_err("it is refused").to_string()
    };
    let text = ConfigValue::Text("ten".into());
    assert_eq!(refused("twice", "k", text), "`twice`: `k` must be of the type `double`");
    assert_eq!(refused("src", "any", 1.into()), "`src`: `count` has no setting `any`");
}

#[test]
fn settings_that_a_component_cannot_take_are_taken_back_and_end_the_run() {
    let ran = changed(&chain(), Clock::Virtual, |run| {
        run.reconfigure().set("out", "any", 1.0).set("twice", "k", -1.0)
    });
    assert_eq!(ran.change.expect_err("it is negative").component(), "twice");
    let error = ran.run.expect_err("who knows what it has half taken");
    let fault = error.fault().expect("of a component");
    assert_eq!((fault.component.as_str(), fault.epoch), ("twice", 1));
    let metrics = &error.report().expect("it had begun").metrics;
    assert_eq!(metrics.total("runtime.config.rolled_back_update_count"), 2.0);
    assert!(ran.seen.is_empty());
    let x = ran.log.len() - 2;
    assert_eq!(ran.log[x..], *b"X\x01", "the second has failed");
    let (any, k) = (&b"S\x02\x02\x01\x03anyf"[..], b"\x01\x01\x01kf");
    let change = [any, &1_f64.to_le_bytes(), k, &(-1_f64).to_le_bytes()].concat();
    assert!(ran.log[..x].ends_with(&change), "what it has failed at: {:02x?}", ran.log);
}

#[test]
fn a_change_is_in_the_commit_log_at_its_epoch_whether_anything_shows_it_or_not() {
    let log = |change: &dyn Fn(Reconfigure) -> Reconfigure| {
        changed(&chain(), Clock::Virtual, |run| change(run.reconfigure())).log
    };
    let head = |log: &[u8]| {
        // Version, the name of the graph, the first epoch at time zero.
        let after = log.strip_prefix(MAGIC).expect("it begins as all do");
        let after = &after[1 + usize::from(after[0])..];
        after.strip_prefix(b"E\x01\0").expect("the first epoch").to_vec()
    };
    // No component reads a setting of this name.
    let quiet = log(&|change| change.set("out", "any", 1));
    let told = [&b"S\x01\x02\x01\x03anyi"[..], &1_i64.to_le_bytes()].concat();
    assert!(head(&quiet).starts_with(&told), "{:02x?}", head(&quiet));
    assert_eq!(quiet, log(&|change| change.set("out", "any", 1)), "alike");
    let none = log(&|change| change.set("nobody", "any", 1));
    assert!(!head(&none).starts_with(b"S"), "it was refused");
    let mut logs = vec![quiet, none];
    logs.push(log(&|change| change.set("out", "any", 2)));
    logs.push(log(&|change| change.set("out", "any", 1.0)));
    logs.push(log(&|change| change.set("out", "any", true)));
    logs.push(log(&|change| change.set("out", "any", "1")));
    logs.push(log(&|change| change.set("out", "other", 1)));
    logs.push(log(&|change| change.set("twice", "k", 1)));
    logs.push(log(&|change| change.set("out", "any", 1).set("twice", "k", 1)));
    for (at, one) in logs.iter().enumerate() {
        assert!(!logs[..at].contains(one), "{at} is as one before it");
    }
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

/// A change that waits for the second epoch, made by a handle, as another thread would.
#[test]
fn a_setting_can_be_read_and_changed_by_a_handle_while_the_run_goes_on() {
    let stepped = || {
        let (seen, time) = (Seen::default(), ManualTime::start());
        let text = chain().replace("type: event_loop", "type: manual_step");
        let file = GraphFile::parse("test.yaml", &text).expect("it is right");
        let graph = file.compile(&registry(&seen)).expect("it is right");
        let log = CommitLog::in_memory();
        let options = RunOptions::until_stopped().clock(Clock::Virtual).commit_log(&log);
        let run = graph.start(time.system(), options).expect("it starts");
        let handle = run.stopper();
        assert_eq!(run.get("twice.k"), Some(ConfigValue::Float(2.0)), "as the file says");
        assert_eq!((run.get("twice.z"), run.get("nobody.k"), run.get("twice")), (None, None, None));
        let n_seen = |n: usize| {
            time.advance(Duration::from_millis(1));
            assert_eq!(seen.lock().unwrap().len(), n);
        };
        run.step();
        n_seen(1);
        let refused = time.block_on(handle.set("twice.k", "ten"));
        assert_eq!(refused.expect_err("it is no number").component(), "twice");
        assert_eq!(handle.get("twice.k"), Some(ConfigValue::Float(2.0)), "nothing has changed");
        assert_eq!(time.block_on(handle.set("twice.k", 10.0)), Ok(1));
        assert_eq!(handle.get("twice.k"), Some(ConfigValue::Float(10.0)));
        run.step();
        n_seen(2);
        run.stop();
        time.block_on(run).expect("nothing fails");
        let seen: Vec<f64> = seen.lock().unwrap().iter().map(|(_, _, x)| *x).collect();
        assert_eq!(seen, [2.0, 20.0]);
        log.bytes()
    };
    assert_eq!(stepped(), stepped(), "the same changes give the same log");
}
