//! Rules about packages: inherited fields of manifests, documentation, planted faults.

use std::collections::BTreeMap;

use super::{
    Fault,
    source::{Source, words},
};
use crate::mutants::{self, Edit, Mutant};

/// The fields that every package inherits from the workspace.
const INHERITED: [&str; 4] = ["version", "edition", "rust-version", "license"];

/// A manifest inherits the lints and the fields that must be equal everywhere.
pub(super) fn manifest(source: &Source) -> Vec<Fault> {
    let is_member = source.crate_name().is_some()
        || ["benches/", "browser/", "compare/", "scenario/", "soak/", "testing/", "xtask/"]
            .iter()
            .any(|dir| source.path.starts_with(dir));
    if source.file_name() != "Cargo.toml" || !is_member {
        return Vec::new();
    }
    let manifest: toml::Table = match toml::from_str(&source.text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![source.fault(0, format!("not TOML: {error}"))],
    };
    let inherits = |table: &str, key: Option<&str>| {
        let value = manifest.get(table).and_then(|table| match key {
            Some(key) => table.get(key),
            None => Some(table),
        });
        value.and_then(|value| value.get("workspace")?.as_bool()) == Some(true)
    };
    let mut faults = Vec::new();
    for key in INHERITED {
        if !inherits("package", Some(key)) {
            faults.push(source.fault(0, format!("write `{key}.workspace = true` under [package]")));
        }
    }
    if !inherits("lints", None) {
        faults.push(source.fault(0, "write `workspace = true` under [lints]"));
    }
    faults
}

/// Every planted fault can be written into the code, no name is used twice (all crates share one
/// switch variable), a second test names an existing fault, and the product contains no switch.
pub(super) fn planted_faults(sources: &[Source]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut owner: BTreeMap<String, String> = BTreeMap::new();
    let mut borrowed: Vec<(String, String, Fault)> = Vec::new();
    for source in sources {
        let Some(name) = mutants::crate_of(&source.path) else { continue };
        let list = match mutants::parse(&source.text) {
            Ok(list) => list,
            Err(error) => {
                faults.push(source.fault(0, format!("{error:#}")));
                continue;
            }
        };
        for mutant in &list {
            let at = source.text.find(&format!("\"{}\"", mutant.name)).unwrap_or(0);
            if let Some(of) = &mutant.of {
                let what = format!("mutant `{}` is not in the list of {of}", mutant.name);
                borrowed.push((of.clone(), mutant.name.clone(), source.fault(at, what)));
                continue;
            }
            if let Some(other) = owner.insert(mutant.name.clone(), name.clone()) {
                let what = format!("mutant `{}` is listed in {other} too: rename", mutant.name);
                faults.push(source.fault(at, what));
            }
        }
        faults.extend(not_planted(sources, source, &list));
    }
    let is_lent = |(of, mutant, _): &(String, String, Fault)| owner.get(mutant) == Some(of);
    faults.extend(borrowed.into_iter().filter(|one| !is_lent(one)).map(|(_, _, fault)| fault));
    for source in sources.iter().filter(|source| source.is_rust() && source.path.contains("/src/"))
    {
        let is_product = source.crate_name().is_some();
        let switches = words(&source.text, "mutant!").filter(|_| is_product);
        let what = "`mutant!`: describe the fault in mutants/, the product contains none";
        faults.extend(switches.map(|at| source.fault(at, what)));
    }
    faults
}

/// The faults of one list that cannot be written into the code.
fn not_planted(sources: &[Source], list: &Source, mutants: &[Mutant]) -> Vec<Fault> {
    let mut edits: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
    for edit in mutants.iter().flat_map(Mutant::edits) {
        edits.entry(edit.file).or_default().push(edit);
    }
    let mut faults = Vec::new();
    for (file, edits) in edits {
        let at = list.text.find(&format!("\"{}\"", edits[0].mutant)).unwrap_or(0);
        match sources.iter().find(|source| source.path == file) {
            None => faults.push(list.fault(at, format!("there is no file {file}"))),
            Some(source) => {
                if let Err(error) = mutants::inject(&source.text, &edits) {
                    faults.push(list.fault(at, format!("{file}: {error}")));
                }
            }
        }
    }
    faults
}

/// One of the default members names its program in `default-run`: with two programs and no
/// `default-run`, `cargo run`, the first command of the README, would only ask which program is
/// meant.
pub(super) fn default_run(sources: &[Source]) -> Vec<Fault> {
    let parsed = |path: &str| {
        let source = sources.iter().find(|source| source.path == path)?;
        Some((source, toml::from_str::<toml::Table>(&source.text).ok()?))
    };
    let Some((root, workspace)) = parsed("Cargo.toml") else { return Vec::new() };
    let members = workspace.get("workspace").and_then(|table| table.get("default-members"));
    let members = members.and_then(toml::Value::as_array).into_iter().flatten();
    let named = members.filter_map(|member| {
        let (_, manifest) = parsed(&format!("{}/Cargo.toml", member.as_str()?))?;
        manifest.get("package")?.get("default-run")?.as_str().map(str::to_owned)
    });
    let named: Vec<String> = named.collect();
    if named == ["clockjack"] {
        return Vec::new();
    }
    let what = format!("`cargo run` must start `clockjack`: default-run of members is {named:?}");
    vec![root.fault(0, what)]
}

/// Every crate is described in a README or at the head of its root.
pub(super) fn crate_docs(sources: &[Source]) -> Vec<Fault> {
    let manifests = sources.iter().filter(|source| source.file_name() == "Cargo.toml");
    let mut faults = Vec::new();
    for manifest in manifests.filter(|source| source.crate_name().is_some()) {
        let dir = manifest.path.trim_end_matches("Cargo.toml");
        let is_told = ["README.md", "src/lib.rs", "src/main.rs"].iter().any(|file| {
            let path = format!("{dir}{file}");
            let found = sources.iter().find(|source| source.path == path);
            found.is_some_and(|source| !source.is_rust() || source.text.starts_with("//!"))
        });
        if !is_told {
            let what = "the crate has no description: open lib.rs with `//!`";
            faults.push(manifest.fault(0, what));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::{super::tests::planted, *};

    const MANIFEST: &str = "[package]\nname = \"clockjack-sync\"\nversion.workspace = true\n\
                            edition.workspace = true\nrust-version.workspace = true\n\
                            license.workspace = true\n\n[lints]\nworkspace = true\n";
    const LIST: &str = "[[mutant]]\nname = \"pop-relaxed\"\ntest = \"loom\"\nfilter = \"pop\"\n\
                        loom = true\nfault = \"pop loads without acquire\"\n\
                        file = \"crates/clockjack-a/src/queue.rs\"\nclean = \"load(Acquire)\"\n\
                        faulty = 'load(if mutant!(\"pop-relaxed\") { Relaxed } else { A })'\n";

    #[track_caller]
    fn check(rule: fn(&[Source]) -> Vec<Fault>, files: &[(&str, &str)], expected: &[&str]) {
        let sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path, text)).collect();
        let faults = rule(&sources);
        assert_eq!(faults.len(), expected.len(), "{faults:?}");
        for (fault, words) in faults.iter().zip(expected) {
            assert!(fault.to_string().contains(words), "{fault}");
        }
    }

    #[test]
    fn a_manifest_inherits_lints_licence_and_edition() {
        let path = "crates/clockjack-sync/Cargo.toml";
        planted(manifest, path, MANIFEST, &[]);
        let own = MANIFEST.replace("edition.workspace = true", "edition = \"2021\"");
        planted(manifest, path, &own, &[(1, "edition.workspace")]);
        let unlinted = MANIFEST.replace("[lints]\nworkspace = true\n", "");
        planted(manifest, path, &unlinted, &[(1, "[lints]")]);
        planted(manifest, path, "[package", &[(1, "not TOML")]);
        planted(manifest, "proof/nostd/Cargo.toml", "[package]\n", &[]);
    }

    #[test]
    fn every_planted_fault_fits_the_code_and_the_code_contains_none() {
        let (list, code) = ("mutants/a.toml", "crates/clockjack-a/src/queue.rs");
        let clean = (code, "//! Q.\nlet head = load(Acquire);\n");
        check(planted_faults, &[(list, LIST), clean], &[]);
        check(planted_faults, &[(list, LIST)], &["mutants/a.toml:2: there is no file"]);
        let changed = (code, "//! Q.\nlet head = load(SeqCst);\n");
        check(planted_faults, &[(list, LIST), changed], &["the clean text is not in the file"]);
        let twice = (code, "//! Q.\nload(Acquire); load(Acquire);\n");
        check(planted_faults, &[(list, LIST), twice], &["occurs more than once"]);
        let planted = (code, "//! Q.\nif mutant!(\"pop-relaxed\") {}\n");
        check(planted_faults, &[planted], &["queue.rs:2: `mutant!`: describe the fault"]);
        check(planted_faults, &[(list, "[[mutant]]\n")], &["missing field"]);
        let text = LIST.split("file =").next().unwrap_or_default();
        let of_another = text.replace("[[mutant]]", "[[mutant]]\nof = \"clockjack-a\"");
        let second = ("mutants/b.toml", of_another.as_str());
        check(planted_faults, &[(list, LIST), clean, second], &[]);
        check(planted_faults, &[second], &["`pop-relaxed` is not in the list of clockjack-a"]);
        let other = ("mutants/b.toml", LIST);
        check(planted_faults, &[(list, LIST), clean, other], &["listed in clockjack-a too"]);
    }

    #[test]
    fn cargo_run_at_the_root_starts_the_command() {
        let root = ("Cargo.toml", "[workspace]\ndefault-members = [\"a\", \"b\"]\n");
        let named = ("a/Cargo.toml", "[package]\ndefault-run = \"clockjack\"\n");
        let unnamed = ("b/Cargo.toml", "[package]\nname = \"b\"\n");
        check(default_run, &[root, named, unnamed], &[]);
        check(default_run, &[root, unnamed], &["Cargo.toml:1: `cargo run` must start"]);
        let second = ("b/Cargo.toml", named.1);
        check(default_run, &[root, named, second], &["must start"]);
        check(default_run, &[unnamed], &[]);
    }

    #[test]
    fn a_crate_says_what_it_is() {
        let path = "crates/a/Cargo.toml";
        check(crate_docs, &[(path, ""), ("crates/a/src/lib.rs", "//! A.\n")], &[]);
        check(crate_docs, &[(path, ""), ("crates/a/README.md", "# A\n")], &[]);
        check(
            crate_docs,
            &[(path, ""), ("crates/a/src/lib.rs", "mod b;\n")],
            &["has no description"],
        );
    }
}
