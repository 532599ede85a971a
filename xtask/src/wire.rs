//! `cargo xtask wire`: the golden bytes of the types that travel.
//!
//! Each type of the tests has a file per version in `crates/clockjack-wire/tests/golden`, and so
//! have the frames. `--bless` writes the files that are missing; it never changes one, because the
//! bytes of a version never change.

use core::time::Duration;

use anyhow::Result;
use clap::Args;

use crate::{console::Steps, libtest, process::Cmd, workspace::Workspace};

/// The tests take a second; building them takes longer.
const LIMIT: Duration = Duration::from_secs(900);

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Write the files of new types and versions
    #[arg(long)]
    bless: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut steps = Steps::new("wire", 1);
    steps.step("golden bytes", |line| {
        let cmd = Cmd::cargo().words("test -p clockjack-wire --test wire golden::");
        let cmd = cmd.dir(&workspace.root).limit(LIMIT);
        let cmd = if options.bless { cmd.env("CLOCKJACK_BLESS", "1") } else { cmd };
        let finished = cmd.run(line, &workspace.log("wire.log"))?;
        let n_passed = libtest::totals(&finished.output).passed;
        anyhow::ensure!(n_passed > 0, "no test has run");
        Ok(format!("{n_passed} tests passed"))
    });
    steps.finish()
}
