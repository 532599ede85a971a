//! The simulation itself: what is broken is found, repeated, made smaller, and nothing passes that
//! means nothing.

use clockjack_sim::{
    campaign::{MEANINGFUL, Plan, Tally},
    fault::{Class, Fault},
    law::Law,
    run::{About, World, run},
    shrink::shrink,
    stage::{Mode, Stage},
    worlds,
};

/// A world that fails where both a slow handler and a jump of the clock have been.
struct Fragile {
    rounds: u64,
}

impl World for Fragile {
    fn about(&self) -> About {
        About {
            name: "fragile",
            faults: &[&[Class::SlowHandler, Class::ClockJump], &[Class::MailFlood]],
            laws: &[Law::T1, Law::A6],
            least_records: 10,
            least_comparisons: 10,
        }
    }

    fn play(&self, stage: &Stage) {
        let (mut is_slow, mut has_jumped) = (false, false);
        for round in 0..self.rounds {
            is_slow |= stage.fault(Class::SlowHandler).is_some();
            has_jumped |= stage.fault(Class::ClockJump).is_some();
            stage.note("round", &[round]);
            stage.check(Law::T1, !(is_slow && has_jumped), || format!("in round {round}"));
        }
    }
}

#[test]
fn a_failing_run_is_repeated_and_made_as_small_as_it_can_be() {
    let world = Fragile { rounds: 200 };
    let failed = (0..50)
        .map(|seed| run(&world, seed, Mode::Safety, None))
        .find(|outcome| !outcome.is_clean() && outcome.faults.len() > 10)
        .expect("of fifty seeds one has both faults");
    assert_eq!(failed.breaches[0].law, Law::T1);
    let again = run(&world, failed.seed, Mode::Safety, None);
    assert_eq!((again.hash, &again.breaches), (failed.hash, &failed.breaches));
    let shrunk = shrink(&world, &failed, 500).expect("it fails again");
    let classes: Vec<Class> = shrunk.outcome.faults.iter().map(|fault| fault.class).collect();
    assert_eq!(classes.len(), 2, "{:?}", shrunk.outcome.faults);
    assert!(classes.contains(&Class::SlowHandler) && classes.contains(&Class::ClockJump));
    let command = shrunk.outcome.command();
    assert!(command.starts_with("cargo xtask sim --seed "), "{command}");
    assert!(command.contains(" --faults '"), "{command}");
}

#[test]
fn the_report_of_a_failure_has_all_that_was_drawn_and_one_command() {
    let world = Fragile { rounds: 200 };
    let both = [
        Fault { class: Class::SlowHandler, point: 3 },
        Fault { class: Class::ClockJump, point: 5 },
    ];
    let outcome = run(&world, 9, Mode::Liveness, Some(&both));
    let text = outcome.to_string();
    for part in [
        "slow-handler=",
        "BROKEN T1",
        "in round 5",
        "repeat it: cargo xtask sim --seed 9 --world fragile --liveness --faults \
         'slow-handler:3,clock-jump:5'",
    ] {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn a_run_that_does_too_little_fails() {
    let outcome = run(&Fragile { rounds: 9 }, 1, Mode::Safety, Some(&[]));
    assert!(outcome.is_clean(), "one whose faults were chosen is not judged by its work");
    let outcome = run(&Fragile { rounds: 9 }, 1, Mode::Safety, None);
    assert_eq!(outcome.breaches[0].law, Law::W1, "{outcome}");
}

#[test]
fn a_campaign_without_a_class_of_faults_or_a_law_means_nothing() {
    let world = Fragile { rounds: 20 };
    let plan = Plan { worlds: vec![&world], mode: Some(Mode::Safety), is_twice: false };
    let mut tally = Tally::default();
    (0..MEANINGFUL).for_each(|seed| _ = plan.play(seed, &mut tally));
    let gaps = tally.gaps(&plan);
    assert_eq!(gaps, ["fragile: no fault of class mail-flood", "fragile: A6 was never looked at"]);
}

/// A world of which nothing is expected.
const IDLE: About =
    About { name: "idle", faults: &[], laws: &[], least_records: 0, least_comparisons: 0 };

/// A world that is not the same twice.
struct Moody(core::sync::atomic::AtomicU64);

impl World for Moody {
    fn about(&self) -> About {
        About { name: "moody", ..IDLE }
    }

    fn play(&self, stage: &Stage) {
        let turn = self.0.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        stage.note("mood", &[turn]);
    }
}

#[test]
fn a_run_that_differs_when_it_is_repeated_is_found() {
    let world = Moody(core::sync::atomic::AtomicU64::new(0));
    let plan = Plan { worlds: vec![&world], mode: None, is_twice: true };
    let outcome = plan.play(4, &mut Tally::default());
    assert_eq!(outcome.breaches[0].law, Law::D1, "{outcome}");
}

/// A world that panics.
struct Broken;

impl World for Broken {
    fn about(&self) -> About {
        About { name: "broken", ..IDLE }
    }

    fn play(&self, _stage: &Stage) {
        clockjack_sim::run::panic_as_told();
    }
}

#[test]
fn a_panic_that_nobody_caught_is_a_breach() {
    let outcome = run(&Broken, 1, Mode::Safety, None);
    assert_eq!(outcome.breaches[0].law, Law::X5);
}

#[test]
fn a_campaign_of_all_worlds_is_clean_repeatable_and_means_something() {
    let plan = Plan { worlds: worlds::ALL.to_vec(), mode: None, is_twice: true };
    let mut tally = Tally::default();
    for seed in 0..MEANINGFUL * worlds::ALL.len() as u64 {
        let outcome = plan.play(seed, &mut tally);
        assert!(outcome.is_clean(), "{outcome}");
    }
    assert_eq!(tally.repeated, tally.runs);
    assert_eq!(tally.gaps(&plan), Vec::<String>::new(), "{tally}");
}
