//! `cargo xtask test`: the tests that a new checkout runs. The command needs only cargo.
//!
//! It writes `target/xtask/tests.log`, one line per test: package, target, test, outcome, separated
//! by tabs. `cargo xtask contract` reads this log.

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use crate::{
    console::{self, Line, Steps},
    libtest::{self, Outcome, Totals},
    loom,
    process::{self, Cmd},
    testbin::{self, LOOM_MUTANTS, PLAIN, TestBin},
    workspace::{Package, Workspace},
};

/// The log with the outcomes of the last run, under `target/xtask`.
pub(crate) const LOG: &str = "tests.log";
/// Packages that are tested in addition to the default members: the tools, the code of the book,
/// the examples that are packages (of which the load test of the server takes about ten seconds,
/// and the sick shops are left to `deep`), and the crates whose dependencies do not compile under
/// loom.
const TOOLS: [&str; 8] = [
    "clockjack-benches",
    "clockjack-book",
    "clockjack-cluster",
    "clockjack-gateway",
    "clockjack-nats",
    "clockjack-opentelemetry-example",
    "clockjack-own-components",
    "xtask",
];

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) package: String,
    /// `lib`, the name of an integration test, or `doc`.
    pub(crate) target: String,
    pub(crate) test: String,
    pub(crate) outcome: Outcome,
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let packages: Vec<&Package> = workspace
        .default_members()
        .chain(TOOLS.iter().filter_map(|name| workspace.package(name)))
        .collect();
    let mut records = Vec::new();
    let mut totals = Totals::default();
    let mut binaries = Vec::new();
    let mut steps = Steps::new("test", 5);

    steps.step("build tests", |line| {
        binaries = testbin::build(&workspace, PLAIN, &packages, "--tests", line)?;
        Ok(format!("{} packages, {} binaries", packages.len(), binaries.len()))
    });
    steps.step("unit and integration tests", |line| {
        let cmd = cargo_test(&workspace, &packages).words("--no-fail-fast --tests");
        let log = workspace.log("tests-plain.log");
        let output = run_tests(&cmd, &log, line, &mut totals);
        records.extend(attribute(&binaries, &output.0));
        output.1
    });
    steps.step("doc tests", |line| {
        let cmd = cargo_test(&workspace, &packages).words("--no-fail-fast --doc");
        let output = run_tests(&cmd, &workspace.log("tests-doc.log"), line, &mut totals);
        records.extend(attribute(&[], &output.0));
        output.1
    });
    let mut models = Vec::new();
    steps.step("build loom models", |line| {
        // This build is shared with `mutants`; its faults are off. `cargo xtask loom` builds
        // without faults.
        models = loom::build(&workspace, LOOM_MUTANTS, line)?;
        Ok(format!("{} models", models.len()))
    });
    steps.step("loom models, preemption bound 2", |line| {
        let (found, sum) = loom::run_models(&models, loom::QUICK, line)?;
        records.extend(found);
        totals += sum;
        if sum.failed > 0 {
            bail!("{} models failed", sum.failed);
        }
        Ok(format!("{} passed", sum.passed))
    });

    process::write(&workspace.log(LOG), &render(&records))?;
    let result = steps.finish();
    console::say(format!("{} passed, {} failed", totals.passed, totals.failed));
    result
}

/// `cargo test` for these packages. Libraries without doc tests accept `--doc`.
fn cargo_test(workspace: &Workspace, packages: &[&Package]) -> Cmd {
    let cmd = PLAIN.cargo_test(workspace, workspace);
    packages.iter().fold(cmd, |cmd, package| cmd.arg("-p").arg(&package.name))
}

/// Runs `cargo test`. The tests that ran are counted and returned, whether they passed or not.
fn run_tests(cmd: &Cmd, log: &Path, line: &Line, totals: &mut Totals) -> (String, Result<String>) {
    let result = cmd.run(line, log);
    let output = std::fs::read_to_string(log).unwrap_or_default();
    let sum = libtest::totals(&output);
    *totals += sum;
    let result = match result {
        Ok(_) => Ok(format!("{} passed", sum.passed)),
        // The failed tests may be far before the end of the output.
        Err(_) if sum.failed > 0 => Err(anyhow!(
            "`{cmd}`\n{}{} failed (full output: {})",
            libtest::failures(&output),
            sum.failed,
            log.display()
        )),
        Err(error) => Err(error),
    };
    (output, result)
}

/// Assigns each test of an output to its package and target, by the binary that cargo announced.
fn attribute(binaries: &[TestBin], output: &str) -> Vec<Record> {
    let record = |ran: &libtest::Ran<'_>| {
        let binary = binaries.iter().find(|binary| binary.path.ends_with(ran.origin));
        let (package, target) = match binary {
            Some(binary) => (binary.package.clone(), binary.target.clone()),
            None => (ran.origin.replace('_', "-"), "doc".to_owned()),
        };
        Record { package, target, test: ran.name.to_owned(), outcome: ran.outcome }
    };
    libtest::ran(output).iter().map(record).collect()
}

fn render(records: &[Record]) -> String {
    let line =
        |r: &Record| format!("{}\t{}\t{}\t{}\n", r.package, r.target, r.test, r.outcome.word());
    records.iter().map(line).collect()
}

/// Parses the log; malformed lines are skipped.
pub(crate) fn parse(log: &str) -> Vec<Record> {
    log.lines()
        .filter_map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            let (package, target, test) = (fields.next()?, fields.next()?, fields.next()?);
            let outcome = match fields.next()?.as_str() {
                "ok" => Outcome::Passed,
                "FAILED" => Outcome::Failed,
                "ignored" => Outcome::Ignored,
                _ => return None,
            };
            Some(Record { package, target, test, outcome })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_attributed_to_the_package_whose_binary_ran_it() {
        let binary = TestBin {
            package: "clockjack-time".to_owned(),
            target: "wheel".to_owned(),
            dir: "crates/clockjack-time".into(),
            path: "/somewhere/target/debug/deps/wheel-0123".into(),
        };
        let output = "     Running tests/wheel.rs (target/debug/deps/wheel-0123)\n\
                      test fires ... ok\n   Doc-tests clockjack_time\n\
                      test src/lib.rs - (line 3) ... FAILED\n";
        let record = |target: &str, test: &str, outcome| Record {
            package: "clockjack-time".to_owned(),
            target: target.to_owned(),
            test: test.to_owned(),
            outcome,
        };
        let expected = [
            record("wheel", "fires", Outcome::Passed),
            record("doc", "src/lib.rs - (line 3)", Outcome::Failed),
        ];
        let records = attribute(&[binary], output);
        assert_eq!(records, expected);
        assert_eq!(parse(&render(&records)), expected);
    }
}
