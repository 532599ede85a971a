//! `cargo xtask contract`: every promise in a contract names a test, and that test ran and passed.
//!
//! A contract is a `contract.md` or `requirements.md` in `crates/*/tests`, or a part of one, such
//! as `contract_timers.md`. The command reads the tables whose last column is headed `test`: each
//! row names one or more tests in back quotes, as `path::to::test` or `file.rs::test_name`, or says
//! `planned` and why. A test of another crate is named with that crate, as in
//! `clockjack-actor/file.rs::test_name`. The log of `cargo xtask test` shows which tests ran.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context as _, Result, bail};

use crate::{
    console::Steps,
    libtest::Outcome,
    suite::{self, Record},
    workspace::Workspace,
};

/// How the file names of contracts begin.
const NAMES: [&str; 2] = ["contract", "requirements"];

/// One row of a contract's table.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    line: usize,
    claim: Claim,
}

/// The contents of the last cell of a row.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    Tests(Vec<String>),
    Planned,
    Nothing,
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new("contract", 1);
    steps.step("promises and their tests", |_| check_workspace(&Workspace::load()?));
    steps.finish()
}

fn check_workspace(workspace: &Workspace) -> Result<String> {
    let mut contracts: Vec<(String, PathBuf)> = Vec::new();
    for package in &workspace.packages {
        let found = contracts_in(&package.dir().join("tests"))?;
        contracts.extend(found.into_iter().map(|path| (package.name.clone(), path)));
    }
    if contracts.is_empty() {
        return Ok("no contract.md or requirements.md under crates/*/tests".to_owned());
    }
    let log = workspace.log(suite::LOG);
    let records = fs::read_to_string(&log)
        .with_context(|| format!("no {}: run `cargo xtask test` first", log.display()))?;
    check_fresh(&log, &workspace.root.join("crates"))?;
    let records = suite::parse(&records);

    let (mut n_rows, mut n_planned, mut faults) = (0, 0, Vec::new());
    for (package, path) in &contracts {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
        let shown = path.strip_prefix(&workspace.root).unwrap_or(path).display().to_string();
        let rows = rows(&text);
        n_rows += rows.len();
        n_planned += rows.iter().filter(|row| row.claim == Claim::Planned).count();
        faults.extend(check(&shown, package, &rows, &records));
    }
    if !faults.is_empty() {
        bail!("promises without a passing test: {}\n  {}", faults.len(), faults.join("\n  "));
    }
    let n_kept = n_rows - n_planned;
    Ok(format!("{n_rows} rows, {n_kept} covered by tests, {n_planned} planned"))
}

/// The contracts in a folder of tests, sorted by file name.
fn contracts_in(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {dir:?}"))? {
        let path = entry?.path();
        if path.is_file()
            && path.file_name().is_some_and(|name| is_contract(&name.to_string_lossy()))
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

fn is_contract(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".md") else { return false };
    let rest = NAMES.iter().find_map(|begin| stem.strip_prefix(begin));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Refuses a log that is older than the last change of the sources.
fn check_fresh(log: &Path, crates: &Path) -> Result<()> {
    let logged = fs::metadata(log)?.modified()?;
    if let Some((path, _)) = newest(crates)?.filter(|(_, changed)| *changed > logged) {
        bail!("{} changed after the last `cargo xtask test`: run it again", path.display());
    }
    Ok(())
}

fn newest(dir: &Path) -> Result<Option<(PathBuf, SystemTime)>> {
    let mut best: Option<(PathBuf, SystemTime)> = None;
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {dir:?}"))? {
        let path = entry?.path();
        let found = if path.is_dir() {
            newest(&path)?
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let changed = fs::metadata(&path)?.modified()?;
            Some((path, changed))
        } else {
            None
        };
        if found.as_ref().map(|found| found.1) > best.as_ref().map(|best| best.1) {
            best = found;
        }
    }
    Ok(best)
}

/// The rows of all tables whose last column is headed `test` or `tests`.
fn rows(text: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut table: Option<bool> = None;
    for (index, line) in text.lines().enumerate() {
        let Some(cells) = cells(line) else {
            table = None;
            continue;
        };
        let last = cells.last().copied().unwrap_or("");
        match table {
            None => table = Some(["test", "tests"].contains(&last.to_lowercase().as_str())),
            Some(true) if !is_rule(&cells) => {
                rows.push(Row { line: index + 1, claim: claim(last) });
            }
            Some(_) => (),
        }
    }
    rows
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Whether this is the line of dashes under a heading.
fn is_rule(cells: &[&str]) -> bool {
    cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|char| "-:".contains(char)))
}

fn claim(cell: &str) -> Claim {
    let quoted: Vec<String> =
        cell.split('`').skip(1).step_by(2).map(|name| name.trim().to_owned()).collect();
    if !quoted.is_empty() {
        Claim::Tests(quoted)
    } else if cell.to_lowercase().starts_with("planned") {
        Claim::Planned
    } else {
        Claim::Nothing
    }
}

fn check(file: &str, package: &str, rows: &[Row], records: &[Record]) -> Vec<String> {
    let mut faults = Vec::new();
    if rows.is_empty() {
        faults.push(format!("{file}: no table with a last column headed `test`"));
    }
    for row in rows {
        let mut fault = |what: String| faults.push(format!("{file}:{}: {what}", row.line));
        match &row.claim {
            Claim::Planned => (),
            Claim::Nothing => {
                fault("names no test: write one in back quotes, or `planned` and why".to_owned());
            }
            Claim::Tests(names) => {
                for name in names {
                    if let Some(what) = check_name(package, name, records) {
                        fault(what);
                    }
                }
            }
        }
    }
    faults
}

fn check_name(package: &str, name: &str, records: &[Record]) -> Option<String> {
    let (package, test) = name.split_once('/').unwrap_or((package, name));
    let (target, test) = match test.split_once(".rs::") {
        Some((target, test)) => (Some(target), test),
        None => (None, test),
    };
    let is_named = |record: &&Record| {
        let is_suffix = record
            .test
            .strip_suffix(test)
            .is_some_and(|before| before.is_empty() || before.ends_with("::"));
        record.package == package
            && target.is_none_or(|target| record.target == target)
            && is_suffix
    };
    let mut outcomes = records.iter().filter(is_named).map(|record| record.outcome).peekable();
    if outcomes.peek().is_none() {
        return Some(format!("{package} has no test `{name}` that ran"));
    }
    let bad = outcomes.find(|outcome| *outcome != Outcome::Passed)?;
    Some(format!("`{name}` did not pass: {}", bad.word()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: &str = "\
# Wheel

| word | meaning |
|---|---|
| tick | a unit |

| id | promise | test |
|----|---------|------|
| T1 | never early | `model.rs::never_early`, `wheel::tests::never_early` |
| T2 | never lost | planned: needs the shard |
| T3 | cancel wins once | see below |
";

    fn record(target: &str, test: &str, outcome: Outcome) -> Record {
        Record {
            package: "clockjack-time".to_owned(),
            target: target.to_owned(),
            test: test.to_owned(),
            outcome,
        }
    }

    #[test]
    fn contracts_may_come_in_parts() {
        for name in ["contract.md", "requirements.md", "contract_services.md"] {
            assert!(is_contract(name), "{name}");
        }
        for name in ["README.md", "contract.rs", "contracts.md", "my_contract.md"] {
            assert!(!is_contract(name), "{name}");
        }
    }

    #[test]
    fn rows_are_read_from_test_tables_only() {
        let tests = ["model.rs::never_early", "wheel::tests::never_early"].map(str::to_owned);
        let expected = [
            Row { line: 9, claim: Claim::Tests(tests.to_vec()) },
            Row { line: 10, claim: Claim::Planned },
            Row { line: 11, claim: Claim::Nothing },
        ];
        assert_eq!(rows(CONTRACT), expected);
    }

    #[test]
    fn a_row_without_a_test_and_a_file_without_a_table_are_faults() {
        let passed = [
            record("model", "never_early", Outcome::Passed),
            record("lib", "wheel::tests::never_early", Outcome::Passed),
        ];
        let faults = check("contract.md", "clockjack-time", &rows(CONTRACT), &passed);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("contract.md:11: names no test"), "{faults:?}");
        let faults = check("contract.md", "clockjack-time", &[], &passed);
        assert!(faults[0].contains("no table"), "{faults:?}");
    }

    #[test]
    fn a_named_test_must_exist_have_run_and_have_passed() {
        let records = [
            record("model", "deep::never_early", Outcome::Passed),
            record("model", "never_lost", Outcome::Failed),
            record("model", "never_twice", Outcome::Ignored),
        ];
        let check = |name| check_name("clockjack-time", name, &records);
        assert_eq!(check("model.rs::never_early"), None);
        assert_eq!(check("deep::never_early"), None);
        for (name, word) in [
            ("other.rs::never_early", "has no test"),
            ("early", "has no test"),
            ("model.rs::never_lost", "FAILED"),
            ("never_twice", "ignored"),
        ] {
            assert!(check(name).is_some_and(|fault| fault.contains(word)), "{name}");
        }
        assert!(check_name("clockjack-sync", "never_lost", &records).is_some());
    }

    #[test]
    fn a_test_of_another_crate_is_named_with_that_crate() {
        let records = [record("model", "deep::never_early", Outcome::Passed)];
        let check = |name| check_name("clockjack-sync", name, &records);
        assert_eq!(check("clockjack-time/model.rs::deep::never_early"), None);
        assert_eq!(check("clockjack-time/never_early"), None);
        for name in ["model.rs::deep::never_early", "clockjack-exec/never_early"] {
            assert!(check(name).is_some_and(|fault| fault.contains("has no test")), "{name}");
        }
    }
}
