//! The limit of open files. A shell usually gives a program 1,024, and each connection needs one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of this process as far as it may, if it is below `wanted`, and returns the
/// limit.
#[must_use]
pub fn raise(wanted: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let current = current.unwrap_or(u64::MAX);
    let raised = maximum.unwrap_or(u64::MAX).min(wanted);
    if raised <= current {
        return current;
    }
    let limit = Rlimit { current: Some(raised), maximum };
    if setrlimit(Resource::Nofile, limit).is_ok() { raised } else { current }
}
