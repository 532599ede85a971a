//! What a commit promises to users: its version, and of each crate the surface and the features.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use toml::Table;

use super::{
    FOLDER, SHOWN_MAX,
    breaking::{self, Difference},
};
use crate::{
    process::Cmd,
    version::{Changes, Version},
};

/// The promises of one commit, or of the tree on disk.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// The version of all crates.
    pub(crate) version: Version,
    /// The oldest supported compiler.
    rust_version: Vec<u64>,
    /// The surface of each crate, by name.
    surfaces: BTreeMap<String, String>,
    /// The features of each crate and what each one enables, by name.
    features: BTreeMap<String, BTreeMap<String, BTreeSet<String>>>,
}

impl Snapshot {
    /// The tree on disk.
    pub(crate) fn of_tree(root: &Path) -> Result<Self> {
        let folder = root.join(FOLDER);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder:?}"))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        let read = |path: &str| {
            let path = root.join(path);
            fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))
        };
        Self::read(&names, read)
    }

    /// A commit, by any name that git knows.
    pub(crate) fn of_commit(root: &Path, commit: &str) -> Result<Self> {
        let listed = git(root, &["ls-tree", "--name-only", &format!("{commit}:{FOLDER}")])?;
        let names: Vec<String> = listed.lines().map(str::to_owned).collect();
        Self::read(&names, |path| git(root, &["show", &format!("{commit}:{path}")]))
    }

    fn read(names: &[String], read: impl Fn(&str) -> Result<String>) -> Result<Self> {
        let manifest: Table = toml::from_str(&read("Cargo.toml")?).context("Cargo.toml")?;
        let package = manifest.get("workspace").and_then(|workspace| workspace.get("package"));
        let field = |name: &str| package.and_then(|package| package.get(name)?.as_str());
        let version = field("version").and_then(Version::parse);
        let rust_version = field("rust-version").unwrap_or_default().split('.');
        let mut snapshot = Self {
            version: version.context("Cargo.toml has no version under [workspace.package]")?,
            rust_version: rust_version.filter_map(|number| number.parse().ok()).collect(),
            surfaces: BTreeMap::new(),
            features: BTreeMap::new(),
        };
        for name in names.iter().filter_map(|name| name.strip_suffix(".txt")) {
            snapshot.surfaces.insert(name.to_owned(), read(&format!("{FOLDER}/{name}.txt"))?);
            let path = format!("crates/{name}/Cargo.toml");
            let manifest: Table = toml::from_str(&read(&path)?).with_context(|| path.clone())?;
            snapshot.features.insert(name.to_owned(), features(&manifest));
        }
        Ok(snapshot)
    }

    /// The changes since an earlier snapshot.
    pub(crate) fn since(&self, base: &Self) -> Difference {
        let mut all = Difference::default();
        let names: BTreeSet<&String> = base.surfaces.keys().chain(self.surfaces.keys()).collect();
        for name in names {
            let text = |of: &BTreeMap<String, String>| of.get(name).cloned().unwrap_or_default();
            all.extend(breaking::compare(&text(&base.surfaces), &text(&self.surfaces)));
            let (old, new) = (base.features.get(name), self.features.get(name));
            let (old, new) = (old.into_iter().flatten(), new.cloned().unwrap_or_default());
            for (feature, enables) in old {
                match new.get(feature) {
                    None => all.breaking.push(format!("- {name}: feature `{feature}`")),
                    Some(now) if feature == "default" => {
                        let lost = enables.difference(now);
                        all.breaking.extend(
                            lost.map(|lost| format!("- {name}: `{lost}` of the default features")),
                        );
                    }
                    Some(_) => (),
                }
            }
            let known = base.features.get(name);
            let is_known = |feature: &&String| known.is_some_and(|old| old.contains_key(*feature));
            all.n_additions += new.keys().filter(|feature| !is_known(feature)).count();
        }
        if self.rust_version > base.rust_version {
            let shown =
                |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".");
            let (old, new) = (shown(&base.rust_version), shown(&self.rust_version));
            all.breaking.push(format!("- rust-version = \"{old}\", now \"{new}\""));
        }
        all
    }
}

/// Checks that the version of `now` allows what has changed since `base`, which `name` calls.
pub(crate) fn judge(name: &str, base: &Snapshot, now: &Snapshot) -> Result<String> {
    let difference = now.since(base);
    let changes = difference.changes();
    let needed = base.version.next(changes);
    let shown = difference.breaking.iter().take(SHOWN_MAX).map(|line| format!("\n  {line}"));
    let shown: String = shown.collect();
    let n_breaking = difference.breaking.len();
    let n_additions = difference.n_additions;
    anyhow::ensure!(
        changes == Changes::Nothing || now.version >= needed,
        "{n_breaking} breaking changes and {n_additions} additions since {name} ({}) need version \
         {needed} or higher; this is {}{shown}",
        base.version,
        now.version,
    );
    Ok(format!(
        "{n_breaking} breaking, {n_additions} additions since {name}; {} allows them",
        now.version
    ))
}

fn features(manifest: &Table) -> BTreeMap<String, BTreeSet<String>> {
    let table = manifest.get("features").and_then(toml::Value::as_table);
    let entries = table.into_iter().flatten().map(|(name, enables)| {
        let enables = enables.as_array().into_iter().flatten();
        let enables = enables.filter_map(|one| one.as_str().map(str::to_owned));
        (name.clone(), enables.collect())
    });
    entries.collect()
}

/// The output of a git command.
pub(crate) fn git(root: &Path, args: &[&str]) -> Result<String> {
    let cmd = args.iter().fold(Cmd::new("git").dir(root), |cmd, arg| cmd.arg(arg));
    let finished = cmd.capture()?;
    anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
    Ok(finished.output)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::process;

    /// A repository with one crate, removed when the test ends.
    pub(crate) struct Repository(PathBuf);

    impl Repository {
        fn new(name: &str) -> Self {
            let name = format!("clockjack-{name}-{}", std::process::id());
            let repository = Self(std::env::temp_dir().join(name));
            repository.write(
                "Cargo.toml",
                "[workspace.package]\nversion = \"0.1.0\"\nrust-version = \"1.95\"\n",
            );
            let manifest = "[features]\ndefault = [\"rt\"]\nrt = []\n";
            repository.write("crates/a/Cargo.toml", manifest);
            repository.write("api/a.txt", "pub fn a::one()\npub fn a::two()\n");
            repository.git("init --quiet");
            repository.git("add .");
            repository.git(
                "-c user.name=a -c user.email=a -c commit.gpgsign=false commit --quiet -m one",
            );
            repository.git("tag v0.1.0");
            repository
        }

        fn write(&self, path: &str, text: &str) {
            process::write(&self.0.join(path), text).expect("it can be written");
        }

        fn git(&self, args: &str) {
            let args: Vec<&str> = args.split(' ').collect();
            git(&self.0, &args).expect("git is installed");
        }

        /// The verdict on the tree, compared with the tag.
        fn judge(&self) -> Result<String> {
            let base = Snapshot::of_commit(&self.0, "v0.1.0").expect("it is tagged");
            judge("v0.1.0", &base, &Snapshot::of_tree(&self.0).expect("it can be read"))
        }

        #[track_caller]
        fn check_refused(&self, words: &[&str]) {
            let told = self.judge().expect_err("it must be refused").to_string();
            assert!(words.iter().all(|words| told.contains(words)), "{words:?}: {told}");
        }
    }

    impl Drop for Repository {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_breaking_change_is_refused_until_the_version_says_so() {
        let tree = Repository::new("api-breaking");
        assert!(tree.judge().is_ok());
        tree.write("api/a.txt", "pub fn a::one()\n");
        tree.check_refused(&["- pub fn a::two()", "0.2.0 or higher", "this is 0.1.0"]);
        let root = "[workspace.package]\nversion = \"0.1.1\"\nrust-version = \"1.95\"\n";
        tree.write("Cargo.toml", root);
        tree.check_refused(&["this is 0.1.1"]);
        tree.write("Cargo.toml", &root.replace("0.1.1", "0.2.0"));
        let told = tree.judge().expect("the version says so");
        assert!(told.starts_with("1 breaking, 0 additions since v0.1.0"), "{told}");
    }

    #[test]
    fn an_addition_needs_the_smallest_step() {
        let tree = Repository::new("api-addition");
        tree.write("api/a.txt", "pub fn a::one()\npub fn a::three()\npub fn a::two()\n");
        tree.check_refused(&["0 breaking changes and 1 additions", "0.1.1 or higher"]);
        tree.write("Cargo.toml", "[workspace.package]\nversion = \"0.1.1\"\n");
        assert!(tree.judge().is_ok());
    }

    #[test]
    fn a_removed_feature_a_removed_crate_and_a_newer_compiler_break_programs() {
        let tree = Repository::new("api-features");
        tree.write("crates/a/Cargo.toml", "[features]\ndefault = []\nrt = []\n");
        tree.check_refused(&["- a: `rt` of the default features"]);
        tree.write("crates/a/Cargo.toml", "[features]\ndefault = []\n");
        tree.check_refused(&["- a: feature `rt`"]);
        let manifest = "[features]\ndefault = [\"rt\"]\nrt = []\n";
        tree.write("crates/a/Cargo.toml", manifest);
        let root = "[workspace.package]\nversion = \"0.1.0\"\nrust-version = \"1.100\"\n";
        tree.write("Cargo.toml", root);
        tree.check_refused(&["- rust-version = \"1.95\", now \"1.100\""]);
        tree.write("Cargo.toml", &root.replace("1.100", "1.95"));
        fs::remove_file(tree.0.join("api/a.txt")).expect("it is there");
        tree.check_refused(&["- pub fn a::one()", "- a: feature `rt`"]);
    }

    #[test]
    fn a_base_that_does_not_exist_is_an_error_of_git() {
        let tree = Repository::new("api-no-base");
        let error = Snapshot::of_commit(&tree.0, "v9.9.9").expect_err("there is none");
        assert!(error.to_string().contains("v9.9.9"), "{error}");
    }
}
