//! `cargo xtask foreign --macos [--quick]`: the host crates and their tests are compiled for macOS,
//! without linking, by clippy with warnings denied, which includes what `cargo check` does.
//!
//! Debian's toolchain has no std for macOS, so its std is compiled from the sources; neither a
//! linker nor a library of Apple is needed. Nothing runs.

use core::time::Duration;

use anyhow::Result;

use super::HOST_PACKAGES;
use crate::{console::Steps, process::Cmd, tool, workspace::Workspace};

/// Apple's own processors, and Intel's.
pub(super) const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-apple-darwin"];
/// Enough for a std and all dependencies on a busy machine.
const LIMIT: Duration = Duration::from_secs(2400);

/// The clippy of Debian's toolchain.
const PACKAGES: &str = "rust-web-clippy";
/// Lints of Debian's clippy, which is newer than the project's: a proposal that Rust 1.95 does not
/// have, and one that takes a waker for idle whose drop does something.
const NEWER_LINTS: [&str; 2] = ["clippy::unwrap-or-default", "clippy::manual-noop-waker"];

/// How much is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The libraries and programs, for the first target.
    Quick,
    /// Tests and examples as well, for both targets.
    All,
}

/// Runs the command.
pub(super) fn run(extent: Extent) -> Result<()> {
    let workspace = Workspace::load()?;
    let (targets, what) = match extent {
        Extent::Quick => (&TARGETS[..1], "packages"),
        Extent::All => (&TARGETS[..], "packages with their tests"),
    };
    let mut steps = Steps::new("foreign", 2 + targets.len());
    let is_ready = steps.step("toolchain with a std to build", tool::ensure_debian_rust)
        && steps.step("clippy of the same toolchain", |line| {
            let is_there = || tool::starts("/usr/bin/cargo-clippy");
            tool::ensure_apt(line, "clippy", PACKAGES, is_there)?;
            Ok(String::new())
        });
    if !is_ready {
        return steps.finish();
    }
    for target in targets {
        steps.step(&format!("clippy for {target}"), |line| {
            let log = workspace.log(&format!("foreign-{target}.log"));
            lint(&workspace, target, extent).run(line, &log)?;
            Ok(format!("{} {what}", HOST_PACKAGES.len()))
        });
    }
    steps.finish()
}

fn lint(workspace: &Workspace, target: &str, extent: Extent) -> Cmd {
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
        .limit(LIMIT)
        .dir(&workspace.root);
    let cmd = HOST_PACKAGES.iter().fold(cmd, |cmd, package| cmd.arg("-p").arg(package));
    // A warning for macOS alone must not stay: no other check would show it.
    let cmd = cmd.words("-- -D warnings");
    NEWER_LINTS.iter().fold(cmd, |cmd, lint| cmd.arg("-A").arg(lint))
}
