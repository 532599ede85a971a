//! `cargo xtask mutants`: each planted fault is switched on, and its named test must fail.
//!
//! `mutants/*.toml` describes the faults, and [`plant()`] writes all of them into a copy of the
//! tree. Each fault in the copy is off until the environment variable `CLOCKJACK_MUTANT` names it,
//! so a run costs one build per (crate, test target, checker), not one per fault. First, every
//! named test runs without a fault: the test must exist and pass, or its failure would prove
//! nothing. A loom model that misses its fault runs again, without and with the fault, with a
//! higher preemption bound: few faults need that bound, and it takes most models ten times as long.
//! Under `CI` the table lists only the faults that no test caught, followed by a count per crate.

mod list;
mod plant;

use core::time::Duration;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, Result};
use clap::Args;

pub(crate) use list::{DIR, Edit, Mutant, crate_of, of, parse};
pub(crate) use plant::{inject, plant};

use crate::{
    console::{self, Line, Steps, seconds},
    libtest::Totals,
    process::{Cmd, Finished, parallel, parallel_per_core},
    shuttle::ITERATIONS_VARIABLE,
    table::Table,
    testbin::{self, Flavour, LOOM_MUTANTS, MUTANTS, SHUTTLE_MUTANTS, TestBin},
    workspace::{Package, Workspace},
};

/// A fault that makes its test hang is caught after this time, or after [`HANG_FACTOR`] times the
/// time without the fault.
const MUTANT_LIMIT: Duration = Duration::from_secs(40);
/// A test counts as hanging if it takes this many times as long as without a fault. On a slow
/// machine a fault that no test catches must not look like a hang.
const HANG_FACTOR: u32 = 8;
/// The time limit of a test without a fault.
const SOUND_LIMIT: Duration = Duration::from_secs(300);
/// Tests without a fault that take longer are listed: every submission pays this time.
const SLOW: Duration = Duration::from_secs(20);
/// How many faults are tried concurrently per core. The slow tests use real threads and wait for an
/// event that the fault has lost, until their own timeout; they leave the core idle.
const RUNS_PER_CORE: usize = 3;
/// The preemption bound with which every model runs first.
const PREEMPTIONS: Preemptions = Preemptions("2");
/// The preemption bound of the models that missed their fault: some faults need a third preemption.
const MORE_PREEMPTIONS: Preemptions = Preemptions("3");
/// The number of schedules of every shuttle test.
const ITERATIONS: &str = "20000";
/// A fixed seed for property tests, so that catching a fault does not depend on chance.
const PROPERTY_SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "1");

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only the fault with this name
    name: Option<String>,
}

/// A preemption bound of loom, as `LOOM_MAX_PREEMPTIONS` takes it. Other tests ignore it.
#[derive(Clone, Copy, Debug)]
struct Preemptions(&'static str);

/// How long each test takes without a fault, by [`Case::test`].
type SoundTimes<'a> = BTreeMap<(&'a Path, &'a str), Duration>;

/// A fault with the test binary that contains it.
struct Case {
    mutant: Mutant,
    binary: TestBin,
}

/// A fault with the result of its test.
struct Judged<'a> {
    case: &'a Case,
    verdict: Verdict,
    took: Duration,
}

/// The result of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The test failed.
    Caught,
    /// The test did not return in time.
    Hung,
    /// The test aborted the process.
    Crashed,
    Survived,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut wanted = list::all(&workspace)?;
    if let Some(name) = &options.name {
        wanted.retain(|(_, mutant)| mutant.name == *name);
        anyhow::ensure!(!wanted.is_empty(), "no file of {DIR}/ lists a mutant `{name}`");
    }
    if wanted.is_empty() {
        console::say(format_args!("no file of {DIR}/ lists a mutant: nothing to run"));
        return Ok(());
    }
    let mut steps = Steps::new("mutants", 4);
    let mut cases = Vec::new();
    steps.step("build with planted faults", |line| {
        cases = build(&workspace, &wanted, line)?;
        Ok(format!("{} mutants", cases.len()))
    });
    let all: Vec<&Case> = cases.iter().collect();
    let mut sound = SoundTimes::new();
    let is_sound = !all.is_empty()
        && steps.step("named tests without a fault", |line| {
            sound = check_sound(&all, PREEMPTIONS, line)?;
            Ok(format!("{} tests", sound.len()))
        });
    if is_sound {
        let mut judged = Vec::new();
        steps.step("named tests with each fault", |line| {
            judged = judge(&all, PREEMPTIONS, &sound, line)?;
            Ok(format!("{} caught", judged.len() - survivors(&judged).count()))
        });
        steps.step("missed faults again, with a higher bound", |line| {
            retry_models(&mut judged, line)?;
            let missed: Vec<&str> = survivors(&judged).map(|case| &*case.mutant.name).collect();
            anyhow::ensure!(missed.is_empty(), "survived: {}", missed.join(", "));
            Ok(format!("{} caught", judged.len()))
        });
        show(&judged, console::is_under_ci());
    }
    steps.finish()
}

/// Prints the results: all, or only the faults that no test caught and a summary.
fn show(judged: &[Judged<'_>], is_brief: bool) {
    let is_shown = |judged: &&Judged<'_>| !is_brief || judged.verdict == Verdict::Survived;
    let shown: Vec<&Judged<'_>> = judged.iter().filter(is_shown).collect();
    if !shown.is_empty() {
        console::say(format_args!("\n{}", table(&shown)));
    }
    if is_brief {
        summary(judged).iter().for_each(console::say);
    }
}

fn table(judged: &[&Judged<'_>]) -> Table {
    let mut table = Table::new(&["mutant", "fault", "test", "verdict", "seconds"]);
    for Judged { case, verdict, took } in judged {
        table.row([
            case.mutant.name.clone(),
            case.mutant.fault.clone(),
            format!("{}::{}", case.binary.target, case.mutant.filter),
            verdict.word().to_owned(),
            seconds(*took),
        ]);
    }
    table
}

/// One line per crate.
fn summary(judged: &[Judged<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for Judged { case, verdict, .. } in judged {
        let (caught, all) = counts.entry(&case.binary.package).or_default();
        *caught += usize::from(*verdict != Verdict::Survived);
        *all += 1;
    }
    let line = |(package, (caught, all))| format!("{package:<18} {caught} of {all} caught");
    counts.into_iter().map(line).collect()
}

/// Builds the named targets, one build per flavour, and finds the binary of every fault.
fn build(workspace: &Workspace, wanted: &[(&Package, Mutant)], line: &Line) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    // Tests on real threads come first: they mostly wait, and the other tests use the processor in
    // the meantime.
    for flavour in [MUTANTS, LOOM_MUTANTS, SHUTTLE_MUTANTS] {
        let here: Vec<&(&Package, Mutant)> =
            wanted.iter().filter(|(_, mutant)| mutant.flavour() == flavour).collect();
        if here.is_empty() {
            continue;
        }
        let binaries = build_flavour(workspace, flavour, &here, line)?;
        for (package, mutant) in here {
            let binary = binaries
                .iter()
                .find(|binary| binary.package == package.name && binary.target == mutant.test)
                .with_context(|| {
                    format!("{} has no test target `{}`", package.name, mutant.test)
                })?;
            cases.push(Case { mutant: mutant.clone(), binary: binary.clone() });
        }
    }
    Ok(cases)
}

/// One cargo invocation for all targets of a flavour: cargo compiles them concurrently and with the
/// same features of dependencies. Some targets exist in only some of the packages and are built for
/// those; if several packages have a target of the same name, all of them are built.
fn build_flavour(
    workspace: &Workspace,
    flavour: Flavour,
    users: &[&(&Package, Mutant)],
    line: &Line,
) -> Result<Vec<TestBin>> {
    let mut packages: Vec<&Package> = users.iter().map(|(package, _)| *package).collect();
    packages.dedup_by(|a, b| a.name == b.name);
    let targets: BTreeSet<&str> = users.iter().map(|(_, mutant)| mutant.test.as_str()).collect();
    let select = |target: &&str| match *target {
        "lib" => "--lib".to_owned(),
        name => format!("--test {name}"),
    };
    let selection: Vec<String> = targets.iter().map(select).collect();
    testbin::build(workspace, flavour, &packages, &selection.join(" "), line)
}

/// Every named test runs once without a fault; it must exist and pass.
fn check_sound<'a>(cases: &[&'a Case], bound: Preemptions, line: &Line) -> Result<SoundTimes<'a>> {
    let mut tests: Vec<&Case> = cases.to_vec();
    tests.sort_by_key(|case| case.test());
    tests.dedup_by_key(|case| case.test());
    // Models first: the longest tests are models, and the others fill the remaining time.
    tests.sort_by_key(|case| !case.mutant.loom);
    let check = |case: &&Case| -> Result<Duration> {
        let cmd = case.cmd(bound);
        let (finished, totals) = testbin::run_tests(&cmd, SOUND_LIMIT)?;
        anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
        anyhow::ensure!(
            totals.passed > 0,
            "{} names the test `{}`, but {} has none of that name",
            case.mutant.name,
            case.mutant.filter,
            case.binary.target
        );
        Ok(finished.took)
    };
    let results = parallel(&tests, check, |case, result| match result {
        Ok(took) if *took > SLOW => {
            line.say(&format!("slow: {} {}s", case.mutant.filter, seconds(*took)));
        }
        _ => line.tick(&case.mutant.filter),
    });
    tests.iter().zip(results).map(|(case, took)| Ok((case.test(), took?))).collect()
}

/// Every fault is switched on; its test must fail.
fn judge<'a>(
    cases: &[&'a Case],
    bound: Preemptions,
    sound: &SoundTimes<'_>,
    line: &Line,
) -> Result<Vec<Judged<'a>>> {
    let run = |case: &&Case| -> Result<(Finished, Totals)> {
        let cmd = case.cmd(bound).env("CLOCKJACK_MUTANT", &case.mutant.name);
        testbin::run_tests(&cmd, MUTANT_LIMIT.max(sound[&case.test()] * HANG_FACTOR))
    };
    let results =
        parallel_per_core(RUNS_PER_CORE, cases, run, |case, _| line.tick(&case.mutant.name));
    let judged = |(case, result): (&&'a Case, Result<(Finished, Totals)>)| {
        let (finished, totals) = result?;
        Ok(Judged { case, verdict: verdict(&finished, totals), took: finished.took })
    };
    cases.iter().zip(results).map(judged).collect()
}

/// Judges the faults again that a model missed, with the higher bound.
fn retry_models(judged: &mut [Judged<'_>], line: &Line) -> Result<()> {
    let missed: Vec<&Case> = survivors(judged).filter(|case| case.mutant.loom).collect();
    let sound = check_sound(&missed, MORE_PREEMPTIONS, line)?;
    for again in judge(&missed, MORE_PREEMPTIONS, &sound, line)? {
        // By address: an entry with `of` has the name of the fault that it tries, too.
        let is_same = |judged: &&mut Judged<'_>| core::ptr::eq(judged.case, again.case);
        let first = judged.iter_mut().find(is_same).expect("it was judged before");
        (first.verdict, first.took) = (again.verdict, again.took);
    }
    Ok(())
}

/// The faults that no test caught.
fn survivors<'a>(judged: &[Judged<'a>]) -> impl Iterator<Item = &'a Case> {
    judged.iter().filter(|judged| judged.verdict == Verdict::Survived).map(|judged| judged.case)
}

fn verdict(finished: &Finished, totals: Totals) -> Verdict {
    match finished.status {
        None => Verdict::Hung,
        Some(status) if status.success() => Verdict::Survived,
        Some(_) if totals.failed > 0 => Verdict::Caught,
        Some(_) => Verdict::Crashed,
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::Hung => "caught (hang)",
            Self::Crashed => "caught (crash)",
            Self::Survived => "SURVIVED",
        }
    }
}

impl Case {
    /// The test, which several faults may share.
    fn test(&self) -> (&Path, &str) {
        (&self.binary.path, &self.mutant.filter)
    }

    fn cmd(&self, bound: Preemptions) -> Cmd {
        let cmd = self.binary.cmd().arg(&self.mutant.filter).without_env("CLOCKJACK_MUTANT");
        cmd.env("LOOM_MAX_PREEMPTIONS", bound.0)
            .env(ITERATIONS_VARIABLE, ITERATIONS)
            .env(PROPERTY_SEED.0, PROPERTY_SEED.1)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{list::tests::LISTED, *};

    #[test]
    fn a_test_that_still_passes_means_that_the_fault_survived() {
        let verdict_of = |args: &str, totals| {
            let finished = Cmd::cargo().words(args).capture().expect("cargo starts");
            verdict(&finished, totals)
        };
        let passed = Totals { passed: 1, failed: 0 };
        assert_eq!(verdict_of("version", passed), Verdict::Survived);
        let failed = Totals { passed: 0, failed: 1 };
        assert_eq!(verdict_of("no-such-command-here", failed), Verdict::Caught);
        // A test that aborts before the harness prints its totals also counts, as a crash.
        assert_eq!(verdict_of("no-such-command-here", Totals::default()), Verdict::Crashed);
        let hung = Finished { status: None, output: String::new(), took: MUTANT_LIMIT };
        assert_eq!(verdict(&hung, Totals::default()), Verdict::Hung);
    }

    #[test]
    fn a_summary_counts_the_caught_of_each_crate_and_good_news_sounds_good() {
        let mutant = parse(LISTED).expect("well formed").remove(0);
        let case = |package: &str| Case {
            mutant: mutant.clone(),
            binary: TestBin {
                package: package.to_owned(),
                target: "loom".to_owned(),
                dir: PathBuf::new(),
                path: PathBuf::new(),
            },
        };
        let (exec, time) = (case("clockjack-exec"), case("clockjack-time"));
        let judged = [
            (&exec, Verdict::Caught),
            (&exec, Verdict::Survived),
            (&time, Verdict::Crashed),
            (&time, Verdict::Hung),
        ];
        let judged = judged.map(|(case, verdict)| Judged { case, verdict, took: Duration::ZERO });
        let expected = ["clockjack-exec     1 of 2 caught", "clockjack-time     2 of 2 caught"];
        assert_eq!(summary(&judged), expected);
        let all: Vec<&Judged<'_>> = judged.iter().collect();
        let text = table(&all).to_string();
        for word in ["failed", "error", "panicked", "crashed"] {
            assert!(!text.contains(word), "{text}");
        }
        assert_eq!(text.matches("SURVIVED").count(), 1, "{text}");
    }
}
