//! A value of some type, as channels hold it: a number in place, or something shared.

use core::{any::Any, fmt, panic::AssertUnwindSafe};
use std::{panic::catch_unwind, sync::Arc};

use super::Data;

/// A number. It is copied wherever it goes.
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

/// A payload of which only its reader knows the type.
trait AnyData: Send + Sync {
    fn schema(&self) -> &'static str;
    fn encode(&self, out: &mut Vec<u8>);
    fn any(&self) -> &dyn Any;
    fn any_mut(&mut self) -> &mut dyn Any;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

impl<T: Data> AnyData for T {
    fn schema(&self) -> &'static str {
        T::SCHEMA
    }

    fn encode(&self, out: &mut Vec<u8>) {
        Data::encode(self, out);
    }

    fn any(&self) -> &dyn Any {
        self
    }

    fn any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A value of some type.
///
/// A number stands in it; anything else is shared, and is not changed while anybody else has it.
pub struct Value(Inner);

/// One word, so that a value is two: it is moved at every step of its way.
type Thin = Arc<Payload>;

const _: () = assert!(size_of::<Value>() == 2 * size_of::<u64>());

enum Inner {
    Small(Small),
    Shared(Thin),
    Owned(Box<Payload>),
}

/// Something of which only itself knows the type. Values are dropped wherever they happen to lie:
/// one that panics then must harm nobody.
struct Payload(Option<Box<dyn AnyData>>);

impl Payload {
    fn new<T: Data>(value: T) -> Self {
        Self(Some(Box::new(value)))
    }

    #[inline]
    fn get<T: Data>(&self) -> Option<&T> {
        self.0.as_ref()?.any().downcast_ref()
    }

    fn get_mut<T: Data>(&mut self) -> Option<&mut T> {
        self.0.as_mut()?.any_mut().downcast_mut()
    }

    fn schema(&self) -> &'static str {
        self.0.as_ref().map_or("", |value| value.schema())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        if let Some(value) = &self.0 {
            value.encode(out);
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        let value = self.0.take();
        drop(catch_unwind(AssertUnwindSafe(|| drop(value))));
    }
}

impl Value {
    /// None to speak of.
    pub(crate) const UNIT: Self = Self(Inner::Small(Small::Unit(())));

    /// Takes the place of a number, which needs no care.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: Self) {
        debug_assert!(matches!(self.0, Inner::Small(_)), "it would be lost");
        core::mem::forget(core::mem::replace(self, value));
    }

    /// Lets go of the value, unless it is a number, and leaves one.
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

    /// A value that may be shared.
    #[must_use]
    pub fn new<T: Data>(value: T) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Shared(Arc::new(Payload::new(value)))),
        }
    }

    /// A value that has one reader, who may [take](Self::take) it.
    #[must_use]
    #[inline]
    pub fn owned<T: Data>(value: T) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Owned(Box::new(Payload::new(value)))),
        }
    }

    /// A value that may be shared, in the place of an older one that nobody has any more.
    #[must_use]
    #[inline]
    pub fn recycled<T: Data>(value: T, places: &mut Places) -> Self {
        match value.into_small() {
            Ok(small) => Self(Inner::Small(small)),
            Err(value) => Self(Inner::Shared(places.put(value))),
        }
    }

    /// The value, if it is of this type.
    #[must_use]
    #[inline]
    pub fn get<T: Data>(&self) -> Option<&T> {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => (one as &dyn Any).downcast_ref()),
            Inner::Shared(shared) => shared.get(),
            Inner::Owned(owned) => owned.get(),
        }
    }

    /// The value itself, if it is of this type and nobody else can have it: a number, or one that
    /// came over a `move_only` edge.
    ///
    /// # Errors
    ///
    /// The value comes back.
    pub fn take<T: Data>(self) -> Result<T, Self> {
        if self.get::<T>().is_none() {
            return Err(self);
        }
        match self.0 {
            Inner::Small(small) => {
                let taken = each_small!(small, one => {
                    let mut one = Some(one);
                    (&mut one as &mut dyn Any).downcast_mut::<Option<T>>().and_then(Option::take)
                });
                Ok(taken.expect("it was seen to be of this type"))
            }
            Inner::Owned(mut owned) => {
                let taken = owned.0.take().and_then(|value| value.into_any().downcast::<T>().ok());
                Ok(*taken.expect("it was seen to be of this type"))
            }
            Inner::Shared(_) => Err(self),
        }
    }

    /// The name of its type.
    #[must_use]
    pub fn schema(&self) -> &'static str {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => AnyData::schema(one)),
            Inner::Shared(shared) => shared.schema(),
            Inner::Owned(owned) => owned.schema(),
        }
    }

    /// Appends its bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.0 {
            Inner::Small(small) => each_small!(small, one => Data::encode(one, out)),
            Inner::Shared(shared) => shared.encode(out),
            Inner::Owned(owned) => owned.encode(out),
        }
    }

    /// The value as one that may be shared.
    pub(crate) fn into_shared(self) -> Self {
        match self.0 {
            Inner::Owned(owned) => Self(Inner::Shared(Arc::new(*owned))),
            _ => self,
        }
    }

    /// The same value for another reader: the number again, or another share. `None` for one that
    /// has one reader only.
    #[must_use]
    #[inline]
    pub fn share(&self) -> Option<Self> {
        match &self.0 {
            Inner::Small(small) => Some(Self(Inner::Small(*small))),
            Inner::Shared(shared) => Some(Self(Inner::Shared(Arc::clone(shared)))),
            Inner::Owned(_) => None,
        }
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

/// Places of shared values that are used again once nobody has the value in them, so that a port
/// that publishes the same type again and again allocates only for as many as are under way.
#[derive(Default)]
pub struct Places {
    places: Vec<Thin>,
    next: usize,
}

/// Places that a port keeps at most. Beyond, a value is allocated and freed as usual.
const PLACES_MAX: usize = 64;

impl Places {
    fn put<T: Data>(&mut self, value: T) -> Thin {
        let n_places = self.places.len();
        for _ in 0..n_places {
            self.next = (self.next + 1) % n_places;
            let place = &mut self.places[self.next];
            let Some(old) = Arc::get_mut(place) else { continue };
            if let Some(old) = old.get_mut::<T>() {
                *old = value;
                return Arc::clone(place);
            }
        }
        let fresh: Thin = Arc::new(Payload::new(value));
        if n_places < PLACES_MAX {
            self.places.push(Arc::clone(&fresh));
        }
        fresh
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Places").field("len", &self.places.len()).finish_non_exhaustive()
    }
}
