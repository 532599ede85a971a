//! Tools beside cargo: found, or installed by name, or asked for in exact words.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{console::Line, process::Cmd, workspace};

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
    let attempt = install(line, packages, &log);
    if attempt.is_ok() && is_there() {
        return Ok(());
    }
    let reason = attempt.err().map(|error| format!("\n{error:#}")).unwrap_or_default();
    bail!("{tool} is missing: apt-get install -y --no-install-recommends {packages}{reason}");
}

fn install(line: &Line, packages: &str, log: &Path) -> Result<()> {
    line.say(&format!("apt-get install -y --no-install-recommends {packages}"));
    let apt = || Cmd::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive");
    apt().words("update -q").run(line, log)?;
    apt().words("install -q -y --no-install-recommends").words(packages).run(line, log)?;
    Ok(())
}

/// Whether `program --version` succeeds.
pub(crate) fn starts(program: &str) -> bool {
    Cmd::new(program).arg("--version").capture().is_ok_and(|finished| finished.is_success())
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
