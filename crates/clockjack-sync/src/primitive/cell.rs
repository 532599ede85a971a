//! The plain cell, and the macros for primitives that can be built in a constant.

/// `core::cell::UnsafeCell` with the interface of the loom cell: access goes through closures.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Calls `f` with a pointer for reading. The caller dereferences it, which is unsafe.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing. The caller dereferences it, which is unsafe.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// The value, through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// Defines a `const fn`; under loom, whose primitives cannot be built in a constant, a plain one.
#[doc(hidden)]
#[macro_export]
macro_rules! const_unless_loom {
    ($(#[$attr:meta])* $vis:vis const fn $($rest:tt)*) => {
        $(#[$attr])* $vis const fn $($rest)*
    };
}

/// An array of primitives, each made by the same expression.
#[doc(hidden)]
#[macro_export]
macro_rules! primitive_array {
    ($element:expr; $n:expr) => {
        [const { $element }; $n]
    };
}
