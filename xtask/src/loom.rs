//! `cargo xtask loom`: the models of every crate that has `tests/loom.rs`, one process per model.

use core::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    console::{Line, Steps, seconds},
    libtest::{Outcome, Totals},
    process::{Cmd, parallel},
    suite::Record,
    testbin::{self, Flavour, LOOM, TestBin},
    workspace::Workspace,
};

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Preemption bound 3 and half an hour per model, instead of 2 and two minutes
    #[arg(long)]
    full: bool,
    /// Another preemption bound; 0 means unbounded
    #[arg(long, value_name = "N")]
    preemptions: Option<u32>,
    /// Run only models whose name contains this text
    filter: Option<String>,
}

/// How thoroughly a model is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Depth {
    /// `None`: every interleaving.
    preemptions: Option<u32>,
    /// The time limit of one model.
    limit: Duration,
}

/// The depth of `cargo xtask test`.
pub(crate) const QUICK: Depth = Depth { preemptions: Some(2), limit: Duration::from_secs(120) };
/// The depth of `--full`.
const FULL: Depth = Depth { preemptions: Some(3), limit: Duration::from_secs(1800) };

/// One model: a test of a crate's `tests/loom.rs`.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    binary: TestBin,
    test: String,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut depth = if options.full { FULL } else { QUICK };
    if let Some(bound) = options.preemptions {
        depth.preemptions = (bound > 0).then_some(bound);
    }
    let bound = depth
        .preemptions
        .map_or("no preemption bound".to_owned(), |bound| format!("preemption bound {bound}"));
    let mut steps = Steps::new("loom", 2);
    let mut models = Vec::new();
    let built = steps.step("build models", |line| {
        models = build(&workspace, LOOM, line)?;
        if let Some(filter) = &options.filter {
            models.retain(|model| model.test.contains(filter.as_str()));
            anyhow::ensure!(!models.is_empty(), "no model's name contains `{filter}`");
        }
        Ok(format!("{} models", models.len()))
    });
    if built {
        steps.step(&format!("models, {bound}"), |line| {
            let (_, sum) = run_models(&models, depth, line)?;
            if sum.failed > 0 {
                bail!("{} models failed", sum.failed);
            }
            Ok(format!("{} passed", sum.passed))
        });
    }
    steps.finish()
}

/// Builds the models of all crates in a loom flavour and lists them.
pub(crate) fn build(workspace: &Workspace, flavour: Flavour, line: &Line) -> Result<Vec<Model>> {
    let packages = workspace.with_file("tests/loom.rs");
    if packages.is_empty() {
        return Ok(Vec::new());
    }
    let mut models = Vec::new();
    for binary in testbin::build(workspace, flavour, &packages, "--test loom", line)? {
        for test in binary.list()? {
            models.push(Model { binary: binary.clone(), test });
        }
    }
    Ok(models)
}

/// Runs the models, as many concurrently as there are cores, and prints each with its time.
pub(crate) fn run_models(
    models: &[Model],
    depth: Depth,
    line: &Line,
) -> Result<(Vec<Record>, Totals)> {
    let mut sum = Totals::default();
    let mut records = Vec::new();
    let width = models.iter().map(|model| model.test.len()).max().unwrap_or(0);
    let mut report = |model: &Model, result: &Result<Ran>| {
        let Ok(ran) = result else { return };
        let word = if ran.passed { "ok" } else { "FAILED" };
        let Model { binary, test } = model;
        line.say(&format!("{:<18} {test:<width$} {word:<6} {:>6}s", binary.package, ran.seconds));
        for text in ran.failure.iter().flat_map(|failure| failure.lines()) {
            line.say(text);
        }
    };
    let results = parallel(models, |model| model.run(depth), &mut report);
    for (model, result) in models.iter().zip(results) {
        let ran = result.with_context(|| format!("model {}", model.test))?;
        sum += Totals { passed: u64::from(ran.passed), failed: u64::from(!ran.passed) };
        let outcome = if ran.passed { Outcome::Passed } else { Outcome::Failed };
        records.push(Record {
            package: model.binary.package.clone(),
            target: model.binary.target.clone(),
            test: model.test.clone(),
            outcome,
        });
    }
    Ok((records, sum))
}

struct Ran {
    passed: bool,
    seconds: String,
    failure: Option<String>,
}

impl Model {
    fn run(&self, depth: Depth) -> Result<Ran> {
        let mut cmd: Cmd = self.binary.cmd().arg(&self.test).words("--exact");
        cmd = match depth.preemptions {
            Some(bound) => cmd.env("LOOM_MAX_PREEMPTIONS", bound.to_string()),
            None => cmd.without_env("LOOM_MAX_PREEMPTIONS"),
        };
        let (finished, totals) = testbin::run_tests(&cmd, depth.limit)?;
        let passed = finished.is_success() && totals == Totals { passed: 1, failed: 0 };
        let failure = (!passed).then(|| cmd.failure(&finished));
        Ok(Ran { passed, seconds: seconds(finished.took), failure })
    }
}
