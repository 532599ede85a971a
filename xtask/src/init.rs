//! `cargo xtask init`: each project that `clockjack init` creates is formatted, compiles without a
//! warning and passes its tests, against this checkout. The service also runs, answers requests and
//! drains.
//!
//! The projects share one target directory and start with the lock file of the workspace, so that
//! dependencies are fetched and built only once.

mod service;

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    console::{Line, Steps},
    process::{self, Cmd},
    workspace::Workspace,
};

/// The expected output of `clockjack init --list`.
const TEMPLATES: [&str; 5] = ["actors", "control-loop", "embedded", "service", "test"];

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut steps = Steps::new("init", 1 + TEMPLATES.len());
    let is_built = steps.step("build the command, list its templates", |line| {
        let cmd = clockjack(&workspace).words("init --list");
        let listed = cmd.run(line, &workspace.log("init-list.log"))?.output;
        let names: Vec<&str> = listed.lines().filter_map(first_word).collect();
        anyhow::ensure!(names == TEMPLATES, "`clockjack init --list` lists {names:?}");
        Ok(names.join(", "))
    });
    for template in TEMPLATES.iter().filter(|_| is_built) {
        steps.step(template, |line| check(&workspace, template, line));
    }
    steps.finish()
}

fn first_word(line: &str) -> Option<&str> {
    line.split_whitespace().next()
}

fn clockjack(workspace: &Workspace) -> Cmd {
    Cmd::cargo().dir(&workspace.root).words("run --quiet --package clockjack-cli --")
}

/// Creates a project, and formats, lints and tests it as a user would.
fn check(workspace: &Workspace, template: &str, line: &Line) -> Result<String> {
    let home = workspace.root.join("target/init");
    let dir = home.join(format!("a-{template}"));
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot empty {}", dir.display()))?;
    }
    // An empty rustfmt.toml: the project is formatted with rustfmt's defaults, not with the file in
    // our root folder.
    process::write(&home.join("rustfmt.toml"), "")?;
    let log = workspace.log(&format!("init-{template}.log"));
    let write = clockjack(workspace).arg("init").arg(&dir).arg("--template").arg(template);
    write.arg("--clockjack-path").arg(&workspace.root).run(line, &log)?;
    let lock = "Cargo.lock";
    fs::copy(workspace.root.join(lock), dir.join(lock)).context("cannot copy the lock file")?;

    project(&dir, &home).words("fmt --check").run(line, &log)?;
    let test = project(&dir, &home).words("test").env("RUSTFLAGS", "-D warnings");
    let output = test.run(line, &log)?.output;
    let n_tests = crate::libtest::totals(&output).passed;
    anyhow::ensure!(n_tests > 0, "no test ran in {}", dir.display());
    let mut note = format!("{n_tests} tests passed");
    if template == "service" {
        // The tests of the project have built its program, too.
        let program = home.join("target/debug").join(format!("a-{template}"));
        note += &format!(", {}", service::check(&program, line, &log)?);
    }
    Ok(note)
}

/// A cargo command in a project, with the shared target directory.
fn project(dir: &Path, home: &Path) -> Cmd {
    Cmd::cargo()
        .dir(dir)
        .env("CARGO_TARGET_DIR", home.join("target"))
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_template_is_the_first_word_of_its_line() {
        assert_eq!(first_word("control-loop  a graph file"), Some("control-loop"));
        assert_eq!(first_word(""), None);
    }
}
