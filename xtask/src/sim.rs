//! `cargo xtask sim`: runs seeds of the deterministic simulation, and searches for mutants.

use core::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::{
    console::{self, Steps, seconds},
    mutants,
    process::Cmd,
    table::Table,
    testbin::MUTANTS,
    workspace::{self, Workspace},
};

/// The number of seeds within which the search must find a mutant.
const SEARCH: u64 = 2_000;
/// The time limit of a search.
const SEARCH_LIMIT: Duration = Duration::from_secs(900);
/// The name of the package and of its program.
const PACKAGE: &str = "clockjack-sim";

/// The workloads; each is a module of the package. The list allows rejecting a wrong name before
/// the build.
const WORKLOADS: [&str; 6] = ["actors", "jobs", "workers", "graphs", "asks", "cluster"];

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Number of seeds; default: 200, or unlimited with --minutes
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// Time limit in minutes
    #[arg(long, value_name = "M")]
    minutes: Option<u64>,
    /// The first seed
    #[arg(long, value_name = "S")]
    from: Option<u64>,
    /// Run one seed twice and print a full report
    #[arg(long, value_name = "S", conflicts_with_all = ["seeds", "minutes", "from"])]
    seed: Option<u64>,
    /// Run one workload instead of all of them in turn
    #[arg(long, value_name = "W", value_parser = WORKLOADS)]
    workload: Option<String>,
    /// Check liveness: after the last fault, all work must complete
    #[arg(long)]
    liveness: bool,
    /// Check safety: faults occur until the end of the run
    #[arg(long, conflicts_with = "liveness")]
    safety: bool,
    /// Repeat every run and compare the traces
    #[arg(long)]
    twice: bool,
    /// Inject exactly these faults, in the format that a failing seed prints
    #[arg(long, value_name = "LIST", requires = "seed")]
    faults: Option<String>,
    /// Print the complete trace of one seed
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Print only the trace hash of each seed, to compare machines
    #[arg(long, conflicts_with_all = ["seed", "minutes", "twice"])]
    hashes: bool,
    /// Enable each mutant of the list and search for a seed that detects it
    #[arg(long, conflicts_with_all = ["seed", "seeds", "minutes", "from", "workload", "hashes"])]
    planted: bool,
}

impl Options {
    /// The options of the program.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        add("--seeds", self.seeds.map(|n| n.to_string()));
        add("--minutes", self.minutes.map(|n| n.to_string()));
        add("--from", self.from.map(|n| n.to_string()));
        add("--seed", self.seed.map(|n| n.to_string()));
        add("--workload", self.workload.clone());
        add("--faults", self.faults.clone());
        let flags = [
            ("--liveness", self.liveness),
            ("--safety", self.safety),
            ("--twice", self.twice),
            ("--trace", self.trace),
            ("--hashes", self.hashes),
        ];
        words
            .extend(flags.iter().filter(|(_, is_set)| *is_set).map(|(name, _)| (*name).to_owned()));
        words
    }
}

/// Runs the command; the program prints its own output.
pub(crate) fn run(options: &Options) -> Result<()> {
    if options.planted {
        return search();
    }
    let cmd = Cmd::cargo().words("run --release -q -p").arg(PACKAGE).arg("--");
    let cmd = options.words().iter().fold(cmd, Cmd::arg);
    cmd.dir(&workspace::root()?).hand_over()
}

/// Searches for each mutant of the list of the simulation, starting at the first seed.
fn search() -> Result<()> {
    let workspace = Workspace::load()?;
    let package = workspace.package(PACKAGE).context("the simulation is a package of ours")?;
    let list = mutants::of(&workspace, package)?;
    let mut steps = Steps::new("sim --planted", list.len() + 1);
    let dir = workspace.root.join(MUTANTS.target_dir);
    let built = steps.step("build with mutants", |line| {
        let cmd = Cmd::cargo().words("build --profile").arg(MUTANTS.profile).words("-p");
        let tree = mutants::plant(&workspace)?;
        let cmd = cmd.arg(PACKAGE).arg("--target-dir").arg(&dir).dir(&tree.root);
        cmd.run(line, &workspace.log("build-sim-planted.log"))?;
        Ok(String::new())
    });
    let mut table = Table::new(&["mutant", "fault", "seed", "invariant", "seconds"]);
    let program = dir.join(MUTANTS.profile).join(PACKAGE);
    for mutant in list.iter().filter(|_| built) {
        steps.step(&mutant.name, |_| {
            let cmd = Cmd::new(&program).words("--seeds").arg(SEARCH.to_string());
            let cmd = cmd.env("CLOCKJACK_MUTANT", &mutant.name).env("CI", "true");
            let finished = cmd.limit(SEARCH_LIMIT).capture()?;
            let (seed, invariant) = found(&finished.output)
                .with_context(|| format!("not found within {SEARCH} seeds\n{}", finished.tail()))?;
            let (name, fault) = (mutant.name.clone(), mutant.fault.clone());
            table.row([name, fault, seed.clone(), invariant.clone(), seconds(finished.took)]);
            Ok(format!("{invariant} by seed {seed}"))
        });
    }
    console::say(format_args!("\n{table}"));
    steps.finish()
}

/// The failing seed and the violated invariant.
fn found(output: &str) -> Option<(String, String)> {
    let mut seed = None;
    for line in output.lines() {
        if let Some(rest) = line.strip_prefix("seed ") {
            seed = rest.split(',').next().map(str::to_owned);
        }
        if let Some(rest) = line.trim_start().strip_prefix("BROKEN ") {
            return Some((seed?, rest.split_whitespace().next()?.to_owned()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_of_the_package_is_listed_and_no_other() {
        let root = workspace::root().expect("the workspace exists");
        let file = root.join("crates").join(PACKAGE).join("src/workloads.rs");
        let text = std::fs::read_to_string(file).expect("the file exists");
        let module = |line: &'_ str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        let found: Vec<String> = text.lines().filter_map(module).collect();
        let mut listed = WORKLOADS;
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    #[test]
    fn the_seed_and_the_invariant_are_found_in_the_output() {
        let output = "20 of 2000 seeds\nseed 7, workload jobs, safety: trace 00, 1 records\n  \
                      settings: a=1\n  BROKEN T1 at tick 9: job 3\n  BROKEN T2 at tick 9: x\n";
        assert_eq!(found(output), Some(("7".to_owned(), "T1".to_owned())));
        assert_eq!(found("2000 seeds clean\n"), None);
    }
}
