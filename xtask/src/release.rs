//! `cargo xtask release`: checks that the tree can be released, and tags it.
//!
//! All crates have one version and are released together. The command checks the version and the
//! pins between the crates, the changelog, the tags, the public surface against the last release,
//! and at last that each crate builds from its package alone, in the order of their dependencies.
//! With `--dry-run` nothing is tagged, and the changes may still be under `[Unreleased]`. The
//! command does not publish: it prints what to call.

mod changelog;

use std::{collections::BTreeSet, fs};

use anyhow::{Context as _, Result};
use clap::Args;
use toml::Table;

use self::changelog::Changelog;
use crate::{
    api::{self, Snapshot, git},
    console::{self, Steps},
    process::{self, Cmd},
    version::Version,
    workspace::{Package, Workspace},
};

/// The start of a tag's name; the version follows.
const TAG: &str = "v";
/// Where the notes of the release are written.
const NOTES: &str = "target/release-notes.md";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Check everything, but create no tag; the changes may still be under `[Unreleased]`
    #[arg(long)]
    dry_run: bool,
    /// Skip what takes minutes: comparing `api/` with the code, and building each package alone
    #[arg(long, requires = "dry_run")]
    no_verify: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let root = &workspace.root;
    let now = Snapshot::of_tree(root)?;
    let version = now.version;
    let read = |path: &str| {
        fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"))
    };
    let published: Vec<&Package> =
        workspace.packages.iter().filter(|package| package.is_published()).collect();
    let mut notes = None;
    let mut steps = Steps::new("release", if options.no_verify { 5 } else { 7 });
    steps.step("one version, exact pins", |_| {
        check_pins(&read("Cargo.toml")?, version)?;
        check_versions(&published, version)
    });
    steps.step("order of the packages", |line| {
        let sorted = order(&published)?;
        sorted.iter().for_each(|name| line.say(name));
        Ok(String::new())
    });
    steps.step("changelog", |_| {
        let changelog = Changelog::parse(&read("CHANGELOG.md")?)?;
        let section = changelog.release(&version.to_string(), options.dry_run)?;
        process::write(&root.join(NOTES), &section.notes)?;
        let note = format!("{} lines in {NOTES}", section.notes.lines().count());
        notes = Some(section);
        Ok(note)
    });
    steps.step("tag", |_| check_tag(&workspace, version, options.dry_run));
    steps.step("public API since the last release", |_| {
        let Some(base) = last_release(&tags(&workspace)?, version) else {
            return Ok("no release yet".to_owned());
        };
        let name = format!("{TAG}{base}");
        let before = Snapshot::of_commit(root, &name)?;
        let verdict = api::judge(&name, &before, &now)?;
        let is_breaking = !now.since(&before).breaking.is_empty();
        let names_it = notes.as_ref().is_some_and(changelog::Section::names_breaking_changes);
        anyhow::ensure!(
            !is_breaking || names_it,
            "programs break since {name}, but the changelog has neither `### Changed` nor `### \
             Removed` for this release"
        );
        Ok(verdict)
    });
    if !options.no_verify {
        steps.step("api/ is the surface of the code", |line| {
            let cmd = Cmd::cargo().dir(root).words("xtask api");
            cmd.run(line, &workspace.log("release-api.log")).map(|_| String::new())
        });
        steps.step("every crate builds from its package", |line| {
            let cmd = Cmd::cargo().dir(root).words("xtask licences --verify");
            cmd.run(line, &workspace.log("release-packages.log")).map(|_| String::new())
        });
    }
    steps.finish()?;
    if options.dry_run {
        return Ok(());
    }
    let name = format!("{TAG}{version}");
    git(root, &["tag", "--annotate", "--cleanup=whitespace", "--file", NOTES, &name])?;
    console::say(format_args!("tagged {name}; next: `git push origin {name}`, then"));
    console::say(format_args!("`cargo publish --workspace`, which uses the order above"));
    Ok(())
}

/// The crates share hidden items, so each release of one fits only the same release of the others.
fn check_pins(manifest: &str, version: Version) -> Result<()> {
    let manifest: Table = toml::from_str(manifest).context("Cargo.toml")?;
    let table = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies"));
    let pinned = format!("={version}");
    for (name, entry) in table.and_then(toml::Value::as_table).into_iter().flatten() {
        let is_ours = entry.get("path").is_some();
        let pin = entry.get("version").and_then(toml::Value::as_str);
        // Without a version it is a package that is never published.
        anyhow::ensure!(
            !is_ours || pin.is_none_or(|pin| pin == pinned),
            "Cargo.toml: `{name}` is pinned to {pin:?}, not to `{pinned}`"
        );
    }
    Ok(())
}

fn check_versions(packages: &[&Package], version: Version) -> Result<String> {
    let (shown, pinned) = (version.to_string(), format!("={version}"));
    let ours: BTreeSet<&str> = packages.iter().map(|one| one.name.as_str()).collect();
    for package in packages {
        let Package { name, version, dependencies, .. } = package;
        anyhow::ensure!(*version == shown, "{name} has version {version}, not {shown}");
        for dependency in dependencies.iter().filter(|one| one.kind.as_deref() != Some("dev")) {
            let is_ours = dependency.path.is_some();
            let other = &dependency.name;
            anyhow::ensure!(
                !is_ours || ours.contains(other.as_str()),
                "{name} depends on {other}, which is not published"
            );
            anyhow::ensure!(
                !is_ours || dependency.req == pinned,
                "{name} depends on {other} `{}`, not `{pinned}`",
                dependency.req
            );
        }
    }
    Ok(format!("{} crates, {shown}", ours.len()))
}

/// The names of the packages, each after those that it needs: also for its tests, unless it names
/// no version of them, because cargo then leaves the dependency out of the package.
fn order(packages: &[&Package]) -> Result<Vec<String>> {
    let mut open: Vec<&Package> = packages.to_vec();
    let mut sorted: Vec<String> = Vec::new();
    while !open.is_empty() {
        let is_needed = |name: &str| open.iter().any(|package| package.name == name);
        let ready = open.iter().position(|package| {
            let needs = package.dependencies.iter().filter(|one| one.path.is_some());
            !needs.filter(|one| one.req != "*").any(|one| is_needed(&one.name))
        });
        let Some(ready) = ready else {
            let names: Vec<&str> = open.iter().map(|package| package.name.as_str()).collect();
            anyhow::bail!("these packages need each other: {}", names.join(", "));
        };
        sorted.push(open.remove(ready).name.clone());
    }
    Ok(sorted)
}

fn tags(workspace: &Workspace) -> Result<Vec<Version>> {
    let listed = git(&workspace.root, &["tag", "--list", "--merged", "HEAD", &format!("{TAG}*")])?;
    Ok(listed.lines().filter_map(|tag| Version::parse(tag.strip_prefix(TAG)?)).collect())
}

/// The newest release before this version.
fn last_release(tags: &[Version], version: Version) -> Option<Version> {
    tags.iter().copied().filter(|tag| *tag < version).max()
}

fn check_tag(workspace: &Workspace, version: Version, is_dry: bool) -> Result<String> {
    let tags = tags(workspace)?;
    if let Some(newest) = tags.iter().max() {
        let here = git(&workspace.root, &["tag", "--points-at", "HEAD"])?;
        let is_here = here.lines().any(|tag| tag == format!("{TAG}{version}"));
        anyhow::ensure!(
            is_free(*newest, version, is_dry && is_here),
            "{TAG}{newest} is tagged already: raise the version, this is {version}"
        );
    }
    let changed = git(&workspace.root, &["status", "--porcelain"])?;
    let n_changed = changed.lines().count();
    anyhow::ensure!(is_dry || n_changed == 0, "{n_changed} files are not committed");
    let manifest = fs::read_to_string(workspace.root.join("Cargo.toml"))?;
    anyhow::ensure!(
        is_dry || manifest.contains("\nrepository = \""),
        "Cargo.toml names no `repository`: set its address, from which every crate inherits it"
    );
    Ok(format!("{TAG}{version} is free"))
}

/// Whether a version can be released after the newest one. A dry run on the tagged commit itself
/// looks at that release again: the checks of the tag must not fail because of the tag.
fn is_free(newest: Version, version: Version, is_release_itself: bool) -> bool {
    newest < version || newest == version && is_release_itself
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    fn version(text: &str) -> Version {
        Version::parse(text).expect("a version")
    }

    fn package(name: &str, needs: &[(&str, Option<&str>, &str)]) -> Package {
        let dependency = |(name, kind, req): &(&str, Option<&str>, &str)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
            req: (*req).to_owned(),
            path: Some(format!("crates/{name}").into()),
            ..Dependency::default()
        };
        Package {
            name: name.to_owned(),
            id: name.to_owned(),
            version: "0.1.0".to_owned(),
            publish: None,
            manifest_path: format!("crates/{name}/Cargo.toml").into(),
            dependencies: needs.iter().map(dependency).collect(),
        }
    }

    #[test]
    fn a_pin_that_is_not_exact_or_of_another_version_is_refused() {
        let sound = "[workspace.dependencies]\na = { path = \"a\", version = \"=0.1.0\" }\n\
                     t = { path = \"t\" }\nserde = { version = \"1\" }\n";
        assert!(check_pins(sound, version("0.1.0")).is_ok());
        let told = check_pins(sound, version("0.2.0")).expect_err("another version").to_string();
        assert!(told.contains("`a`") && told.contains("`=0.2.0`"), "{told}");
        assert!(check_pins(&sound.replace("=0.1.0", "0.1.0"), version("0.1.0")).is_err());
    }

    #[test]
    fn every_published_crate_has_the_version_and_needs_exactly_that_of_the_others() {
        let check = |needs: &[(&str, Option<&str>, &str)]| {
            let (a, b) = (package("a", &[]), package("b", needs));
            check_versions(&[&a, &b], version("0.1.0")).map_err(|error| error.to_string())
        };
        assert_eq!(check(&[("a", None, "=0.1.0")]).as_deref(), Ok("2 crates, 0.1.0"));
        assert_eq!(check(&[("t", Some("dev"), "*")]).as_deref(), Ok("2 crates, 0.1.0"));
        assert!(check(&[("a", None, "^0.1.0")]).is_err_and(|told| told.contains("`^0.1.0`")));
        let told = check(&[("t", None, "=0.1.0")]).expect_err("nobody could get it");
        assert!(told.contains("which is not published"), "{told}");
        let mut odd = package("a", &[]);
        odd.version = "0.1.1".to_owned();
        assert!(check_versions(&[&odd], version("0.1.0")).is_err());
    }

    #[test]
    fn a_package_comes_after_those_that_it_needs() {
        let (a, b) = (package("a", &[("b", Some("dev"), "=0.1.0")]), package("b", &[]));
        let c = package("c", &[("a", None, "=0.1.0")]);
        assert_eq!(order(&[&c, &a, &b]).expect("no cycle"), ["b", "a", "c"]);
        // cargo leaves a dev-dependency without a version out of the package.
        let d = package("d", &[("e", Some("dev"), "*")]);
        let e = package("e", &[("d", None, "=0.1.0")]);
        assert_eq!(order(&[&e, &d]).expect("no cycle"), ["d", "e"]);
        let f = package("f", &[("e", None, "=0.1.0")]);
        let e = package("e", &[("f", Some("dev"), "=0.1.0")]);
        let told = order(&[&e, &f]).expect_err("a cycle").to_string();
        assert!(told.contains("e, f"), "{told}");
    }

    #[test]
    fn a_version_is_free_if_it_is_newer_or_the_release_that_is_looked_at() {
        let check = |newest, this, is_itself| is_free(version(newest), version(this), is_itself);
        assert!(check("0.1.0", "0.2.0", false));
        assert!(!check("0.2.0", "0.2.0", false));
        assert!(check("0.2.0", "0.2.0", true));
        assert!(!check("0.3.0", "0.2.0", true));
    }

    #[test]
    fn the_base_is_the_newest_release_before_this_one() {
        let tags = ["0.1.0", "0.10.0", "0.2.0"].map(version);
        assert_eq!(last_release(&tags, version("0.11.0")), Some(version("0.10.0")));
        assert_eq!(last_release(&tags, version("0.2.1")), Some(version("0.2.0")));
        assert_eq!(last_release(&tags, version("0.1.0")), None);
    }
}
