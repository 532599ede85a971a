//! `cargo xtask book`: writes the pages and pictures of the book that say what the commands say.
//! That they are not stale is a test of the package `clockjack-book`. With `--html` the book is
//! built for a browser too, by mdBook, which is installed below `target/`; a warning of mdBook's
//! and a link of the pages that leads nowhere are failures.

mod pages;

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    console::{Line, Steps},
    process::Cmd,
    tool,
    workspace::Workspace,
};

/// The one that was seen to work.
const MDBOOK: &str = "0.5.4";
/// Where it is installed, so that nothing outside of the checkout changes.
const TOOLS: &str = "target/tools";
/// Where `book/book.toml` says that the pages go.
const PAGES: &str = "target/book";

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Build the book for a browser too, and follow its links
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
            let n_links = pages::settle(&workspace.root, PAGES)?;
            Ok(format!("{n_links} links lead somewhere; open {PAGES}/index.html"))
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
        bail!("mdBook says: {}", warning.trim());
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
    fn a_warning_is_told_from_news() {
        assert!(is_complaint("2026-11-16 08:00:00 [WARN] (mdbook::book): no such file"));
        assert!(is_complaint(" WARN unclosed HTML tag `<T>`"));
        assert!(!is_complaint(" INFO Book building has started"));
        assert!(!is_complaint("[INFO] (mdbook): the HTML backend wrote WARN.md"));
    }
}
