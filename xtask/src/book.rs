//! `cargo xtask book`: generates the pages and pictures of the book that repeat the output of
//! commands. A test of the package `clockjack-book` checks that they are up to date. With `--html`
//! the command also builds the book for a browser with mdBook, which it installs below `target/`; a
//! warning of mdBook or a broken link is a failure.

mod pages;

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    console::{Line, Steps},
    process::Cmd,
    tool,
    workspace::Workspace,
};

/// The version of mdBook that is known to work.
const MDBOOK: &str = "0.5.4";
/// Where mdBook is installed, so that nothing outside of the checkout changes.
const TOOLS: &str = "target/tools";
/// The output folder that `book/book.toml` names.
const PAGES: &str = "target/book";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Also build the book for a browser and check its links
    #[arg(long)]
    html: bool,
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let workspace = Workspace::load()?;
    let mut steps = Steps::new("book", if options.html { 4 } else { 1 });
    steps.step("reference and pictures", |line| {
        let cmd = Cmd::cargo().dir(&workspace.root).words("run --quiet --package clockjack-book");
        let finished = cmd.run(line, &workspace.log("book.log"))?;
        Ok(finished.output.lines().last().unwrap_or_default().to_owned())
    });
    if options.html
        && steps.step("mdBook", |line| ensure_mdbook(&workspace, line))
        && steps.step("pages", |line| build(&workspace, line))
    {
        steps.step("links", |_| {
            let n_links = pages::fix_links(&workspace.root, PAGES)?;
            Ok(format!("{n_links} links are valid; open {PAGES}/index.html"))
        });
    }
    steps.finish()
}

fn mdbook(workspace: &Workspace) -> Cmd {
    Cmd::new(workspace.root.join(TOOLS).join("bin/mdbook"))
}

fn ensure_mdbook(workspace: &Workspace, line: &Line) -> Result<String> {
    let program = workspace.root.join(TOOLS).join("bin/mdbook");
    if !tool::starts(&program.to_string_lossy()) {
        Cmd::cargo()
            .words("install --locked mdbook --version")
            .arg(MDBOOK)
            .arg("--root")
            .arg(workspace.root.join(TOOLS))
            .run(line, &workspace.log("mdbook-install.log"))?;
    }
    Ok(mdbook(workspace).arg("--version").capture()?.output.trim().to_owned())
}

fn build(workspace: &Workspace, line: &Line) -> Result<String> {
    let cmd = mdbook(workspace).dir(&workspace.root).words("build book");
    let output = cmd.run(line, &workspace.log("mdbook.log"))?.output;
    if let Some(warning) = output.lines().find(|line| is_complaint(line)) {
        bail!("mdBook reports: {}", warning.trim());
    }
    Ok(PAGES.to_owned())
}

/// Whether a line of mdBook's log is a warning or an error.
fn is_complaint(line: &str) -> bool {
    line.split_whitespace().take(4).any(|word| {
        let word = word.trim_matches(|char: char| !char.is_alphabetic());
        ["WARN", "WARNING", "ERROR"].contains(&word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_distinguished_from_information() {
        assert!(is_complaint("2026-11-16 08:00:00 [WARN] (mdbook::book): no such file"));
        assert!(is_complaint(" WARN unclosed HTML tag `<T>`"));
        assert!(!is_complaint(" INFO Book building has started"));
        assert!(!is_complaint("[INFO] (mdbook): the HTML backend wrote WARN.md"));
    }
}
