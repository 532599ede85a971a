//! Clippy for another system, with warnings denied: no other check would show a warning about code
//! that only that system compiles.
//!
//! Debian's toolchain has no std for these systems, so it is compiled from the sources. Nothing is
//! linked. [`RING`] has the one build script that wants a compiler for C: it is left out.

use core::time::Duration;
use std::fs;

use anyhow::{Context as _, Result};

use crate::{console::Line, process::Cmd, tool, workspace::Workspace};

/// Enough for a std and all dependencies on a busy machine.
const LIMIT: Duration = Duration::from_secs(2400);

/// The clippy of Debian's toolchain.
const PACKAGES: &str = "rust-web-clippy";
/// Lints that are wrong here. Debian's clippy is newer than the project's: a proposal that Rust
/// 1.95 does not have, and one that takes a waker for idle whose drop does something. Where std has
/// no thread-locals of the compiler, as for Windows, clippy asks for a `const` that is there.
const WRONG_LINTS: [&str; 3] = [
    "clippy::unwrap-or-default",
    "clippy::manual-noop-waker",
    "clippy::missing-const-for-thread-local",
];

/// The package whose build script compiles C, which only a linker would miss.
const RING: &str = "ring";

/// How much is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The libraries and programs, for the first target.
    Quick,
    /// Tests and examples as well, for both targets.
    All,
}

/// Installs clippy.
pub(super) fn ensure(line: &Line) -> Result<String> {
    let is_there = || tool::starts("/usr/bin/cargo-clippy");
    tool::ensure_apt(line, "clippy", PACKAGES, is_there)?;
    Ok(String::new())
}

/// Runs clippy for these packages; returns what it has looked at.
pub(super) fn run(
    workspace: &Workspace,
    target: &str,
    packages: &[&str],
    extent: Extent,
    line: &Line,
) -> Result<String> {
    let lock = fs::read_to_string(workspace.root.join("Cargo.lock")).context("no lock file")?;
    let log = workspace.log(&format!("foreign-{target}.log"));
    let cmd = command(target, packages, extent, &without_c(&lock, target));
    cmd.dir(&workspace.root).run(line, &log)?;
    let what = match extent {
        Extent::Quick => "packages",
        Extent::All => "packages with their tests",
    };
    Ok(format!("{} {what}", packages.len()))
}

fn command(target: &str, packages: &[&str], extent: Extent, settings: &[String]) -> Cmd {
    let (std, chosen) = match extent {
        Extent::Quick => ("-Zbuild-std=std,panic_unwind", "--lib --bins"),
        Extent::All => ("-Zbuild-std=std,panic_unwind,test", "--all-targets --keep-going"),
    };
    let cmd = tool::debian("cargo")
        .env("RUSTC_BOOTSTRAP", "1")
        // Nothing runs, so nobody debugs anything.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .arg("clippy")
        .arg(std)
        .words("--target-dir target/foreign --all-features")
        .words(chosen)
        .arg("--target")
        .arg(target)
        .limit(LIMIT);
    let cmd = settings.iter().fold(cmd, |cmd, setting| cmd.arg("--config").arg(setting));
    let cmd = packages.iter().fold(cmd, |cmd, package| cmd.arg("-p").arg(package));
    let cmd = cmd.words("-- -D warnings");
    WRONG_LINTS.iter().fold(cmd, |cmd, lint| cmd.arg("-A").arg(lint))
}

/// The settings by which cargo takes the library of [`RING`] for built, and does not run its build
/// script: one for each version in the lock file.
fn without_c(lock: &str, target: &str) -> Vec<String> {
    let mark = format!("name = \"{RING}\"\nversion = \"");
    let versions = lock.split(&mark).skip(1).filter_map(|rest| rest.split('"').next());
    let setting = |version: &str| {
        let library = format!("{RING}_core_{}_", version.replace('.', "_"));
        format!("target.{target}.{library}.rustc-link-search=[]")
    };
    versions.map(setting).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_each_version_in_the_lock_file_is_taken_for_built() {
        let lock = "[[package]]\nname = \"ring\"\nversion = \"0.17.14\"\nsource = \"a\"\n\n\
                    [[package]]\nname = \"string\"\nversion = \"1.0.0\"\n";
        let setting = "target.a-b-c.ring_core_0_17_14_.rustc-link-search=[]";
        assert_eq!(without_c(lock, "a-b-c"), [setting]);
        assert!(without_c("", "a-b-c").is_empty());
    }
}
