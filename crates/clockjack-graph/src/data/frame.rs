//! An image: rows of pixels in a shared buffer. There are no codecs and no pixel arithmetic.
//!
//! Invariant: all rows of a [`Frame`] are within its buffer, which is checked on creation.

use super::{Data, DataError, blob::Blob, error::Kind};
use crate::named::named;

named! {
    /// The meaning of a pixel's bytes.
    #[non_exhaustive]
    pub enum PixelFormat {
        /// One byte of grey.
        Gray8 = "gray8",
        /// Two bytes of grey, little-endian.
        Gray16 = "gray16",
        /// Red, green, blue.
        Rgb8 = "rgb8",
        /// Blue, green, red.
        Bgr8 = "bgr8",
        /// Red, green, blue, alpha.
        Rgba8 = "rgba8",
    }
}

impl PixelFormat {
    /// The number of bytes per pixel.
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

/// An image with shared pixels. Cloning it does not copy the pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pixels: Blob,
    width: u32,
    height: u32,
    stride: u32,
    format: PixelFormat,
}

impl Frame {
    /// Creates an image from bytes, with `stride` bytes from one row to the next. Bytes after the
    /// last row are ignored.
    ///
    /// # Errors
    ///
    /// [`DataError`], if the rows do not fit.
    pub fn new(
        pixels: &Blob,
        (width, height): (u32, u32),
        stride: u32,
        format: PixelFormat,
    ) -> Result<Self, DataError> {
        let row = u64::from(width) * format.bytes_per_pixel() as u64;
        if u64::from(stride) < row {
            return Err(DataError(Kind::Stride { stride, needed: row }));
        }
        let needed = u64::from(stride) * u64::from(height);
        let pixels = usize::try_from(needed)
            .ok()
            .and_then(|needed| pixels.slice(..needed))
            .ok_or(DataError(Kind::Bytes { len: pixels.len(), needed }))?;
        Ok(Self { pixels, width, height, stride, format })
    }

    /// The pixels of a row, without padding. `None` after the last row.
    #[must_use]
    pub fn row(&self, y: u32) -> Option<&[u8]> {
        let start = usize::try_from(u64::from(y) * u64::from(self.stride)).ok()?;
        let len = usize::try_from(self.width).ok()? * self.format.bytes_per_pixel();
        if y < self.height { self.pixels.get(start..start + len) } else { None }
    }

    /// All bytes, including the padding between rows.
    #[must_use]
    pub fn pixels(&self) -> &Blob {
        &self.pixels
    }

    /// Pixels per row.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The number of rows.
    #[must_use]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Bytes from one row to the next.
    #[must_use]
    pub fn stride(&self) -> u32 {
        self.stride
    }

    /// The meaning of a pixel's bytes.
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

    fn decode(bytes: &[u8]) -> Result<Self, DataError> {
        let wrong = |reason| DataError::new(Self::SCHEMA, reason);
        let (head, pixels) = bytes.split_at_checked(13).ok_or(wrong("too short"))?;
        let number = |at: usize| u32::decode(&head[at..at + 4]);
        let (width, height, stride) = (number(0)?, number(4)?, number(8)?);
        let format = PixelFormat::ALL.iter().find(|one| **one as u8 == head[12]);
        let format = *format.ok_or(wrong("unknown pixel format"))?;
        if u64::from(stride) * u64::from(height) != pixels.len() as u64 {
            return Err(wrong("wrong length"));
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
        assert_eq!(new((2, 1), 5), DataError(Kind::Stride { stride: 5, needed: 6 }));
        assert_eq!(new((1, 4), 3), DataError(Kind::Bytes { len: 11, needed: 12 }));
        let huge = u64::from(u32::MAX) * u64::from(u32::MAX);
        assert_eq!(new((0, u32::MAX), u32::MAX), DataError(Kind::Bytes { len: 11, needed: huge }));
    }
}
