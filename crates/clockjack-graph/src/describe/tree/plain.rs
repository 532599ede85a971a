//! A fast parser for the plain part of YAML: lines of keys and values, lists, one-line brackets and
//! scalars without escapes. Almost every graph file uses only these.
//!
//! It produces the same tree as the general parser, or returns `None` without a report; then the
//! general parser reads the text. It need not detect errors, only recognise what it supports. A
//! test compares both parsers.
//!
//! It exists for its speed: a file of 4,096 components and 8,192 edges must be compiled within
//! 50 ms, and takes 29 ms with this parser and 139 ms with the general one. `compare graph` reports
//! both, as `load` and `load_general` of the case `compile_4096`.

use std::borrow::Cow;

use granit_parser::StructureStyle;

use super::{Builder, YamlKind, YamlNode, offset};
use crate::describe::spec::Span;

/// Longer keys are rare, and beyond a certain length they are not keys.
const KEY_BYTES_MAX: usize = 256;

/// Reads the whole text into the builder. `None` if the text is not plain; the contents of the
/// builder are then undefined.
pub(super) fn read<'t>(builder: &mut Builder<'_, 't>) -> Option<()> {
    let mut lines = Lines { text: builder.text, bytes: builder.text.as_bytes(), at: 0, builder };
    let mut blocks = Blocks::default();
    while let Some(column) = lines.next_line()? {
        lines.line(column, &mut blocks)?;
    }
    if blocks.has_hole || blocks.len == 0 {
        return None;
    }
    for _ in 0..blocks.len {
        lines.builder.end(Span::NONE);
    }
    Some(())
}

/// A block list or block map that is still open.
#[derive(Clone, Copy, Default)]
struct Block {
    column: usize,
    is_map: bool,
}

/// Deeper nesting is left to the general parser.
const BLOCKS_MAX: usize = 24;

/// The open block lists and maps, and whether the innermost one waits for a value.
#[derive(Default)]
struct Blocks {
    open: [Block; BLOCKS_MAX],
    len: usize,
    has_hole: bool,
}

impl Blocks {
    fn top(&self) -> Option<Block> {
        self.len.checked_sub(1).map(|at| self.open[at])
    }
}

struct Lines<'a, 'b, 't> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    builder: &'a mut Builder<'b, 't>,
}

impl<'t> Lines<'_, '_, 't> {
    fn byte(&self, ahead: usize) -> u8 {
        // The end of the text counts as the end of a line.
        self.bytes.get(self.at + ahead).copied().unwrap_or(b'\n')
    }

    fn skip_spaces(&mut self) -> usize {
        let start = self.at;
        while self.bytes.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
        self.at - start
    }

    /// Moves to the next non-empty line and returns its column; `Some(None)` at the end.
    fn next_line(&mut self) -> Option<Option<usize>> {
        loop {
            let column = self.skip_spaces();
            match self.bytes.get(self.at) {
                None => return Some(None),
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.end_of_line(true)?,
                Some(_) => return Some(Some(column)),
            }
        }
    }

    /// Moves past the end of a line that may only contain a comment.
    fn end_of_line(&mut self, may_begin_comment: bool) -> Option<()> {
        let has_space = self.skip_spaces() > 0;
        if self.bytes.get(self.at) == Some(&b'#') {
            if !has_space && !may_begin_comment {
                return None;
            }
            while matches!(self.bytes.get(self.at), Some(b' '..=b'~')) {
                self.at += 1;
            }
        }
        match self.bytes.get(self.at) {
            None => Some(()),
            Some(b'\n') => {
                self.at += 1;
                Some(())
            }
            Some(_) => None,
        }
    }

    /// Reads a line from its first character.
    fn line(&mut self, column: usize, blocks: &mut Blocks) -> Option<()> {
        let is_item = self.is_item();
        if blocks.has_hole {
            let top = blocks.top()?;
            // A list may have the same column as its key.
            if column < top.column || (column == top.column && !(top.is_map && is_item)) {
                return None;
            }
            blocks.has_hole = false;
            return self.block(column, blocks);
        }
        let Some(mut top) = blocks.top() else { return self.block(column, blocks) };
        while top.column > column || (top.column == column && !top.is_map && !is_item) {
            if blocks.len == 1 {
                return None;
            }
            self.builder.end(Span::NONE);
            blocks.len -= 1;
            top = blocks.top()?;
        }
        let is_beside = top.column == column;
        if !is_beside || top.is_map == is_item {
            return None;
        }
        if is_item { self.item(column, blocks) } else { self.pair(blocks) }
    }

    /// Whether `- ` is at the current position.
    fn is_item(&self) -> bool {
        self.byte(0) == b'-' && matches!(self.byte(1), b' ' | b'\n')
    }

    /// Starts a block list or map.
    fn block(&mut self, column: usize, blocks: &mut Blocks) -> Option<()> {
        if blocks.len == BLOCKS_MAX {
            return None;
        }
        let is_map = !self.is_item();
        self.begin(is_map, StructureStyle::Block)?;
        blocks.open[blocks.len] = Block { column, is_map };
        blocks.len += 1;
        if is_map { self.pair(blocks) } else { self.item(column, blocks) }
    }

    /// Reads `- ` and the rest of its line.
    fn item(&mut self, column: usize, blocks: &mut Blocks) -> Option<()> {
        self.at += 1;
        let n_spaces = self.skip_spaces();
        if matches!(self.byte(0), b'\n' | b'#') {
            blocks.has_hole = true;
            return self.end_of_line(n_spaces > 0);
        }
        let inner = column + 1 + n_spaces;
        if self.is_item() || self.is_key() {
            return self.block(inner, blocks);
        }
        self.value(false)?;
        self.end_of_line(false)
    }

    /// Whether a scalar with a colon after it is at the current position. Consumes nothing.
    fn is_key(&mut self) -> bool {
        let start = self.at;
        let is_scalar = self.scalar(false).is_some();
        let is_key = is_scalar && self.byte(0) == b':' && matches!(self.byte(1), b' ' | b'\n');
        self.at = start;
        is_key
    }

    /// Reads `key: value`, or `key:` alone.
    fn pair(&mut self, blocks: &mut Blocks) -> Option<()> {
        self.key(false)?;
        let has_space = self.skip_spaces() > 0;
        if matches!(self.byte(0), b'\n' | b'#') {
            blocks.has_hole = true;
            return self.end_of_line(has_space);
        }
        self.value(false)?;
        self.end_of_line(false)
    }

    /// Reads a key and its colon.
    fn key(&mut self, in_flow: bool) -> Option<()> {
        let start = self.at;
        let key = self.scalar(in_flow)?;
        if self.at - start > KEY_BYTES_MAX
            || self.byte(0) != b':'
            || !matches!(self.byte(1), b' ' | b'\n')
        {
            return None;
        }
        self.at += 1;
        self.builder.done.push(key);
        Some(())
    }

    /// Reads a scalar, or a list or map in brackets on this line.
    fn value(&mut self, in_flow: bool) -> Option<()> {
        match self.byte(0) {
            b'[' => self.flow(false),
            b'{' => self.flow(true),
            _ => {
                let scalar = self.scalar(in_flow)?;
                self.builder.done.push(scalar);
                // A colon would make the scalar a key, which is not possible here.
                (self.byte(0) != b':').then_some(())
            }
        }
    }

    fn flow(&mut self, is_map: bool) -> Option<()> {
        self.begin(is_map, StructureStyle::Flow)?;
        self.at += 1;
        self.skip_spaces();
        let close = if is_map { b'}' } else { b']' };
        if self.byte(0) != close {
            loop {
                if is_map {
                    self.key(true)?;
                    self.skip_spaces();
                }
                self.value(true)?;
                self.skip_spaces();
                match self.byte(0) {
                    b',' if self.byte(1) == b' ' => {
                        self.at += 1;
                        self.skip_spaces();
                    }
                    one if one == close => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        let end = offset(self.at);
        self.builder.end(Span { start: end, end });
        (self.byte(0) != b':').then_some(())
    }

    fn begin(&mut self, is_map: bool, style: StructureStyle) -> Option<()> {
        if self.builder.open.len() >= self.builder.limits.nesting() {
            return None;
        }
        let start = offset(self.at);
        self.builder.begin(Span { start, end: start }, style, is_map).then_some(())
    }

    /// Reads a scalar without escapes.
    fn scalar(&mut self, in_flow: bool) -> Option<YamlNode<'t>> {
        let start = self.at;
        let first = self.byte(0);
        let (text, is_plain) = match first {
            b'"' | b'\'' => {
                self.at += 1;
                while matches!(self.byte(0), b' '..=b'~') && self.byte(0) != first {
                    if first == b'"' && self.byte(0) == b'\\' {
                        return None;
                    }
                    self.at += 1;
                }
                // A doubled quote is an escaped quote.
                if self.byte(0) != first || self.byte(1) == first {
                    return None;
                }
                self.at += 1;
                (&self.text[start + 1..self.at - 1], false)
            }
            _ => {
                self.plain(in_flow)?;
                (&self.text[start..self.at], true)
            }
        };
        let span = Span { start: offset(start), end: offset(self.at) };
        Some(YamlNode { span, kind: YamlKind::Scalar { text: Cow::Borrowed(text), is_plain } })
    }

    /// Reads a scalar without quotes.
    fn plain(&mut self, in_flow: bool) -> Option<()> {
        match self.byte(0) {
            b'-' | b'.' if self.byte(1).is_ascii_alphanumeric() => {}
            one if one.is_ascii_alphanumeric() || matches!(one, b'_' | b'/' | b'+') => {}
            _ => return None,
        }
        loop {
            let mut n_spaces = 0;
            while self.byte(n_spaces) == b' ' {
                n_spaces += 1;
            }
            let next = self.byte(n_spaces);
            let is_inside = match next {
                b':' => n_spaces == 0 && is_plain(self.byte(1)),
                _ => is_plain(next),
            };
            if !is_inside {
                // Only characters that end a scalar in every YAML parser may end it here.
                let ends = match next {
                    b'\n' => true,
                    b'#' => n_spaces > 0,
                    b':' => n_spaces == 0,
                    b',' | b']' | b'}' => in_flow,
                    _ => false,
                };
                return ends.then_some(());
            }
            self.at += n_spaces + 1;
        }
    }
}

/// A character without a special meaning inside a scalar.
fn is_plain(one: u8) -> bool {
    one.is_ascii_alphanumeric() || matches!(one, b'_' | b'.' | b'/' | b'+' | b'-')
}
