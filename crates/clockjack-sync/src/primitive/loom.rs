//! The facade under loom: the same names, every access explored by the model checker.
#![expect(unsafe_code, reason = "turns an exclusive borrow of a loom cell into a reference")]

/// Atomic integers, fences and orderings.
pub mod atomic {
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        fence,
    };
}

/// The hint of a waiting loop to the scheduler of the model.
pub mod hint {
    pub use loom::hint::spin_loop;
}

/// loom's cell, which reports two accesses that are not ordered by happens-before.
#[derive(Debug)]
pub struct UnsafeCell<T>(loom::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }

    /// Calls `f` with a pointer for reading.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.0.with(f)
    }

    /// Calls `f` with a pointer for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(f)
    }

    /// The value, through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.with_mut(|value| {
            // SAFETY: `&mut self` proves that no other borrow of the cell exists.
            unsafe { &mut *value }
        })
    }
}

/// Defines a plain `fn` where the shipped build has a `const fn`.
#[doc(hidden)]
#[macro_export]
macro_rules! const_unless_loom {
    ($(#[$attr:meta])* $vis:vis const fn $($rest:tt)*) => {
        $(#[$attr])* $vis fn $($rest)*
    };
}

/// An array of primitives, each made by the same expression.
#[doc(hidden)]
#[macro_export]
macro_rules! primitive_array {
    ($element:expr; $n:expr) => {
        ::core::array::from_fn::<_, { $n }, _>(|_| $element)
    };
}
