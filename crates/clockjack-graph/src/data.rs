//! Payloads: typed values that can be encoded.

mod array;
mod blob;
mod error;
pub(crate) mod fields;
mod frame;
mod pool;
pub(crate) mod value;

pub use blob::Blob;
pub use error::DataError;
pub use frame::{Frame, PixelFormat};
pub use pool::{BufferLoan, BufferPool, PoolStats};
#[doc(hidden)]
pub use value::Small;
pub(crate) use value::Value;

/// A payload. Commit logs and loops compare the bytes of [`encode`](Self::encode), so equal values
/// must have equal bytes on every machine.
///
/// A struct or an enum whose fields are payloads derives it; the schema is the name of the type,
/// unless an option says otherwise:
///
/// ```
/// use clockjack_graph::Data;
///
/// #[derive(Data, Debug, PartialEq)]
/// #[data(schema = "track")]
/// struct Track {
///     id: u32,
///     position: Vec<f64>,
///     label: String,
/// }
///
/// let track = Track { id: 7, position: vec![1.0, 2.5], label: "car".into() };
/// let mut bytes = Vec::new();
/// track.encode(&mut bytes);
/// assert_eq!(Track::decode(&bytes), Ok(track));
/// assert_eq!(Track::SCHEMA, "track");
/// ```
pub trait Data: Send + Sync + Sized + 'static {
    /// The name of the type. Ports with different names cannot be connected.
    const SCHEMA: &'static str;

    /// Appends the encoded value.
    fn encode(&self, out: &mut Vec<u8>);

    /// Decodes a value.
    ///
    /// # Errors
    ///
    /// [`DataError`], if the bytes are not an encoded value.
    fn decode(bytes: &[u8]) -> Result<Self, DataError>;

    /// The value as an inline number, if it is one: inline numbers are copied instead of shared.
    ///
    /// # Errors
    ///
    /// The value itself, if it is not a number. This is the default, and correct for all types
    /// outside of this crate.
    #[doc(hidden)]
    fn into_small(self) -> Result<Small, Self> {
        Err(self)
    }
}

macro_rules! numbers {
    ($( $type:ty, $schema:literal, $small:ident; )+) => { $(
        impl Data for $type {
            const SCHEMA: &'static str = $schema;

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn decode(bytes: &[u8]) -> Result<Self, DataError> {
                let bytes = bytes.try_into().map_err(|_| DataError::new($schema, "wrong length"))?;
                Ok(Self::from_le_bytes(bytes))
            }

            fn into_small(self) -> Result<Small, Self> {
                Ok(Small::$small(self))
            }
        }
    )+ };
}

numbers! {
    u8, "u8", U8;
    u32, "u32", U32;
    u64, "u64", U64;
    i32, "i32", I32;
    i64, "i64", I64;
    f32, "f32", F32;
    f64, "f64", F64;
}

impl Data for bool {
    const SCHEMA: &'static str = "bool";

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        match bytes {
            [0] => Ok(false),
            [1] => Ok(true),
            _ => Err(DataError::new(Self::SCHEMA, "neither 0 nor 1")),
        }
    }

    fn into_small(self) -> Result<Small, Self> {
        Ok(Small::Bool(self))
    }
}

impl Data for () {
    const SCHEMA: &'static str = "unit";

    fn encode(&self, _out: &mut Vec<u8>) {}

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        if bytes.is_empty() { Ok(()) } else { Err(DataError::new(Self::SCHEMA, "not empty")) }
    }

    fn into_small(self) -> Result<Small, Self> {
        Ok(Small::Unit(()))
    }
}

impl Data for String {
    const SCHEMA: &'static str = "text";

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        core::str::from_utf8(bytes)
            .map(Self::from)
            .map_err(|_| DataError::new(Self::SCHEMA, "not UTF-8"))
    }
}

impl Data for Vec<u8> {
    const SCHEMA: &'static str = "bytes";

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        Ok(bytes.to_vec())
    }
}

impl Data for Vec<f64> {
    const SCHEMA: &'static str = "f64[]";

    fn encode(&self, out: &mut Vec<u8>) {
        for one in self {
            out.extend_from_slice(&one.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        let (whole, rest) = bytes.as_chunks::<8>();
        if rest.is_empty() {
            Ok(whole.iter().map(|one| f64::from_le_bytes(*one)).collect())
        } else {
            Err(DataError::new(Self::SCHEMA, "not a multiple of eight bytes"))
        }
    }
}
