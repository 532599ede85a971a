//! The lines of a text: maps byte offsets to lines and columns. No span makes it panic: a span
//! beyond the end of the text is moved to its end.

use crate::describe::Span;

/// A position for people: line and column count from one, and the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LineColumn {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// A text with the offsets of its lines, so that many positions are found quickly.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let mut starts = Vec::with_capacity(text.len() / 24 + 1);
        starts.push(0);
        starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(at, _)| at + 1));
        Self { text, starts }
    }

    /// The byte range of a span, moved to character boundaries within the text.
    pub(crate) fn range(&self, span: Span) -> (usize, usize) {
        let whole = |at: u32| self.text.floor_char_boundary((at as usize).min(self.text.len()));
        let (start, end) = (whole(span.start), whole(span.end));
        (start, end.max(start))
    }

    /// The line and column of a byte offset.
    pub(crate) fn line_column(&self, byte: usize) -> LineColumn {
        let byte = self.text.floor_char_boundary(byte.min(self.text.len()));
        let line = self.line_of(byte);
        let column = self.text[self.starts[line]..byte].chars().count() + 1;
        LineColumn { line: line + 1, column }
    }

    /// The whole lines that contain these bytes, plus `more` lines on both sides: their byte range
    /// and the number of the first line.
    pub(crate) fn around(&self, start: usize, end: usize, more: usize) -> (usize, usize, usize) {
        let first = self.line_of(start).saturating_sub(more);
        let last = self.line_of(end) + more;
        let end = self.starts.get(last + 1).copied().unwrap_or(self.text.len());
        (self.starts[first], end, first + 1)
    }

    /// The index of the line that contains a byte offset.
    pub(crate) fn line_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let lines = Lines::new("a\nöx: b\n");
        assert_eq!(lines.line_column(0), LineColumn { line: 1, column: 1 });
        assert_eq!(lines.line_column(2), LineColumn { line: 2, column: 1 });
        assert_eq!(
            lines.line_column(4),
            LineColumn { line: 2, column: 2 },
            "behind a letter of two bytes"
        );
        assert_eq!(lines.line_column(3), LineColumn { line: 2, column: 1 }, "inside of it");
        assert_eq!(lines.line_column(1_000), LineColumn { line: 3, column: 1 }, "beyond the end");
        assert_eq!(Lines::new("").line_column(0), LineColumn { line: 1, column: 1 });
    }

    #[test]
    fn a_span_that_makes_no_sense_is_moved_into_the_text() {
        let lines = Lines::new("öö");
        assert_eq!(lines.range(Span { start: 1, end: 3 }), (0, 2));
        assert_eq!(lines.range(Span { start: 9, end: 2 }), (4, 4));
    }

    #[test]
    fn lines_around_a_place_are_whole() {
        let text = "1\n22\n333\n4444";
        let lines = Lines::new(text);
        let (start, end, first) = lines.around(3, 4, 0);
        assert_eq!((&text[start..end], first), ("22\n", 2));
        let (start, end, first) = lines.around(6, 10, 1);
        assert_eq!((&text[start..end], first), ("22\n333\n4444", 2));
    }
}
