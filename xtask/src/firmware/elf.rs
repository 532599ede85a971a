//! What a program takes of a chip's memories, read from its file.

use anyhow::{Context as _, Result, ensure};

/// Bytes of a 32-bit program, little end first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// What is written to the flash: code, constants, first values of variables.
    pub(super) flash: u64,
    /// What is taken of the memory from the start on: variables.
    pub(super) ram: u64,
}

/// Sections that the program has at run time, those of them that can be written, and the kind that
/// is nothing but room.
const ALLOC: u32 = 2;
const WRITE: u32 = 1;
const NOBITS: u32 = 8;
/// An entry of the table of sections.
const HEADER_LEN: usize = 40;

impl Sizes {
    /// Adds up the sections of a program.
    pub(super) fn of(image: &[u8]) -> Result<Self> {
        ensure!(image.starts_with(b"\x7fELF\x01\x01"), "not a 32-bit program, little end first");
        let table = word(image, 32)? as usize;
        let (len, n) = (half(image, 46)?, half(image, 48)?);
        ensure!(len == HEADER_LEN, "the table of sections has entries of {len} bytes");
        let mut sizes = Self::default();
        for index in 0..n {
            let at = table + index * HEADER_LEN;
            let (kind, flags) = (word(image, at + 4)?, word(image, at + 8)?);
            let size = u64::from(word(image, at + 20)?);
            if flags & ALLOC == 0 {
                continue;
            }
            if kind != NOBITS {
                sizes.flash += size;
            }
            if flags & WRITE != 0 {
                sizes.ram += size;
            }
        }
        Ok(sizes)
    }
}

fn word(image: &[u8], at: usize) -> Result<u32> {
    let bytes = image.get(at..at + 4).context("the file is too short")?;
    Ok(u32::from_le_bytes(bytes.try_into()?))
}

fn half(image: &[u8], at: usize) -> Result<usize> {
    let bytes = image.get(at..at + 2).context("the file is too short")?;
    Ok(usize::from(u16::from_le_bytes(bytes.try_into()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with nothing but a table of sections: kind, flags and size of each.
    fn image(sections: &[(u32, u32, u32)]) -> Vec<u8> {
        let mut image = vec![0; 52];
        image[..6].copy_from_slice(b"\x7fELF\x01\x01");
        image[32] = 52;
        image[46] = 40;
        image[48] = u8::try_from(sections.len()).unwrap();
        for &(kind, flags, size) in sections {
            let mut header = [0; HEADER_LEN];
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[8..12].copy_from_slice(&flags.to_le_bytes());
            header[20..24].copy_from_slice(&size.to_le_bytes());
            image.extend(header);
        }
        image
    }

    #[test]
    fn constants_are_in_flash_room_is_in_memory_and_first_values_are_in_both() {
        let sections =
            [(1, ALLOC, 1000), (1, ALLOC | WRITE, 20), (NOBITS, ALLOC | WRITE, 300), (1, 0, 7)];
        let sizes = Sizes::of(&image(&sections)).unwrap();
        assert_eq!(sizes, Sizes { flash: 1020, ram: 320 });
    }

    #[test]
    fn what_is_no_such_program_is_refused() {
        assert!(Sizes::of(b"\x7fELF\x02\x01").is_err());
        let mut cut = image(&[(1, ALLOC, 1)]);
        cut.truncate(60);
        assert!(Sizes::of(&cut).is_err());
    }
}
