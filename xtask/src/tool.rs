//! External tools: finds them, or installs them, or prints the command that installs them.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{console::Line, process::Cmd, workspace};

/// A compiler with the sources of its library.
const RUST_PACKAGES: &str = "rustc-web cargo-web rust-web-src";
/// Where [`RUST_PACKAGES`] install the sources.
const RUST_SOURCE: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";

/// How often an installation is tried: a mirror may be inconsistent or unreachable for a moment.
const ATTEMPTS: u32 = 3;
/// Options of apt: retry each file, wait for another apt process, and give a server that does not
/// answer a short timeout.
const APT_OPTIONS: &str =
    "-o Acquire::Retries=3 -o DPkg::Lock::Timeout=120 -o Acquire::http::Timeout=30";

/// Checks that `tool` is available; installs the Debian `packages` if it is not.
///
/// # Errors
///
/// If the tool is still missing; the message contains the command to type.
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

/// Checks that Debian's compiler and the sources of its library are available; returns the version.
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

/// A program of Debian's toolchain, without the environment variables that the running cargo has
/// set.
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
