//! The trace of a run: the events in order, as bytes that are the same on every machine.
//!
//! A record consists of a word, a zero byte, the number of fields, and the fields. All numbers are
//! integers of at most 64 bits in LEB128 encoding (seven bits per byte, low bits first). A trace
//! contains no addresses, no `usize` widths, no floats, and nothing in the order of a hash table:
//! equal seeds give equal bytes on 32-bit and 64-bit machines of either byte order.

use core::fmt::Write as _;

use crate::random::digest;

/// The events of a run, in order.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    bytes: Vec<u8>,
    records: u64,
}

impl Trace {
    /// Adds a record.
    pub fn push(&mut self, word: &'static str, fields: &[u64]) {
        self.records += 1;
        self.bytes.extend_from_slice(word.as_bytes());
        self.bytes.push(0);
        self.number(fields.len() as u64);
        fields.iter().for_each(|field| self.number(*field));
    }

    fn number(&mut self, mut number: u64) {
        loop {
            let low = u8::try_from(number & 0x7f).unwrap_or(0);
            number >>= 7;
            if number == 0 {
                return self.bytes.push(low);
            }
            self.bytes.push(low | 0x80);
        }
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many records there are.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The hash of the bytes.
    #[must_use]
    pub fn hash(&self) -> u64 {
        digest(&self.bytes)
    }

    /// The last records, as lines of text.
    #[must_use]
    pub fn tail(&self, records: usize) -> String {
        let lines = lines(&self.bytes);
        lines[lines.len().saturating_sub(records)..].join("\n")
    }
}

/// The records of a trace, as lines of text.
#[must_use]
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = bytes;
    while let Some((word, fields, behind)) = record(rest) {
        let mut line = String::from(word);
        for field in fields {
            // Writing to a string cannot fail.
            let _ = write!(line, " {field}");
        }
        lines.push(line);
        rest = behind;
    }
    lines
}

/// The first record, and the remaining bytes.
fn record(bytes: &[u8]) -> Option<(&str, Vec<u64>, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let word = core::str::from_utf8(&bytes[..end]).ok()?;
    let (n, mut rest) = number(&bytes[end + 1..])?;
    let mut fields = Vec::new();
    for _ in 0..n {
        let (field, behind) = number(rest)?;
        fields.push(field);
        rest = behind;
    }
    Some((word, fields, rest))
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_are_written_down() {
        let mut trace = Trace::default();
        trace.push("go", &[0, 300, u64::MAX]);
        let expected = [&b"go\0\x03\0\xac\x02"[..], &[0xff; 9], &[0x01]].concat();
        assert_eq!(trace.bytes(), expected);
        assert_eq!(trace.records(), 1);
        assert_eq!(trace.hash(), digest(&expected));
    }

    #[test]
    fn the_tail_shows_the_last_records() {
        let mut trace = Trace::default();
        trace.push("one", &[]);
        trace.push("two", &[7, 1 << 40]);
        trace.push("three", &[u64::MAX]);
        assert_eq!(trace.tail(2), std::format!("two 7 {}\nthree {}", 1_u64 << 40, u64::MAX));
        assert_eq!(trace.tail(9).lines().count(), 3);
    }

    #[test]
    fn any_difference_changes_the_hash() {
        let mut one = Trace::default();
        let mut other = Trace::default();
        one.push("a", &[1, 2]);
        other.push("a", &[2, 1]);
        assert_ne!(one.hash(), other.hash());
    }
}
