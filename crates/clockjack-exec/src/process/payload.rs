//! A value whose type only the sender and the receiver know, and a list of such values.
//!
//! Results and arguments of processes pass through code that is compiled once and knows none of
//! their types. Values of up to three words are stored inline, because most results are a number, a
//! reference or a `String`; larger values, and those with a stricter alignment, are boxed.
//!
//! # Layout and invariant
//!
//! ```text
//! Payload  | storage: 3 words         | table: 1 word, never null |
//! inline:    the value, from the start
//! boxed:     *mut T, from `Box::into_raw`
//! ```
//!
//! `table` is `Of::<T>::TABLE` of the type `T` that the payload was made from, and `storage` holds
//! one initialised `T` in the form that `is_inline::<T>()` says. [`Payload::new`] writes both, and
//! nobody changes them, so a type id that is equal to that of `T` proves what is in the storage.
//! The value leaves once: by [`Payload::downcast`], which forgets the payload, or by its drop.
#![expect(unsafe_code, reason = "keeps values of any type in untyped memory")]

use alloc::boxed::Box;
use core::{
    any::{Any, TypeId, type_name},
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
};

mod list;

pub use list::{Payloads, TakeError};

/// A value of some type that can be sent to another thread.
///
/// # Examples
///
/// ```
/// use clockjack_exec::payload::Payload;
///
/// let payload = Payload::new(String::from("seven"));
/// let payload = payload.downcast::<u32>().unwrap_err();
/// assert!(payload.is::<String>());
/// assert_eq!(payload.downcast::<String>().unwrap(), "seven");
/// ```
pub struct Payload {
    storage: Storage,
    table: &'static Table,
    /// The storage says nothing about the value. This does: the value can be sent, because `new`
    /// requires that, and must not be shared, because `new` does not require that.
    _holds: PhantomData<dyn Any + Send>,
}

const _: () = assert!(size_of::<Payload>() == 4 * size_of::<usize>());
const _: () = assert!(size_of::<Option<Payload>>() == 4 * size_of::<usize>());

impl Payload {
    /// Erases the type of a value; allocates if it has more than three words or a strict alignment.
    pub fn new<T: Send + 'static>(value: T) -> Self {
        // SAFETY: the type is `Send`.
        unsafe { Self::new_unchecked(value) }
    }

    /// As [`new`](Self::new), where the compiler cannot see that the type is `Send`.
    ///
    /// # Safety
    ///
    /// The value may be sent to another thread.
    pub(crate) unsafe fn new_unchecked<T: 'static>(value: T) -> Self {
        let mut storage = Storage::uninit();
        if is_inline::<T>() {
            // SAFETY: this function owns the storage, which `is_inline` says is large enough and
            // aligned for a `T`.
            unsafe { storage.as_mut_ptr().cast::<T>().write(value) };
        } else {
            let boxed: *mut T = Box::into_raw(Box::new(value));
            // SAFETY: this function owns the storage, which is larger than a pointer and aligned
            // for one.
            unsafe { storage.as_mut_ptr().cast::<*mut T>().write(boxed) };
        }
        Self { storage, table: Of::<T>::TABLE, _holds: PhantomData }
    }

    /// An empty payload: `()`.
    #[must_use]
    pub fn unit() -> Self {
        Self::new(())
    }

    /// Whether the value is a `T`.
    #[must_use]
    pub fn is<T: 'static>(&self) -> bool {
        self.table.type_id == TypeId::of::<T>()
    }

    /// The name of the type of the value, for reports: not unique, not the same for all compilers.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        (self.table.type_name)()
    }

    /// The value, if it is a `T`.
    #[must_use]
    pub fn downcast_ref<T: 'static>(&self) -> Option<&T> {
        if !self.is::<T>() {
            return None;
        }
        // SAFETY: the value is a `T`, so by the invariant the storage holds one; it is borrowed.
        let value = unsafe { value_of::<T>(&raw const self.storage) };
        // SAFETY: the value is a `T`, so by the invariant `value` points to an initialised one: in
        // the storage, or in a box that the payload owns. It lives and is not written as long as
        // the payload is borrowed.
        Some(unsafe { &*value })
    }

    /// Takes the value out.
    ///
    /// # Errors
    ///
    /// The payload itself, if the value is not a `T`.
    pub fn downcast<T: 'static>(self) -> Result<T, Self> {
        if !self.is::<T>() {
            return Err(self);
        }
        // The read below moves the value out; the payload must not drop it too.
        let this = ManuallyDrop::new(self);
        let storage = &raw const this.storage;
        if is_inline::<T>() {
            // SAFETY: the value is an inline `T`, so the storage holds one, aligned; nobody reads
            // it after this, because the payload is forgotten.
            Ok(unsafe { storage.cast::<T>().read() })
        } else {
            // SAFETY: the value is a `T`, so by the invariant the storage holds one; `this` is
            // alive.
            let boxed = unsafe { value_of::<T>(storage) }.cast_mut();
            // SAFETY: the value is a boxed `T`, so `boxed` came from `Box::into_raw`, and nobody
            // uses it after this, because the payload is forgotten.
            Ok(*unsafe { Box::from_raw(boxed) })
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: by the invariant the storage holds a value of the table's type in the form that
        // its function expects; this is the drop, so the function is called once.
        unsafe { (self.table.drop)(&raw mut self.storage) };
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&format_args!("{}", self.type_name())).finish()
    }
}

/// Three words of any kind: copied unchanged, with the provenance of pointers among them.
type Storage = MaybeUninit<[usize; 3]>;

/// What is known about the type of a value.
struct Table {
    type_id: TypeId,
    type_name: fn() -> &'static str,
    /// Drops the value in the storage, and frees its box if it has one.
    ///
    /// # Safety
    ///
    /// The storage holds an initialised value of the table's type; it is not used afterwards.
    drop: unsafe fn(*mut Storage),
}

struct Of<T>(PhantomData<T>);

impl<T: 'static> Of<T> {
    const TABLE: &'static Table = &Table {
        type_id: TypeId::of::<T>(),
        type_name: type_name::<T>,
        drop: if is_inline::<T>() { drop_inline::<T> } else { drop_boxed::<T> },
    };
}

const fn is_inline<T>() -> bool {
    size_of::<T>() <= size_of::<Storage>() && align_of::<T>() <= align_of::<Storage>()
}

/// Where the value is.
///
/// # Safety
///
/// `storage` is valid for reads and holds a `T` in the form that `is_inline` says.
unsafe fn value_of<T>(storage: *const Storage) -> *const T {
    if is_inline::<T>() {
        storage.cast()
    } else {
        // SAFETY: the caller promises a valid storage, thus aligned for pointers, and that it holds
        // the `*mut T` of `new`.
        unsafe { storage.cast::<*mut T>().read() }
    }
}

/// # Safety
///
/// As for [`Table::drop`], with an inline `T`.
unsafe fn drop_inline<T>(storage: *mut Storage) {
    // SAFETY: the caller promises an initialised `T` in the storage that nobody uses afterwards,
    // and `is_inline` says that it is aligned.
    unsafe { storage.cast::<T>().drop_in_place() };
}

/// # Safety
///
/// As for [`Table::drop`], with a boxed `T`.
unsafe fn drop_boxed<T>(storage: *mut Storage) {
    // SAFETY: the caller promises that the storage holds the pointer that `new` wrote.
    let boxed = unsafe { storage.cast::<*mut T>().read() };
    // SAFETY: it came from `Box::into_raw`, and the caller promises that nobody uses it again.
    drop(unsafe { Box::from_raw(boxed) });
}
