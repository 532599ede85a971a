//! Rules about names, lines and words, for every kind of file.

use super::{
    EXEMPT, Fault,
    source::{Source, words},
};

const COLUMNS_MAX: usize = 100;
const LINES_MAX: usize = 800;
/// The page that everybody reads first, and how long it may be: the rest is one link away.
const README: (&str, usize) = ("README.md", 250);
const UNFINISHED: [&str; 3] = ["TODO", "FIXME", "XXX"];
const NO_NAMES: [&str; 4] = ["utils", "util", "common", "helpers"];
/// Files for which such a name is meaningful: the tasks that help the coordinator of an epoch.
const NAMED: [&str; 2] =
    ["crates/clockjack-graph/src/run/engine/helpers", "crates/clockjack-graph/tests/loom/helpers"];
const MACHINE_PATHS: [&str; 4] = ["/home", "/Users", "/root", "/mnt"];

fn is_exempt(source: &Source) -> bool {
    EXEMPT.iter().any(|(prefix, _)| source.path.starts_with(prefix))
}

/// A module is named after its contents.
pub(super) fn file_names(source: &Source) -> Vec<Fault> {
    if !source.is_rust() {
        return Vec::new();
    }
    let stem = source.file_name().trim_end_matches(".rs");
    let mut faults = Vec::new();
    if stem == "mod" {
        let what = "`mod.rs`: name the file after the module, next to its folder";
        faults.push(source.fault(0, what));
    }
    let folders = source.path.split('/').rev().skip(1);
    let is_named = NAMED.iter().any(|start| source.path.starts_with(start));
    if !is_named && let Some(name) = folders.chain([stem]).find(|part| NO_NAMES.contains(part)) {
        let what = format!("`{name}` says nothing: name the file after its contents");
        faults.push(source.fault(0, what));
    }
    faults
}

/// A line is short enough to show two files next to each other.
pub(super) fn columns(source: &Source) -> Vec<Fault> {
    if !source.is_rust() {
        return Vec::new();
    }
    let long = |line: &&str| line.chars().count() > COLUMNS_MAX;
    let fault = |line: &str| {
        let what = format!("{} columns, {COLUMNS_MAX} allowed: break it", line.chars().count());
        source.fault(offset(source, line), what)
    };
    source.text.lines().filter(long).map(fault).collect()
}

/// No space at the end of a line, no carriage return, one newline at the end of the file.
pub(super) fn line_ends(source: &Source) -> Vec<Fault> {
    let mut faults = Vec::new();
    for line in source.text.split('\n') {
        if line.ends_with([' ', '\t', '\r']) {
            faults
                .push(source.fault(offset(source, line), "space at the end of a line: remove it"));
        }
    }
    let end = source.text.len().saturating_sub(1);
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        faults.push(source.fault(end, "no newline at the end of the file: add one"));
    }
    if source.text.ends_with("\n\n") {
        faults.push(source.fault(end, "empty lines at the end of the file: remove them"));
    }
    faults
}

/// Unfinished work belongs into an issue, not into a comment.
pub(super) fn unfinished_work(source: &Source) -> Vec<Fault> {
    if is_exempt(source) {
        return Vec::new();
    }
    let fault = |word: &str, at| {
        let what = format!("`{word}`: finish the work, or write an issue and remove the comment");
        source.fault(at, what)
    };
    UNFINISHED.iter().flat_map(|word| words(&source.text, word).map(|at| fault(word, at))).collect()
}

/// No file names a path of one machine.
pub(super) fn machine_paths(source: &Source) -> Vec<Fault> {
    if is_exempt(source) {
        return Vec::new();
    }
    let is_root = |at: &usize| {
        let before = source.text[..*at].chars().next_back();
        !before.is_some_and(|char| char.is_alphanumeric() || "_-./*}>)".contains(char))
    };
    let fault = |path: &str, at| {
        let what = format!("`{path}` is a path of one machine: write one relative to the root");
        source.fault(at, what)
    };
    let ends = |path: &str, at: &usize| {
        let after = source.text[at + path.len()..].chars().next();
        !after.is_some_and(|char| char.is_alphanumeric() || "_-".contains(char))
    };
    MACHINE_PATHS
        .iter()
        .flat_map(|path| {
            let places = source.text.match_indices(path).map(|(at, _)| at);
            places.filter(is_root).filter(|at| ends(path, at)).map(|at| fault(path, at))
        })
        .collect()
}

/// A file that needs more lines is split.
pub(super) fn length(source: &Source) -> Vec<Fault> {
    if !source.is_rust() || source.is_test_file() {
        return Vec::new();
    }
    let n_lines = source.text[..source.tests_at()].lines().count();
    let what = || format!("{n_lines} lines without tests, {LINES_MAX} allowed: split by concept");
    if n_lines > LINES_MAX { vec![source.fault(0, what())] } else { Vec::new() }
}

/// The first page is read to its end; what does not fit is a page of the book.
pub(super) fn readme_length(source: &Source) -> Vec<Fault> {
    let (path, lines_max) = README;
    let n_lines = source.text.lines().count();
    if source.path != path || n_lines <= lines_max {
        return Vec::new();
    }
    let what = format!("{n_lines} lines, {lines_max} allowed: move text into the book and link it");
    vec![source.fault(0, what)]
}

/// Where a part of the text begins in it.
fn offset(source: &Source, part: &str) -> usize {
    part.as_ptr().addr() - source.text.as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use super::{super::tests::planted, *};

    const PATH: &str = "crates/clockjack-sync/src/ring.rs";

    #[test]
    fn file_names_say_what_is_inside() {
        planted(file_names, "crates/a/src/ring/mod.rs", "", &[(1, "mod.rs")]);
        planted(file_names, "crates/a/src/utils.rs", "", &[(1, "utils")]);
        planted(file_names, "crates/a/tests/common/model.rs", "", &[(1, "common")]);
        planted(file_names, PATH, "", &[]);
    }

    #[test]
    fn lines_have_at_most_a_hundred_columns() {
        let fits = "é".repeat(COLUMNS_MAX);
        planted(columns, PATH, &format!("{fits}\n{fits}e\n"), &[(2, "101 columns")]);
        planted(columns, "README.md", &format!("{fits}e\n"), &[]);
    }

    #[test]
    fn lines_end_with_their_last_word() {
        planted(line_ends, PATH, "a\nb \nc\t\n", &[(2, "space"), (3, "space")]);
        planted(line_ends, PATH, "a\r\n", &[(1, "space")]);
        planted(line_ends, "README.md", "a\nb", &[(2, "no newline")]);
        planted(line_ends, PATH, "a\n\n", &[(2, "empty lines")]);
        planted(line_ends, PATH, "a\n\nb\n", &[]);
    }

    #[test]
    fn unfinished_work_is_not_left_in_the_tree() {
        planted(unfinished_work, PATH, "a\n// TODO: b\n", &[(2, "TODO")]);
        planted(unfinished_work, "README.md", "FIXME\nXXX\n", &[(1, "FIXME"), (2, "XXX")]);
        planted(unfinished_work, PATH, "// TODOS and mXXXL\n", &[]);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        planted(machine_paths, PATH, "// see /home/me\n", &[(1, "/home")]);
        planted(machine_paths, "README.md", "a\n`/root`, /mnt/b\n", &[(2, "/root"), (2, "/mnt")]);
        planted(machine_paths, PATH, "// a/home, the /homely, crates/root\n", &[]);
    }

    #[test]
    fn the_readme_has_at_most_250_lines_and_other_documents_may_be_longer() {
        let fits = "a\n".repeat(250);
        planted(readme_length, "README.md", &fits, &[]);
        let long = format!("{fits}b\n");
        planted(readme_length, "README.md", &long, &[(1, "251 lines")]);
        planted(readme_length, "firmware/README.md", &long, &[]);
    }

    #[test]
    fn a_long_file_is_split_but_tests_do_not_count() {
        let long = "a\n".repeat(LINES_MAX);
        planted(length, PATH, &format!("{long}b\n"), &[(1, "801 lines")]);
        planted(length, PATH, &format!("{long}#[cfg(test)]\nmod tests {{\n}}\n"), &[]);
        planted(length, "crates/a/tests/b.rs", &format!("{long}b\n"), &[]);
    }
}
