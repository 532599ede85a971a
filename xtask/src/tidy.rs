//! `cargo xtask tidy`: the style rules that a program can check.
//!
//! A rule is a small function over one file, or over all files of the tree. For each fault it
//! reports the place and what to do. Exceptions are listed here, each with its reason.

mod code;
mod guards;
mod package;
mod platforms;
mod source;
mod text;
mod words;

use core::fmt;
use std::{fs, path::Path};

use anyhow::{Context as _, Result, bail};

use crate::{console::Steps, workspace};
pub(crate) use source::Source;
pub(crate) use words::{WORDS_MAX, listed};

/// A broken rule.
#[derive(Debug, PartialEq, Eq)]
struct Fault {
    path: String,
    line: usize,
    /// What is wrong and what to do.
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// A rule over one file.
type FileRule = fn(&Source) -> Vec<Fault>;
/// A rule over all files.
type TreeRule = fn(&[Source]) -> Vec<Fault>;

const FILE_RULES: &[FileRule] = &[
    text::file_names,
    text::columns,
    text::line_ends,
    text::unfinished_work,
    text::machine_paths,
    text::length,
    text::readme_length,
    code::opening,
    code::allow_attributes,
    code::ignored_tests,
    code::forbidden_macros,
    code::unwraps,
    code::sleeps,
    code::deadlines,
    code::std_features,
    code::conditions,
    package::manifest,
    words::retired_names,
    words::retired_phrases,
];

const TREE_RULES: &[TreeRule] = &[
    package::planted_faults,
    package::crate_docs,
    package::default_run,
    guards::laws,
    guards::map,
    platforms::table,
    platforms::table_of_book,
    words::house_words,
];

/// Files that the rules of [`text`] and [`words`] skip: path prefix and reason.
const EXEMPT: &[(&str, &str)] =
    &[("xtask/src/tidy/", "the rules and their tests spell what they forbid")];

/// Folders that contain no sources of the project.
const SKIPPED: &[&str] = &["target", "results", "node_modules"];
/// Folders with a leading dot that are read nevertheless.
const DOTTED: &[&str] = &[".ci", ".cargo", ".config"];
/// Endings of the files that are read.
const ENDINGS: &[&str] = &["rs", "md", "toml", "sh", "yaml", "yml"];

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let mut steps = Steps::new("tidy", 1);
    steps.step("style rules", |_| check_tree(&workspace::root()?));
    steps.finish()
}

fn check_tree(root: &Path) -> Result<String> {
    let mut sources = Vec::new();
    collect(root, root, &mut sources)?;
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let faults = check(&sources);
    if !faults.is_empty() {
        let lines: Vec<String> = faults.iter().map(|fault| format!("  {fault}")).collect();
        bail!("style errors: {}\n{}", faults.len(), lines.join("\n"));
    }
    let n_rules = FILE_RULES.len() + TREE_RULES.len();
    Ok(format!("{} files, {n_rules} rules", sources.len()))
}

fn check(sources: &[Source]) -> Vec<Fault> {
    let per_file =
        sources.iter().flat_map(|source| FILE_RULES.iter().flat_map(|rule| rule(source)));
    per_file.chain(TREE_RULES.iter().flat_map(|rule| rule(sources))).collect()
}

/// Reads the files below a folder.
pub(crate) fn collect(root: &Path, dir: &Path, sources: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {dir:?}"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let is_hidden = name.starts_with('.') && !DOTTED.contains(&&*name);
            if !is_hidden && !SKIPPED.contains(&&*name) {
                collect(root, &path, sources)?;
            }
            continue;
        }
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        if ENDINGS.contains(&&*ending) || name == "run" {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
            let relative = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            sources.push(Source::new(&parts.join("/"), &text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies one rule to one file: each fault is expected as `line: words of the message`.
    #[track_caller]
    pub(super) fn planted(rule: FileRule, path: &str, text: &str, expected: &[(usize, &str)]) {
        let faults = rule(&Source::new(path, text));
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, (line, words)) in faults.iter().zip(expected) {
            assert_eq!((fault.path.as_str(), fault.line), (path, *line), "{fault}");
            assert!(fault.what.contains(words), "{fault}");
        }
    }

    #[test]
    fn a_planted_fault_is_shown_with_path_line_and_what_to_do() {
        let text = "//! A file.\n\nfn f() {\n    dbg!(1);\n}\n";
        let faults = check(&[Source::new("crates/clockjack-sync/src/pad.rs", text)]);
        assert_eq!(faults.len(), 1, "{faults:?}");
        let shown = faults[0].to_string();
        assert!(shown.starts_with("crates/clockjack-sync/src/pad.rs:4: `dbg!`"), "{shown}");
    }

    #[test]
    fn a_sound_file_has_no_fault() {
        let text = "//! A file.\n\n/// A type.\n#[derive(Debug)]\npub struct Level;\n";
        assert_eq!(check(&[Source::new("crates/clockjack-time/src/wheel.rs", text)]), []);
    }
}
