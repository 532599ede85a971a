//! Rules about `ARCHITECTURE.md` and `CONTRIBUTING.md`: the tests, planted faults, files and
//! functions that they name exist.
//!
//! The first has a table of the laws with the tests that guard each and the faults that are planted
//! against it. `cargo xtask mutants` shows that a named fault makes its test fail.

use std::collections::BTreeSet;

use super::{
    Fault,
    source::{Source, words},
};
use crate::mutants::{self, Mutant};

/// The document with the table.
const DOCUMENT: &str = "ARCHITECTURE.md";
/// The documents that lead a reader through the files.
const MAPS: [&str; 2] = [DOCUMENT, "CONTRIBUTING.md"];
/// Stands for a name that the reader chooses, in a path such as `crates/NAME/tests`.
const PLACEHOLDERS: [&str; 2] = ["NAME", "CRATE"];
/// The heading above the table.
const HEADING: &str = "### Who guards them";
/// How many laws there are.
const N_LAWS: usize = 14;
/// Follows the name of a model for which no fault is planted.
const UNPLANTED: char = '°';

/// Each law has a row with tests and planted faults, and all of them exist: the tests in the crate
/// that is named before them, and for a loom model a fault that it must find.
pub(super) fn laws(sources: &[Source]) -> Vec<Fault> {
    let Some(document) = sources.iter().find(|source| source.path == DOCUMENT) else {
        return Vec::new();
    };
    let Some(begin) = document.text.find(HEADING) else {
        return vec![document.fault(0, format!("there is no heading `{HEADING}`"))];
    };
    let tree = Tree::of(sources);
    let mut faults = Vec::new();
    let mut laws = BTreeSet::new();
    let mut at = begin;
    for line in document.text[begin..].split_inclusive('\n') {
        let here = at;
        at += line.len();
        let cells: Vec<&str> = line.trim().split('|').map(str::trim).collect();
        let ["", law, guards, plants, ""] = cells[..] else { continue };
        let Ok(law) = law.parse::<usize>() else { continue };
        laws.insert(law);
        let mut fault = |what: String| faults.push(document.fault(here, what));
        tree.guards(guards).into_iter().for_each(&mut fault);
        tree.plants(plants).into_iter().for_each(&mut fault);
    }
    for law in (1..=N_LAWS).filter(|law| !laws.contains(law)) {
        faults.push(document.fault(begin, format!("law {law} has no row that names its guards")));
    }
    faults
}

/// A file or a function that a map or a recipe names exists: files by the end of their path,
/// functions as `Type::name`.
pub(super) fn map(sources: &[Source]) -> Vec<Fault> {
    let tree = Tree::of(sources);
    let is_gone = |name: &str| {
        let is_file = [".rs", ".md", ".toml"].iter().any(|end| name.ends_with(end));
        let is_pattern = name.contains(['*', ' ', '{'])
            || PLACEHOLDERS.iter().any(|placeholder| name.contains(placeholder));
        if is_file && !is_pattern {
            let end = format!("/{name}");
            return !sources.iter().any(|one| one.path == name || one.path.ends_with(&end));
        }
        let Some((owner, function)) = name.split_once("::") else { return false };
        let is_function = owner.starts_with(char::is_uppercase)
            && function.starts_with(char::is_lowercase)
            && function.chars().all(is_of_name);
        is_function && !tree.functions.iter().any(|(_, name)| *name == function)
    };
    let maps = sources.iter().filter(|source| MAPS.contains(&source.path.as_str()));
    let gone = maps.flat_map(|document| {
        let named = quoted(&document.text).into_iter();
        let gone = named.filter(|(_, name)| is_gone(name));
        gone.map(|(at, name)| document.fault(at, format!("there is no `{name}`")))
    });
    gone.collect()
}

/// The texts between back quotes on a line, each with its position.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        let mut at = begin;
        for (index, part) in line.split('`').enumerate() {
            if index % 2 == 1 {
                found.push((at, part));
            }
            at += part.len() + 1;
        }
        begin += line.len();
    }
    found
}

/// The names that exist in the tree.
struct Tree<'s> {
    sources: &'s [Source],
    /// By crate; modules are here too.
    functions: BTreeSet<(&'s str, &'s str)>,
    /// By crate.
    mutants: Vec<(String, Mutant)>,
}

impl<'s> Tree<'s> {
    fn of(sources: &'s [Source]) -> Self {
        let mut functions = BTreeSet::new();
        let mut mutants = Vec::new();
        for source in sources {
            if let Some(package) = mutants::crate_of(&source.path) {
                // Another rule checks that the list can be read.
                let list = mutants::parse(&source.text).unwrap_or_default();
                mutants.extend(list.into_iter().map(|mutant| (package.clone(), mutant)));
            }
            let Some(package) = source.crate_name() else { continue };
            if source.is_rust() {
                let named = ["fn ", "mod "].into_iter().flat_map(|word| after(&source.code, word));
                functions.extend(named.map(|name| (package, name)));
            }
        }
        Self { sources, functions, mutants }
    }

    /// The errors in a cell of guards: `time loom`, then names in back quotes.
    fn guards(&self, cell: &str) -> Vec<String> {
        let (mut package, mut is_loom, mut n_tests) = (String::new(), false, 0);
        let mut faults = Vec::new();
        let mut parts = cell.split('`').peekable();
        while let (Some(before), Some(name)) = (parts.next(), parts.next()) {
            let words = before.split(|char: char| char.is_whitespace() || char == '(');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let (owner, loom) = match words[..] {
                [.., owner, "loom"] => (Some(owner), true),
                [.., owner] => (Some(owner), false),
                [] => (None, false),
            };
            is_loom &= !before.contains([';', '.']);
            if let Some(owner) = owner.filter(|owner| self.is_crate(owner)) {
                package = format!("clockjack-{owner}");
                is_loom = loom;
            }
            if name.contains(' ') {
                continue; // a command
            }
            n_tests += 1;
            if !self.is_there(&package, name) {
                faults.push(format!("`{name}` is not in {package}"));
            }
            let is_model = is_loom && !name.contains(".rs");
            let is_planted = !parts.peek().is_some_and(|rest| rest.starts_with(UNPLANTED));
            if is_model && is_planted && !self.is_caught_by(&package, name) {
                faults.push(format!("no fault is planted that loom's `{name}` must find"));
            }
        }
        if n_tests == 0 {
            faults.push("the law names no guard".to_owned());
        }
        faults
    }

    /// The errors in a cell of planted faults.
    fn plants(&self, cell: &str) -> Vec<String> {
        let names: Vec<&str> = quoted(cell).into_iter().map(|(_, name)| name).collect();
        if names.is_empty() {
            return vec!["the law names no planted fault".to_owned()];
        }
        let is_known = |name: &&&str| {
            let is_listed = self.mutants.iter().any(|(_, mutant)| mutant.name == **name);
            let mut proofs = self.sources.iter().filter(|one| one.path.starts_with("proof/"));
            is_listed
                || proofs.any(|one| {
                    one.path.starts_with(**name) || words(&one.text, name).next().is_some()
                })
        };
        let unknown = names.iter().filter(|name| !is_known(name));
        unknown.map(|name| format!("there is no planted fault `{name}`")).collect()
    }

    fn is_crate(&self, name: &str) -> bool {
        self.functions.iter().any(|(package, _)| package.strip_prefix("clockjack-") == Some(name))
    }

    /// Whether a file, a module or a test exists at its path: `file.rs::module::test`.
    fn is_there(&self, package: &str, name: &str) -> bool {
        let last = name.rsplit("::").next().unwrap_or(name);
        let is_file = |file: &str| {
            let paths = [file.to_owned(), format!("crates/{package}/tests/{file}")];
            self.sources.iter().any(|source| paths.contains(&source.path))
        };
        let first = name.split("::").next().unwrap_or(name);
        let is_first = !first.contains('.') || is_file(first);
        is_first
            && (last == first && last.contains('.') || self.functions.contains(&(package, last)))
    }

    /// Whether a fault of the crate is listed with this model.
    fn is_caught_by(&self, package: &str, name: &str) -> bool {
        let last = |path: &str| path.rsplit("::").next().unwrap_or(path).to_owned();
        let name = last(name);
        let mut own = self.mutants.iter().filter(|(of, mutant)| *of == package && mutant.loom);
        own.any(|(_, mutant)| name.contains(&last(&mutant.filter)))
    }
}

/// The names that follow a keyword.
fn after<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = &'a str> {
    words(code, keyword).filter_map(move |at| {
        let rest = &code[at + keyword.len()..];
        let end = rest.find(|char| !is_of_name(char))?;
        Some(&rest[..end])
    })
}

fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "[[mutant]]\nname = \"word-by-store\"\ntest = \"loom\"\n\
                        filter = \"word::two_cancels\"\nloom = true\nfault = \"a store\"\n\
                        file = \"crates/clockjack-time/src/word.rs\"\nclean = \"swap\"\n\
                        faulty = 'if mutant!(\"word-by-store\") {}'\n";
    const MODELS: &str = "//! M.\nmod word {\n    fn two_cancels_against_a_taker() {}\n}\n";

    /// The tree with a table of fourteen rows, of which the first is given.
    fn check(row: &str) -> Vec<String> {
        let sound = "| time `loom.rs::word` | `word-by-store` |";
        let rows: Vec<String> = (2..=N_LAWS).map(|law| format!("| {law} {sound}\n")).collect();
        let text =
            format!("# A\n\n{HEADING}\n\n| | a | b |\n|---|---|---|\n{row}\n{}", rows.concat());
        let files = [
            (DOCUMENT, text.as_str()),
            ("clippy.toml", ""),
            ("mutants/time.toml", LIST),
            ("crates/clockjack-time/tests/loom.rs", MODELS),
            ("crates/clockjack-exec/src/lib.rs", "//! E.\nfn an_event_is_seen() {}\n"),
            ("proof/nostd/Cargo.toml", "plant_std = []\n"),
        ];
        let sources = files.map(|(path, text)| Source::new(path, text));
        laws(&sources).into_iter().map(|fault| fault.what).collect()
    }

    #[test]
    fn a_row_whose_tests_and_faults_exist_is_sound() {
        let rows = [
            "time loom `word::{wide,narrow}::two_cancels_against_a_taker` | `word-by-store`",
            "fences: `clippy.toml`, `cargo xtask nostd` | `plant_std` (`proof/nostd`)",
            "time `loom.rs::word::two_cancels_against_a_taker`; exec `an_event_is_seen` | \
             `word-by-store`",
            "time `loom.rs::word`, which is judged (exec `an_event_is_seen`) | `word-by-store`",
        ];
        for row in rows {
            assert_eq!(check(&format!("| 1 | {row} |")), [""; 0], "{row}");
        }
    }

    #[test]
    fn what_is_named_and_not_there_is_a_fault() {
        for (row, told) in [
            (
                "| 1 | time `loom.rs::word::two` | `word-by-store` |",
                "`loom.rs::word::two` is not in",
            ),
            ("| 1 | time `model.rs::word` | `word-by-store` |", "`model.rs::word` is not in"),
            ("| 1 | time `an_event_is_seen` | `word-by-store` |", "not in clockjack-time"),
            ("| 1 | time `loom.rs::word` | `word` |", "no planted fault `word`"),
            ("| 1 | time `loom.rs::word` | none |", "names no planted fault"),
            ("| 1 | `cargo xtask nostd` | `word-by-store` |", "names no guard"),
            ("", "law 1 has no row"),
        ] {
            let faults = check(row);
            assert_eq!(faults.len(), 1, "{row}: {faults:?}");
            assert!(faults[0].contains(told), "{row}: {faults:?}");
        }
    }

    #[test]
    fn a_loom_model_has_a_planted_fault_or_a_circle() {
        let row = "| 1 | exec loom `an_event_is_seen` | `word-by-store` |";
        assert_eq!(check(row), ["no fault is planted that loom's `an_event_is_seen` must find"]);
        assert_eq!(check(&row.replace("seen`", "seen`°")), [""; 0]);
        assert_eq!(check(&row.replace("exec loom", "time loom `word`°; exec")), [""; 0]);
    }

    #[test]
    fn files_and_functions_of_the_map_are_there() {
        let text = "`src/lib.rs`, `mutants/*.toml`, `lib.rs`, `Cell::step`, `Fire::Once`,\n\
                    `ib.rs`, `Cell::stop`, `clockjack::prelude`.\n";
        let code = "//! T.\nfn step() {}\n";
        let recipe = "`crates/NAME/tests/a.rs`, `gone.rs`\n";
        let sources = [
            (DOCUMENT, text),
            ("CONTRIBUTING.md", recipe),
            ("README.md", "`other.rs`\n"),
            ("crates/clockjack-rt/src/lib.rs", code),
        ]
        .map(|(path, text)| Source::new(path, text));
        let faults: Vec<String> = map(&sources).iter().map(ToString::to_string).collect();
        let missing = |name| format!("{DOCUMENT}:2: there is no `{name}`");
        let of_recipe = "CONTRIBUTING.md:1: there is no `gone.rs`".to_owned();
        assert_eq!(faults, [missing("ib.rs"), missing("Cell::stop"), of_recipe]);
    }
}
