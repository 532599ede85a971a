//! The commit log of each example graph: the command writes it in Wine and on the system that runs
//! the checks, and the two files have the same bytes.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::{BUILD_LIMIT, Places, RUN_LIMIT, WINE};
use crate::{console::Line, process::Cmd, workspace::Workspace};

/// The package of the command.
pub(super) const PACKAGE: &str = "clockjack-cli";
/// Where the graphs are.
const GRAPHS: &str = "examples";
/// Enough epochs that each component is called.
const STEPS: &str = "run --steps 50";

/// What a run leaves.
#[derive(Debug, PartialEq, Eq)]
struct Left {
    exit_code: Option<i32>,
    commit_log: Vec<u8>,
}

/// Runs all graphs on both systems.
pub(super) fn compare(places: &Places, workspace: &Workspace, line: &Line) -> Result<String> {
    let build = Cmd::cargo().words("build -p").arg(PACKAGE).dir(&places.root).limit(BUILD_LIMIT);
    build.run(line, &workspace.log("foreign-windows-command.log"))?;
    let native = Cmd::new(workspace.target.join("debug/clockjack"));
    let windows = places.wine(WINE).arg(places.built.join("clockjack.exe"));
    let mut graphs = Vec::new();
    collect(&places.root, Path::new(GRAPHS), &mut graphs)?;
    graphs.sort();
    ensure!(!graphs.is_empty(), "there is no graph below {GRAPHS}");
    let (mut n_bytes, mut faults) = (0, Vec::new());
    for graph in &graphs {
        line.tick(graph);
        let expected = run(&native, graph, places)?;
        let found = run(&windows, graph, places)?;
        n_bytes += expected.commit_log.len();
        faults.extend(difference(&expected, &found).map(|what| format!("{graph}: {what}")));
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    Ok(format!("{} graphs, {n_bytes} bytes", graphs.len()))
}

/// The graphs below a folder, as the command takes them. Those of other packages have components
/// of their own, which the command does not know.
fn collect(root: &Path, folder: &Path, found: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder));
    for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
        let path = folder.join(entry.context("cannot list a folder")?.file_name());
        let place = root.join(&path);
        if place.is_dir() && !place.join("Cargo.toml").exists() {
            collect(root, &path, found)?;
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// Runs a graph. A graph may end with an error on purpose; it leaves a commit log all the same.
fn run(command: &Cmd, graph: &str, places: &Places) -> Result<Left> {
    let file = places.target_dir.join("commit-log");
    if file.exists() {
        fs::remove_file(&file).context("cannot remove an old commit log")?;
    }
    let cmd = command.clone().words(STEPS).arg(graph).arg("--commit-log").arg(&file);
    let cmd = cmd.dir(&places.root).limit(RUN_LIMIT);
    let finished = cmd.capture()?;
    let commit_log = fs::read(&file).with_context(|| cmd.failure(&finished))?;
    Ok(Left { exit_code: finished.status.and_then(|status| status.code()), commit_log })
}

/// What is not equal.
fn difference(expected: &Left, found: &Left) -> Option<String> {
    if expected.exit_code != found.exit_code {
        let codes = [expected, found].map(|one| format!("{:?}", one.exit_code));
        return Some(format!("it exits with {} on Linux, with {} on Windows", codes[0], codes[1]));
    }
    let is_success = expected.exit_code == Some(0);
    let (expected, found) = (&expected.commit_log, &found.commit_log);
    if is_success && expected.is_empty() {
        return Some("a run that succeeds leaves an empty commit log".to_owned());
    }
    let at = expected.iter().zip(found).position(|(a, b)| a != b);
    let at =
        at.or_else(|| (expected.len() != found.len()).then(|| expected.len().min(found.len())));
    at.map(|at| {
        let lengths = [expected.len(), found.len()];
        format!("its commit logs of {lengths:?} bytes differ at byte {at}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_the_exit_code_or_the_first_byte_that_is_not_equal() {
        let left = |code, log: &[u8]| Left { exit_code: Some(code), commit_log: log.to_vec() };
        let check = |expected: &Left, found: &Left, words: Option<&str>| {
            let what = difference(expected, found);
            assert_eq!(what.is_some(), words.is_some(), "{what:?}");
            assert!(words.is_none_or(|words| what.is_some_and(|what| what.contains(words))));
        };
        check(&left(0, b"abc"), &left(0, b"abc"), None);
        check(&left(0, b"abc"), &left(1, b"abc"), Some("with Some(1) on Windows"));
        check(&left(0, b"abc"), &left(0, b"aXc"), Some("differ at byte 1"));
        check(&left(0, b"abc"), &left(0, b"ab"), Some("[3, 2] bytes differ at byte 2"));
        check(&left(1, b""), &left(1, b"a"), Some("differ at byte 0"));
        check(&left(0, b""), &left(0, b""), Some("empty commit log"));
        check(&left(1, b""), &left(1, b""), None);
    }

    #[test]
    fn the_graphs_of_the_command_are_found_and_those_of_other_packages_are_not() {
        let root = crate::workspace::root().expect("the tests run in the workspace");
        let mut found = Vec::new();
        collect(&root, Path::new(GRAPHS), &mut found).expect("there is such a folder");
        assert!(found.iter().any(|graph| graph == "examples/robot-cell.yaml"));
        assert!(found.iter().any(|graph| graph == "examples/graphs/lanes/fixed_rate.yaml"));
        assert!(!found.iter().any(|graph| graph.contains("own-components")), "{found:?}");
    }
}
