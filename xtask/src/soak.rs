//! `cargo xtask soak`: mixed load on the worker pool, with books that must balance.

use anyhow::Result;
use clap::Args;

use crate::{process::Cmd, workspace};

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 2)]
    minutes: u64,
    /// What is drawn; without it, a seed of the clock's, which is printed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Runs the command; the lines are the program's own.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cmd = Cmd::cargo()
        .words("run --release -p clockjack-soak -- --minutes")
        .arg(options.minutes.to_string())
        .dir(&workspace::root()?);
    if let Some(seed) = options.seed {
        cmd = cmd.arg("--seed").arg(seed.to_string());
    }
    cmd.hand_over()
}
