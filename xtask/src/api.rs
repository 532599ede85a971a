//! `cargo xtask api`: the public surface of each crate, kept in `api/` as text, one line per item.
//!
//! A change of the surface therefore changes a file, and a reviewer of the commit sees the change.
//! The items are read from the JSON output of rustdoc. The format of that JSON differs between
//! compilers, so the command accepts only the version that [`FORMAT`] names.
//!
//! With `--breaking BASE` the command compares the stored surfaces with those of an earlier commit
//! and checks that the version number allows the changes. This needs git, and no compiler.

mod breaking;
mod signature;
mod snapshot;
mod surface;

use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::Value;

pub(crate) use self::snapshot::{Snapshot, git, judge};
use crate::{
    console::{Line, Steps},
    process::{self, Cmd},
    workspace::{Package, Workspace},
};

/// The JSON format that rustdoc of Rust 1.95 writes. Another version may give the same fields
/// another meaning.
const FORMAT: u64 = 57;
/// The folder with the stored surfaces.
const FOLDER: &str = "api";
/// How many differing lines are printed; the diff of the file has all of them.
const SHOWN_MAX: usize = 40;

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Write the files again, from the current surface
    #[arg(long)]
    bless: bool,
    /// Compare `api/`, features and rust-version with those of this commit or tag, and check that
    /// the version number allows what has changed
    #[arg(long, value_name = "BASE", conflicts_with = "bless")]
    breaking: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    if let Some(base) = &options.breaking {
        let mut steps = Steps::new(FOLDER, 1);
        steps.step(&format!("changes since {base}"), |_| {
            let before = Snapshot::of_commit(&workspace.root, base)?;
            judge(base, &before, &Snapshot::of_tree(&workspace.root)?)
        });
        return steps.finish();
    }
    let crates: Vec<&Package> =
        workspace.default_members().filter(|package| is_shipped(package)).collect();
    let mut steps = Steps::new(FOLDER, crates.len());
    for package in crates {
        steps.step(&package.name, |line| {
            let lines = lines_of(&workspace, package, line)?;
            let path = workspace.root.join(FOLDER).join(format!("{}.txt", package.name));
            let now = lines.join("\n") + "\n";
            if options.bless {
                process::write(&path, &now)?;
                return Ok(format!("{} items", lines.len()));
            }
            compare(&path, &now)?;
            Ok(format!("{} items", lines.len()))
        });
    }
    steps.finish()
}

/// Whether users get this package: only the packages under `crates/` promise a stable surface.
fn is_shipped(package: &Package) -> bool {
    let is_crate = package.dir().parent().is_some_and(|dir| dir.ends_with("crates"));
    is_crate && package.dir().join("src/lib.rs").is_file()
}

/// The current surface, one line per item.
fn lines_of(workspace: &Workspace, package: &Package, line: &Line) -> Result<Vec<String>> {
    // Rustdoc's JSON output is unstable: this variable makes a stable compiler accept the option.
    let cmd = Cmd::cargo().dir(&workspace.root).env("RUSTC_BOOTSTRAP", "1");
    let cmd = cmd.words("rustdoc --lib --all-features --target-dir target/api --package");
    let cmd = cmd.arg(&package.name).words("-- -Zunstable-options --output-format json");
    cmd.run(line, &workspace.log(&format!("api-{}.log", package.name)))?;
    let file = format!("target/api/doc/{}.json", package.name.replace('-', "_"));
    let path = workspace.root.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let json: Value = serde_json::from_str(&text).context("rustdoc wrote no JSON")?;
    let format = json["format_version"].as_u64();
    if format != Some(FORMAT) {
        bail!("rustdoc writes format {format:?} but this command reads {FORMAT}: use Rust 1.95");
    }
    Ok(surface::lines(&json))
}

fn compare(path: &Path, now: &str) -> Result<()> {
    let before = fs::read_to_string(path).unwrap_or_default();
    let lines = difference(&before, now);
    if lines.is_empty() {
        return Ok(());
    }
    let shown = lines.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n");
    bail!(
        "{} lines differ from {}; if this is intended, run cargo xtask api --bless\n{shown}",
        lines.len(),
        path.display()
    );
}

/// The removed lines and the added lines, each with its sign.
fn difference(before: &str, now: &str) -> Vec<String> {
    let went = before.lines().filter(|line| !now.lines().any(|other| other == *line));
    let came = now.lines().filter(|line| !before.lines().any(|other| other == *line));
    let went = went.map(|line| format!("- {line}"));
    went.chain(came.map(|line| format!("+ {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_and_added_lines_are_reported() {
        let (before, now) = ("pub fn a()\npub fn b()\n", "pub fn b()\npub fn c()\n");
        assert_eq!(difference(before, now), ["- pub fn a()", "+ pub fn c()"]);
        assert!(difference(now, now).is_empty());
    }

    #[test]
    fn a_missing_file_differs_by_every_line() {
        let error = compare(Path::new("no/such/file.txt"), "pub fn a()\n").unwrap_err();
        assert!(error.to_string().contains("+ pub fn a()"), "{error}");
    }
}
