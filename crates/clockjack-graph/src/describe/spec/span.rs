//! Locations in a text, and the values of free settings.

/// A location in the text: the bytes from `start` up to, but excluding, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last one.
    pub end: u32,
}

impl Span {
    /// The span of a graph that was built in code.
    pub const NONE: Self = Self { start: 0, end: 0 };

    /// Whether there is no location.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.end == 0
    }
}

/// A text and its name in reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// The name of the file, or a substitute.
    pub name: String,
    /// The text.
    pub text: String,
}

/// The locations of the fields of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSpans {
    /// The location of the whole item.
    pub item: Span,
    /// The location of the value of each field that the file contains. Nested fields have dotted
    /// names, such as `policy.capacity`.
    pub fields: Vec<(&'static str, Span)>,
}

impl FieldSpans {
    /// The location of a field, or of the item if the field is missing.
    #[must_use]
    pub fn get(&self, field: &str) -> Span {
        self.fields.iter().find(|(name, _)| *name == field).map_or(self.item, |(_, span)| *span)
    }

    /// Whether the file contains this field.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| *name == field)
    }
}

/// A value of a free `config` map.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValue {
    /// `null` or `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(String),
    /// A list or a map, as its JSON text. It is never interpreted.
    Nested(String),
}

/// A free map of settings, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigMap {
    /// The key, the value and the location of the value.
    pub entries: Vec<(String, ConfigValue, Span)>,
}

impl ConfigMap {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&ConfigValue> {
        self.entries.iter().find(|(name, ..)| name == key).map(|(_, value, _)| value)
    }
}

macro_rules! from {
    ($( $type:ty => $variant:ident, )+) => { $(
        impl From<$type> for ConfigValue {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )+ };
}

from! {
    bool => Bool,
    i32 => Int,
    u32 => Int,
    i64 => Int,
    f32 => Float,
    f64 => Float,
    &str => Text,
    String => Text,
}
