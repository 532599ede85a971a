//! A picture: rows of pixels in a shared buffer. Not a codec and no arithmetic on pixels.
//!
//! Every row that a [`Frame`] tells of lies in its buffer: that is checked when it is made.

use core::fmt;

use super::{Data, DecodeError, blob::Blob};
use crate::named::named;

named! {
    /// What the bytes of a pixel mean.
    #[non_exhaustive]
    pub enum PixelFormat {
        /// One byte of grey.
        Gray8 = "gray8",
        /// Two bytes of grey, the lower first.
        Gray16 = "gray16",
        /// Red, green, blue.
        Rgb8 = "rgb8",
        /// Blue, green, red.
        Bgr8 = "bgr8",
        /// Red, green, blue, opacity.
        Rgba8 = "rgba8",
    }
}

impl PixelFormat {
    /// How many bytes a pixel has.
    #[must_use]
    pub const fn bytes_per_pixel(self) -> usize {
        match self {
            Self::Gray8 => 1,
            Self::Gray16 => 2,
            Self::Rgb8 | Self::Bgr8 => 3,
            Self::Rgba8 => 4,
        }
    }
}

/// A picture whose pixels are shared. To clone it costs no copy of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pixels: Blob,
    width: u32,
    height: u32,
    stride: u32,
    format: PixelFormat,
}

/// Why bytes are no picture of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FrameError {
    /// A row has more bytes than there are from one row to the next.
    Stride {
        /// The bytes from one row to the next.
        stride: u32,
        /// The bytes of a row.
        needed: u64,
    },
    /// There are not enough bytes for all rows.
    Bytes {
        /// How many there are.
        len: usize,
        /// How many are needed.
        needed: u64,
    },
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stride { stride, needed } => {
                write!(f, "a row has {needed} bytes, the stride is {stride}")
            }
            Self::Bytes { len, needed } => write!(f, "{needed} bytes are needed, not {len}"),
        }
    }
}

impl core::error::Error for FrameError {}

impl Frame {
    /// A picture of these bytes, with `stride` bytes from one row to the next. Bytes behind the
    /// last row are left out.
    ///
    /// # Errors
    ///
    /// [`FrameError`], if the rows do not fit.
    pub fn new(
        pixels: &Blob,
        (width, height): (u32, u32),
        stride: u32,
        format: PixelFormat,
    ) -> Result<Self, FrameError> {
        let row = u64::from(width) * format.bytes_per_pixel() as u64;
        if u64::from(stride) < row {
            return Err(FrameError::Stride { stride, needed: row });
        }
        let needed = u64::from(stride) * u64::from(height);
        let pixels = usize::try_from(needed)
            .ok()
            .and_then(|needed| pixels.slice(..needed))
            .ok_or(FrameError::Bytes { len: pixels.len(), needed })?;
        Ok(Self { pixels, width, height, stride, format })
    }

    /// The pixels of a row in its width. `None` below the last one.
    #[must_use]
    pub fn row(&self, y: u32) -> Option<&[u8]> {
        let start = usize::try_from(u64::from(y) * u64::from(self.stride)).ok()?;
        let len = usize::try_from(self.width).ok()? * self.format.bytes_per_pixel();
        if y < self.height { self.pixels.get(start..start + len) } else { None }
    }

    /// All bytes, with those between the rows.
    #[must_use]
    pub fn pixels(&self) -> &Blob {
        &self.pixels
    }

    /// Pixels in a row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Bytes from one row to the next.
    #[must_use]
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// What the bytes of a pixel mean.
    #[must_use]
    pub fn format(&self) -> PixelFormat {
        self.format
    }
}

impl Data for Frame {
    const SCHEMA: &'static str = "frame";

    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.width, self.height, self.stride] {
            number.encode(out);
        }
        out.push(self.format as u8);
        out.extend_from_slice(&self.pixels);
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let wrong = |reason| DecodeError { schema: Self::SCHEMA, reason };
        let (head, pixels) = bytes.split_at_checked(13).ok_or(wrong("too short"))?;
        let number = |at: usize| u32::decode(&head[at..at + 4]);
        let (width, height, stride) = (number(0)?, number(4)?, number(8)?);
        let format = PixelFormat::ALL.iter().find(|one| **one as u8 == head[12]);
        let format = *format.ok_or(wrong("no such format"))?;
        if u64::from(stride) * u64::from(height) != pixels.len() as u64 {
            return Err(wrong("other length"));
        }
        let pixels = Blob::from(pixels.to_vec());
        Self::new(&pixels, (width, height), stride, format)
            .map_err(|_| wrong("rows are longer than the stride"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        let sizes = (0_u32..9, 0_u32..9, 0_u32..5, 0..PixelFormat::ALL.len());
        let bytes = prop::collection::vec(any::<u8>(), 9 * (9 * 4 + 5));
        (sizes, bytes).prop_map(|((width, height, gap, format), bytes)| {
            let format = PixelFormat::ALL[format];
            let row = width * u32::try_from(format.bytes_per_pixel()).unwrap();
            Frame::new(&Blob::from(bytes), (width, height), row + gap, format).unwrap()
        })
    }

    proptest! {
        #[test]
        fn a_frame_comes_back_from_its_bytes(frame in any_frame()) {
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
            bytes.push(0);
            prop_assert!(Frame::decode(&bytes).is_err());
        }

        #[test]
        fn bytes_of_anything_are_a_frame_or_an_error(
            head in prop::collection::vec(0_u8..6, 0..14), pixels: Vec<u8>,
        ) {
            let bytes = [head, pixels].concat();
            if let Ok(frame) = Frame::decode(&bytes) {
                let mut again = Vec::new();
                frame.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn rows_leave_out_what_is_between_them() {
        let bytes = Blob::from((0..12).collect::<Vec<u8>>());
        let frame = Frame::new(&bytes, (2, 3), 4, PixelFormat::Gray8).unwrap();
        assert_eq!(frame.row(0), Some(&[0, 1][..]));
        assert_eq!(frame.row(2), Some(&[8, 9][..]));
        assert_eq!(frame.row(3), None);
        assert!(frame.pixels().shares_buffer(&bytes));
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let bytes = Blob::from(vec![0; 11]);
        let new = |size, stride| Frame::new(&bytes, size, stride, PixelFormat::Rgb8).unwrap_err();
        assert_eq!(new((2, 1), 5), FrameError::Stride { stride: 5, needed: 6 });
        assert_eq!(new((1, 4), 3), FrameError::Bytes { len: 11, needed: 12 });
        let huge = u64::from(u32::MAX) * u64::from(u32::MAX);
        assert_eq!(new((0, u32::MAX), u32::MAX), FrameError::Bytes { len: 11, needed: huge });
    }
}
