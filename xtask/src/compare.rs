//! `cargo xtask compare`: the same workloads on Clockjack and on competing crates.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{process::Cmd, workspace};

/// The suites: each is a module of `compare/` and a subcommand of its program. They are listed here
/// too, so that a wrong name is refused before the program is built.
const SUITES: [&str; 7] =
    ["timers", "executor", "jitter", "scheduler", "actors", "actor-timers", "graph"];
/// The profile for measurements, and the profile that builds faster.
const DIST: &str = "dist";
const SMOKE: &str = "smoke";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The suite of workloads to run
    #[arg(value_parser = SUITES)]
    suite: String,
    /// Use small sizes and few rounds; the results are only rough
    #[arg(long)]
    quick: bool,
    /// As `--quick`, and almost without optimisation: builds faster, and only shows that the suite
    /// runs
    #[arg(long)]
    smoke: bool,
    /// Also write one JSON line per case to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command; the comparison program prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cmd = Cmd::cargo()
        .words("run --package clockjack-compare --profile")
        .arg(if options.smoke { SMOKE } else { DIST })
        .arg("--")
        .arg(&options.suite)
        .dir(&workspace::root()?);
    if options.quick || options.smoke {
        cmd = cmd.arg("--quick");
    }
    if let Some(file) = &options.json {
        // The child runs in the root folder, but the user's path is relative to the current folder.
        cmd = cmd.arg("--json").arg(std::path::absolute(file)?);
    }
    cmd.hand_over()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_suite_of_the_program_is_listed_and_no_other() {
        let dir = workspace::root().expect("there is a workspace").join("compare/src");
        let mut found: Vec<String> = fs::read_dir(dir)
            .expect("compare/src exists")
            .filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok())
            .filter_map(|text| {
                let (_, name) = text.split_once("pub(crate) const NAME: &str = \"")?;
                Some(name.split_once('"')?.0.to_owned())
            })
            .collect();
        found.sort_unstable();
        let mut listed = SUITES;
        listed.sort_unstable();
        assert_eq!(found, listed);
    }

    #[test]
    fn the_profiles_are_those_of_the_workspace() {
        let path = workspace::root().expect("there is a workspace").join("Cargo.toml");
        let manifest = fs::read_to_string(path).expect("Cargo.toml exists");
        for profile in [DIST, SMOKE] {
            assert!(manifest.contains(&format!("[profile.{profile}]")), "{profile}");
        }
    }
}
