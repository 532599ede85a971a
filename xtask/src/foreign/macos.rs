//! `cargo xtask foreign --macos [--quick]`: the host crates and their tests are compiled for macOS,
//! without linking, by clippy with warnings denied, which includes what `cargo check` does.
//!
//! Nothing runs, and neither a linker nor a library of Apple is needed.

use anyhow::Result;

use super::{
    COMPILED_PACKAGES, HOST_PACKAGES,
    lint::{self, Extent},
};
use crate::{console::Steps, tool, workspace::Workspace};

/// Apple's own processors, and Intel's.
pub(super) const TARGETS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-apple-darwin"];

/// Runs the command.
pub(super) fn run(extent: Extent) -> Result<()> {
    let workspace = Workspace::load()?;
    let targets = match extent {
        Extent::Quick => &TARGETS[..1],
        Extent::All => &TARGETS[..],
    };
    let mut packages = HOST_PACKAGES.to_vec();
    if extent == Extent::All {
        packages.extend(COMPILED_PACKAGES);
    }
    let mut steps = Steps::new("foreign", 2 + targets.len());
    let is_ready = steps.step("toolchain with a std to build", tool::ensure_debian_rust)
        && steps.step("clippy of the same toolchain", lint::ensure);
    if !is_ready {
        return steps.finish();
    }
    for target in targets {
        steps.step(&format!("clippy for {target}"), |line| {
            lint::run(&workspace, target, &packages, extent, line)
        });
    }
    steps.finish()
}
