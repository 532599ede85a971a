//! Durations as people type them: a whole number with a unit, for example `250ms`.

use core::time::Duration;

/// The units in nanoseconds. A unit comes before its own suffixes.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3_600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

/// Parses a duration, or returns an error message.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let unit = UNITS.iter().find_map(|&(name, ns)| Some((text.strip_suffix(name)?, ns)));
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let Some((number, unit_ns)) = unit.filter(|(number, _)| is_number(number)) else {
        return Err(String::from("expected a whole number with a unit (ns, us, ms, s, m, h or d)"));
    };
    let nanos = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ns));
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| String::from("the duration is longer than 584 years"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_with_a_unit_is_a_length_of_time() {
        let cases = [
            ("0s", Duration::ZERO),
            ("7ns", Duration::from_nanos(7)),
            ("7us", Duration::from_micros(7)),
            ("250ms", Duration::from_millis(250)),
            ("007s", Duration::from_secs(7)),
            ("2m", Duration::from_secs(120)),
            ("2h", Duration::from_secs(7_200)),
            ("2d", Duration::from_secs(172_800)),
            ("18446744073709551615ns", Duration::from_nanos(u64::MAX)),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        for text in
            ["", "5", "s", "ms", "-1s", "+1s", "1.5s", "1 s", "1S", "1s ", "1e3s", "\u{661}s"]
        {
            assert!(
                parse(text).is_err_and(|why| why.contains("expected a whole number")),
                "{text:?}"
            );
        }
        for text in ["18446744073709551616ns", "213504d"] {
            assert!(parse(text).is_err_and(|why| why.contains("longer")), "{text:?}");
        }
    }
}
