//! Formats a number with a unit in at most four significant digits, without floating point.

use core::fmt::{self, Write};

/// The unit of a number, which determines how it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// A count: printed in full.
    Count,
    /// Nanoseconds: printed as `ns`, `us`, `ms` or `s`.
    Nanoseconds,
    /// Ticks of a timer wheel: printed in full, with a `t`.
    Ticks,
    /// Bytes: printed as `B`, `KiB`, `MiB`, `GiB` or `TiB`.
    Bytes,
}

/// A number with its unit, ready to print; respects width and alignment.
///
/// Three digits after rounding down, four where the whole part has them: `1.23ms`, `12.3ms`,
/// `123ms`, `1023KiB`.
///
/// ```
/// use clockjack_observe::dump::Unit;
///
/// assert_eq!(Unit::Nanoseconds.scale(1_234_567).to_string(), "1.23ms");
/// assert_eq!(Unit::Count.scale(1_234_567).to_string(), "1234567");
/// assert_eq!(format!("{:>8}", Unit::Bytes.scale(1536)), " 1.50KiB");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scaled {
    value: u64,
    unit: Unit,
}

impl Unit {
    /// A number of this unit.
    #[must_use]
    pub const fn scale(self, value: u64) -> Scaled {
        Scaled { value, unit: self }
    }

    /// Suffixes and their factors, ascending.
    const fn steps(self) -> &'static [(u64, &'static str)] {
        match self {
            Self::Count => &[(1, "")],
            Self::Ticks => &[(1, "t")],
            Self::Nanoseconds => {
                &[(1, "ns"), (1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s")]
            }
            Self::Bytes => {
                &[(1, "B"), (1 << 10, "KiB"), (1 << 20, "MiB"), (1 << 30, "GiB"), (1 << 40, "TiB")]
            }
        }
    }
}

impl Scaled {
    /// The width of the printed form.
    #[must_use]
    pub fn columns(self) -> usize {
        self.text().len
    }

    fn text(self) -> Text {
        let mut text = Text { bytes: [0; TEXT_MAX], len: 0 };
        self.write_to(&mut text).expect("TEXT_MAX has room for the longest number and suffix");
        text
    }

    fn write_to(self, out: &mut Text) -> fmt::Result {
        let steps = self.unit.steps();
        let (size, suffix) =
            steps.iter().rev().copied().find(|(size, _)| self.value >= *size).unwrap_or(steps[0]);
        let whole = self.value / size;
        write!(out, "{whole}")?;
        // The remainder is below 2^40, so a hundred times it fits.
        let hundredths = self.value % size * 100 / size;
        match whole {
            _ if size == 1 => {}
            0..10 => write!(out, ".{hundredths:02}")?,
            10..100 => write!(out, ".{}", hundredths / 10)?,
            _ => {}
        }
        out.write_str(suffix)
    }
}

impl fmt::Display for Scaled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text().as_str())
    }
}

/// The length of the longest text: the twenty digits of `u64::MAX` and a suffix of three.
const TEXT_MAX: usize = 23;

/// A string on the stack, so that padding knows its length.
struct Text {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl Text {
    fn as_str(&self) -> &str {
        str::from_utf8(&self.bytes[..self.len]).expect("only whole strings were written")
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        let room = self.bytes[self.len..].get_mut(..s.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(s.as_bytes());
        self.len += s.len();
        Ok(())
    }
}
