//! Where things stand in a text, and the values of free settings, which are kept as they stand.

/// Where something stands in the text: bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// Of what stands in no text: a graph that was built in code.
    pub const NONE: Self = Self { start: 0, end: 0 };

    /// Whether it points at nothing.
    #[must_use]
    pub const fn is_none(self) -> bool {
        self.end == 0
    }
}

/// A text that was read, and what it is called in reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name of the file, or what stands for it.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// Where the fields of an item stand in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The whole item.
    pub item: Span,
    /// Each field that is there: its name as in the file, with dots for what is below one
    /// (`policy.capacity`), and where its value stands.
    pub fields: Vec<(&'static str, Span)>,
}

impl Marks {
    /// Where a field stands, or the item if the field is not there.
    #[must_use]
    pub fn get(&self, field: &str) -> Span {
        self.fields.iter().find(|(name, _)| *name == field).map_or(self.item, |(_, span)| *span)
    }

    /// Whether the file gives this field.
    #[must_use]
    pub fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|(name, _)| *name == field)
    }
}

/// A value of a free `config` map.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigValue {
    /// Nothing: `null`, `~`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list or a map, as the JSON text of it. It is never interpreted.
    Nested(String),
}

/// A free map of settings, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConfigMap {
    /// Key, value and where the value stands.
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
