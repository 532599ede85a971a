//! `cargo xtask nostd`: the core crates link no std, and are sound code on bare metal.
//!
//! `proof/nostd` is a binary without std, with its own panic handler, that depends on every core
//! crate. It passes the check only if none of them links std: std brings a second panic handler,
//! error E0152. Two plants show that the proof can fail. It cannot show that a target has the
//! atomics the code asks for; so the crates are also checked for real microcontrollers, with core
//! and alloc built from source by Debian's toolchain, whose source package matches it. Those of
//! them that have compare-exchange but no 64-bit atomics must say that they have one core
//! (`clockjack-sync`, module `primitive`); that one that does not is refused is checked too.

use anyhow::Result;
use clap::Args;

use crate::{console::Steps, process::Cmd, tool, workspace::Workspace};

/// Without compare-exchange (Cortex-M0), and with it but without 64-bit atomics.
const TARGETS: [&str; 3] =
    ["thumbv6m-none-eabi", "thumbv7m-none-eabi", "riscv32imac-unknown-none-elf"];
/// What `--all` adds: a floating-point unit, and RISC-V without compare-exchange.
const MORE_TARGETS: [&str; 2] = ["thumbv7em-none-eabihf", "riscv32imc-unknown-none-elf"];
/// The crates whose lack of std is proven; those of the plan that exist.
const CRATES: [&str; 3] = ["clockjack-sync", "clockjack-time", "clockjack-observe"];

/// Those that cannot be without alloc.
const CRATES_WITH_ALLOC: [&str; 3] = ["clockjack-exec", "clockjack-sched", "clockjack-actor"];

/// What a program for one core says of itself, and to which of the targets that has to be said.
const ONE_CORE: &str = "--cfg portable_atomic_unsafe_assume_single_core";
const ONE_CORE_FLAGS: [&str; 3] = [
    "CARGO_TARGET_THUMBV7M_NONE_EABI_RUSTFLAGS",
    "CARGO_TARGET_THUMBV7EM_NONE_EABIHF_RUSTFLAGS",
    "CARGO_TARGET_RISCV32IMAC_UNKNOWN_NONE_ELF_RUSTFLAGS",
];

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// More targets than the three that every submission is checked for
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
    steps.step("a planted std is found", |_| must_fail(&proof(&workspace, "plant_std"), "E0152"));
    steps.step("a planted allocation is found", |_| {
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
    steps.step("several cores are not taken for one", |_| {
        let cmd = bare_metal_check(&workspace, "core").words("-p clockjack-sync --target");
        must_fail(&cmd.arg("thumbv7m-none-eabi"), "unsafe-assume-single-core")
    });
    steps.finish()
}

/// The check of the proof, which is a workspace of its own: features of others must not leak in.
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
        "not refused for the planted reason, {reason}:\n{}",
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

/// One target at a time: features of a dependency are those of all targets of a call together.
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
        assert!(error.contains("planted reason"), "{error}");
        assert!(must_fail(&failing, "no such command").is_ok());
    }
}
