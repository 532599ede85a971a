//! Numbers as people read them: short, with a unit, a dash for what is unknown, and a tilde behind
//! an estimate.

use crate::view::{Number, Tag};

/// The mark of an estimate.
fn mark(number: Number) -> &'static str {
    match number.tag {
        Tag::Sampled(_) => "~",
        Tag::Lost(_) => "+",
        Tag::Exact | Tag::Swept(_) => "",
    }
}

/// A dash, or what the function makes of the value.
fn known(number: Number, show: impl FnOnce(f64) -> String) -> String {
    let value = number.value.filter(|value| value.is_finite());
    value.map_or_else(|| "-".to_owned(), |value| format!("{}{}", show(value), mark(number)))
}

/// A count, with commas: `10,412`.
pub(super) fn count(number: Number) -> String {
    known(number, |value| {
        let digits = format!("{:.0}", value.abs());
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        if value < 0.0 { format!("-{text}") } else { text }
    })
}

/// Three digits and a unit: `82 k`, `1.31 M`.
fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v < 999.5 => (value, ""),
        v if v < 999_500.0 => (value / 1e3, " k"),
        v if v < 999.5e6 => (value / 1e6, " M"),
        _ => (value / 1e9, " G"),
    };
    let digits = match scaled.abs() {
        v if v < 0.05 => 0,
        v if v < 9.995 && !unit.is_empty() => 2,
        v if v < 99.95 && scaled.fract().abs() > 0.05 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{unit}")
}

/// A rate: `82 k/s`.
pub(super) fn rate(number: Number) -> String {
    known(number, |value| {
        let text = short(value);
        if text.contains(' ') { format!("{text}/s") } else { format!("{text} /s") }
    })
}

/// A time of so many nanoseconds: `11 ms`.
pub(super) fn time(number: Number) -> String {
    known(number, |ns| {
        let (value, unit) = match ns.abs() {
            v if v < 999.5 => (ns, "ns"),
            v if v < 999.5e3 => (ns / 1e3, "us"),
            v if v < 999.5e6 => (ns / 1e6, "ms"),
            _ => (ns / 1e9, "s"),
        };
        let digits = usize::from(value.abs() < 9.95 && unit != "ns");
        format!("{value:.digits$} {unit}")
    })
}

/// A part of one, in percent without the sign: `38`.
pub(super) fn percent(number: Number) -> String {
    known(number, |value| format!("{:.0}", value * 100.0))
}

/// A part of one, in percent with the sign: `38%~`.
pub(super) fn share(number: Number) -> String {
    known(number, |value| format!("{:.0}%", value * 100.0))
}

/// How long a program has been up: `02:14:07`, or with days.
pub(super) fn uptime(ms: u64) -> String {
    let s = ms / 1000;
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    let clock = format!("{hours:02}:{minutes:02}:{seconds:02}");
    if days == 0 { clock } else { format!("{days}d {clock}") }
}

/// A bar of so many columns.
pub(super) fn bar(part: Number, width: usize) -> String {
    let part = part.or_zero().clamp(0.0, 1.0);
    let full = (1..=width).filter(|n| *n as f64 <= part * width as f64 + 0.5).count();
    format!("[{}{}]", "|".repeat(full), " ".repeat(width - full))
}

/// The text, shortened from its front to so many columns: the end of a path tells most.
pub(super) fn tail(text: &str, width: usize) -> String {
    let n = text.chars().count();
    if n <= width {
        return text.to_owned();
    }
    let kept = text.chars().skip(n - width.saturating_sub(2));
    format!("..{}", kept.collect::<String>()).chars().take(width).collect()
}

/// The text, shortened from its end.
pub(super) fn head(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(2)).collect();
    format!("{kept}..").chars().take(width).collect()
}

/// The text without what a terminal would obey.
pub(super) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// The last names of a type's path: `shop::Ledger` of `my_shop::shop::Ledger<u8>`.
pub(super) fn type_name(name: &str) -> String {
    let (path, rest) = name.split_at(name.find('<').unwrap_or(name.len()));
    let mut parts: Vec<&str> = path.rsplit("::").take(2).collect();
    parts.reverse();
    plain(&format!("{}{rest}", parts.join("::")))
}

/// Base 64, as clipboards of terminals want it.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - chunk.len()));
        for index in 0..4 {
            if index <= chunk.len() {
                let digit = bits >> (18 - 6 * index) & 63;
                text.push(char::from(DIGITS[digit as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_say_how_they_are_known() {
        assert_eq!(count(Number::count(10_412)), "10,412");
        assert_eq!(count(Number::count(999)), "999");
        assert_eq!(count(Number::count(1_000_000)), "1,000,000");
        assert_eq!(count(Number::UNKNOWN), "-");
        let cases = [(0.0, "0 /s"), (0.2, "0.2 /s"), (12.0, "12 /s"), (310.0, "310 /s")];
        for (value, text) in cases {
            assert_eq!(rate(Number::exact(value)), text);
        }
        assert_eq!(rate(Number::exact(1_200.0)), "1.20 k/s");
        assert_eq!(rate(Number::exact(82_000.0)), "82 k/s");
        assert_eq!(rate(Number::exact(1_310_000.0)), "1.31 M/s");
        assert_eq!(time(Number::exact(11e6)), "11 ms");
        assert_eq!(time(Number::exact(1_000.0)), "1.0 us");
        assert_eq!(time(Number::exact(3.2e9)), "3.2 s");
        assert_eq!(percent(Number::sampled(0.38, 0.02)), "38~");
        assert_eq!(share(Number::sampled(0.38, 0.02)), "38%~");
        assert_eq!(uptime(8_047_000), "02:14:07");
        assert_eq!(uptime(90_000_000), "1d 01:00:00");
    }

    #[test]
    fn what_is_too_long_keeps_the_part_that_tells() {
        assert_eq!(tail("/user/door/session-118", 12), "..ession-118");
        assert_eq!(tail("/user", 12), "/user");
        assert_eq!(head("a long text", 6), "a lo..");
        assert_eq!(type_name("my::shop::Ledger<core::u8>"), "shop::Ledger<core::u8>");
        assert_eq!(plain("a\x1b[31mb"), "a?[31mb");
        assert_eq!(bar(Number::exact(0.5), 4), "[||  ]");
        assert_eq!(bar(Number::UNKNOWN, 2), "[  ]");
    }

    #[test]
    fn base_64_is_that_of_rfc_4648() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, coded) in cases {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
