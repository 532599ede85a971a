//! `cargo xtask foreign [arm|s390x]`: checks on other processors that results do not depend on the
//! processor.
//!
//! The scenario in virtual time and the workloads of the simulation are built for a 32-bit
//! processor and for a big-endian one, with Debian's compiler, a std from its sources and a cross
//! linker, and run under QEMU's user mode. Their golden files were recorded on x86-64 and contain a
//! digest of the trace of each seed, so a test that passes shows that the traces are equal. QEMU
//! does not reproduce weak memory ordering; the loom models cover that.

use core::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    console::{Line, Steps},
    libtest,
    process::Cmd,
    tool,
    workspace::Workspace,
};

/// The tests: a title, the arguments of cargo, and the last part of the log's file name.
const TESTS: [(&str, &str, &str); 2] = [
    ("scenario in virtual time", "-p clockjack-scenario --test simulation", "scenario"),
    ("hashes of the simulation", "-p clockjack-sim --test golden", "sim"),
];
/// Enough for a build of std and all dependencies on a busy machine.
const LIMIT: Duration = Duration::from_secs(2400);

/// An emulated processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Processor {
    /// ARMv7: 32-bit
    Arm,
    /// IBM Z: big-endian
    S390x,
}

impl Processor {
    pub(super) const ALL: [Self; 2] = [Self::Arm, Self::S390x];

    /// The name of its target.
    pub(super) const fn target(self) -> &'static str {
        match self {
            Self::Arm => "armv7-unknown-linux-gnueabihf",
            Self::S390x => "s390x-unknown-linux-gnu",
        }
    }

    /// The prefix of the cross compiler's name, and the folder of its libraries below `/usr`.
    const fn prefix(self) -> &'static str {
        match self {
            Self::Arm => "arm-linux-gnueabihf",
            Self::S390x => "s390x-linux-gnu",
        }
    }

    const fn emulator(self) -> &'static str {
        match self {
            Self::Arm => "qemu-arm",
            Self::S390x => "qemu-s390x",
        }
    }

    const fn packages(self) -> &'static str {
        match self {
            Self::Arm => "qemu-user gcc-arm-linux-gnueabihf libc6-dev-armhf-cross",
            Self::S390x => "qemu-user gcc-s390x-linux-gnu libc6-dev-s390x-cross",
        }
    }

    /// The environment variables that name the linker and the emulator for cargo.
    const fn variables(self) -> [&'static str; 2] {
        match self {
            Self::Arm => [
                "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER",
                "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_RUNNER",
            ],
            Self::S390x => [
                "CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER",
                "CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER",
            ],
        }
    }

    fn ensure(self, line: &Line) -> Result<String> {
        let linker = format!("{}-gcc", self.prefix());
        tool::ensure_apt(line, "a cross linker with QEMU's user mode", self.packages(), || {
            tool::starts(&linker) && tool::starts(self.emulator())
        })?;
        let version = Cmd::new(self.emulator()).arg("--version").capture()?;
        Ok(version.output.lines().next().unwrap_or_default().to_owned())
    }

    fn test(self, workspace: &Workspace, test: &str) -> Cmd {
        let [linker, runner] = self.variables();
        let prefix = self.prefix();
        tool::debian("cargo")
            .env("RUSTC_BOOTSTRAP", "1")
            .env(linker, format!("{prefix}-gcc"))
            .env(runner, format!("{} -L /usr/{prefix}", self.emulator()))
            // A golden file that the emulated processor wrote itself would prove nothing.
            .without_env("CLOCKJACK_BLESS")
            .words("test -Zbuild-std --target")
            .arg(self.target())
            .words("--target-dir target/foreign")
            .words(test)
            .limit(LIMIT)
            .dir(&workspace.root)
    }
}

/// Checks one processor, or all.
pub(super) fn run(only: Option<Processor>) -> Result<()> {
    let workspace = Workspace::load()?;
    let is_chosen = |one: &Processor| only.is_none_or(|only| only == *one);
    let chosen: Vec<Processor> = Processor::ALL.into_iter().filter(is_chosen).collect();
    let mut steps = Steps::new("foreign", 1 + (1 + TESTS.len()) * chosen.len());
    if !steps.step("toolchain with a std to build", tool::ensure_debian_rust) {
        return steps.finish();
    }
    for processor in chosen {
        let target = processor.target();
        if !steps.step(&format!("linker and emulator for {target}"), |line| processor.ensure(line))
        {
            continue;
        }
        for (what, test, name) in TESTS {
            steps.step(&format!("{what} on {target}"), |line| {
                let log = workspace.log(&format!("foreign-{target}-{name}.log"));
                let finished = processor.test(&workspace, test).run(line, &log)?;
                let totals = libtest::totals(&finished.output);
                anyhow::ensure!(totals.passed > 0, "no test ran: see {}", log.display());
                Ok(format!("{} tests passed", totals.passed))
            });
        }
    }
    steps.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_told_of_linker_and_emulator_by_the_name_of_the_target() {
        for processor in Processor::ALL {
            let name = processor.target().to_uppercase().replace('-', "_");
            let [linker, runner] = processor.variables();
            assert_eq!(linker, format!("CARGO_TARGET_{name}_LINKER"));
            assert_eq!(runner, format!("CARGO_TARGET_{name}_RUNNER"));
        }
    }
}
