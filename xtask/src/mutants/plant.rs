//! Writes every planted fault into a copy of the tree, `target/mutants/tree`.
//!
//! The copy is built instead of the tree by the flavours that need faults. Files that would not
//! change are not written again, so that cargo compiles only what has changed since the last copy.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, bail};

use super::list::{self, DIR, Edit, SWITCH};
use crate::workspace::Workspace;

/// The copy, relative to the root of the workspace.
const TREE: &str = "target/mutants/tree";
/// Folders that are not copied: what cargo builds, and the history.
const SKIPPED: [&str; 2] = ["target", ".git"];
/// The module behind `mutant!`, and where the copy has it.
const SWITCH_FILE: (&str, &str) = ("switch.rs", "crates/clockjack-sync/src/mutant.rs");
/// The file that declares this module in the copy, and how.
const SWITCH_ROOT: (&str, &str) =
    ("crates/clockjack-sync/src/lib.rs", "\n#[doc(hidden)]\npub mod mutant;\n");

/// Brings the copy up to date and returns it as a workspace.
pub(crate) fn plant(workspace: &Workspace) -> Result<Workspace> {
    let mutants = list::all(workspace)?;
    let mut edits: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
    for edit in mutants.iter().flat_map(|(_, mutant)| mutant.edits()) {
        edits.entry(edit.file).or_default().push(edit);
    }
    let faulty_crates: BTreeSet<String> =
        edits.keys().filter_map(|file| manifest_of(file)).collect();
    let tree = workspace.root.join(TREE);
    let mut files = Vec::new();
    collect(&workspace.root, Path::new(""), &mut files)?;
    let mut kept: BTreeSet<PathBuf> = files.iter().cloned().collect();
    kept.insert(SWITCH_FILE.1.into());
    for file in &files {
        let name = file.to_str().context("a file's name is not UTF-8")?;
        let from = workspace.root.join(file);
        let read = || fs::read(&from).with_context(|| format!("cannot read {from:?}"));
        let edits = edits.remove(name).unwrap_or_default();
        if faulty_crates.contains(name) {
            let text =
                String::from_utf8(read()?).with_context(|| format!("{name} is not UTF-8"))?;
            write_if_changed(&tree.join(file), with_switch(&text).as_bytes())?;
            continue;
        }
        if edits.is_empty() && name != SWITCH_ROOT.0 {
            write_if_changed(&tree.join(file), &read()?)?;
            continue;
        }
        let text = String::from_utf8(read()?).with_context(|| format!("{name} is not UTF-8"))?;
        let mut text = inject(&text, &edits).with_context(|| name.to_owned())?;
        if name == SWITCH_ROOT.0 {
            text.push_str(SWITCH_ROOT.1);
        }
        write_if_changed(&tree.join(file), text.as_bytes())?;
    }
    if let Some(edit) = edits.values().flatten().next() {
        bail!("{}: there is no file {}", edit.mutant, edit.file);
    }
    let switch = fs::read(workspace.root.join(DIR).join(SWITCH_FILE.0))?;
    write_if_changed(&tree.join(SWITCH_FILE.1), &switch)?;
    let mut there = Vec::new();
    collect(&tree, Path::new(""), &mut there)?;
    for stale in there.iter().filter(|file| !kept.contains(*file)) {
        fs::remove_file(tree.join(stale))?;
    }
    Workspace::load_at(&tree)
}

/// The text of one file with its faults. Each clean text must occur exactly once, and no two of
/// them may overlap.
pub(crate) fn inject(text: &str, edits: &[Edit<'_>]) -> Result<String> {
    let mut places = Vec::new();
    for edit in edits {
        let mut found = text.match_indices(edit.clean).map(|(at, _)| at);
        let Some(at) = found.next() else {
            bail!("{}: the clean text is not in the file: bring it up to date", edit.mutant);
        };
        if found.next().is_some() {
            bail!("{}: the clean text occurs more than once: make it longer", edit.mutant);
        }
        places.push((at, *edit));
    }
    places.sort_by_key(|(at, _)| *at);
    let mut faulty = String::with_capacity(text.len());
    let mut done = 0;
    for (at, edit) in places {
        if at < done {
            bail!("{}: the clean text overlaps another one: use `with`", edit.mutant);
        }
        faulty.push_str(&text[done..at]);
        faulty.push_str(&edit.faulty.replace(SWITCH, &switch_in(edit.file)));
        done = at + edit.clean.len();
    }
    faulty.push_str(&text[done..]);
    Ok(faulty)
}

/// The switch by its full path, so that no file has to import it.
fn switch_in(file: &str) -> String {
    let is_own = file.starts_with("crates/clockjack-sync/src/");
    format!("{}::{SWITCH}", if is_own { "crate" } else { "clockjack_sync" })
}

/// The manifest of the crate that a file belongs to.
fn manifest_of(file: &str) -> Option<String> {
    let (name, _) = file.strip_prefix("crates/")?.split_once("/src/")?;
    Some(format!("crates/{name}/Cargo.toml"))
}

/// A manifest whose crate can name the crate of the switch.
fn with_switch(manifest: &str) -> String {
    const DEPENDENCIES: &str = "\n[dependencies]\n";
    if manifest.contains("clockjack-sync") {
        return manifest.to_owned();
    }
    manifest.replacen(DEPENDENCIES, &format!("{DEPENDENCIES}clockjack-sync.workspace = true\n"), 1)
}

/// The files below `root/dir`, relative to the root.
fn collect(root: &Path, dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let absolute = root.join(dir);
    for entry in fs::read_dir(&absolute).with_context(|| format!("cannot read {absolute:?}"))? {
        let entry = entry?;
        let path = dir.join(entry.file_name());
        match entry.file_type()? {
            kind if kind.is_dir() && SKIPPED.iter().any(|name| path.ends_with(name)) => {}
            kind if kind.is_dir() => collect(root, &path, files)?,
            _ => files.push(path),
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    let dir = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(dir).with_context(|| format!("cannot create {dir:?}"))?;
    fs::write(path, content).with_context(|| format!("cannot write {path:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/clockjack-time/src/shard.rs";

    #[test]
    fn a_crate_with_faults_can_name_the_switch() {
        let file = "crates/clockjack-console/src/server/guard.rs";
        assert_eq!(manifest_of(file).as_deref(), Some("crates/clockjack-console/Cargo.toml"));
        assert_eq!(manifest_of("xtask/src/main.rs"), None);
        let begin = "[package]\nname = \"x\"\n\n[dependencies]\n";
        let plain = format!("{begin}serde = \"1\"\n");
        let switched = format!("{begin}clockjack-sync.workspace = true\nserde = \"1\"\n");
        assert_eq!(with_switch(&plain), switched);
        assert_eq!(with_switch(&switched), switched);
        let own = "[package]\nname = \"clockjack-sync\"\n\n[dependencies]\n";
        assert_eq!(with_switch(own), own);
    }

    fn edit<'a>(clean: &'a str, faulty: &'a str) -> Edit<'a> {
        Edit { mutant: "m", file: FILE, clean, faulty }
    }

    #[track_caller]
    fn refused(edits: &[Edit<'_>], words: &str) {
        let error = inject("let a = 1;\nlet b = 1;\n", edits).expect_err("refused").to_string();
        assert!(error.contains(words), "{error}");
    }

    #[test]
    fn a_fault_replaces_its_clean_text_and_asks_by_a_full_path() {
        let text = "let a = 1;\nlet b = 2;\n";
        let edits = [edit("2", "if mutant!(\"m\") { 3 } else { 2 }"), edit("let a = 1;\n", "")];
        let faulty = inject(text, &edits).expect("both are there once");
        assert_eq!(faulty, "let b = if clockjack_sync::mutant!(\"m\") { 3 } else { 2 };\n");
        assert_eq!(switch_in("crates/clockjack-sync/src/ring.rs"), "crate::mutant!(");
    }

    #[test]
    fn a_clean_text_that_is_gone_or_ambiguous_or_shared_is_refused() {
        refused(&[edit("let c", "")], "not in the file");
        refused(&[edit("= 1;", "")], "more than once");
        refused(&[edit("let a = 1;", ""), edit("a = 1;\nlet", "")], "overlaps");
    }
}
