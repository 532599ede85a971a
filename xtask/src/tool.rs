//! Tools beside cargo: found, or installed by name, or asked for in exact words.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{console::Line, process::Cmd, workspace};

/// A compiler whose library sources are at hand.
const RUST_PACKAGES: &str = "rustc-web cargo-web rust-web-src";
/// Where [`RUST_PACKAGES`] put the sources.
const RUST_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";

/// How often an installation is tried: a mirror may be in the middle of a change, or out of reach
/// for a moment.
const ATTEMPTS: u32 = 3;
/// For apt itself: again per file, patience with another apt, and none with a server that is mute.
const APT_OPTIONS: &str =
    "-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o Acquire::http::Timeout=30";

/// Makes sure that `tool` is there; installs the Debian `packages` if it is not.
///
/// # Errors
///
/// If it still is not there; the message is the command to type.
pub(crate) fn ensure_apt(
    line: &Line,
    tool: &str,
    packages: &str,
    is_there: impl Fn() -> bool,
) -> Result<()> {
    if is_there() {
        return Ok(());
    }
    let log = workspace::root()?.join("target/xtask/apt.log");
    let mut attempt = Ok(());
    for _ in 0..ATTEMPTS {
        attempt = install(line, packages, &log);
        if attempt.is_ok() && is_there() {
            return Ok(());
        }
    }
    let reason = attempt.err().map(|error| format!("\n{error:#}")).unwrap_or_default();
    bail!("{tool} is missing: apt-get install -y --no-install-recommends {packages}{reason}");
}

fn install(line: &Line, packages: &str, log: &Path) -> Result<()> {
    line.say(&format!("apt-get install -y --no-install-recommends {packages}"));
    let apt = || Cmd::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").words(APT_OPTIONS);
    apt().words("update -q").run(line, log)?;
    apt().words("install -q -y --no-install-recommends").words(packages).run(line, log)?;
    Ok(())
}

/// Whether `program --version` succeeds.
pub(crate) fn starts(program: &str) -> bool {
    Cmd::new(program).arg("--version").capture().is_ok_and(|finished| finished.is_success())
}

/// Makes sure that Debian's compiler and the sources of its library are there; says its version.
///
/// # Errors
///
/// As [`ensure_apt`].
pub(crate) fn ensure_debian_rust(line: &Line) -> Result<String> {
    ensure_apt(line, "a compiler with its library sources", RUST_PACKAGES, || {
        starts("/usr/bin/rustc") && starts("/usr/bin/cargo") && Path::new(RUST_SOURCE).is_file()
    })?;
    let version = debian("rustc").arg("--version").capture()?;
    Ok(version.output.trim().to_owned())
}

/// A program of Debian's toolchain, free of what the running cargo put into the environment.
pub(crate) fn debian(program: &str) -> Cmd {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut cmd = Cmd::new(Path::new("/usr/bin").join(program))
        .env("PATH", format!("/usr/bin:{path}"))
        .env("CARGO_TERM_COLOR", "never");
    for name in ["CARGO", "RUSTC", "RUSTDOC", "RUSTFLAGS", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"] {
        cmd = cmd.without_env(name);
    }
    cmd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_seen_as_missing() {
        assert!(!starts("clockjack-no-such-program"));
        assert!(starts("cargo"));
    }
}
