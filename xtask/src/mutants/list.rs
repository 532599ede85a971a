//! The files of `mutants/`: which faults there are, and how each one is written into the code.
//!
//! A file `mutants/NAME.toml` belongs to the crate `clockjack-NAME`. An entry names a text of one
//! source file and the text that replaces it; the second one asks `mutant!("name")` whether the
//! fault is switched on. The product itself contains neither the question nor the fault.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use crate::{
    testbin::{Flavour, LOOM_MUTANTS, MUTANTS, SHUTTLE_MUTANTS},
    workspace::{Package, Workspace},
};

/// The folder of the lists, in the root of the workspace.
pub(crate) const DIR: &str = "mutants";
/// How a faulty text asks whether its fault is on; a name in quotes follows.
pub(crate) const SWITCH: &str = "mutant!(";

/// The contents of one list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    mutant: Vec<Mutant>,
}

/// One planted fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutant {
    /// What `mutant!("..")` in the faulty text says.
    pub(crate) name: String,
    /// The test target: `lib` for unit tests, else the name of a file in `tests/`.
    pub(crate) test: String,
    /// The test that must fail, as `cargo test` takes it.
    pub(crate) filter: String,
    /// Whether the test is a loom model.
    pub(crate) loom: bool,
    /// Whether the test is a shuttle test.
    #[serde(default)]
    pub(crate) shuttle: bool,
    /// The fault in one line.
    pub(crate) fault: String,
    /// The crate whose list has the fault, if that is another one: then this entry is a second
    /// test that must catch it.
    pub(crate) of: Option<String>,
    /// Another fault of the same list whose text contains the switch of this one too.
    pub(crate) with: Option<String>,
    /// The source file, relative to the root.
    file: Option<String>,
    /// A text that occurs exactly once in the file.
    clean: Option<String>,
    /// The text that replaces it.
    faulty: Option<String>,
    /// Further texts that the same fault replaces.
    #[serde(default)]
    also: Vec<Text>,
}

/// One of the further texts of a fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    file: String,
    clean: String,
    faulty: String,
}

/// A replacement in one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edit<'a> {
    pub(crate) mutant: &'a str,
    pub(crate) file: &'a str,
    pub(crate) clean: &'a str,
    pub(crate) faulty: &'a str,
}

impl Mutant {
    /// The build that its test needs.
    pub(crate) fn flavour(&self) -> Flavour {
        match (self.loom, self.shuttle) {
            (true, _) => LOOM_MUTANTS,
            (false, true) => SHUTTLE_MUTANTS,
            (false, false) => MUTANTS,
        }
    }

    /// What this entry changes; nothing if another entry does it.
    pub(crate) fn edits(&self) -> impl Iterator<Item = Edit<'_>> {
        let edit = |file, clean, faulty| Edit { mutant: &self.name, file, clean, faulty };
        let own = self.file.as_deref().zip(self.clean.as_deref()).zip(self.faulty.as_deref());
        let own = own.map(move |((file, clean), faulty)| edit(file, clean, faulty));
        let also = self.also.iter();
        own.into_iter().chain(also.map(move |text| edit(&text.file, &text.clean, &text.faulty)))
    }

    /// Whether one of its texts asks for the fault of this name.
    fn asks_for(&self, name: &str) -> bool {
        self.edits().any(|edit| edit.faulty.contains(&question(name)))
    }

    fn check(&self) -> Result<()> {
        if self.loom && self.shuttle {
            bail!("{}: a test is for loom or for shuttle, not for both", self.name);
        }
        let texts = [&self.file, &self.clean, &self.faulty];
        let n_texts = texts.iter().filter(|text| text.is_some()).count();
        let is_elsewhere = self.of.is_some() || self.with.is_some();
        match (n_texts, is_elsewhere) {
            (0, true) => Ok(()),
            (3, false) => {
                for edit in self.edits() {
                    let Edit { mutant, clean, .. } = edit;
                    anyhow::ensure!(!clean.trim().is_empty(), "{mutant}: `clean` is empty");
                }
                let (name, question) = (&self.name, question(&self.name));
                anyhow::ensure!(
                    self.asks_for(name),
                    "{name}: `faulty` does not contain {question}"
                );
                Ok(())
            }
            _ => bail!("{}: give `file`, `clean` and `faulty`, or `of`, or `with`", self.name),
        }
    }
}

/// Reads the text of one list.
pub(crate) fn parse(text: &str) -> Result<Vec<Mutant>> {
    let mutants = toml::from_str::<List>(text)?.mutant;
    mutants.iter().try_for_each(Mutant::check)?;
    for mutant in &mutants {
        let Some(with) = &mutant.with else { continue };
        let host = mutants.iter().find(|other| other.name == *with);
        let (name, question) = (&mutant.name, question(&mutant.name));
        anyhow::ensure!(
            host.is_some_and(|host| host.asks_for(name)),
            "{name}: the faulty text of `{with}` does not contain {question}"
        );
    }
    Ok(mutants)
}

/// How a faulty text asks whether the fault of this name is on.
fn question(name: &str) -> String {
    format!("{SWITCH}\"{name}\")")
}

/// The crate that a list belongs to, from the name of its file.
pub(crate) fn crate_of(file: &str) -> Option<String> {
    let stem = file.strip_prefix(DIR)?.strip_prefix('/')?.strip_suffix(".toml")?;
    Some(format!("clockjack-{stem}"))
}

/// Reads the list of one crate; a crate without a list has no faults.
pub(crate) fn of(workspace: &Workspace, package: &Package) -> Result<Vec<Mutant>> {
    let stem = package.name.strip_prefix("clockjack-").unwrap_or(&package.name);
    let path = workspace.root.join(DIR).join(format!("{stem}.toml"));
    if !path.is_file() {
        return Ok(Vec::new());
    }
    read_file(&path)
}

/// Reads every list, in the order of the crates' names.
pub(crate) fn all(workspace: &Workspace) -> Result<Vec<(&Package, Mutant)>> {
    let mut packages: Vec<&Package> = workspace.packages.iter().collect();
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    let mut all = Vec::new();
    for package in packages {
        all.extend(of(workspace, package)?.into_iter().map(|mutant| (package, mutant)));
    }
    Ok(all)
}

fn read_file(path: &Path) -> Result<Vec<Mutant>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
    parse(&text).with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) const LISTED: &str = r#"
        [[mutant]]
        name = "guard-relaxed"
        test = "loom"
        filter = "holder_and_remote_insert"
        loom = true
        fault = "the guard is taken without acquire"
        file = "crates/clockjack-time/src/shard.rs"
        clean = "word.swap(HELD, Acquire)"
        faulty = 'word.swap(HELD, if mutant!("guard-relaxed") { Relaxed } else { Acquire })'
    "#;

    #[track_caller]
    fn refused(text: &str, words: &str) {
        let error = format!("{:#}", parse(text).expect_err("not well formed"));
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_list_is_read_and_an_empty_one_is_fine() {
        let mutants = parse(LISTED).expect("well formed");
        assert_eq!(mutants.len(), 1);
        assert_eq!(mutants[0].name, "guard-relaxed");
        assert_eq!(mutants[0].flavour(), LOOM_MUTANTS);
        let clean: Vec<&str> = mutants[0].edits().map(|edit| edit.clean).collect();
        assert_eq!(clean, ["word.swap(HELD, Acquire)"]);
        let also = "\n[[mutant.also]]\nfile = \"a.rs\"\nclean = \"b\"\nfaulty = \"c\"\n";
        let mutants = parse(&format!("{LISTED}{also}")).expect("well formed");
        assert_eq!(mutants[0].edits().map(|edit| edit.clean).last(), Some("b"));
        let shuttle = LISTED.replace("loom = true", "loom = false\nshuttle = true");
        assert_eq!(parse(&shuttle).expect("well formed")[0].flavour(), SHUTTLE_MUTANTS);
        assert!(parse("# nothing yet\n").expect("well formed").is_empty());
        assert_eq!(crate_of("mutants/time.toml").as_deref(), Some("clockjack-time"));
        assert_eq!(crate_of("mutants/switch.rs"), None);
    }

    #[test]
    fn a_misspelt_or_missing_field_is_refused() {
        refused(&LISTED.replace("filter", "filtre"), "filtre");
        refused(&LISTED.replace("loom = true", "loom = true\nshuttle = true"), "not for both");
        refused(&LISTED.replace("loom = true", ""), "loom");
        refused(&LISTED.replace("clean =", "of ="), "or `of`");
        refused(&LISTED.replace("mutant!(\"guard-relaxed\")", "true"), "does not contain");
        refused(&LISTED.replace("word.swap(HELD, Acquire)\"", " \""), "`clean` is empty");
    }

    #[test]
    fn a_fault_in_the_text_of_another_one_is_there() {
        let second = "[[mutant]]\nname = \"second\"\ntest = \"loom\"\nfilter = \"f\"\nloom = true\n\
                      fault = \"f\"\nwith = \"guard-relaxed\"\n";
        refused(&format!("{LISTED}\n{second}"), "does not contain mutant!(\"second\")");
        let both = LISTED.replace("if mutant!", "if mutant!(\"second\") || mutant!");
        let mutants = parse(&format!("{both}\n{second}")).expect("well formed");
        assert_eq!(mutants[1].edits().count(), 0);
    }
}
