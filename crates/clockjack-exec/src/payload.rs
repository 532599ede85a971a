//! A value whose type is known only to those at both ends, and a list of such values.
//!
//! Results and arguments of processes travel through code that is compiled once and knows none of
//! their types. Three words of a value are carried inline, since most results are a number, a
//! reference or a `String`; what is greater, or wants a stricter alignment, is boxed.
//!
//! # Layout and invariant
//!
//! ```text
//! Payload  | room: 3 words            | table: 1 word, never null |
//! inline:    the value, from the start
//! boxed:     *mut T, from `Box::into_raw`
//! ```
//!
//! `table` is `Of::<T>::TABLE` of the type `T` that the payload was made from, and `room` holds one
//! initialised `T` in the form that `is_inline::<T>()` says. Both were written by [`Payload::new`]
//! and are never changed, so a type id that is equal to that of `T` proves what is in the room. The
//! value leaves once: by [`Payload::downcast`], which forgets the payload, or by its drop.
#![expect(unsafe_code, reason = "keeps values of any type in untyped memory")]

use alloc::boxed::Box;
use core::{
    any::{Any, TypeId, type_name},
    fmt,
    marker::PhantomData,
    mem::{ManuallyDrop, MaybeUninit},
};

mod list;

pub use list::{IntoIter, Payloads, TakeError};

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
    room: Room,
    table: &'static Table,
    /// The room says nothing of the value. This does: it can be sent, as `new` asks for that, and
    /// must not be shared, as `new` does not ask for that.
    _holds: PhantomData<dyn Any + Send>,
}

const _: () = assert!(size_of::<Payload>() == 4 * size_of::<usize>());
const _: () = assert!(size_of::<Option<Payload>>() == 4 * size_of::<usize>());

impl Payload {
    /// Hides the type of a value; allocates if it has more than three words or a strict alignment.
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
        let mut room = Room::uninit();
        if is_inline::<T>() {
            // SAFETY: the room is ours, large enough and aligned for a `T` as `is_inline` says.
            unsafe { room.as_mut_ptr().cast::<T>().write(value) };
        } else {
            let boxed: *mut T = Box::into_raw(Box::new(value));
            // SAFETY: the room is ours, and is larger than a pointer and aligned for one.
            unsafe { room.as_mut_ptr().cast::<*mut T>().write(boxed) };
        }
        Self { room, table: Of::<T>::TABLE, _holds: PhantomData }
    }

    /// The payload of whoever has nothing to say.
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
        // SAFETY: the value is a `T`, so by the invariant the room holds one; it is borrowed.
        let value = unsafe { value_of::<T>(&raw const self.room) };
        // SAFETY: the value is a `T`, so by the invariant `value` points to an initialised one: in
        // the room, or in a box that the payload owns. It lives and is not written as long as the
        // payload is borrowed.
        Some(unsafe { &*value })
    }

    /// Takes the value out.
    ///
    /// # Errors
    ///
    /// The payload itself, if the value is no `T`.
    pub fn downcast<T: 'static>(self) -> Result<T, Self> {
        if !self.is::<T>() {
            return Err(self);
        }
        // The value leaves by the read below; the payload must not drop it too.
        let this = ManuallyDrop::new(self);
        let room = &raw const this.room;
        if is_inline::<T>() {
            // SAFETY: the value is an inline `T`, so the room holds one, aligned; nobody reads it
            // after this, since the payload is lazy_cancels.
            Ok(unsafe { room.cast::<T>().read() })
        } else {
            // SAFETY: the value is a `T`, so by the invariant the room holds one; `this` is alive.
            let boxed = unsafe { value_of::<T>(room) }.cast_mut();
            // SAFETY: the value is a boxed `T`, so `boxed` came from `Box::into_raw`, and nobody
            // uses it after this, since the payload is lazy_cancels.
            Ok(*unsafe { Box::from_raw(boxed) })
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        // SAFETY: by the invariant the room holds a value of the table's type in the form that
        // its function expects; this is the drop, so the function is called once.
        unsafe { (self.table.drop)(&raw mut self.room) };
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&format_args!("{}", self.type_name())).finish()
    }
}

/// Three words of anything: copied as they are, with the provenance of pointers among them.
type Room = MaybeUninit<[usize; 3]>;

/// What is known of the type of a value.
struct Table {
    type_id: TypeId,
    type_name: fn() -> &'static str,
    /// Drops the value in the room, and frees its box if it has one.
    ///
    /// # Safety
    ///
    /// The room holds an initialised value of the table's type; it is not used afterwards.
    drop: unsafe fn(*mut Room),
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
    size_of::<T>() <= size_of::<Room>() && align_of::<T>() <= align_of::<Room>()
}

/// Where the value is.
///
/// # Safety
///
/// `room` is valid for reads and holds a `T` in the form that `is_inline` says.
unsafe fn value_of<T>(room: *const Room) -> *const T {
    if is_inline::<T>() {
        room.cast()
    } else {
        // SAFETY: the caller promises a room that is valid, thus aligned for pointers, and that it
        // holds the `*mut T` of `new`.
        unsafe { room.cast::<*mut T>().read() }
    }
}

/// # Safety
///
/// As for [`Table::drop`], with an inline `T`.
unsafe fn drop_inline<T>(room: *mut Room) {
    // SAFETY: the caller promises an initialised `T` in the room that nobody uses afterwards, and
    // `is_inline` that it is aligned.
    unsafe { room.cast::<T>().drop_in_place() };
}

/// # Safety
///
/// As for [`Table::drop`], with a boxed `T`.
unsafe fn drop_boxed<T>(room: *mut Room) {
    // SAFETY: the caller promises that the room holds the pointer that `new` wrote.
    let boxed = unsafe { room.cast::<*mut T>().read() };
    // SAFETY: it came from `Box::into_raw`, and the caller promises that nobody uses it again.
    drop(unsafe { Box::from_raw(boxed) });
}
