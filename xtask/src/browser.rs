//! `cargo xtask browser`: the console's page in Chromium, which looks at real programs.
//!
//! Chromium and its driver are those of Debian. The driver listens on loopback, and ends with the
//! command.

use core::{net::Ipv4Addr, time::Duration};
use std::net::TcpListener;

use anyhow::{Context as _, Result};

use crate::{
    console::{Line, Steps},
    process::{Cmd, Held},
    tool, workspace,
};

/// The variable that says where the driver listens, for the tests.
const VARIABLE: &str = "CLOCKJACK_WEBDRIVER";
/// The tests take less than ninety seconds on a machine that does nothing else.
const TEST_LIMIT: Duration = Duration::from_secs(300);

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let root = workspace::root()?;
    let mut steps = Steps::new("browser", 3);
    let is_there = steps.step("Chromium and its driver", ensure);
    let cargo = |words: &str| Cmd::cargo().words(words).dir(&root);
    let is_built = is_there
        && steps.step("build the programs and the tests", |line| {
            let log = root.join("target/xtask/browser-build.log");
            cargo("build -p clockjack-shop --bins").run(line, &log)?;
            cargo("test -p clockjack-browser --test browser --no-run").run(line, &log)?;
            Ok(String::new())
        });
    if is_built {
        steps.step("the page in Chromium", |line| {
            let (_driver, url) = driver()?;
            let log = root.join("target/xtask/browser.log");
            // One browser per core.
            let cmd = cargo("test -p clockjack-browser --test browser -- --test-threads 2");
            let cmd = cmd.env(VARIABLE, &url).limit(TEST_LIMIT);
            cmd.stream(line, &log, |text| text.starts_with("test "))?;
            Ok("pictures are in target/browser".to_owned())
        });
    }
    steps.finish()
}

fn ensure(line: &Line) -> Result<String> {
    tool::ensure_apt(line, "Chromium with its driver", "chromium chromium-driver", || {
        tool::starts("chromium") && tool::starts("chromedriver")
    })?;
    let version = Cmd::new("chromium").arg("--version").capture()?;
    Ok(version.output.lines().last().unwrap_or_default().trim().to_owned())
}

/// Starts the driver on a port that was free a moment ago. The tests connect as soon as it listens.
fn driver() -> Result<(Held, String)> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    let port = free.local_addr()?.port();
    drop(free);
    let driver = Cmd::new("chromedriver").arg(format!("--port={port}")).hold()?;
    Ok((driver, format!("http://127.0.0.1:{port}")))
}
