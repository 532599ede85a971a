//! `cargo xtask mutants`: each planted fault is switched on, and its named test must fail.
//!
//! `crates/*/mutants.toml` lists the faults. One build with `--cfg mutants` holds all of them, off
//! until the environment variable `CLOCKJACK_MUTANT` names one; so a run costs one build per
//! (crate, test target, checker), not one per fault. First every named test runs without a
//! fault: it must exist and pass, or its failure would prove nothing.

use core::time::Duration;
use std::{collections::BTreeSet, path::Path};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Deserialize;

use crate::{
    console::{self, Line, Steps, seconds},
    libtest::Totals,
    process::{Cmd, Finished, parallel},
    shuttle::ITERATIONS_VARIABLE,
    table::Table,
    testbin::{self, Flavour, LOOM_MUTANTS, MUTANTS, SHUTTLE_MUTANTS, TestBin},
    workspace::{Package, Workspace},
};

/// The file in each crate's folder.
pub(crate) const FILE: &str = "mutants.toml";
/// A fault that makes its test hang is caught after this time.
const MUTANT_LIMIT: Duration = Duration::from_secs(60);
/// A test without a fault has this long.
const SOUND_LIMIT: Duration = Duration::from_secs(300);
/// A test without a fault that takes longer is named: it costs every submission this time.
const SLOW: Duration = Duration::from_secs(20);
/// The preemption bound of every model here: some faults need a third preemption.
const PREEMPTIONS: &str = "3";
/// The schedules of every scene here.
const ITERATIONS: &str = "20000";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Only the fault of this name
    name: Option<String>,
}

/// The contents of one `mutants.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    mutant: Vec<Mutant>,
}

/// One planted fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// What `mutant!("..")` in the code says.
    pub(crate) name: String,
    /// The test target: `lib` for unit tests, else the name of a file in `tests/`.
    pub(crate) test: String,
    /// The test that must fail, as `cargo test` takes it.
    pub(crate) filter: String,
    /// Whether the test is a loom model.
    pub(crate) loom: bool,
    /// Whether the test is a scene for shuttle.
    #[serde(default)]
    pub(crate) shuttle: bool,
    /// The fault in one line.
    pub(crate) fault: String,
}

/// Reads the list in the text of a `mutants.toml`.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let mutants = toml::from_str::<List>(text)?.mutant;
    if let Some(both) = mutants.iter().find(|mutant| mutant.loom && mutant.shuttle) {
        bail!("{}: a test is for loom or for shuttle, not for both", both.name);
    }
    Ok(mutants)
}

impl Mutant {
    /// The build that its test needs.
    fn flavour(&self) -> Flavour {
        match (self.loom, self.shuttle) {
            (true, _) => LOOM_MUTANTS,
            (false, true) => SHUTTLE_MUTANTS,
            (false, false) => MUTANTS,
        }
    }
}

/// A fault with the binary that holds it.
struct Case {
    mutant: Mutant,
    binary: TestBin,
}

/// What became of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Failed,
    TimedOut,
    Crashed,
    Survived,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut wanted = read(&workspace)?;
    if let Some(name) = &options.name {
        wanted.retain(|(_, mutant)| mutant.name == *name);
        anyhow::ensure!(!wanted.is_empty(), "no {FILE} lists a mutant `{name}`");
    }
    if wanted.is_empty() {
        console::say(format_args!("no {FILE} lists a mutant: nothing to run"));
        return Ok(());
    }
    let mut steps = Steps::new("mutants", 3);
    let mut cases = Vec::new();
    let built = steps.step("build with planted faults", |line| {
        cases = build(&workspace, &wanted, line)?;
        Ok(format!("{} mutants", cases.len()))
    });
    let sound =
        built && steps.step("named tests without a fault", |line| check_sound(&cases, line));
    if sound {
        let mut table = Table::new(&["mutant", "fault", "caught by", "how", "seconds"]);
        steps.step("named tests with each fault", |line| judge(&cases, &mut table, line));
        console::say(format_args!("\n{table}"));
    }
    steps.finish()
}

fn read(workspace: &Workspace) -> Result<Vec<(&Package, Mutant)>> {
    let mut all = Vec::new();
    for package in workspace.with_file(FILE) {
        let path = package.dir().join(FILE);
        all.extend(read_file(&path)?.into_iter().map(|mutant| (package, mutant)));
    }
    Ok(all)
}

fn read_file(path: &Path) -> Result<Vec<Mutant>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
    parse(&text).with_context(|| format!("{}", path.display()))
}

/// Builds each (package, target, flavour) once and finds every fault's binary.
fn build(workspace: &Workspace, wanted: &[(&Package, Mutant)], line: &Line) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for flavour in [LOOM_MUTANTS, SHUTTLE_MUTANTS, MUTANTS] {
        let here: Vec<&(&Package, Mutant)> =
            wanted.iter().filter(|(_, mutant)| mutant.flavour() == flavour).collect();
        // One invocation per test target: cargo refuses a target that a chosen package lacks.
        let targets: BTreeSet<&str> = here.iter().map(|(_, m)| m.test.as_str()).collect();
        for target in targets {
            let users: Vec<&&(&Package, Mutant)> =
                here.iter().filter(|(_, mutant)| mutant.test == target).collect();
            let binaries = build_target(workspace, flavour, target, &users, line)?;
            for (package, mutant) in users {
                let binary = binaries
                    .iter()
                    .find(|binary| binary.package == package.name && binary.target == target)
                    .with_context(|| format!("{} has no test target `{target}`", package.name))?;
                cases.push(Case { mutant: mutant.clone(), binary: binary.clone() });
            }
        }
    }
    Ok(cases)
}

fn build_target(
    workspace: &Workspace,
    flavour: Flavour,
    target: &str,
    users: &[&&(&Package, Mutant)],
    line: &Line,
) -> Result<Vec<TestBin>> {
    let mut packages: Vec<&Package> = users.iter().map(|(package, _)| *package).collect();
    packages.dedup_by(|a, b| a.name == b.name);
    let selection = if target == "lib" { "--lib".to_owned() } else { format!("--test {target}") };
    testbin::build(workspace, flavour, &packages, &selection, line)
}

/// Every named test runs once without a fault; it must exist and pass.
fn check_sound(cases: &[Case], line: &Line) -> Result<String> {
    let mut tests: Vec<&Case> = cases.iter().collect();
    tests.sort_by(|a, b| {
        (&a.binary.path, &a.mutant.filter).cmp(&(&b.binary.path, &b.mutant.filter))
    });
    tests.dedup_by(|a, b| a.binary.path == b.binary.path && a.mutant.filter == b.mutant.filter);
    let check = |case: &&Case| -> Result<Duration> {
        let cmd = case.cmd();
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
    results.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(format!("{} tests", tests.len()))
}

/// Every fault is switched on; its test must fail.
fn judge(cases: &[Case], table: &mut Table, line: &Line) -> Result<String> {
    let run = |case: &Case| -> Result<(Finished, Totals)> {
        testbin::run_tests(&case.cmd().env("CLOCKJACK_MUTANT", &case.mutant.name), MUTANT_LIMIT)
    };
    let results = parallel(cases, run, |case, _| line.tick(&case.mutant.name));
    let mut survivors = Vec::new();
    for (case, result) in cases.iter().zip(results) {
        let (finished, totals) = result?;
        let verdict = verdict(&finished, totals);
        if verdict == Verdict::Survived {
            survivors.push(case.mutant.name.as_str());
        }
        table.row([
            case.mutant.name.clone(),
            case.mutant.fault.clone(),
            format!("{}::{}", case.binary.target, case.mutant.filter),
            verdict.word().to_owned(),
            seconds(finished.took),
        ]);
    }
    if !survivors.is_empty() {
        bail!("survived: {}", survivors.join(", "));
    }
    Ok(format!("{} caught", cases.len()))
}

fn verdict(finished: &Finished, totals: Totals) -> Verdict {
    match finished.status {
        None => Verdict::TimedOut,
        Some(status) if status.success() => Verdict::Survived,
        Some(_) if totals.failed > 0 => Verdict::Failed,
        Some(_) => Verdict::Crashed,
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Crashed => "crashed",
            Self::Survived => "SURVIVED",
        }
    }
}

impl Case {
    fn cmd(&self) -> Cmd {
        let cmd = self.binary.cmd().arg(&self.mutant.filter).without_env("CLOCKJACK_MUTANT");
        cmd.env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS).env(ITERATIONS_VARIABLE, ITERATIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = r#"
        [[mutant]]
        name = "lease-relaxed"
        test = "loom"
        filter = "holder_and_remote_arm"
        loom = true
        fault = "the lease is taken without acquire"
    "#;

    #[test]
    fn a_list_is_read_and_an_empty_one_is_fine() {
        let mutants = parse(LISTED).expect("well formed");
        assert_eq!(mutants.len(), 1);
        assert_eq!(mutants[0].name, "lease-relaxed");
        assert!(mutants[0].loom);
        assert_eq!(mutants[0].flavour(), LOOM_MUTANTS);
        let scene = LISTED.replace("loom = true", "loom = false\nshuttle = true");
        assert_eq!(parse(&scene).expect("well formed")[0].flavour(), SHUTTLE_MUTANTS);
        assert!(parse("# nothing yet\n").expect("well formed").is_empty());
    }

    #[test]
    fn a_misspelt_or_missing_field_is_refused() {
        let misspelt = LISTED.replace("filter", "filtre");
        let error = parse(&misspelt).expect_err("no such field").to_string();
        assert!(error.contains("filtre"), "{error}");
        let both = LISTED.replace("loom = true", "loom = true\nshuttle = true");
        let error = parse(&both).expect_err("two checkers").to_string();
        assert!(error.contains("not for both"), "{error}");
        let missing = LISTED.replace("loom = true", "");
        let error = parse(&missing).expect_err("field is missing").to_string();
        assert!(error.contains("loom"), "{error}");
    }

    #[test]
    fn a_test_that_still_passes_means_that_the_fault_survived() {
        let verdict_of = |args: &str, totals| {
            let finished = Cmd::cargo().words(args).capture().expect("cargo starts");
            verdict(&finished, totals)
        };
        let passed = Totals { passed: 1, failed: 0 };
        assert_eq!(verdict_of("version", passed), Verdict::Survived);
        let failed = Totals { passed: 0, failed: 1 };
        assert_eq!(verdict_of("no-such-command-here", failed), Verdict::Failed);
        // Aborts before the harness prints its totals are catches too, and are told apart.
        assert_eq!(verdict_of("no-such-command-here", Totals::default()), Verdict::Crashed);
        let hung = Finished { status: None, output: String::new(), took: MUTANT_LIMIT };
        assert_eq!(verdict(&hung, Totals::default()), Verdict::TimedOut);
    }
}
