//! [`WireId`]: the stable name of a message type.

use core::fmt;

/// The longest name of a type, in bytes.
pub const NAME_MAX: usize = 128;

/// The stable name of a message type, and the 64-bit hash of the name, which travels.
///
/// The hash is FNV-1a, so other programs can compute it. Two types whose names have the same hash
/// cannot be told apart: `clockjack-net` compares names where it has both.
///
/// # Examples
///
/// ```
/// use clockjack_wire::WireId;
///
/// const ORDER: WireId = WireId::new("shop.Order");
/// assert_eq!(ORDER.name(), "shop.Order");
/// assert_eq!(ORDER.hash(), 0xc4f3_e727_569c_6237);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId {
    name: &'static str,
    hash: u64,
}

impl WireId {
    /// The id with this name.
    ///
    /// # Panics
    ///
    /// If the name is empty, longer than [`NAME_MAX`] bytes, or contains anything but ASCII
    /// letters, digits, `.`, `_` and `-`. In a constant that is a compile error.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty(), "the name of a wire type must not be empty");
        assert!(bytes.len() <= NAME_MAX, "the name of a wire type has more than 128 bytes");
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut at = 0;
        while at < bytes.len() {
            let byte = bytes[at];
            assert!(
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'),
                "the name of a wire type may contain ASCII letters, digits, `.`, `_` and `-`"
            );
            // A cast: `From` is not const.
            hash = (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3);
            at += 1;
        }
        Self { name, hash }
    }

    /// The name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The hash of the name.
    #[must_use]
    pub const fn hash(&self) -> u64 {
        self.hash
    }
}

impl fmt::Display for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Debug for WireId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WireId({}, {:#018x})", self.name, self.hash)
    }
}
