//! `cargo xtask foreign`: checks for platforms other than the one that the checks run on.
//!
//! [`processors`] runs a few tests on emulated processors, [`windows`] runs the tests of the host
//! crates in Wine, and [`macos`] compiles them for macOS. [`PLATFORMS`] says how far each platform
//! is checked; `tidy` compares the table of the README with it.

mod macos;
mod processors;
mod windows;

use anyhow::{Result, bail};
use clap::Args;

use self::processors::Processor;

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Use only this processor instead of both
    #[arg(conflicts_with_all = ["windows", "macos"])]
    processor: Option<Processor>,
    /// Build the host crates, or only this one, for Windows, and run their tests in Wine
    #[arg(long, value_name = "PACKAGE", num_args = 0..=1, conflicts_with = "macos")]
    windows: Option<Option<String>>,
    /// Check the host crates for macOS with the compiler and with clippy
    #[arg(long)]
    macos: bool,
    /// What `ci` runs: with --windows the scenario, with --macos no tests and one target
    #[arg(long, conflicts_with = "processor")]
    quick: bool,
}

/// A platform, and how far it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Platform {
    /// The target, as the compiler names it.
    pub(crate) target: &'static str,
    /// The word for the level in the README.
    pub(crate) level: &'static str,
    /// The command that checks the platform, as the lists of `ci` and `deep` have it.
    pub(crate) command: &'static str,
    /// Whether the command with [`QUICK`] checks the platform too.
    pub(crate) has_quick: bool,
}

/// All tests run on the platform itself.
const TESTED: &str = "tested";
/// Tests run in an emulator.
const EMULATED: &str = "run in an emulator";
/// Code is compiled and not run.
const TYPE_CHECKED: &str = "type-checked";

const fn platform(target: &'static str, level: &'static str, command: &'static str) -> Platform {
    Platform { target, level, command, has_quick: false }
}

const fn with_quick(platform: Platform) -> Platform {
    Platform { has_quick: true, ..platform }
}

/// The option of a command that does a part of it.
pub(crate) const QUICK: &str = " --quick";

/// The platforms that are checked, except microcontrollers.
pub(crate) const PLATFORMS: [Platform; 6] = [
    platform("x86_64-unknown-linux-gnu", TESTED, "xtask test"),
    platform("armv7-unknown-linux-gnueabihf", EMULATED, "xtask foreign"),
    platform("s390x-unknown-linux-gnu", EMULATED, "xtask foreign"),
    with_quick(platform(windows::TARGET, EMULATED, "xtask foreign --windows")),
    with_quick(platform(macos::TARGETS[0], TYPE_CHECKED, "xtask foreign --macos")),
    platform(macos::TARGETS[1], TYPE_CHECKED, "xtask foreign --macos"),
];

/// The packages that run on an operating system and are tested or checked for others: without
/// tools, comparisons, and what needs an external server.
const HOST_PACKAGES: [&str; 17] = [
    "clockjack-sync",
    "clockjack-time",
    "clockjack-observe",
    "clockjack-exec",
    "clockjack-sched",
    "clockjack-actor",
    "clockjack-wire",
    "clockjack-net",
    "clockjack-testkit",
    "clockjack-rt",
    "clockjack-embassy",
    "clockjack-graph",
    "clockjack-sim",
    "clockjack-cli",
    "clockjack",
    "clockjack-scenario",
    "clockjack-own-components",
];

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    match (&options.windows, options.macos, options.quick) {
        (Some(None), _, true) => windows::run_quick(),
        (Some(Some(_)), _, true) => bail!("--quick chooses the package itself"),
        (Some(only), _, false) => windows::run(only.as_deref()),
        (None, true, true) => macos::run(macos::Extent::Quick),
        (None, true, false) => macos::run(macos::Extent::All),
        (None, false, true) => bail!("--quick is for --windows or --macos"),
        (None, false, false) => processors::run(options.processor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_emulated_processor_is_a_platform() {
        for processor in Processor::ALL {
            let is_this = |one: &Platform| one.target == processor.target();
            let found = PLATFORMS.iter().find(|one| is_this(one)).expect("it is in the list");
            assert_eq!((found.level, found.command), (EMULATED, "xtask foreign"));
        }
    }
}
