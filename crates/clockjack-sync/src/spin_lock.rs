//! A spin lock (test-and-test-and-set) for short critical sections without user code.
//!
//! Test-and-test-and-set is from Rudolph and Segall ("Dynamic decentralized cache schemes for MIMD
//! parallel processors", 1984).
//!
//! Roles: any number of threads. One byte: false is unlocked, true is locked.
//!
//! 1. A thread exchanges false for true, and then has exclusive access to the value.
//! 2. The holder stores false when it leaves, also by a panic.
//!
//! 3. A thread that finds the lock held spins a bounded number of times, and then
//!    [waits](crate::backoff::wait) between its attempts, so that the holder runs even if the
//!    thread has preempted it.
//!
//! *Why no thread hangs*: the holder runs a few instructions of this project, calls neither user
//! code nor the allocator, and takes no second lock; so it unlocks soon. (There are
//! [exceptions](crate::backoff#longer-critical-sections).) While the holder is preempted, other
//! threads spin, and then leave the processor to it (rule 3). The lock is not fair.
//!
//! It is not for interrupts: an interrupt that finds the lock held by the code that it interrupted
//! would spin for ever; interrupts use [`SpinLock::try_with`]. It is not for user code: no closure,
//! waker, or drop of a user's value may run inside.
#![expect(
    unsafe_code,
    reason = "the holder of the lock has the value to itself; a function pointer is kept in an \
              atomic pointer"
)]

use core::{fmt, ptr, sync::atomic::AtomicPtr};

use crate::{
    backoff::{SPINS_MAX, wait},
    const_unless_loom,
    primitive::{
        IS_DEBUG, UnsafeCell,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed, Release},
        },
        hint,
    },
};

/// A value behind a spin lock; see the [module](self) for what may run inside.
///
/// # Examples
///
/// ```
/// use clockjack_sync::spin_lock::SpinLock;
///
/// static COUNT: SpinLock<u32> = SpinLock::new(1);
/// assert_eq!(COUNT.with(|count| core::mem::replace(count, 2)), 1);
/// assert_eq!(COUNT.try_with(|count| *count), Some(2));
/// ```
pub struct SpinLock<T> {
    is_held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the lock gives the value to one thread at a time, which may move it out (`T: Send`).
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for SpinLock<T> {}

impl<T> SpinLock<T> {
    const_unless_loom! {
        /// An unlocked lock around a value.
        #[must_use]
        pub const fn new(value: T) -> Self {
            Self { is_held: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }
    }

    /// Calls `f` with the value as soon as no other thread holds the lock.
    #[inline]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let guard = loop {
            if let Some(guard) = self.try_lock() {
                break guard;
            }
            self.spin_until_unlocked();
        };
        guard.run(f)
    }

    /// Calls `f` with the value if no other thread holds the lock.
    #[inline]
    pub fn try_with<R>(&self, f: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.try_lock().map(|guard| guard.run(f))
    }

    /// The value, through an exclusive borrow.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    #[inline]
    fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire: pairs with the unlock; this thread sees what the last holder did. Relaxed on
        // failure: nothing is read then.
        let won = self.is_held.compare_exchange(false, true, Acquire, Relaxed).is_ok();
        // Only the winner makes a guard, because dropping a guard unlocks.
        won.then(|| {
            observe(true);
            Guard(self)
        })
    }

    /// Spins on a load, so that the holder keeps the cache line. Rule 3.
    #[cold]
    fn spin_until_unlocked(&self) {
        let mut n_failed = 0_u32;
        // Relaxed: a hint; the exchange decides.
        while self.is_held.load(Relaxed) {
            n_failed = n_failed.saturating_add(1);
            if n_failed <= SPINS_MAX {
                hint::spin_loop();
            } else {
                wait(n_failed);
            }
        }
    }
}

/// Not of the facade, as in [`backoff`](crate::backoff): a model must not count it.
static OBSERVER: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// For tests of what happens under locks: each lock of the program calls the function with true
/// when a thread has taken the lock, and with false before the thread releases it. Only builds with
/// debug assertions call it.
#[doc(hidden)]
pub fn set_observer(observer: fn(bool)) {
    // Release: pairs with `observe`.
    OBSERVER.store(observer as *mut (), Release);
}

#[inline]
fn observe(is_held: bool) {
    if !IS_DEBUG {
        return;
    }
    // Acquire: pairs with `set_observer`.
    let observer = OBSERVER.load(Acquire);
    if !observer.is_null() {
        // SAFETY: only `set_observer` stores there, and stores a function of this type.
        let observer: fn(bool) = unsafe { core::mem::transmute::<*mut (), fn(bool)>(observer) };
        observer(is_held);
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> fmt::Debug for SpinLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpinLock").finish_non_exhaustive()
    }
}

/// Holds the lock; dropping it unlocks.
struct Guard<'a, T>(&'a SpinLock<T>);

impl<T> Guard<'_, T> {
    #[inline]
    fn run<R>(self, f: impl FnOnce(&mut T) -> R) -> R {
        self.0.value.with_mut(|value| {
            // SAFETY: the lock is held until `self` is dropped, so no other reference exists.
            f(unsafe { &mut *value })
        })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        observe(false);
        // Release: pairs with the exchange of the next holder.
        self.0.is_held.store(false, Release);
    }
}
