//! Numbers in the bytes of values, and numbers as people read them.

use super::log::leb128;

/// How a number is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberType {
    Bool,
    U8,
    U32,
    U64,
    I32,
    I64,
    F32,
    F64,
}

/// What the values of an edge consist of, by the name of their type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One number.
    Number(NumberType),
    /// These numbers, one after the other.
    Numbers(Vec<NumberType>),
    /// Any quantity of numbers.
    List(NumberType),
    /// Something else: only the user knows what its fields are.
    Other,
}

impl NumberType {
    const ALL: [(&'static str, Self); 8] = [
        ("bool", Self::Bool),
        ("u8", Self::U8),
        ("u32", Self::U32),
        ("u64", Self::U64),
        ("i32", Self::I32),
        ("i64", Self::I64),
        ("f32", Self::F32),
        ("f64", Self::F64),
    ];

    /// The type with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(one, _)| *one == name).map(|(_, of)| *of)
    }

    /// The names of all types.
    pub(crate) fn names() -> String {
        Self::ALL.map(|(name, _)| name).join(", ")
    }

    /// The number of bytes.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Bool | Self::U8 => 1,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// The number, if the bytes are one.
    #[expect(clippy::cast_precision_loss, reason = "a plot has fewer digits")]
    pub(crate) fn decode(self, bytes: &[u8]) -> Option<f64> {
        Some(match self {
            Self::Bool | Self::U8 => f64::from(*single(bytes)?),
            Self::U32 => f64::from(u32::from_le_bytes(bytes.try_into().ok()?)),
            Self::I32 => f64::from(i32::from_le_bytes(bytes.try_into().ok()?)),
            Self::F32 => f64::from(f32::from_le_bytes(bytes.try_into().ok()?)),
            Self::U64 => u64::from_le_bytes(bytes.try_into().ok()?) as f64,
            Self::I64 => i64::from_le_bytes(bytes.try_into().ok()?) as f64,
            Self::F64 => f64::from_le_bytes(bytes.try_into().ok()?),
        })
    }

    /// The number as text.
    fn text(self, bytes: &[u8]) -> Option<String> {
        Some(match self {
            Self::Bool => (*single(bytes)? != 0).to_string(),
            Self::U64 => u64::from_le_bytes(bytes.try_into().ok()?).to_string(),
            Self::I64 => i64::from_le_bytes(bytes.try_into().ok()?).to_string(),
            Self::F32 | Self::F64 => short(self.decode(bytes)?),
            _ => self.decode(bytes)?.to_string(),
        })
    }
}

fn single(bytes: &[u8]) -> Option<&u8> {
    match bytes {
        [one] => Some(one),
        _ => None,
    }
}

impl Shape {
    /// What the values of this type consist of.
    pub(crate) fn of(schema: &str) -> Self {
        use NumberType::{F64, U64};
        match schema {
            "f64[2]" => Self::Numbers(vec![F64; 2]),
            "f64[3]" => Self::Numbers(vec![F64; 3]),
            "f64[4]" => Self::Numbers(vec![F64; 4]),
            "(f64, f64)" => Self::Numbers(vec![F64; 2]),
            "(u64, f64)" => Self::Numbers(vec![U64, F64]),
            "(u64, u64)" => Self::Numbers(vec![U64; 2]),
            "f64[]" => Self::List(F64),
            name => NumberType::named(name).map_or(Self::Other, Self::Number),
        }
    }

    /// The value as a short text: a number, a few numbers, a text, or the type and the size.
    pub(crate) fn text(&self, schema: &str, head: &[u8], len: u64) -> String {
        let numbers = |types: &mut dyn Iterator<Item = NumberType>| {
            let mut rest = head;
            let one = |of: NumberType| {
                let (bytes, after) = rest.split_at_checked(of.len())?;
                rest = after;
                of.text(bytes)
            };
            types.map_while(one).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::Number(of) => of.text(head).unwrap_or_else(|| sized(schema, len)),
            Self::Numbers(types) => numbers(&mut types.iter().copied()),
            Self::List(of) => {
                let n = len / of.len() as u64;
                let first = numbers(&mut core::iter::repeat_n(*of, 2));
                if n > 2 { format!("{first}, ..") } else { first }
            }
            Self::Other if schema == "text" && len == head.len() as u64 => {
                let text = String::from_utf8_lossy(head);
                text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
            }
            Self::Other => sized(schema, len),
        }
    }
}

/// The name of a type without its path, and a size.
fn sized(schema: &str, len: u64) -> String {
    let name = schema.rsplit(['.', ':', '/']).next().unwrap_or(schema);
    let name = if name.is_empty() { "value" } else { name };
    format!("{name}, {}", size(len))
}

/// A number of bytes.
#[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
fn size(len: u64) -> String {
    match len {
        0..1000 => format!("{len} B"),
        1000..1_000_000 => format!("{:.1} kB", len as f64 / 1e3),
        _ => format!("{:.1} MB", len as f64 / 1e6),
    }
}

/// The field of a derived payload: each field is behind its length.
pub(crate) fn field(mut bytes: &[u8], index: usize) -> Option<&[u8]> {
    for at in 0..=index {
        let (len, n_digits) = leb128(bytes).ok()??;
        let rest = &bytes[n_digits..];
        let (field, after) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        if at == index {
            return Some(field);
        }
        bytes = after;
    }
    None
}

/// A number with at most five digits that count.
pub(crate) fn short(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "NaN".into() } else { format!("{value}") };
    }
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e7).contains(&magnitude) {
        let text = format!("{value:.3e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", trimmed(digits));
    }
    let n_decimals = match magnitude {
        10_000.0.. => 0,
        1000.0.. => 1,
        100.0.. => 2,
        10.0.. => 3,
        _ => 4,
    };
    let text = format!("{value:.n_decimals$}");
    let text = trimmed(&text);
    if text == "-0" { "0".into() } else { text.into() }
}

/// A decimal number without zeros at its end.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}
