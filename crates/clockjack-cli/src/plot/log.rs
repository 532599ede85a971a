//! Reads a commit log, in pieces of any size, with bounded memory. `commit_log` of
//! `clockjack-graph` describes the format.

use core::fmt;

use clockjack_graph::run::commit_log::MAGIC;

/// How many bytes of a value are kept; the rest is only counted.
pub(crate) const VALUE_HEAD: usize = 4096;

/// The most bytes of an entry that is not a value: names, and changes of settings.
const ENTRY_MAX: usize = 1 << 24;

/// The most bytes of a number.
const NUMBER_LEN_MAX: usize = 10;

/// What a log says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogEntry<'b> {
    /// The log belongs to a run of this graph.
    Graph(&'b str),
    /// The epoch of this number begins, at this time.
    Epoch { number: u64, at_ns: u64 },
    /// A value became visible on this edge: its first bytes, and how many it has.
    Value { edge: u64, head: &'b [u8], len: u64 },
}

/// Reads a commit log.
#[derive(Debug, Default)]
pub(crate) struct LogReader {
    /// The beginning of an entry whose end has not come yet.
    pending: Vec<u8>,
    has_head: bool,
    /// The value that is being read, and how many of its bytes are missing.
    left: Option<u64>,
    edge: u64,
    head: Vec<u8>,
    len: u64,
}

/// The bytes are not a commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotALog(&'static str);

/// The bytes of an entry; none if its end has not come yet.
type Parsed<T> = Result<Option<T>, NotALog>;

impl LogReader {
    /// Reads a piece of the log.
    pub(crate) fn push(
        &mut self,
        piece: &[u8],
        on_entry: &mut impl FnMut(LogEntry<'_>),
    ) -> Result<(), NotALog> {
        if self.pending.is_empty() {
            let n_read = self.read(piece, on_entry)?;
            self.pending.extend_from_slice(&piece[n_read..]);
        } else {
            let mut all = core::mem::take(&mut self.pending);
            all.extend_from_slice(piece);
            let n_read = self.read(&all, on_entry)?;
            all.drain(..n_read);
            self.pending = all;
        }
        if self.pending.len() > ENTRY_MAX { Err(NotALog("an entry is too long")) } else { Ok(()) }
    }

    /// Whether the log ends here: no entry is incomplete.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_head && self.pending.is_empty() && self.left.is_none()
    }

    /// Reads all entries that are complete; returns the number of bytes that are done.
    fn read(
        &mut self,
        bytes: &[u8],
        on_entry: &mut impl FnMut(LogEntry<'_>),
    ) -> Result<usize, NotALog> {
        let mut rest = bytes;
        loop {
            if let Some(left) = self.left {
                let n = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                let n_kept = n.min(VALUE_HEAD - self.head.len());
                self.head.extend_from_slice(&rest[..n_kept]);
                rest = &rest[n..];
                let left = left - n as u64;
                self.left = (left > 0).then_some(left);
                if left > 0 {
                    return Ok(bytes.len());
                }
                self.put_value(on_entry);
            }
            let read =
                if self.has_head { self.entry(rest, on_entry) } else { head(rest, on_entry) };
            let Some(n) = read? else { return Ok(bytes.len() - rest.len()) };
            self.has_head = true;
            rest = &rest[n..];
        }
    }

    fn put_value(&self, on_entry: &mut impl FnMut(LogEntry<'_>)) {
        on_entry(LogEntry::Value { edge: self.edge, head: &self.head, len: self.len });
    }

    /// Reads one entry, of a value only what is before its bytes; returns the length.
    fn entry(&mut self, bytes: &[u8], on_entry: &mut impl FnMut(LogEntry<'_>)) -> Parsed<usize> {
        let Some((tag, rest)) = bytes.split_first() else { return Ok(None) };
        let mut cursor = Cursor { rest };
        let is_whole = match tag {
            b'E' => match (cursor.number()?, cursor.number()?) {
                (Some(number), Some(at_ns)) => {
                    on_entry(LogEntry::Epoch { number, at_ns });
                    true
                }
                _ => false,
            },
            b'C' | b'I' | b'A' => match (cursor.number()?, cursor.number()?) {
                (Some(edge), Some(len)) => {
                    (self.edge, self.len, self.left) = (edge, len, Some(len));
                    self.head.clear();
                    true
                }
                _ => false,
            },
            b'R' => match cursor.number()? {
                Some(edge) => {
                    self.edge = edge;
                    self.put_value(on_entry);
                    true
                }
                None => false,
            },
            b'L' => cursor.bytes()?.is_some(),
            b'S' => cursor.settings()?.is_some(),
            b'B' => (cursor.number()?, cursor.number()?).1.is_some(),
            b'X' => cursor.number()?.is_some(),
            _ => return Err(NotALog("there is no such kind of entry")),
        };
        Ok(is_whole.then(|| bytes.len() - cursor.rest.len()))
    }
}

/// Reads the first bytes and the name of the graph.
fn head(bytes: &[u8], on_entry: &mut impl FnMut(LogEntry<'_>)) -> Parsed<usize> {
    let n_same = bytes.len().min(MAGIC.len());
    if bytes[..n_same] != MAGIC[..n_same] {
        return Err(NotALog("it does not begin as a commit log"));
    }
    let mut cursor = Cursor { rest: &bytes[n_same..] };
    let Some(name) = cursor.bytes()? else { return Ok(None) };
    let name = core::str::from_utf8(name).map_err(|_| NotALog("the name is not UTF-8"))?;
    on_entry(LogEntry::Graph(name));
    Ok(Some(bytes.len() - cursor.rest.len()))
}

/// Reads the parts of an entry.
struct Cursor<'b> {
    rest: &'b [u8],
}

impl<'b> Cursor<'b> {
    fn number(&mut self) -> Parsed<u64> {
        let Some((n, n_digits)) = leb128(self.rest)? else { return Ok(None) };
        self.rest = &self.rest[n_digits..];
        Ok(Some(n))
    }

    fn bytes(&mut self) -> Parsed<&'b [u8]> {
        let Some(len) = self.number()? else { return Ok(None) };
        if len > ENTRY_MAX as u64 {
            return Err(NotALog("an entry is too long"));
        }
        let len = usize::try_from(len).map_err(|_| NotALog("an entry is too long"))?;
        Ok(self.take(len))
    }

    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    /// Skips a change of settings.
    fn settings(&mut self) -> Parsed<()> {
        let Some(n_components) = self.number()? else { return Ok(None) };
        for _ in 0..n_components {
            let (Some(_), Some(n_settings)) = (self.number()?, self.number()?) else {
                return Ok(None);
            };
            for _ in 0..n_settings {
                if self.bytes()?.is_none() || self.setting()?.is_none() {
                    return Ok(None);
                }
            }
        }
        Ok(Some(()))
    }

    fn setting(&mut self) -> Parsed<()> {
        let Some(kind) = self.take(1) else { return Ok(None) };
        Ok(match kind {
            b"n" => Some(()),
            b"b" => self.take(1).map(|_| ()),
            b"i" | b"f" => self.take(8).map(|_| ()),
            b"t" | b"j" => self.bytes()?.map(|_| ()),
            _ => return Err(NotALog("there is no such kind of setting")),
        })
    }
}

/// A number in LEB128 and its length; none if its end is missing.
pub(crate) fn leb128(bytes: &[u8]) -> Parsed<(u64, usize)> {
    let mut n = 0_u64;
    for (at, digit) in bytes.iter().enumerate().take(NUMBER_LEN_MAX) {
        let bits = u64::from(digit & 0x7f);
        let shift = 7 * at;
        if bits << shift >> shift != bits {
            break;
        }
        n |= bits << shift;
        if digit & 0x80 == 0 {
            return Ok(Some((n, at + 1)));
        }
    }
    let is_long = bytes.len() >= NUMBER_LEN_MAX;
    if is_long { Err(NotALog("a number has more than 64 bits")) } else { Ok(None) }
}

impl fmt::Display for NotALog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
