//! Tests of the simulation itself: it finds, repeats and shrinks failures, and rejects runs and
//! campaigns that check too little.

use clockjack_sim::{
    campaign::{MEANINGFUL, Plan, Tally},
    context::{Mode, SimContext},
    fault::{Class, Fault},
    invariant::Invariant,
    run::{Description, Workload, run},
    shrink::shrink,
    workloads,
};

/// A workload that fails after both a slow handler and a clock jump.
struct Fragile {
    rounds: u64,
}

impl Workload for Fragile {
    fn description(&self) -> Description {
        Description {
            name: "fragile",
            faults: &[&[Class::SlowHandler, Class::ClockJump], &[Class::MailFlood]],
            invariants: &[Invariant::T1, Invariant::A6],
            least_records: 10,
            least_comparisons: 10,
        }
    }

    fn run(&self, sim: &SimContext) {
        let (mut is_slow, mut has_jumped) = (false, false);
        for round in 0..self.rounds {
            is_slow |= sim.fault(Class::SlowHandler).is_some();
            has_jumped |= sim.fault(Class::ClockJump).is_some();
            sim.record("round", &[round]);
            sim.check(Invariant::T1, !(is_slow && has_jumped), || format!("in round {round}"));
        }
    }
}

#[test]
fn a_failing_run_is_repeated_and_made_as_small_as_it_can_be() {
    let workload = Fragile { rounds: 200 };
    let failed = (0..50)
        .map(|seed| run(&workload, seed, Mode::Safety, None))
        .find(|outcome| !outcome.is_clean() && outcome.faults.len() > 10)
        .expect("one of fifty seeds has both faults");
    assert_eq!(failed.violations[0].invariant, Invariant::T1);
    let again = run(&workload, failed.seed, Mode::Safety, None);
    assert_eq!((again.hash, &again.violations), (failed.hash, &failed.violations));
    let shrunk = shrink(&workload, &failed, 500).expect("it fails again");
    let classes: Vec<Class> = shrunk.outcome.faults.iter().map(|fault| fault.class).collect();
    assert_eq!(classes.len(), 2, "{:?}", shrunk.outcome.faults);
    assert!(classes.contains(&Class::SlowHandler) && classes.contains(&Class::ClockJump));
    let command = shrunk.outcome.command();
    assert!(command.starts_with("cargo xtask sim --seed "), "{command}");
    assert!(command.contains(" --faults '"), "{command}");
}

#[test]
fn the_report_of_a_failure_has_all_that_was_drawn_and_one_command() {
    let workload = Fragile { rounds: 200 };
    let both = [
        Fault { class: Class::SlowHandler, point: 3 },
        Fault { class: Class::ClockJump, point: 5 },
    ];
    let outcome = run(&workload, 9, Mode::Liveness, Some(&both));
    let text = outcome.to_string();
    for part in [
        "slow-handler=",
        "BROKEN T1",
        "in round 5",
        "repeat with: cargo xtask sim --seed 9 --workload fragile --liveness --faults \
         'slow-handler:3,clock-jump:5'",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn a_run_that_does_too_little_fails() {
    let outcome = run(&Fragile { rounds: 9 }, 1, Mode::Safety, Some(&[]));
    assert!(outcome.is_clean(), "a run with chosen faults is exempt from W1");
    let outcome = run(&Fragile { rounds: 9 }, 1, Mode::Safety, None);
    assert_eq!(outcome.violations[0].invariant, Invariant::W1, "{outcome}");
}

#[test]
fn a_campaign_without_a_class_of_faults_or_a_law_means_nothing() {
    let workload = Fragile { rounds: 20 };
    let plan = Plan { workloads: vec![&workload], mode: Some(Mode::Safety), is_twice: false };
    let mut tally = Tally::default();
    (0..MEANINGFUL).for_each(|seed| _ = plan.run_seed(seed, &mut tally));
    let gaps = tally.coverage_gaps(&plan);
    assert_eq!(
        gaps,
        ["fragile: fault class mail-flood never fired", "fragile: invariant A6 was never checked"]
    );
}

/// A workload without expectations.
const IDLE: Description = Description {
    name: "idle",
    faults: &[],
    invariants: &[],
    least_records: 0,
    least_comparisons: 0,
};

/// A workload that differs between runs.
struct Moody(core::sync::atomic::AtomicU64);

impl Workload for Moody {
    fn description(&self) -> Description {
        Description { name: "moody", ..IDLE }
    }

    fn run(&self, sim: &SimContext) {
        let turn = self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        sim.record("mood", &[turn]);
    }
}

#[test]
fn a_run_that_differs_when_it_is_repeated_is_found() {
    let workload = Moody(core::sync::atomic::AtomicU64::new(0));
    let plan = Plan { workloads: vec![&workload], mode: None, is_twice: true };
    let outcome = plan.run_seed(4, &mut Tally::default());
    assert_eq!(outcome.violations[0].invariant, Invariant::D1, "{outcome}");
}

/// A workload that panics.
struct Broken;

impl Workload for Broken {
    fn description(&self) -> Description {
        Description { name: "broken", ..IDLE }
    }

    fn run(&self, _sim: &SimContext) {
        clockjack_sim::run::inject_panic();
    }
}

#[test]
fn a_panic_that_nobody_caught_is_a_breach() {
    let outcome = run(&Broken, 1, Mode::Safety, None);
    assert_eq!(outcome.violations[0].invariant, Invariant::X5);
}

#[test]
fn a_campaign_of_all_worlds_is_clean_repeatable_and_means_something() {
    let plan = Plan { workloads: workloads::ALL.to_vec(), mode: None, is_twice: true };
    let mut tally = Tally::default();
    for seed in 0..MEANINGFUL * workloads::ALL.len() as u64 {
        let outcome = plan.run_seed(seed, &mut tally);
        assert!(outcome.is_clean(), "{outcome}");
    }
    assert_eq!(tally.repeated, tally.runs);
    assert_eq!(tally.coverage_gaps(&plan), Vec::<String>::new(), "{tally}");
}
