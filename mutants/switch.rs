//! The switch of the planted faults: is the fault of this name on?
//!
//! This file is part of the copy of the tree that `cargo xtask mutants` builds, as the module
//! `mutant` of `clockjack-sync`. The product does not contain it.

extern crate std;

use std::{
    env,
    ffi::{OsStr, OsString},
    sync::OnceLock,
};

/// Whether the fault of this name is on.
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_on($name)
    };
}

/// Whether the environment of this process names the fault in `CLOCKJACK_MUTANT`.
#[doc(hidden)]
pub fn is_on(name: &str) -> bool {
    static CHOSEN: OnceLock<Option<OsString>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| env::var_os("CLOCKJACK_MUTANT"));
    chosen.as_deref() == Some(OsStr::new(name))
}
