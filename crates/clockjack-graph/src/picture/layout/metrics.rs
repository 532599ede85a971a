//! The sizes of texts, boxes and gaps in the units of an output.

/// The sizes of texts, boxes and gaps. All horizontal sizes of boxes and gaps are multiples of
/// `pitch`.
#[derive(Clone, Copy, Debug)]
pub struct Metrics {
    /// The smallest distance between two vertical lines.
    pub pitch: i64,
    /// The distance between two boxes next to each other.
    pub item_gap: i64,
    /// The distance between a vertical line and a box or another line.
    pub wire_gap: i64,
    /// The distance between the text and the sides of a box.
    pub box_padding: i64,
    /// The height of a box.
    pub box_height: i64,
    /// The distance between a band or a frame and its contents.
    pub padding: i64,
    /// The thickness of the border of a frame.
    pub border: i64,
    /// The height of the title of a frame.
    pub title_height: i64,
    /// The height of the title of a band.
    pub band_title_height: i64,
    /// The distance between a line and its label.
    pub label_gap: i64,
    /// The height of a label.
    pub label_height: i64,
    /// The distance between a row and the first track below it.
    pub channel_top: i64,
    /// The distance between the last track and the labels or the border below it.
    pub channel_bottom: i64,
    /// The distance between the last track and the boxes below it, with room for an arrow head.
    pub channel_arrow: i64,
    /// The distance between two tracks.
    pub track: i64,
    /// The width of a text in the font of box titles, details and labels.
    pub text_width: fn(&str, Font) -> i64,
}

/// The font of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Font {
    /// The first line of a box.
    Name,
    /// The second line of a box.
    Detail,
    /// The caption of an edge.
    Label,
    /// The title of a frame or band.
    Title,
}

impl Font {
    /// The size in pixels.
    #[must_use]
    pub const fn pixels(self) -> i64 {
        match self {
            Self::Name => 13,
            Self::Title => 12,
            Self::Detail | Self::Label => 11,
        }
    }
}

impl Metrics {
    /// Pixels.
    pub const PIXELS: Self = Self {
        pitch: 8,
        item_gap: 32,
        wire_gap: 16,
        box_padding: 14,
        box_height: 44,
        padding: 16,
        border: 0,
        title_height: 26,
        band_title_height: 34,
        label_gap: 5,
        label_height: 16,
        channel_top: 8,
        channel_bottom: 8,
        channel_arrow: 16,
        track: 8,
        text_width: pixels,
    };

    /// Character cells.
    pub const CELLS: Self = Self {
        pitch: 2,
        item_gap: 2,
        wire_gap: 2,
        box_padding: 2,
        box_height: 4,
        padding: 2,
        border: 1,
        title_height: 1,
        band_title_height: 1,
        label_gap: 2,
        label_height: 1,
        channel_top: 0,
        channel_bottom: 1,
        channel_arrow: 2,
        track: 1,
        text_width: columns,
    };

    /// The smallest width of a box that has room for this text and its center on the grid.
    pub(super) fn snapped(&self, width: i64) -> i64 {
        let step = 2 * self.pitch;
        (width + step - 1).div_euclid(step) * step
    }
}

/// The width of a text in pixels. Fonts differ; this is the width in a wide one (DejaVu Sans), so
/// that the text has room in others, too.
fn pixels(text: &str, font: Font) -> i64 {
    let hundredths: i64 = text.chars().map(hundredths_of_em).sum();
    let bold = if matches!(font, Font::Name | Font::Title) { 110 } else { 100 };
    (hundredths * font.pixels() * bold).div_euclid(100 * 100) + 1
}

fn hundredths_of_em(letter: char) -> i64 {
    match letter {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' | 'I' => 35,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '{' | '}' | '/' | '-' | '"' => 42,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 100,
        '_' => 50,
        'A'..='Z' | '&' | '+' | '<' | '>' | '=' | '~' | '#' => 80,
        letter if letter.is_ascii() => 64,
        letter => 64 * columns_of(letter),
    }
}

/// The width of a text in character cells.
fn columns(text: &str, _font: Font) -> i64 {
    text.chars().map(columns_of).sum()
}

/// The width of a character in a terminal: two cells for East Asian wide characters and emoji, none
/// for combining marks.
pub(crate) fn columns_of(letter: char) -> i64 {
    match u32::from(letter) {
        0x300..=0x36f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f => 0,
        0x1100..=0x115f
        | 0x2e80..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe6f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1faff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
