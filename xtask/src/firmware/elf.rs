//! The flash and RAM that a program needs, read from its ELF file.

use anyhow::{Context as _, Result, ensure};

/// Sizes in bytes of a 32-bit little-endian program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    /// The contents of the flash: code, constants, initial values of variables.
    pub(super) flash: u64,
    /// Static RAM: variables. The stack is not included, because some linker scripts assign all
    /// remaining RAM to it; the used part is measured.
    pub(super) ram: u64,
}

/// ELF flags of sections: loaded at run time, writable; and the type of sections without contents.
const ALLOC: u32 = 2;
const WRITE: u32 = 1;
const NOBITS: u32 = 8;
/// The length of an entry of the section table.
const HEADER_LEN: usize = 40;
/// The section with which a linker script reserves the stack.
const STACK: &[u8] = b".stack";

impl Sizes {
    /// Sums the sections of a program.
    pub(super) fn of(image: &[u8]) -> Result<Self> {
        ensure!(image.starts_with(b"\x7fELF\x01\x01"), "not a 32-bit little-endian program");
        let table = word(image, 32)? as usize;
        let (len, n) = (half(image, 46)?, half(image, 48)?);
        ensure!(len == HEADER_LEN, "the table of sections has entries of {len} bytes");
        let header = |index: usize| table + index * HEADER_LEN;
        let names = word(image, header(half(image, 50)?) + 16)? as usize;
        let mut sizes = Self::default();
        for index in 0..n {
            let at = header(index);
            let (kind, flags) = (word(image, at + 4)?, word(image, at + 8)?);
            let size = u64::from(word(image, at + 20)?);
            if flags & ALLOC == 0 {
                continue;
            }
            if kind != NOBITS {
                sizes.flash += size;
            }
            let is_stack = text(image, names + word(image, at)? as usize)? == STACK;
            if flags & WRITE != 0 && !is_stack {
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

/// The bytes from here to the next zero.
fn text(image: &[u8], at: usize) -> Result<&[u8]> {
    let rest = image.get(at..).context("the file is too short")?;
    rest.split(|&byte| byte == 0).next().context("a name has no final zero byte")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file that contains only sections: name, type, flags and size of each. The first
    /// section contains the names.
    fn image(sections: &[(&str, u32, u32, u32)]) -> Vec<u8> {
        let n = sections.len() + 1;
        let mut image = vec![0; 52];
        image[..6].copy_from_slice(b"\x7fELF\x01\x01");
        image[32] = 52;
        image[46] = 40;
        image[48] = u8::try_from(n).unwrap();
        let names_at = u32::try_from(52 + n * HEADER_LEN).unwrap();
        let mut names = String::from("\0");
        let mut add = |name: u32, kind: u32, flags: u32, offset: u32, size: u32| {
            let mut header = [0; HEADER_LEN];
            let fields = [(0, name), (4, kind), (8, flags), (16, offset), (20, size)];
            for (at, value) in fields {
                header[at..at + 4].copy_from_slice(&value.to_le_bytes());
            }
            image.extend(header);
        };
        add(0, 3, 0, names_at, 0);
        for &(name, kind, flags, size) in sections {
            add(u32::try_from(names.len()).unwrap(), kind, flags, 0, size);
            names += name;
            names.push('\0');
        }
        image.extend(names.as_bytes());
        image
    }

    #[test]
    fn constants_are_in_flash_room_is_in_memory_and_first_values_are_in_both() {
        let sections = [
            (".text", 1, ALLOC, 1000),
            (".data", 1, ALLOC | WRITE, 20),
            (".bss", NOBITS, ALLOC | WRITE, 300),
            (".comment", 1, 0, 7),
        ];
        let sizes = Sizes::of(&image(&sections)).unwrap();
        assert_eq!(sizes, Sizes { flash: 1020, ram: 320 });
    }

    #[test]
    fn the_stack_is_no_variable() {
        let room = ALLOC | WRITE;
        let sections = [(".bss", NOBITS, room, 300), (".stack", NOBITS, room, 131_072)];
        let sizes = Sizes::of(&image(&sections)).unwrap();
        assert_eq!(sizes, Sizes { flash: 0, ram: 300 });
        // A section whose name only begins like that of the stack is counted.
        let sections = [(".stack_guard", NOBITS, room, 4)];
        assert_eq!(Sizes::of(&image(&sections)).unwrap().ram, 4);
    }

    #[test]
    fn what_is_no_such_program_is_refused() {
        assert!(Sizes::of(b"\x7fELF\x02\x01").is_err());
        let whole = image(&[(".text", 1, ALLOC, 1)]);
        for len in [60, whole.len() - 8] {
            assert!(Sizes::of(&whole[..len]).is_err(), "{len} of {} bytes", whole.len());
        }
    }
}
