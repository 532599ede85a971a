//! Constructors under loom: ordinary functions, because loom registers each atomic at run time.
//!
//! `native.rs` is the counterpart.

/// Declares a function that is `const` outside a loom model.
macro_rules! const_fn {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $($rest:tt)*) => {
        $(#[$meta])*
        $vis fn $name $($rest)*
    };
}

/// An array of `n` values of one constructor expression.
macro_rules! filled {
    ($value:expr; $n:expr) => {
        core::array::from_fn(|_| $value)
    };
}

pub(crate) use {const_fn, filled};
