//! `cargo xtask licences`: checks the dependencies that users get: only licences that are listed
//! here, no crate with a known advisory; and every published crate can be packaged. The command
//! needs no network beyond that of `cargo fetch`.
//!
//! The command checks the ordinary and the build dependencies of the crates that can be published,
//! for every platform and with all features: these are the crates that a dependent program builds.
//! Tools and tests may use more.

mod advisories;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::{console::Steps, process::Cmd, workspace::Workspace};

/// Licences that require no more than a notice.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// The minimum length of a crate's description.
const DESCRIPTION_LEN_MIN: usize = 20;
/// The limits of crates.io for keywords and categories.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_LEN_MAX: usize = 20;
/// The categories of crates.io that our crates use. The registry refuses a name that it does not
/// know.
const CATEGORIES: &[&str] = &[
    "asynchronous",
    "command-line-utilities",
    "concurrency",
    "data-structures",
    "date-and-time",
    "development-tools::debugging",
    "development-tools::profiling",
    "development-tools::testing",
    "embedded",
    "encoding",
    "network-programming",
    "no-std",
    "rust-patterns",
    "science::robotics",
    "simulation",
];
/// Files that every package must contain.
const PACKED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];
/// Files that cargo adds.
const ADDED: [&str; 4] = [".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig"];

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Build each crate from its package alone, as a user of the registry would
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    workspace_members: BTreeSet<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    rust_version: Option<String>,
    readme: Option<String>,
    /// `[package.metadata]`.
    metadata: Option<Value>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    /// `Some([])` if the package is never published.
    publish: Option<Vec<String>>,
}

impl Package {
    fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|registries| !registries.is_empty())
    }
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Debug, Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Debug, Deserialize)]
struct DepKind {
    /// `None` for an ordinary dependency.
    kind: Option<String>,
    /// The platform or `cfg(..)` that the dependency is limited to.
    target: Option<String>,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut metadata = None;
    let mut steps = Steps::new("licences", 5);
    steps.step("licences of dependencies", |_| {
        let metadata = metadata.insert(load(&workspace)?);
        check(metadata)
    });
    let Some(metadata) = &metadata else { return steps.finish() };
    let ours = metadata.packages.iter().filter(|one| is_ours(metadata, one));
    let names: Vec<&str> = ours.map(|package| package.name.as_str()).collect();
    steps.step("advisories of dependencies", |_| {
        let path = workspace.root.join(advisories::FILE);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
        let known = advisories::parse(&text).context(advisories::FILE)?;
        let foreign = shipped(metadata).into_iter().filter(|one| !is_member(metadata, one));
        known.check(foreign.map(|one| (one.name.as_str(), one.version.as_str())))
    });
    steps.step("fields of the manifests", |_| check_manifests(metadata));
    steps.step("files of each package", |_| {
        let mut n_files = 0;
        for name in &names {
            let cmd = Cmd::cargo().dir(&workspace.root);
            let cmd = cmd.words("package --list --quiet --offline --allow-dirty --package");
            let cmd = cmd.arg(name);
            let finished = cmd.capture()?;
            anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
            n_files += check_files(name, &finished.output)?;
        }
        Ok(format!("{n_files} files"))
    });
    steps.step("every crate can be packaged", |line| {
        // All dependencies are already fetched. Packages are built only with `--verify`: this
        // builds every dependency again, in a separate target directory.
        let cmd = Cmd::cargo().dir(&workspace.root);
        let mut cmd = cmd.words("package --offline --allow-dirty --target-dir target/package");
        if !options.verify {
            cmd = cmd.arg("--no-verify");
        }
        for name in &names {
            cmd = cmd.arg("--package").arg(name);
        }
        let output = cmd.run(line, &workspace.log("package.log"))?.output;
        let packed = output.lines().filter(|line| line.trim_start().starts_with("Packaged "));
        let n_packed = packed.count();
        let n_crates = names.len();
        anyhow::ensure!(n_packed == n_crates, "{n_packed} of {n_crates} crates were packaged");
        Ok(format!("{n_packed} crates{}", if options.verify { ", each built alone" } else { "" }))
    });
    steps.finish()
}

fn load(workspace: &Workspace) -> Result<Metadata> {
    let cmd = Cmd::cargo().dir(&workspace.root);
    let cmd = cmd.words("metadata --format-version 1 --all-features --locked");
    let finished = cmd.capture()?;
    anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
    let json = finished.output.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(json.context("cargo metadata printed no JSON")?)
        .context("cargo metadata printed JSON that cannot be parsed")
}

fn is_ours(metadata: &Metadata, package: &Package) -> bool {
    is_member(metadata, package) && package.is_published()
}

fn is_member(metadata: &Metadata, package: &Package) -> bool {
    metadata.workspace_members.contains(&package.id)
}

/// Every crate that a user of a published crate builds.
fn shipped(metadata: &Metadata) -> Vec<&Package> {
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|node| (node.id.as_str(), node)).collect();
    let ours = metadata.packages.iter().filter(|package| is_ours(metadata, package));
    let mut open: VecDeque<&str> = ours.map(|package| package.id.as_str()).collect();
    let mut seen: BTreeSet<&str> = open.iter().copied().collect();
    while let Some(id) = open.pop_front() {
        for dep in nodes.get(id).into_iter().flat_map(|node| &node.deps) {
            if dep.dep_kinds.iter().any(is_built_by_users) && seen.insert(&dep.pkg) {
                open.push_back(&dep.pkg);
            }
        }
    }
    metadata.packages.iter().filter(|package| seen.contains(package.id.as_str())).collect()
}

/// Whether users build this dependency: dev-dependencies and model checkers are excluded.
fn is_built_by_users(kind: &DepKind) -> bool {
    let is_model =
        kind.target.as_deref().is_some_and(|target| matches!(target, "cfg(loom)" | "cfg(shuttle)"));
    kind.kind.as_deref() != Some("dev") && !is_model
}

fn check(metadata: &Metadata) -> Result<String> {
    let shipped = shipped(metadata);
    let mut faults = Vec::new();
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for package in &shipped {
        let licence = package.license.as_deref().unwrap_or_default();
        found.insert(licence);
        if !is_allowed(licence) {
            let Package { name, version, .. } = package;
            let shown = if licence.is_empty() { "names none" } else { &format!("`{licence}`") };
            faults.push(format!("  {name} {version}: {shown}"));
        }
    }
    if !faults.is_empty() {
        bail!("licences that are not allowed: {}\n{}", faults.len(), faults.join("\n"));
    }
    Ok(format!("{} crates, {} expressions", shipped.len(), found.len()))
}

fn check_manifests(metadata: &Metadata) -> Result<String> {
    let ours = metadata.packages.iter().filter(|package| is_ours(metadata, package));
    let mut n_crates = 0;
    for package in ours {
        let name = &package.name;
        anyhow::ensure!(package.license.is_some(), "{name} names no licence");
        let len = package.description.as_deref().unwrap_or_default().len();
        anyhow::ensure!(
            len >= DESCRIPTION_LEN_MIN,
            "{name} has no description of {DESCRIPTION_LEN_MIN} characters"
        );
        anyhow::ensure!(package.rust_version.is_some(), "{name} has no `rust-version`");
        anyhow::ensure!(package.readme.is_some(), "{name} names no README");
        check_finding(package)?;
        check_docs(package)?;
        n_crates += 1;
    }
    Ok(format!("{n_crates} crates can be published"))
}

/// Checks that the registry accepts the keywords and the categories.
fn check_finding(package: &Package) -> Result<()> {
    let Package { name, keywords, categories, .. } = package;
    let n_keywords = keywords.len();
    anyhow::ensure!(
        (1..=KEYWORDS_MAX).contains(&n_keywords),
        "{name} has {n_keywords} keywords, not 1 to {KEYWORDS_MAX}"
    );
    let is_char = |char: char| char.is_ascii_alphanumeric() || "_-+".contains(char);
    let is_keyword = |keyword: &str| {
        let is_begun = keyword.starts_with(|char: char| char.is_ascii_alphanumeric());
        is_begun && keyword.len() <= KEYWORD_LEN_MAX && keyword.chars().all(is_char)
    };
    if let Some(odd) = keywords.iter().find(|keyword| !is_keyword(keyword)) {
        bail!("{name}: `{odd}` is no keyword of crates.io");
    }
    let n_categories = categories.len();
    anyhow::ensure!(
        (1..=KEYWORDS_MAX).contains(&n_categories),
        "{name} has {n_categories} categories, not 1 to {KEYWORDS_MAX}"
    );
    if let Some(odd) = categories.iter().find(|one| !CATEGORIES.contains(&one.as_str())) {
        bail!("{name}: `{odd}` is not one of the categories that are known here");
    }
    Ok(())
}

/// Checks that docs.rs documents every feature.
fn check_docs(package: &Package) -> Result<()> {
    let docs = package.metadata.as_ref().map(|metadata| &metadata["docs"]["rs"]["all-features"]);
    anyhow::ensure!(
        docs.and_then(Value::as_bool) == Some(true),
        "{}: write `all-features = true` under [package.metadata.docs.rs]",
        package.name
    );
    Ok(())
}

/// Checks that a package contains the required files and otherwise only sources; returns the number
/// of files.
fn check_files(name: &str, listed: &str) -> Result<usize> {
    let files: Vec<&str> = listed.lines().collect();
    for wanted in PACKED {
        anyhow::ensure!(files.contains(&wanted), "{name} is packaged without {wanted}");
    }
    let is_known = |file: &str| {
        let is_source = file.starts_with("src/") || file.starts_with("examples/");
        is_source || PACKED.contains(&file) || ADDED.contains(&file)
    };
    if let Some(stray) = files.iter().find(|file| !is_known(file)) {
        bail!("{name} would be packaged with {stray}");
    }
    Ok(files.len())
}

/// Whether the user can choose only allowed licences. `AND` binds more tightly than `OR`, brackets
/// most tightly; the `/` of old manifests is an `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any_of(&mut rest) == Some(true) && rest.is_empty()
}

fn any_of(rest: &mut &[&str]) -> Option<bool> {
    let mut is_any = all_of(rest)?;
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        is_any |= all_of(rest)?;
    }
    Some(is_any)
}

fn all_of(rest: &mut &[&str]) -> Option<bool> {
    let mut is_all = one_of(rest)?;
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        is_all &= one_of(rest)?;
    }
    Some(is_all)
}

fn one_of(rest: &mut &[&str]) -> Option<bool> {
    let (first, behind) = rest.split_first()?;
    *rest = behind;
    if *first == "(" {
        let is_allowed = any_of(rest)?;
        let (close, behind) = rest.split_first()?;
        *rest = behind;
        return (*close == ")").then_some(is_allowed);
    }
    if let ["WITH", exception, behind @ ..] = *rest {
        *rest = behind;
        return Some(ALLOWED.contains(&format!("{first} WITH {exception}").as_str()));
    }
    Some(ALLOWED.contains(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_expression(expression: &str, expected: bool) {
        assert_eq!(is_allowed(expression), expected, "{expression}");
    }

    #[test]
    fn one_allowed_choice_is_enough_and_all_of_a_sum_are_needed() {
        check_expression("MIT", true);
        check_expression("MIT OR Apache-2.0", true);
        check_expression("MIT/Apache-2.0", true);
        check_expression("GPL-3.0-only", false);
        check_expression("GPL-3.0-only OR MIT", true);
        check_expression("GPL-3.0-only AND MIT", false);
        check_expression("MIT AND GPL-3.0-only OR Zlib", true);
        check_expression("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check_expression("(MIT OR GPL-3.0-only) AND LGPL-2.1", false);
        check_expression("Apache-2.0 WITH LLVM-exception OR Apache-2.0", true);
        check_expression("GPL-2.0 WITH Classpath-exception-2.0", false);
    }

    #[test]
    fn what_is_no_expression_is_not_allowed() {
        check_expression("", false);
        check_expression("MIT OR", false);
        check_expression("(MIT", false);
        check_expression("MIT)", false);
        check_expression("MIT Apache-2.0", false);
    }

    fn metadata(dep_kinds: &str) -> Metadata {
        let text = format!(
            r#"{{
                "packages": [
                    {{"id": "ours", "name": "ours", "version": "1", "license": "MIT",
                      "description": "a description that is long enough", "publish": null,
                      "rust_version": "1.95", "keywords": ["it"], "categories": ["no-std"],
                      "readme": "README.md",
                      "metadata": {{"docs": {{"rs": {{"all-features": true}}}}}}}},
                    {{"id": "tool", "name": "tool", "version": "1", "license": "MIT",
                      "description": null, "publish": []}},
                    {{"id": "bad", "name": "bad", "version": "2", "license": "GPL-3.0-only",
                      "description": null, "publish": null}}
                ],
                "resolve": {{"nodes": [
                    {{"id": "ours", "deps": [{{"pkg": "bad", "dep_kinds": {dep_kinds}}}]}},
                    {{"id": "tool", "deps": [{{"pkg": "bad",
                      "dep_kinds": [{{"kind": null, "target": null}}]}}]}},
                    {{"id": "bad", "deps": []}}
                ]}},
                "workspace_members": ["ours", "tool"]
            }}"#
        );
        serde_json::from_str(&text).expect("the JSON is valid")
    }

    #[test]
    fn what_users_build_is_looked_at_and_what_tests_and_tools_use_is_not() {
        let error = |kinds| check(&metadata(kinds)).err().map(|error| error.to_string());
        let told = error(r#"[{"kind": null, "target": null}]"#).expect("it is published");
        assert!(told.contains("bad 2: `GPL-3.0-only`"), "{told}");
        assert!(error(r#"[{"kind": "build", "target": "cfg(windows)"}]"#).is_some());
        assert_eq!(error(r#"[{"kind": "dev", "target": null}]"#), None);
        assert_eq!(error(r#"[{"kind": null, "target": "cfg(loom)"}]"#), None);
    }

    #[test]
    fn a_crate_that_can_be_published_says_what_it_is() {
        let mut all = metadata("[]");
        assert!(check_manifests(&all).is_ok());
        let sound = all.packages[0].clone();
        for spoil in [
            |package: &mut Package| package.description = Some("short".to_owned()),
            |package: &mut Package| package.rust_version = None,
            |package: &mut Package| package.keywords.clear(),
            |package: &mut Package| package.keywords = vec!["it".to_owned(); 6],
            |package: &mut Package| package.keywords = vec!["two words".to_owned()],
            |package: &mut Package| package.keywords = vec!["longer-than-the-limit".to_owned()],
            |package: &mut Package| package.categories.clear(),
            |package: &mut Package| package.categories = vec!["actors".to_owned()],
            |package: &mut Package| package.readme = None,
            |package: &mut Package| package.metadata = None,
        ] {
            spoil(&mut all.packages[0]);
            assert!(check_manifests(&all).is_err(), "{:?}", all.packages[0]);
            all.packages[0] = sound.clone();
        }
    }

    #[test]
    fn a_package_has_its_licences_and_nothing_stray() {
        let sound = "Cargo.toml\nLICENSE-APACHE\nLICENSE-MIT\nREADME.md\nsrc/lib.rs\n";
        assert_eq!(check_files("a", sound).ok(), Some(5));
        let told = |files: &str| check_files("a", files).err().map(|error| error.to_string());
        let bare = sound.replace("LICENSE-MIT\n", "");
        assert_eq!(told(&bare).as_deref(), Some("a is packaged without LICENSE-MIT"));
        let stray = format!("{sound}notes.txt\n");
        assert_eq!(told(&stray).as_deref(), Some("a would be packaged with notes.txt"));
    }
}
