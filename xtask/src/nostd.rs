//! `cargo xtask nostd`: the core crates link no std and compile for bare metal.
//!
//! `proof/nostd` is a binary without std that depends on every core crate and has its own panic
//! handler. The check passes only if none of them links std: std would add a second panic handler,
//! which is error E0152. Two planted errors show that the proof can fail. The proof cannot show
//! that a target has the atomics that the code needs, so the crates are also checked for real
//! microcontrollers, with core and alloc built from source by Debian's toolchain. Targets with
//! compare-exchange but without 64-bit atomics must declare that they have one core
//! (`clockjack-sync`, module `primitive`); the command also checks that a target without this
//! declaration is refused.

use anyhow::Result;
use clap::Args;

use crate::{console::Steps, process::Cmd, tool, workspace::Workspace};

/// Without compare-exchange (Cortex-M0), and with it but without 64-bit atomics.
const TARGETS: [&str; 3] =
    ["thumbv6m-none-eabi", "thumbv7m-none-eabi", "riscv32imac-unknown-none-elf"];
/// Additional targets of `--all`: with a floating-point unit, and RISC-V without compare-exchange.
const MORE_TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "riscv32imc-unknown-none-elf"];
/// The core crates that need no alloc.
const CRATES: [&str; 3] = ["clockjack-sync", "clockjack-time", "clockjack-observe"];

/// The core crates that need alloc.
const CRATES_WITH_ALLOC: [&str; 3] = ["clockjack-exec", "clockjack-sched", "clockjack-actor"];

/// The flag that declares a program for one core, and the targets that need the flag.
const ONE_CORE: &str = "--cfg portable_atomic_unsafe_assume_single_core";
const ONE_CORE_FLAGS: [&str; 3] = [
    "CARGO_TARGET_THUMBV7M_NONE_EABI_RUSTFLAGS",
    "CARGO_TARGET_THUMBV7EM_NONE_EABIHF_RUSTFLAGS",
    "CARGO_TARGET_RISCV32IMAC_UNKNOWN_NONE_ELF_RUSTFLAGS",
];

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Check more targets than the three that `ci` checks
    #[arg(long)]
    all: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut targets = TARGETS.to_vec();
    if options.all {
        targets.extend(MORE_TARGETS);
    }
    let mut steps = Steps::new("nostd", 8);
    steps.step("links no std, no features", |line| {
        proof(&workspace, "").run(line, &workspace.log("nostd.log"))?;
        Ok(String::new())
    });
    steps.step("links no std, with alloc", |line| {
        proof(&workspace, "alloc").run(line, &workspace.log("nostd-alloc.log"))?;
        Ok(String::new())
    });
    steps
        .step("a planted std is detected", |_| must_fail(&proof(&workspace, "plant_std"), "E0152"));
    steps.step("a planted allocation is detected", |_| {
        must_fail(&proof(&workspace, "plant_alloc"), "no global memory allocator found")
    });
    steps.step("toolchain for bare metal", tool::ensure_debian_rust);
    steps.step("bare metal, no features", |line| {
        for target in &targets {
            let log = workspace.log(&format!("bare-metal-{target}.log"));
            bare_metal(&workspace, target).run(line, &log)?;
        }
        Ok(targets.join(", "))
    });
    steps.step("bare metal, with alloc", |line| {
        let features: Vec<String> = CRATES.iter().map(|name| format!("{name}/alloc")).collect();
        for target in &targets {
            let log = workspace.log(&format!("bare-metal-alloc-{target}.log"));
            let mut cmd = bare_metal(&workspace, target).arg("--features").arg(features.join(","));
            for name in CRATES_WITH_ALLOC {
                cmd = cmd.arg("-p").arg(name);
            }
            cmd.run(line, &log)?;
        }
        Ok(targets.join(", "))
    });
    steps.step("a target with several cores is refused", |_| {
        let cmd = bare_metal_check(&workspace, "core").words("-p clockjack-sync --target");
        must_fail(&cmd.arg("thumbv7m-none-eabi"), "unsafe-assume-single-core")
    });
    steps.finish()
}

/// The check of the proof, which is a separate workspace, so that features of other packages do not
/// affect it.
fn proof(workspace: &Workspace, features: &str) -> Cmd {
    let cmd = Cmd::cargo()
        .words("check --manifest-path proof/nostd/Cargo.toml --target-dir target/nostd")
        .dir(&workspace.root);
    if features.is_empty() { cmd } else { cmd.arg("--features").arg(features) }
}

fn must_fail(cmd: &Cmd, reason: &str) -> Result<String> {
    let finished = cmd.capture()?;
    anyhow::ensure!(!finished.is_success(), "`{cmd}` passed: the proof proves nothing");
    anyhow::ensure!(
        finished.output.lines().any(|line| line.contains(reason)),
        "failed, but not because of the planted {reason}:\n{}",
        cmd.failure(&finished)
    );
    Ok(format!("refused: {reason}"))
}

fn bare_metal_check(workspace: &Workspace, library: &str) -> Cmd {
    tool::debian("cargo")
        .env("RUSTC_BOOTSTRAP", "1")
        .words("check --target-dir target/bare-metal")
        .arg(format!("-Zbuild-std={library}"))
        .dir(&workspace.root)
}

/// Checks one target per call: cargo unifies the features of a dependency over all targets of a
/// call.
fn bare_metal(workspace: &Workspace, target: &str) -> Cmd {
    let mut cmd = bare_metal_check(workspace, "core,alloc").arg("--target").arg(target);
    for name in ONE_CORE_FLAGS {
        cmd = cmd.env(name, ONE_CORE);
    }
    for name in CRATES {
        cmd = cmd.arg("-p").arg(name);
    }
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plant_counts_only_if_it_fails_for_its_own_reason() {
        let passing = Cmd::cargo().arg("version");
        let error = must_fail(&passing, "E0152").expect_err("it passed").to_string();
        assert!(error.contains("proves nothing"), "{error}");
        let failing = Cmd::cargo().arg("no-such-command-here");
        let error = must_fail(&failing, "E0152").expect_err("another reason").to_string();
        assert!(error.contains("not because of the planted"), "{error}");
        assert!(must_fail(&failing, "no such command").is_ok());
    }
}
