//! The facade on real hardware: `core` atomics, or `portable-atomic` where there is no
//! compare-exchange.

/// Atomic integers, fences and orderings.
pub mod atomic {
    #[cfg(target_has_atomic = "ptr")]
    pub use core::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
    };
    #[cfg(not(target_has_atomic = "ptr"))]
    pub use portable_atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicUsize, Ordering, fence,
    };

    #[cfg(target_has_atomic = "64")]
    pub use core::sync::atomic::AtomicU64;
}

/// What a waiting loop says to the processor.
pub mod hint {
    pub use core::hint::spin_loop;
}

/// `core::cell::UnsafeCell` in the shape that loom can watch: access goes through closures.
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
    /// Calls `f` with a pointer for reading. Dereferencing it is the caller's unsafe act.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing. Dereferencing it is the caller's unsafe act.
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
macro_rules! prim_array {
    ($element:expr; $n:expr) => {
        [const { $element }; $n]
    };
}
