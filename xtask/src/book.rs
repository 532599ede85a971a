//! `cargo xtask book`: writes the pages and pictures of the book that say what the commands say.
//! That they are not stale is a test of the package `clockjack-book`.

use anyhow::Result;

use crate::{console::Steps, process::Cmd, workspace::Workspace};

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let workspace = Workspace::load()?;
    let mut steps = Steps::new("book", 1);
    steps.step("reference and pictures", |line| {
        let cmd = Cmd::cargo().dir(&workspace.root).words("run --quiet --package clockjack-book");
        let finished = cmd.run(line, &workspace.log("book.log"))?;
        Ok(finished.output.lines().last().unwrap_or_default().to_owned())
    });
    steps.finish()
}
