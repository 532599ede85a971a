//! `cargo xtask foreign`: checks for platforms other than the one that the checks run on.
//!
//! [`processors`] runs a few tests on emulated processors, [`windows`] runs the tests of the host
//! crates in Wine, and [`macos`] compiles them for macOS; [`lint`] is clippy for both.
//! [`PLATFORMS`] says how far each platform is checked; `tidy` compares the tables of README and
//! book with it.

mod lint;
mod macos;
mod processors;
mod windows;

use anyhow::{Result, bail};
use clap::Args;

use self::{lint::Extent, processors::Processor};

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

/// The packages that run on an operating system and are tested or checked for others.
const HOST_PACKAGES: [&str; 18] = [
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
    "clockjack-console",
    "clockjack-cli",
    "clockjack",
    "clockjack-scenario",
    "clockjack-own-components",
];

/// The packages that are compiled for others and not run there: what needs an external server, and
/// examples whose tests watch processes of Linux.
const COMPILED_PACKAGES: [&str; 5] = [
    "clockjack-nats",
    "clockjack-cluster",
    "clockjack-shop",
    "clockjack-gateway",
    "clockjack-opentelemetry-example",
];

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    match (&options.windows, options.macos, options.quick) {
        (Some(None), _, true) => windows::run_quick(),
        (Some(Some(_)), _, true) => bail!("--quick chooses the package itself"),
        (Some(only), _, false) => windows::run(only.as_deref()),
        (None, true, true) => macos::run(Extent::Quick),
        (None, true, false) => macos::run(Extent::All),
        (None, false, true) => bail!("--quick is for --windows or --macos"),
        (None, false, false) => processors::run(options.processor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    /// The packages that no list has, and why.
    const NOT_FOREIGN: &[(&str, &str)] = &[
        ("clockjack-macros", "runs in the compiler; what it writes is compiled with its users"),
        ("clockjack-testing", "is compiled with the tests that use it, and has none itself"),
        ("clockjack-book", "its programs are the text of the book"),
        ("clockjack-browser", "drives a browser of the development machine"),
        ("clockjack-benches", "measures on the development machine"),
        ("clockjack-compare", "measures on the development machine"),
        ("clockjack-soak", "watches a process for days, on the development machine"),
        ("xtask", "a tool of the development machine"),
    ];

    #[test]
    fn each_package_is_checked_for_others_or_is_not_for_a_reason() {
        let workspace = Workspace::load().expect("the tests run in the workspace");
        let listed = HOST_PACKAGES.iter().chain(&COMPILED_PACKAGES).copied();
        let mut known: Vec<&str> =
            listed.chain(NOT_FOREIGN.iter().map(|(name, _)| *name)).collect();
        let mut all: Vec<&str> = workspace.packages.iter().map(|one| &*one.name).collect();
        known.sort_unstable();
        all.sort_unstable();
        assert_eq!(known, all, "each package of the workspace is in one of the three lists");
    }

    #[test]
    fn what_is_tested_at_the_root_is_tested_for_others() {
        let workspace = Workspace::load().expect("the tests run in the workspace");
        let is_known = |name: &str| {
            HOST_PACKAGES.contains(&name) || NOT_FOREIGN.iter().any(|(other, _)| *other == name)
        };
        for member in workspace.default_members() {
            assert!(is_known(&member.name), "{} is only compiled", member.name);
        }
    }

    #[test]
    fn each_emulated_processor_is_a_platform() {
        for processor in Processor::ALL {
            let is_this = |one: &Platform| one.target == processor.target();
            let found = PLATFORMS.iter().find(|one| is_this(one)).expect("it is in the list");
            assert_eq!((found.level, found.command), (EMULATED, "xtask foreign"));
        }
    }
}
