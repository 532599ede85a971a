//! `cargo xtask compare`: the same loads on Clockjack and on the crates people would use instead.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{process::Cmd, workspace};

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Which loads: `timers`, `executor`, `jitter`, `scheduler`, `actors` or `graph`
    suite: String,
    /// Small sizes and few rounds: a smoke run whose figures mean little
    #[arg(long)]
    quick: bool,
    /// Also write one JSON line a case to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Runs the command; the table is the program's own.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cmd = Cmd::cargo()
        .words("run --release -p clockjack-compare --")
        .arg(&options.suite)
        .dir(&workspace::root()?);
    if options.quick {
        cmd = cmd.arg("--quick");
    }
    if let Some(file) = &options.json {
        // The child runs at the root; the user meant a path from here.
        cmd = cmd.arg("--json").arg(std::path::absolute(file)?);
    }
    cmd.hand_over()
}
