//! `cargo xtask counts`: instructions and allocations of hot operations, against a stored baseline.
//!
//! Nanoseconds depend on the machine and its load. Instruction counts under callgrind do not, so a
//! difference of them fails the command. `benches/` contains the operations. Each operation runs in
//! a separate process, once with one batch of `n` iterations and once with two: the difference
//! divided by `n` is the cost of one operation, without start-up and setup. Allocations are those
//! of the second batch, counted by the binary's own allocator. First the command checks its own
//! instrument: it must report an operation with a planted regression.

use core::fmt::Write as _;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Deserialize;

use crate::{
    console::{self, Line, Steps},
    process::{self, Cmd, parallel},
    table::Table,
    tool,
    workspace::Workspace,
};

/// Allowed difference of instructions, as a fraction of the baseline.
const TOLERANCE: f64 = 0.03;
/// Allowed absolute difference of instructions per operation: the start-up of a process varies
/// slightly.
const SLACK: f64 = 0.05;
/// The operation on which a regression is planted.
const INSTRUMENT: &str = "instrument";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Store the measured values in benches/counts.toml as the new baseline
    #[arg(long)]
    bless: bool,
}

/// The contents of `benches/counts.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    /// The compiler that built the measured binary.
    rustc: String,
    #[serde(default)]
    operation: BTreeMap<String, Count>,
}

/// The cost of one operation.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Count {
    /// Iterations in a batch.
    n: u64,
    /// Instructions per iteration.
    instructions: f64,
    /// Allocations in a whole batch.
    allocations: u64,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let file = workspace.root.join("benches/counts.toml");
    let mut steps = Steps::new("counts", 4);
    let mut binary = PathBuf::new();
    let mut measured = BTreeMap::new();
    let ready = steps.step("valgrind", |line| {
        tool::ensure_apt(line, "valgrind", "valgrind libc6-dbg", || tool::starts("valgrind"))?;
        version("valgrind")
    }) && steps.step("build operations", |line| {
        let cmd = Cmd::cargo()
            .words("build --profile dist -p clockjack-benches --bin counts")
            .dir(&workspace.root);
        cmd.run(line, &workspace.log("build-counts.log"))?;
        binary = workspace.target.join("dist/counts");
        Ok(String::new())
    }) && steps.step("a planted regression is reported", |_| check_instrument(&binary))
        && steps.step("measure", |line| {
            measured = measure_all(&binary, line)?;
            let rustc = version("rustc")?;
            if options.bless {
                process::write(&file, &render(&rustc, &measured))?;
                return Ok(format!("{} operations blessed", measured.len()));
            }
            judge(&file, &rustc, &measured)
        });
    if ready {
        console::say(format_args!("\n{}", show(&measured)));
    }
    steps.finish()
}

fn version(program: &str) -> Result<String> {
    let finished = Cmd::new(program).arg("--version").capture()?;
    Ok(finished.output.lines().next().unwrap_or_default().to_owned())
}

fn show(measured: &BTreeMap<String, Count>) -> Table {
    let mut table = Table::new(&["operation", "instructions", "allocations", "per"]);
    for (name, count) in measured {
        table.row([
            name.clone(),
            format!("{:.2}", count.instructions),
            count.allocations.to_string(),
            count.n.to_string(),
        ]);
    }
    table
}

/// The comparison must report a planted regression, of instructions and of allocations.
fn check_instrument(binary: &Path) -> Result<String> {
    let n = list(binary)?
        .into_iter()
        .find_map(|(name, n)| (name == INSTRUMENT).then_some(n))
        .with_context(|| format!("no operation `{INSTRUMENT}` in benches"))?;
    let sound = measure(binary, INSTRUMENT, n, &[])?;
    let planted = measure(binary, INSTRUMENT, n, &["--plant"])?;
    let reports = differences(INSTRUMENT, Some(&sound), Some(&planted));
    anyhow::ensure!(
        reports.len() == 2,
        "a planted regression was measured as {planted:?} after {sound:?} and was not reported"
    );
    Ok(format!("{:.1} after {:.1} instructions", planted.instructions, sound.instructions))
}

fn measure_all(binary: &Path, line: &Line) -> Result<BTreeMap<String, Count>> {
    let operations = list(binary)?;
    let work = |(name, n): &(String, u64)| measure(binary, name, *n, &[]);
    let results = parallel(&operations, work, |(name, _), _| line.tick(name));
    operations
        .into_iter()
        .zip(results)
        .map(|((name, _), result)| {
            let count = result.with_context(|| format!("operation {name}"))?;
            Ok((name, count))
        })
        .collect()
}

/// Names and batch sizes of the operations, as the binary lists them.
fn list(binary: &Path) -> Result<Vec<(String, u64)>> {
    let cmd = Cmd::new(binary).arg("list");
    let finished = cmd.capture()?;
    anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
    let parse = |line: &str| {
        let (name, n) = line.split_once('\t')?;
        Some((name.to_owned(), n.parse().ok()?))
    };
    let operations: Option<Vec<_>> = finished.output.lines().map(parse).collect();
    operations.with_context(|| format!("`{cmd}` printed a line that cannot be parsed"))
}

fn measure(binary: &Path, name: &str, n: u64, extra: &[&str]) -> Result<Count> {
    let with = |cmd: Cmd| extra.iter().fold(cmd, |cmd, arg| cmd.arg(arg));
    let callgrind = |batches: &str| -> Result<u64> {
        let valgrind = Cmd::new("valgrind")
            .words("--tool=callgrind --callgrind-out-file=/dev/null")
            .arg(binary)
            .words("run")
            .arg(name)
            .arg(batches);
        let cmd = with(valgrind);
        let finished = cmd.capture()?;
        anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
        collected(&finished.output)
            .with_context(|| format!("no instruction count from\n{}", cmd.failure(&finished)))
    };
    let (one, two) = (callgrind("1")?, callgrind("2")?);
    let cmd = with(Cmd::new(binary).words("run").arg(name).arg("2"));
    let finished = cmd.capture()?;
    anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
    let allocations =
        finished.output.trim().parse().with_context(|| format!("output of `{cmd}`"))?;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let instructions = two.saturating_sub(one) as f64 / n as f64;
    Ok(Count { n, instructions, allocations })
}

/// The total that callgrind prints at its end.
fn collected(output: &str) -> Option<u64> {
    let line = output.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

fn judge(file: &Path, rustc: &str, measured: &BTreeMap<String, Count>) -> Result<String> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}: `cargo xtask counts --bless`", file.display()))?;
    let baseline: Baseline =
        toml::from_str(&text).with_context(|| format!("{}", file.display()))?;
    let reports = compare(&baseline.operation, measured);
    if reports.is_empty() {
        return Ok(format!("{} operations as before", measured.len()));
    }
    let compiler = if baseline.rustc == rustc {
        String::new()
    } else {
        format!("\n(the baseline was taken with {}, this is {rustc})", baseline.rustc)
    };
    bail!(
        "{}{compiler}\nif this is intended, run `cargo xtask counts --bless` and give the reason \
         in the commit message",
        reports.join("\n")
    );
}

fn compare(before: &BTreeMap<String, Count>, now: &BTreeMap<String, Count>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let report = |name: &&String| differences(name, before.get(*name), now.get(*name));
    names.iter().flat_map(report).collect()
}

fn differences(name: &str, before: Option<&Count>, now: Option<&Count>) -> Vec<String> {
    let (before, now) = match (before, now) {
        (Some(before), Some(now)) => (before, now),
        (None, Some(_)) => return vec![format!("{name}: has no baseline")],
        (Some(_), None) => return vec![format!("{name}: is in the baseline but not in benches")],
        (None, None) => return Vec::new(),
    };
    let mut reports = Vec::new();
    if before.n != now.n {
        reports.push(format!("{name}: batch of {} was {}", now.n, before.n));
    }
    let change = now.instructions - before.instructions;
    if change.abs() > (before.instructions * TOLERANCE).max(SLACK) {
        reports.push(format!(
            "{name}: {:.2} instructions per operation, was {:.2} ({:+.1} %)",
            now.instructions,
            before.instructions,
            change / before.instructions.max(1.0) * 100.0
        ));
    }
    if before.allocations != now.allocations {
        reports.push(format!(
            "{name}: {} allocations in {} operations, was {}",
            now.allocations, now.n, before.allocations
        ));
    }
    reports
}

fn render(rustc: &str, measured: &BTreeMap<String, Count>) -> String {
    let mut text = String::from(
        "# Cost of hot operations: instructions per operation, allocations per batch of n.\n\
         # Written by `cargo xtask counts --bless`; `cargo xtask counts` fails on a difference.\n",
    );
    let _ = writeln!(text, "rustc = {rustc:?}");
    for (name, count) in measured {
        let _ = write!(
            text,
            "\n[operation.{name:?}]\nn = {}\ninstructions = {:.2}\nallocations = {}\n",
            count.n, count.instructions, count.allocations
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(instructions: f64, allocations: u64) -> Count {
        Count { n: 1000, instructions, allocations }
    }

    #[track_caller]
    fn check(now: Option<Count>, expected: &[&str]) {
        let before = count(100.0, 0);
        let reports = differences("wheel/insert", Some(&before), now.as_ref());
        assert_eq!(reports.len(), expected.len(), "{reports:?}");
        for (report, word) in reports.iter().zip(expected) {
            assert!(report.contains(word), "{report}");
        }
    }

    #[test]
    fn a_planted_regression_is_reported() {
        check(Some(count(100.0, 0)), &[]);
        check(Some(count(102.9, 0)), &[]);
        check(Some(count(103.1, 0)), &["+3.1 %"]);
        check(Some(count(96.9, 0)), &["-3.1 %"]);
        check(Some(count(100.0, 1)), &["1 allocations"]);
        check(Some(count(200.0, 1000)), &["+100.0 %", "1000 allocations"]);
        check(Some(Count { n: 10, ..count(100.0, 0) }), &["batch of 10"]);
        check(None, &["not in benches"]);
        assert!(differences("new", None, Some(&count(1.0, 0)))[0].contains("no baseline"));
    }

    #[test]
    fn a_blessed_baseline_reads_back_equal() {
        let measured = BTreeMap::from([("wheel/insert".to_owned(), count(41.25, 3))]);
        let text = render("rustc 1.95.0", &measured);
        let read: Baseline = toml::from_str(&text).expect("well formed");
        assert_eq!(read.rustc, "rustc 1.95.0");
        assert_eq!(compare(&read.operation, &measured), Vec::<String>::new());
    }

    #[test]
    fn the_total_of_callgrind_is_found() {
        let output = "==7== Events    : Ir\n==7== Collected : 1234567\n";
        assert_eq!(collected(output), Some(1_234_567));
        assert_eq!(collected("valgrind: no such file"), None);
    }
}
