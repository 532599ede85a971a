//! The type of a plain scalar by the core schema of YAML 1.2: `no` is a string, and `012` is
//! twelve.

/// The type and value of a scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scalar {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that `i64` cannot represent, as the nearest float.
    Huge(f64),
    /// Any other number.
    Float(f64),
    /// Anything else.
    Text,
}

impl Scalar {
    /// Interprets a scalar without quotes.
    pub(super) fn of_plain(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Self::Null,
            "true" | "True" | "TRUE" => return Self::Bool(true),
            "false" | "False" | "FALSE" => return Self::Bool(false),
            _ => {}
        }
        if matches!(text.as_bytes()[0], b'0'..=b'9' | b'+' | b'-' | b'.') {
            number(text)
        } else {
            Self::Text
        }
    }

    /// The name of the type in reports.
    pub(super) const fn type_name(self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "`true` or `false`",
            Self::Int(_) | Self::Huge(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Text => "a string",
        }
    }
}

fn number(text: &str) -> Scalar {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    match unsigned {
        ".inf" | ".Inf" | ".INF" => {
            let is_negative = text.starts_with('-');
            return Scalar::Float(if is_negative { f64::NEG_INFINITY } else { f64::INFINITY });
        }
        ".nan" | ".NaN" | ".NAN" if unsigned.len() == text.len() => {
            return Scalar::Float(f64::NAN);
        }
        _ => {}
    }
    if unsigned.len() == text.len() {
        for (prefix, radix) in [("0x", 16), ("0o", 8)] {
            if let Some(digits) = text.strip_prefix(prefix)
                && !digits.is_empty()
                && digits.chars().all(|one| one.is_digit(radix))
            {
                return match i64::from_str_radix(digits, radix) {
                    Ok(whole) => Scalar::Int(whole),
                    Err(_) => Scalar::Huge(f64::INFINITY),
                };
            }
        }
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|one| one.is_ascii_digit()) {
        return match text.parse() {
            Ok(whole) => Scalar::Int(whole),
            Err(_) => Scalar::Huge(text.parse().unwrap_or(f64::INFINITY)),
        };
    }
    if is_float(unsigned.as_bytes()) {
        text.parse().map_or(Scalar::Text, Scalar::Float)
    } else {
        Scalar::Text
    }
}

/// Whether a text consists of digits with an optional fraction and exponent.
fn is_float(text: &[u8]) -> bool {
    let digits = |from: usize| text[from..].iter().take_while(|one| one.is_ascii_digit()).count();
    let whole = digits(0);
    let mut at = whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += 1 + fraction;
    }
    if whole + fraction == 0 {
        return false;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1 + usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at.min(text.len()));
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_are_what_the_core_schema_says() {
        for (text, want) in [
            ("", Scalar::Null),
            ("~", Scalar::Null),
            ("Null", Scalar::Null),
            ("true", Scalar::Bool(true)),
            ("FALSE", Scalar::Bool(false)),
            ("yes", Scalar::Text),
            ("no", Scalar::Text),
            ("12", Scalar::Int(12)),
            ("012", Scalar::Int(12)),
            ("-7", Scalar::Int(-7)),
            ("+7", Scalar::Int(7)),
            ("0x1F", Scalar::Int(31)),
            ("0o17", Scalar::Int(15)),
            ("-0x1F", Scalar::Text),
            ("0x", Scalar::Text),
            ("9223372036854775807", Scalar::Int(i64::MAX)),
            ("9223372036854775808", Scalar::Huge(9_223_372_036_854_775_808.0)),
            ("1.5", Scalar::Float(1.5)),
            (".5", Scalar::Float(0.5)),
            ("5.", Scalar::Float(5.0)),
            ("1e3", Scalar::Float(1000.0)),
            ("1E-3", Scalar::Float(0.001)),
            ("-.inf", Scalar::Float(f64::NEG_INFINITY)),
            ("1e", Scalar::Text),
            ("1e+", Scalar::Text),
            (".", Scalar::Text),
            ("-", Scalar::Text),
            ("+.e1", Scalar::Text),
            ("1.2.3", Scalar::Text),
            ("1_000", Scalar::Text),
            ("inf", Scalar::Text),
            ("-.nan", Scalar::Text),
            ("12ms", Scalar::Text),
        ] {
            assert_eq!(Scalar::of_plain(text), want, "{text:?}");
        }
        assert!(matches!(Scalar::of_plain(".nan"), Scalar::Float(nan) if nan.is_nan()));
    }
}
