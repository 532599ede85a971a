//! A value of any payload type, as channels store it: an inline number or a shared payload.

use core::{
    any::Any,
    fmt,
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicBool, Ordering},
};
use std::{
    panic::catch_unwind,
    sync::{Arc, Mutex},
};

use super::Data;
use crate::lock::lock;

/// An inline number, which is copied.
#[derive(Clone, Copy, Debug, PartialEq)]
#[doc(hidden)]
pub enum Small {
    Unit(()),
    Bool(bool),
    U8(u8),
    U32(u32),
    U64(u64),
    I32(i32),
    I64(i64),
    F32(f32),
    F64(f64),
}

macro_rules! each_small {
    ($small:expr, $one:ident => $do:expr) => {
        match $small {
            Small::Unit($one) => $do,
            Small::Bool($one) => $do,
            Small::U8($one) => $do,
            Small::U32($one) => $do,
            Small::U64($one) => $do,
            Small::I32($one) => $do,
            Small::I64($one) => $do,
            Small::F32($one) => $do,
            Small::F64($one) => $do,
        }
    };
}

/// A type-erased payload.
trait AnyData: Send + Sync {
    fn schema(&self) -> &'static str;
    fn encode(&self, out: &mut Vec<u8>);
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn copied(&self) -> Option<Box<dyn AnyData>>;
}

fn schema_of<T: Data>(_: &T) -> &'static str {
    T::SCHEMA
}

/// A payload, or the place of one that was taken.
struct Slot<T>(Option<T>);

impl<T: Data> AnyData for Slot<T> {
    fn schema(&self) -> &'static str {
        T::SCHEMA
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(value) = &self.0 {
            Data::encode(value, out);
        }
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn copied(&self) -> Option<Box<dyn AnyData>> {
        let mut bytes = Vec::new();
        Data::encode(self.0.as_ref()?, &mut bytes);
        T::decode(&bytes).ok().map(|copy| Box::new(Self(Some(copy))) as Box<dyn AnyData>)
    }
}

/// A value of any payload type.
///
/// A number is stored inline. Anything else is shared, and immutable while it has several owners.
pub(crate) struct Value(Inner);

/// One word, so that a value has two words: values are moved often.
type SharedPayload = Arc<Payload>;

const _: () = assert!(size_of::<Value>() == 2 * size_of::<u64>());

enum Inner {
    Small(Small),
    Shared(SharedPayload),
    Owned(Box<Payload>),
}

/// A type-erased payload. Values are dropped in many places, so a panic in a destructor is caught.
struct Payload {
    value: Option<Box<dyn AnyData>>,
    /// By the wiring of its port, it has one reader, who may take the value.
    is_single: bool,
    /// The only reader wanted to take the value. A hint for the port, which has another reference
    /// and looks at it when it has the only one; so no order of memory accesses depends on it.
    is_wanted: AtomicBool,
    /// Where the allocation goes when its value is taken: to the port that has published it.
    home: Option<Arc<Home>>,
}

/// The allocations of taken values, on their way back to the port that has published them. The
/// reader may run on another thread than the publisher. Each allocation here has no value and no
/// home, so no cycle of references keeps the list.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "the boxes themselves are what is used again")]
struct Home(Mutex<Vec<Box<Payload>>>);

impl Payload {
    fn new<T: Data>(value: T) -> Self {
        Self::with_readers(Box::new(Slot(Some(value))), false)
    }

    fn with_readers(value: Box<dyn AnyData>, is_single: bool) -> Self {
        Self { value: Some(value), is_single, is_wanted: AtomicBool::new(false), home: None }
    }

    /// Takes the value and leaves its place.
    fn take<T: Data>(&mut self) -> Option<T> {
        self.slot_mut::<T>()?.take()
    }

    #[inline]
    fn get<T: Data>(&self) -> Option<&T> {
        self.value.as_ref()?.any().downcast_ref::<Slot<T>>()?.0.as_ref()
    }

    /// The place of the value, if it is for this type.
    fn slot_mut<T: Data>(&mut self) -> Option<&mut Option<T>> {
        Some(&mut self.value.as_mut()?.any_mut().downcast_mut::<Slot<T>>()?.0)
    }

    fn schema(&self) -> &'static str {
        self.value.as_ref().map_or("", |value| value.schema())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(value) = &self.value {
            value.encode(out);
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let value = self.value.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(value))));
    }
}

impl Value {
    /// The placeholder for "no value".
    pub(crate) const UNIT: Self = Self(Inner::Small(Small::Unit(())));

    /// Overwrites an inline number, which needs no drop.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: Self) {
        debug_assert!(
            matches!(self.0, Inner::Small(_)),
            "only an inline number may be overwritten without a drop"
        );
        core::mem::forget(core::mem::replace(self, value));
    }

    /// Drops the value and leaves a placeholder. Does nothing for inline numbers.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        if !matches!(self.0, Inner::Small(_)) {
            self.release();
        }
    }

    #[cold]
    fn release(&mut self) {
        *self = Self::UNIT;
    }

    /// Creates a value that may be shared.
    #[must_use]
    pub(crate) fn new<T: Data>(value: T) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Shared(Arc::new(Payload::new(value)))),
        }
    }

    /// Creates a value with a single reader, who may [take](Self::take) it.
    #[must_use]
    #[inline]
    pub(crate) fn owned<T: Data>(value: T) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Owned(Box::new(Payload::new(value)))),
        }
    }

    /// Creates a value that may be shared, and reuses the allocation of an older value without
    /// owners.
    #[must_use]
    #[inline]
    pub(crate) fn recycled<T: Data>(value: T, cache: &mut PayloadCache) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) if cache.gives_away => Self(Inner::Owned(cache.put_owned(value))),
            Err(value) => Self(cache.put(value)),
        }
    }

    /// As [`owned`](Self::owned), and reuses the allocation of an older value that was taken.
    #[must_use]
    #[inline]
    pub(crate) fn recycled_owned<T: Data>(value: T, cache: &mut PayloadCache) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Owned(cache.put_owned(value))),
        }
    }

    /// The value, if it has this type.
    #[must_use]
    #[inline]
    pub(crate) fn get<T: Data>(&self) -> Option<&T> {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => (one as &dyn Any).downcast_ref()),
            Inner::Shared(shared) => shared.get(),
            Inner::Owned(owned) => owned.get(),
        }
    }

    /// Takes the value out, if it has this type and there is one reader: an inline number, a value
    /// from an edge that moves or copies, or one from a port with one reader.
    ///
    /// A port keeps a reference to what it has published, to reuse the memory. The first value that
    /// is taken from it is therefore copied; from then on the port gives its values away.
    ///
    /// # Errors
    ///
    /// The value itself is returned.
    pub(crate) fn take<T: Data>(self) -> Result<Taken<T>, Self> {
        if self.get::<T>().is_none() {
            return Err(self);
        }
        match self.0 {
            Inner::Small(small) => {
                let taken = each_small!(small, one => {
                    let mut one = Some(one);
                    (&mut one as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take)
                });
                Ok(Taken::moved(taken.expect("the type was checked")))
            }
            Inner::Owned(mut owned) => {
                let value = owned.take().expect("the type was checked");
                if let Some(home) = owned.home.take() {
                    home.put(owned);
                }
                Ok(Taken::moved(value))
            }
            Inner::Shared(shared) if !shared.is_single => Err(Self(Inner::Shared(shared))),
            Inner::Shared(shared) => match Arc::try_unwrap(shared) {
                Ok(mut payload) => Ok(Taken::moved(payload.take().expect("the type was checked"))),
                Err(shared) => {
                    shared.is_wanted.store(true, Ordering::Relaxed);
                    let mut bytes = Vec::new();
                    shared.encode(&mut bytes);
                    let copy = T::decode(&bytes);
                    copy.map(Taken::copied).map_err(|_| Self(Inner::Shared(shared)))
                }
            },
        }
    }

    /// A copy for one reader, who may [take](Self::take) it; `None` if the payload does not decode
    /// what it has encoded.
    pub(crate) fn copied(&self) -> Option<Self> {
        let payload = match &self.0 {
            Inner::Small(small) => return Some(Self(Inner::Small(*small))),
            Inner::Shared(shared) => &**shared,
            Inner::Owned(owned) => &**owned,
        };
        let copy = payload.value.as_ref()?.copied()?;
        Some(Self(Inner::Owned(Box::new(Payload::with_readers(copy, true)))))
    }

    /// Where its payload is, if it has one that may be shared.
    pub(crate) fn address(&self) -> Option<usize> {
        match &self.0 {
            Inner::Shared(shared) => Some(Arc::as_ptr(shared).addr()),
            Inner::Small(_) | Inner::Owned(_) => None,
        }
    }

    /// Whether it is an inline number, which is always copied.
    pub(crate) fn is_inline(&self) -> bool {
        matches!(self.0, Inner::Small(_))
    }

    /// The name of the payload type.
    #[must_use]
    pub(crate) fn schema(&self) -> &'static str {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => schema_of(one)),
            Inner::Shared(shared) => shared.schema(),
            Inner::Owned(owned) => owned.schema(),
        }
    }

    /// Appends the encoded value.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => Data::encode(one, out)),
            Inner::Shared(shared) => shared.encode(out),
            Inner::Owned(owned) => owned.encode(out),
        }
    }

    /// Converts the value to one that may be shared; `is_single`: it has one reader all the same.
    pub(crate) fn into_shared(self, is_single: bool) -> Self {
        match self.0 {
            Inner::Owned(mut owned) => {
                owned.is_single = is_single;
                Self(Inner::Shared(Arc::new(*owned)))
            }
            _ => self,
        }
    }

    /// The same value for another reader: a copy of the number, or another reference. `None` for a
    /// value with a single reader.
    #[must_use]
    #[inline]
    pub(crate) fn share(&self) -> Option<Self> {
        match &self.0 {
            Inner::Small(small) => Some(Self(Inner::Small(*small))),
            Inner::Shared(shared) => Some(Self(Inner::Shared(Arc::clone(shared)))),
            Inner::Owned(_) => None,
        }
    }
}

/// A value that was taken out.
pub(crate) struct Taken<T> {
    pub(crate) value: T,
    /// It is a copy.
    pub(crate) is_copy: bool,
}

impl<T> Taken<T> {
    fn moved(value: T) -> Self {
        Self { value, is_copy: false }
    }

    fn copied(value: T) -> Self {
        Self { value, is_copy: true }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => write!(f, "{one:?}")),
            _ => write!(f, "<{}>", self.schema()),
        }
    }
}

/// Allocations of shared values, reused once their values have no other owners. A port that
/// publishes the same type repeatedly allocates only as many as are in flight.
#[derive(Default)]
pub(crate) struct PayloadCache {
    cache: Vec<SharedPayload>,
    next: usize,
    /// The port has one reader, who may take the values.
    is_single: bool,
    /// The reader takes values, so they are not kept here.
    gives_away: bool,
    /// The allocations of values that were taken.
    home: Arc<Home>,
}

/// The maximum number of cached allocations per port. Beyond that, values are allocated and freed
/// as usual.
const CACHED_MAX: usize = 64;

impl PayloadCache {
    /// For a port with one reader, or with several.
    pub(crate) fn new(is_single: bool) -> Self {
        Self { is_single, ..Self::default() }
    }

    pub(crate) fn is_single(&self) -> bool {
        self.is_single
    }

    fn put<T: Data>(&mut self, value: T) -> Inner {
        let n_cached = self.cache.len();
        for _ in 0..n_cached {
            self.next = (self.next + 1) % n_cached;
            let slot = &mut self.cache[self.next];
            let Some(old) = Arc::get_mut(slot) else { continue };
            if *old.is_wanted.get_mut() {
                self.gives_away = true;
                self.cache.clear();
                return Inner::Owned(self.put_owned(value));
            }
            if let Some(old) = old.slot_mut::<T>() {
                *old = Some(value);
                return Inner::Shared(Arc::clone(slot));
            }
        }
        let fresh = Payload::with_readers(Box::new(Slot(Some(value))), self.is_single);
        let fresh: SharedPayload = Arc::new(fresh);
        if n_cached < CACHED_MAX {
            self.cache.push(Arc::clone(&fresh));
        }
        Inner::Shared(fresh)
    }

    /// A value with one reader, in the allocation of one that was taken, if there is any.
    fn put_owned<T: Data>(&mut self, value: T) -> Box<Payload> {
        let empty = lock(&self.home.0).pop();
        if let Some(mut place) = empty
            && let Some(slot) = place.slot_mut::<T>()
        {
            *slot = Some(value);
            place.home = Some(Arc::clone(&self.home));
            return place;
        }
        let mut fresh = Box::new(Payload::new(value));
        fresh.home = Some(Arc::clone(&self.home));
        fresh
    }
}

impl Home {
    /// Takes back the allocation of a value that was taken. Values beyond the bound are freed.
    fn put(&self, place: Box<Payload>) {
        let mut empty = lock(&self.0);
        if empty.len() < CACHED_MAX {
            empty.push(place);
        }
    }
}

impl fmt::Debug for PayloadCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("len", &self.cache.len()).finish_non_exhaustive()
    }
}
