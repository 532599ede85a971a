//! `cargo xtask compare`: the same loads on Clockjack and on the crates people would use instead.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{process::Cmd, workspace};

/// Each is a module of `compare/` and a command of its program. They are listed here too, so that a
/// wrong name is refused before everything is built.
const SUITES: [&str; 7] =
    ["timers", "executor", "jitter", "scheduler", "actors", "actor-timers", "graph"];
/// In which profile a release of everything is built, and one that is soon there.
const RELEASE: &str = "release";
const SMOKE: &str = "smoke";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Which loads
    #[arg(value_parser = SUITES)]
    suite: String,
    /// Small sizes and few rounds, whose figures mean little
    #[arg(long)]
    quick: bool,
    /// As `--quick`, and hardly optimised: is built sooner, and only shows that it runs
    #[arg(long)]
    smoke: bool,
    /// Also write one JSON line a case to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command; the table is the program's own.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cmd = Cmd::cargo()
        .words("run --package clockjack-compare --profile")
        .arg(if options.smoke { SMOKE } else { RELEASE })
        .arg("--")
        .arg(&options.suite)
        .dir(&workspace::root()?);
    if options.quick || options.smoke {
        cmd = cmd.arg("--quick");
    }
    if let Some(file) = &options.json {
        // The child runs at the root; the user meant a path from here.
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
            .expect("it is there")
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
        let manifest = fs::read_to_string(path).expect("it is there");
        for profile in [RELEASE, SMOKE] {
            assert!(manifest.contains(&format!("[profile.{profile}]")), "{profile}");
        }
    }
}
