//! `cargo xtask shuttle`: the scenes of every crate that has `tests/shuttle.rs`, under schedules
//! drawn at random, half of them by changes of priority.
//!
//! A scene asks `clockjack_sync::primitive::explore` for its schedules; how many and which is
//! handed to it by the environment. The seed is printed, so that a run can be repeated; what
//! shuttle prints at a failure repeats the one schedule.

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

/// Schedules of a scene in a submission: some seconds each.
const ITERATIONS: u32 = 20_000;
/// What a scene may take for a thousand schedules; a hang is found by shuttle's own count of steps.
const LIMIT_PER_THOUSAND: Duration = Duration::from_secs(5);
/// What it may take beside that.
const LIMIT: Duration = Duration::from_secs(60);
/// The variables that `explore` reads.
pub(crate) const ITERATIONS_VARIABLE: &str = "CLOCKJACK_SHUTTLE_ITERATIONS";
const SEED_VARIABLE: &str = "CLOCKJACK_SHUTTLE_SEED";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Schedules of each scene
    #[arg(long, value_name = "N", default_value_t = ITERATIONS)]
    iterations: u32,
    /// The seed of all schedules; without it, one of the clock's
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Take the build of `mutants`, with its faults off, instead of one without them
    #[arg(long)]
    share: bool,
    /// Only scenes whose name contains this
    filter: Option<String>,
}

/// One scene: a test of a crate's `tests/shuttle.rs`.
struct Scene {
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
    let mut scenes = Vec::new();
    let built = steps.step("build scenes", |line| {
        let flavour = if options.share { SHUTTLE_MUTANTS } else { SHUTTLE };
        scenes = build(&workspace, flavour, options.filter.as_deref().unwrap_or(""), line)?;
        Ok(format!("{} scenes", scenes.len()))
    });
    if built {
        let name = format!("{} schedules a scene, seed {seed}", options.iterations);
        steps.step(&name, |line| run_scenes(&scenes, options.iterations, seed, line));
    }
    steps.finish()
}

/// A seed that the next run does not have.
fn clock_seed() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Ok(now.context("the clock stands before 1970")?.as_secs())
}

fn build(workspace: &Workspace, flavour: Flavour, filter: &str, line: &Line) -> Result<Vec<Scene>> {
    let packages = workspace.with_file("tests/shuttle.rs");
    let mut scenes = Vec::new();
    for binary in testbin::build(workspace, flavour, &packages, "--test shuttle", line)? {
        let tests = binary.list()?.into_iter().filter(|test| test.contains(filter));
        scenes.extend(tests.map(|test| Scene { binary: binary.clone(), test }));
    }
    anyhow::ensure!(!scenes.is_empty(), "no scene's name contains `{filter}`");
    Ok(scenes)
}

/// Runs the scenes, as many at a time as there are cores; prints each with its time.
fn run_scenes(scenes: &[Scene], iterations: u32, seed: u64, line: &Line) -> Result<String> {
    let run = |scene: &Scene| scene.run(iterations, seed);
    let width = scenes.iter().map(|scene| scene.test.len()).max().unwrap_or(0);
    let results = parallel(scenes, run, |Scene { binary, test }, result| {
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
        bail!("{n_failed} of {} scenes failed", scenes.len());
    }
    Ok(format!("{} passed", scenes.len()))
}

impl Scene {
    /// How long it took.
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
