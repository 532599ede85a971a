//! Prefetching, for targets without an instruction that stable Rust has a function for.

/// Whether [`prefetch`] does anything.
pub const IS_SUPPORTED: bool = false;

/// Does nothing.
#[inline(always)]
pub const fn prefetch<T>(_: *const T) {}
