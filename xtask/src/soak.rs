//! `cargo xtask soak`: a mixed load on the worker pool, with a check that nothing is lost or done
//! twice.

use anyhow::Result;
use clap::Args;

use crate::{process::Cmd, workspace};

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The running time in minutes
    #[arg(long, value_name = "N", default_value_t = 2)]
    minutes: u64,
    /// The seed of the load; default: from the clock. The seed is printed
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// Runs the command; the lines are the program's own.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut cmd = Cmd::cargo()
        .words("run --profile dist -p clockjack-soak -- --minutes")
        .arg(options.minutes.to_string())
        .dir(&workspace::root()?);
    if let Some(seed) = options.seed {
        cmd = cmd.arg("--seed").arg(seed.to_string());
    }
    cmd.hand_over()
}
