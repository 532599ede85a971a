//! Test binaries: built once by cargo in a given flavour, then run test by test.

use core::time::Duration;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::{
    console::Line,
    libtest::{self, Totals},
    mutants,
    process::{Cmd, Finished},
    workspace::{Package, Workspace},
};

/// A build configuration: compiler flags, profile and a separate target directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flavour {
    /// The name in the logs.
    pub(crate) name: &'static str,
    /// `RUSTFLAGS` for every crate of the build.
    pub(crate) rustflags: &'static str,
    /// Relative to the root. Each flavour has its own directory because the flags differ.
    pub(crate) target_dir: &'static str,
    /// The cargo profile.
    pub(crate) profile: &'static str,
    /// Whether the copy of the tree that contains the planted faults is built.
    pub(crate) is_planted: bool,
}

/// The code as users build it, in the profile of `cargo test`.
pub(crate) const PLAIN: Flavour = Flavour {
    name: "plain",
    rustflags: "",
    target_dir: "target",
    profile: "dev",
    is_planted: false,
};
/// The code over loom's primitives.
pub(crate) const LOOM: Flavour = Flavour {
    name: "loom",
    rustflags: "--cfg loom",
    target_dir: "target/loom",
    profile: "model",
    is_planted: false,
};
/// The code over shuttle's primitives.
pub(crate) const SHUTTLE: Flavour = Flavour {
    name: "shuttle",
    rustflags: "--cfg shuttle",
    target_dir: "target/shuttle",
    profile: "model",
    is_planted: false,
};
/// The code with its planted faults, each off until named.
pub(crate) const MUTANTS: Flavour = Flavour {
    name: "mutants",
    rustflags: "",
    target_dir: "target/mutants",
    profile: "faults",
    is_planted: true,
};
/// The planted faults over loom's primitives.
pub(crate) const LOOM_MUTANTS: Flavour = Flavour {
    name: "loom-mutants",
    rustflags: "--cfg loom",
    target_dir: "target/mutants/loom",
    profile: "model",
    is_planted: true,
};
/// The planted faults over shuttle's primitives.
pub(crate) const SHUTTLE_MUTANTS: Flavour = Flavour {
    name: "shuttle-mutants",
    rustflags: "--cfg shuttle",
    target_dir: "target/mutants/shuttle",
    profile: "model",
    is_planted: true,
};

impl Flavour {
    /// `cargo test` in this flavour, with all features. The tree that is built is that of the
    /// workspace, or the copy with the planted faults.
    pub(crate) fn cargo_test(&self, workspace: &Workspace, tree: &Workspace) -> Cmd {
        let mut cmd = Cmd::cargo().dir(&tree.root).words("test --all-features");
        if !self.rustflags.is_empty() {
            cmd = cmd.env("RUSTFLAGS", self.rustflags).without_env("CARGO_ENCODED_RUSTFLAGS");
        }
        if self.target_dir != PLAIN.target_dir {
            cmd = cmd.arg("--target-dir").arg(workspace.root.join(self.target_dir));
        }
        if self.profile != "dev" {
            cmd = cmd.arg("--profile").arg(self.profile);
        }
        cmd
    }
}

/// A built test binary with its package and target.
#[derive(Clone, Debug)]
pub(crate) struct TestBin {
    pub(crate) package: String,
    /// `lib` for the unit tests of a library, else the name of the test target.
    pub(crate) target: String,
    /// The working directory of the tests, as under cargo.
    pub(crate) dir: PathBuf,
    pub(crate) path: PathBuf,
}

impl TestBin {
    /// The names of its tests.
    pub(crate) fn list(&self) -> Result<Vec<String>> {
        let cmd = self.cmd().words("--list --format terse");
        let finished = cmd.capture()?;
        anyhow::ensure!(finished.is_success(), "{}", cmd.failure(&finished));
        Ok(libtest::listed(&finished.output))
    }

    /// A command that runs this binary in the folder of its package.
    pub(crate) fn cmd(&self) -> Cmd {
        Cmd::new(&self.path)
            .dir(&self.dir)
            .env("CARGO_MANIFEST_DIR", &self.dir)
            .without_env("CLOCKJACK_MUTANT")
    }
}

/// Runs the matching tests of a binary, with a time limit; also returns how many passed and failed.
pub(crate) fn run_tests(cmd: &Cmd, limit: Duration) -> Result<(Finished, Totals)> {
    let finished = cmd.clone().limit(limit).capture()?;
    let totals = libtest::totals(&finished.output);
    Ok((finished, totals))
}

/// Builds test targets of packages. `selection` contains the arguments of `cargo test` that select
/// targets.
pub(crate) fn build(
    workspace: &Workspace,
    flavour: Flavour,
    packages: &[&Package],
    selection: &str,
    line: &Line,
) -> Result<Vec<TestBin>> {
    let planted = flavour.is_planted.then(|| mutants::plant(workspace)).transpose()?;
    let tree = planted.as_ref().unwrap_or(workspace);
    let cmd = flavour.cargo_test(workspace, tree);
    let log = workspace.log(&format!("build-{}.log", flavour.name));
    build_by(tree, cmd, &log, packages, selection, line)
}

/// Like [`build`], with a given `cargo test` command in the given tree.
pub(crate) fn build_by(
    tree: &Workspace,
    cargo_test: Cmd,
    log: &Path,
    packages: &[&Package],
    selection: &str,
    line: &Line,
) -> Result<Vec<TestBin>> {
    let cmd = packages.iter().fold(cargo_test, |cmd, package| cmd.arg("-p").arg(&package.name));
    let cmd = cmd.words(selection).words("--no-run --message-format json-render-diagnostics");
    let finished = cmd.run(line, log)?;
    artifacts(tree, &finished.output)
}

/// One line of cargo's machine-readable output.
#[derive(Deserialize)]
struct Message {
    reason: String,
    package_id: Option<String>,
    target: Option<Target>,
    executable: Option<PathBuf>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

fn artifacts(workspace: &Workspace, output: &str) -> Result<Vec<TestBin>> {
    let mut found = Vec::new();
    for json in output.lines().filter(|line| line.starts_with("{\"reason\"")) {
        let message: Message =
            serde_json::from_str(json).context("cargo printed JSON that cannot be parsed")?;
        let (Some(target), Some(path), Some(id)) =
            (message.target, message.executable, message.package_id)
        else {
            continue;
        };
        let is_test = message.profile.is_some_and(|profile| profile.test);
        if message.reason != "compiler-artifact" || !is_test {
            continue;
        }
        let package = workspace.package(&id).with_context(|| format!("unknown package {id}"))?;
        let is_lib = target.kind.iter().any(|kind| kind == "lib" || kind == "proc-macro");
        found.push(TestBin {
            package: package.name.clone(),
            target: if is_lib { "lib".to_owned() } else { target.name },
            dir: package.dir().to_owned(),
            path,
        });
    }
    found.sort_by(|a, b| (&a.package, &a.target).cmp(&(&b.package, &b.target)));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{"workspace_root": "/w", "target_directory": "/w/target",
        "workspace_default_members": ["path+a"], "packages": [{"name": "clockjack-sync",
        "id": "path+a", "manifest_path": "/w/crates/clockjack-sync/Cargo.toml",
        "dependencies": []}]}"#;

    #[test]
    fn test_binaries_are_found_in_what_cargo_prints() {
        let workspace: Workspace = serde_json::from_str(METADATA).expect("well formed");
        let artifact = |kind: &str, name: &str, is_test: bool, executable: &str| {
            format!(
                "{{\"reason\":\"compiler-artifact\",\"package_id\":\"path+a\",\"target\":\
                 {{\"name\":\"{name}\",\"kind\":[\"{kind}\"]}},\"profile\":{{\"test\":{is_test}}},\
                 \"executable\":{executable}}}"
            )
        };
        let output = [
            "   Compiling clockjack-sync".to_owned(),
            artifact("lib", "clockjack_sync", false, "null"),
            artifact("bin", "tool", false, "\"/w/target/tool\""),
            artifact("test", "loom", true, "\"/w/target/loom-1\""),
            artifact("lib", "clockjack_sync", true, "\"/w/target/clockjack_sync-2\""),
            "{\"reason\":\"build-finished\",\"success\":true}".to_owned(),
        ];
        let found = artifacts(&workspace, &output.join("\n")).expect("well formed");
        let found: Vec<_> = found.iter().map(|b| (&*b.package, &*b.target, &*b.path)).collect();
        let path = Path::new;
        let expected = [
            ("clockjack-sync", "lib", path("/w/target/clockjack_sync-2")),
            ("clockjack-sync", "loom", path("/w/target/loom-1")),
        ];
        assert_eq!(found, expected);
    }
}
