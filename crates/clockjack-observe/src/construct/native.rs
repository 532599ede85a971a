//! Constructors outside loom: `const`, so that every cell of this crate can be a `static`.
//!
//! `model.rs` is the counterpart; loom's atomics have no `const fn new`.

/// Declares a function that is `const` outside a loom model.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $($rest:tt)*) => {
        $(#[$meta])*
        $vis const fn $name $($rest)*
    };
}

/// An array of `n` values of one constructor expression.
macro_rules! filled {
    ($value:expr; $n:expr) => {
        [const { $value }; $n]
    };
}

pub(crate) use {const_fn, filled};
