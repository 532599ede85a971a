//! Mutants: deliberate faults that a model must find. The macro asks "is mutant NAME switched on?".
//!
//! In an ordinary build [`mutant!`](crate::mutant!) is the constant `false` and leaves no code.
//! With `--cfg mutants` the macro compares its name with the environment variable
//! `CLOCKJACK_MUTANT`, so one build serves every mutant. `mutants.toml` in each crate lists the
//! mutants with the test that must fail; `cargo xtask mutants` runs them all.

/// Whether the mutant of this name is switched on; the constant `false` outside `--cfg mutants`.
#[doc(hidden)]
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {
        $crate::mutant::is_on($name)
    };
}

/// Whether `name` is the mutant that this process was started with.
#[cfg(mutants)]
#[doc(hidden)]
pub fn is_on(name: &str) -> bool {
    use std::{
        env,
        ffi::{OsStr, OsString},
        sync::OnceLock,
    };
    static CHOSEN: OnceLock<Option<OsString>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| env::var_os("CLOCKJACK_MUTANT"));
    chosen.as_deref() == Some(OsStr::new(name))
}

/// Without `--cfg mutants` there are none.
#[cfg(not(mutants))]
#[doc(hidden)]
#[inline(always)]
pub const fn is_on(_name: &str) -> bool {
    false
}
