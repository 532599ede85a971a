//! [`Number`]: a number that says how it is known.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap as _};

/// A number with the way in which it is known. An unknown number is no zero: it is `null` in JSON,
/// and front ends show a dash.
///
/// In JSON an exact number is a number; any other has members for its tag:
///
/// ```text
/// 12        {"v":38,"sampled":2.5}        {"v":940,"swept":300}        {"v":7,"lost":2}
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Number {
    /// The number; `None` if it is unknown.
    pub value: Option<f64>,
    /// How it is known.
    pub tag: Tag,
}

/// How a number is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Tag {
    /// It was read, or computed out of numbers that were.
    #[default]
    Exact,
    /// It is an estimate: with 95 % probability the true number is at most this far away.
    Sampled(f64),
    /// It was read while all actors were walked over, this many milliseconds ago.
    Swept(u64),
    /// It is a lower bound: this many further entries were lost.
    Lost(u64),
}

impl Number {
    /// A number that is not known.
    pub const UNKNOWN: Self = Self { value: None, tag: Tag::Exact };

    /// A number that was read.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { value: Some(value), tag: Tag::Exact }
    }

    /// A count that was read. Counts above 2^53 lose their last digits.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people and JSON, which has no larger ones")]
    pub const fn count(count: u64) -> Self {
        Self::exact(count as f64)
    }

    /// As [`count`](Self::count).
    #[must_use]
    pub const fn size(size: usize) -> Self {
        Self::count(size as u64)
    }

    /// An estimate, and how far away the true number may be.
    #[must_use]
    pub const fn sampled(value: f64, error: f64) -> Self {
        Self { value: Some(value), tag: Tag::Sampled(error) }
    }

    /// The same number with another tag.
    #[must_use]
    pub const fn tagged(self, tag: Tag) -> Self {
        Self { value: self.value, tag }
    }

    /// Whether it is not known.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.value.is_none()
    }

    /// The number, or zero if it is unknown; for sorting.
    #[must_use]
    pub fn or_zero(&self) -> f64 {
        self.value.unwrap_or(0.0)
    }
}

impl From<Option<f64>> for Number {
    fn from(value: Option<f64>) -> Self {
        Self { value, tag: Tag::Exact }
    }
}

/// A number in JSON: whole ones without a point.
struct Plain(f64);

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The first whole number that an `f64` cannot tell from its successor.
        const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;
        if self.0.fract() == 0.0 && self.0.abs() < WHOLE_MAX {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is whole and within the range"
            )]
            return serializer.serialize_i64(self.0 as i64);
        }
        serializer.serialize_f64(self.0)
    }
}

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Some(value) = self.value.filter(|value| value.is_finite()) else {
            return serializer.serialize_none();
        };
        let (name, of_tag) = match self.tag {
            Tag::Exact => return Plain(value).serialize(serializer),
            Tag::Sampled(error) => ("sampled", error),
            Tag::Swept(age_ms) => ("swept", float(age_ms)),
            Tag::Lost(n) => ("lost", float(n)),
        };
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("v", &Plain(value))?;
        map.serialize_entry(name, &Plain(of_tag))?;
        map.end()
    }
}

#[expect(clippy::cast_precision_loss, reason = "for JSON, which has no larger numbers")]
fn float(n: u64) -> f64 {
    n as f64
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Plain(f64),
    Tagged { v: f64, sampled: Option<f64>, swept: Option<u64>, lost: Option<u64> },
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<Form>::deserialize(deserializer)? {
            None => Self::UNKNOWN,
            Some(Form::Plain(value)) => Self::exact(value),
            Some(Form::Tagged { v, sampled, swept, lost }) => {
                let tag = sampled.map(Tag::Sampled).or(swept.map(Tag::Swept));
                Self { value: Some(v), tag: tag.or(lost.map(Tag::Lost)).unwrap_or_default() }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_reads_back_what_it_wrote() {
        let numbers = [
            (Number::UNKNOWN, "null"),
            (Number::count(12), "12"),
            (Number::exact(0.25), "0.25"),
            (Number::sampled(38.0, 2.5), r#"{"v":38,"sampled":2.5}"#),
            (Number::count(940).tagged(Tag::Swept(300)), r#"{"v":940,"swept":300}"#),
            (Number::count(7).tagged(Tag::Lost(2)), r#"{"v":7,"lost":2}"#),
        ];
        for (number, json) in numbers {
            assert_eq!(serde_json::to_string(&number).unwrap(), json);
            assert_eq!(serde_json::from_str::<Number>(json).unwrap(), number);
        }
    }

    #[test]
    fn what_is_no_number_is_unknown() {
        assert_eq!(serde_json::to_string(&Number::exact(f64::NAN)).unwrap(), "null");
    }
}
