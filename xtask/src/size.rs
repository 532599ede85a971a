//! `cargo xtask size`: lines of code, documentation and tests per crate, the number of public
//! types, and the number of project-specific words.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use crate::{
    console,
    table::Table,
    tidy::{Source, WORDS_MAX, collect, listed},
    workspace::{Workspace, root},
};

/// The crate that tests the others: its code does not count as library code.
const SIMULATION: &str = "clockjack-sim";

/// The lines of one crate, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    /// Code of the product, without unit tests.
    code: usize,
    /// `///` and `//!`.
    doc: usize,
    /// `//`.
    comment: usize,
    /// Code of unit tests and of `tests/`.
    tests: usize,
}

impl Lines {
    fn add(&mut self, other: Self) {
        self.code += other.code;
        self.doc += other.doc;
        self.comment += other.comment;
        self.tests += other.tests;
    }

    fn cells(self) -> [String; 4] {
        [self.code, self.doc, self.comment, self.tests].map(|n| n.to_string())
    }
}

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let root = root()?;
    let workspace = Workspace::load()?;
    let mut packages: Vec<&str> = workspace
        .packages
        .iter()
        .filter(|package| package.dir().starts_with(root.join("crates")))
        .map(|package| package.name.as_str())
        .collect();
    packages.sort_unstable();
    let mut table = Table::new(&["crate", "code", "doc", "comment", "test code", "public types"]);
    let (mut library, mut n_types_all) = (Lines::default(), 0);
    for package in packages {
        let mut sources = Vec::new();
        collect(&root, &root.join("crates").join(package), &mut sources)?;
        let mut lines = Lines::default();
        sources.iter().filter(|source| source.is_rust()).for_each(|source| lines.add(of(source)));
        let n_types = public_types(&root, package)?;
        n_types_all += n_types;
        if package != SIMULATION {
            library.add(lines);
        }
        let [code, doc, comment, tests] = lines.cells();
        table.row([package.to_owned(), code, doc, comment, tests, n_types.to_string()]);
    }
    let [code, doc, comment, tests] = library.cells();
    let name = format!("library, without {SIMULATION}");
    table.row([name, code, doc, comment, tests, String::new()]);
    console::say(format_args!("{table}"));
    console::say(format_args!("public types, traits and aliases: {n_types_all}"));
    let document = root.join("ARCHITECTURE.md");
    let document = fs::read_to_string(&document).context("cannot read ARCHITECTURE.md")?;
    let n_words = listed(&document).len();
    console::say(format_args!("project-specific words: {n_words} of at most {WORDS_MAX}"));
    Ok(())
}

/// Counts one file.
fn of(source: &Source) -> Lines {
    let mut lines = Lines::default();
    let in_tests = tests_in(&source.code);
    let is_tests = !source.path.contains("/src/") || source.is_test_file();
    let mut at = 0;
    for (text, code) in source.text.split('\n').zip(source.code.split('\n')) {
        let text = text.trim();
        let in_test = is_tests || in_tests.iter().any(|(from, to)| (*from..*to).contains(&at));
        at += code.len() + 1;
        match text {
            "" => {}
            _ if in_test => lines.tests += usize::from(!text.starts_with("//")),
            _ if text.starts_with("///") || text.starts_with("//!") => lines.doc += 1,
            _ if text.starts_with("//") => lines.comment += 1,
            _ => lines.code += 1,
        }
    }
    lines
}

/// The ranges of the items with `#[cfg(test)]`.
fn tests_in(code: &str) -> Vec<(usize, usize)> {
    let end_of = |at: usize| {
        let rest = &code[at..];
        let open = rest.find(['{', ';'])?;
        if rest.as_bytes()[open] == b';' {
            return Some(at + open + 1);
        }
        let mut depth = 0_usize;
        rest[open..].char_indices().find_map(|(offset, char)| {
            match char {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            (depth == 0).then_some(at + open + offset + 1)
        })
    };
    let starts = code.match_indices("#[cfg(test)]").map(|(at, _)| at);
    starts.map(|at| (at, end_of(at).unwrap_or(code.len()))).collect()
}

/// How many types, traits and aliases the recorded surface of a crate has.
fn public_types(root: &Path, package: &str) -> Result<usize> {
    let path = root.join("api").join(format!("{package}.txt"));
    let surface = match fs::read_to_string(&path) {
        Ok(surface) => surface,
        Err(_) if !path.exists() => return Ok(0),
        Err(error) => return Err(error).with_context(|| format!("cannot read {path:?}")),
    };
    let is_type = |line: &&str| {
        ["struct ", "enum ", "union ", "trait ", "type "]
            .iter()
            .any(|kind| line.strip_prefix("pub ").is_some_and(|item| item.starts_with(kind)))
    };
    Ok(surface.lines().filter(is_type).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_documentation_comments_and_tests_are_told_apart() {
        let text = "//! Head.\n\n/// Doc.\nfn f() {\n    // Why.\n    let a = \"{\";\n}\n\n\
                    #[cfg(test)]\nmod tests {\n    // Not.\n    fn t() {}\n}\n\nfn g() {}\n";
        let lines = of(&Source::new("crates/a/src/lib.rs", text));
        assert_eq!(lines, Lines { code: 4, doc: 2, comment: 1, tests: 4 });
        let lines = of(&Source::new("crates/a/tests/t.rs", text));
        assert_eq!((lines.code, lines.tests), (0, 8));
    }
}
