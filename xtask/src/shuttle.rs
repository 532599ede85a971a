//! `cargo xtask shuttle`: the tests of every crate that has `tests/shuttle.rs`, under random
//! schedules; half of the schedules use probabilistic concurrency testing (PCT: Burckhardt et al.
//! 2010).
//!
//! A test calls `clockjack_sync::primitive::explore`, which reads the number of schedules and the
//! seed from the environment. The seed is printed, so that a run can be repeated; the text that
//! shuttle prints after a failure repeats the one schedule.

use core::time::Duration;
use std::time::SystemTime;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    console::{Line, Steps, seconds},
    libtest::Totals,
    process::{Cmd, parallel},
    testbin::{self, Flavour, SHUTTLE, SHUTTLE_MUTANTS, TestBin},
    workspace::Workspace,
};

/// Schedules per test in `ci`: a few seconds each.
const ITERATIONS: u32 = 20_000;
/// The time limit of a test per thousand schedules; shuttle's own step limit detects a hang.
const LIMIT_PER_THOUSAND: Duration = Duration::from_secs(5);
/// Additional time per test.
const LIMIT: Duration = Duration::from_secs(60);
/// The environment variables that `explore` reads.
pub(crate) const ITERATIONS_VARIABLE: &str = "CLOCKJACK_SHUTTLE_ITERATIONS";
const SEED_VARIABLE: &str = "CLOCKJACK_SHUTTLE_SEED";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Schedules per test
    #[arg(long, value_name = "N", default_value_t = ITERATIONS)]
    iterations: u32,
    /// The seed of all schedules; default: from the clock
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Use the build of `mutants` with all faults off, instead of a separate build
    #[arg(long)]
    share: bool,
    /// Run only tests whose name contains this text
    filter: Option<String>,
}

/// One shuttle test: a test of a crate's `tests/shuttle.rs`.
struct ShuttleTest {
    binary: TestBin,
    test: String,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let seed = match options.seed {
        Some(seed) => seed,
        None => clock_seed()?,
    };
    let mut steps = Steps::new("shuttle", 2);
    let mut tests = Vec::new();
    let built = steps.step("build tests", |line| {
        let flavour = if options.share { SHUTTLE_MUTANTS } else { SHUTTLE };
        tests = build(&workspace, flavour, options.filter.as_deref().unwrap_or(""), line)?;
        Ok(format!("{} tests", tests.len()))
    });
    if built {
        let name = format!("{} schedules per test, seed {seed}", options.iterations);
        steps.step(&name, |line| run_tests(&tests, options.iterations, seed, line));
    }
    steps.finish()
}

/// A seed from the clock, different in each run.
fn clock_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(now.context("the clock shows a time before 1970")?.as_secs())
}

fn build(
    workspace: &Workspace,
    flavour: Flavour,
    filter: &str,
    line: &Line,
) -> Result<Vec<ShuttleTest>> {
    let packages = workspace.with_file("tests/shuttle.rs");
    let mut tests = Vec::new();
    for binary in testbin::build(workspace, flavour, &packages, "--test shuttle", line)? {
        let found = binary.list()?.into_iter().filter(|test| test.contains(filter));
        tests.extend(found.map(|test| ShuttleTest { binary: binary.clone(), test }));
    }
    anyhow::ensure!(!tests.is_empty(), "no test's name contains `{filter}`");
    Ok(tests)
}

/// Runs the tests, as many concurrently as there are cores, and prints each with its time.
fn run_tests(tests: &[ShuttleTest], iterations: u32, seed: u64, line: &Line) -> Result<String> {
    let run = |test: &ShuttleTest| test.run(iterations, seed);
    let width = tests.iter().map(|test| test.test.len()).max().unwrap_or(0);
    let results = parallel(tests, run, |ShuttleTest { binary, test }, result| {
        let (word, took) = match result {
            Ok(took) => ("ok", seconds(*took)),
            Err(_) => ("FAILED", String::new()),
        };
        line.say(&format!("{:<18} {test:<width$} {word:<6} {took:>6}s", binary.package));
        if let Err(error) = result {
            error.to_string().lines().for_each(|text| line.say(text));
        }
    });
    let n_failed = results.iter().filter(|result| result.is_err()).count();
    if n_failed > 0 {
        bail!("{n_failed} of {} tests failed", tests.len());
    }
    Ok(format!("{} passed", tests.len()))
}

impl ShuttleTest {
    /// Runs the test and returns how long it took.
    fn run(&self, iterations: u32, seed: u64) -> Result<Duration> {
        let cmd: Cmd = self
            .binary
            .cmd()
            .arg(&self.test)
            .arg("--exact")
            .env(ITERATIONS_VARIABLE, iterations.to_string())
            .env(SEED_VARIABLE, seed.to_string());
        let limit = LIMIT + LIMIT_PER_THOUSAND * (iterations / 1000);
        let (finished, totals) = testbin::run_tests(&cmd, limit)?;
        let passed = finished.is_success() && totals == Totals { passed: 1, failed: 0 };
        anyhow::ensure!(passed, "{}", cmd.failure(&finished));
        Ok(finished.took)
    }
}
