//! Prefetching: starts to load a cache line that is needed soon, and does not wait for it.
#![expect(unsafe_code, reason = "the instruction takes an address")]

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Whether [`prefetch`] does anything.
pub const IS_SUPPORTED: bool = true;

/// Starts to load the cache line at this address, which need not be valid: a hint that costs one
/// instruction.
#[inline(always)]
pub fn prefetch<T>(at: *const T) {
    // SAFETY: the instruction changes nothing that a program can observe except the time that a
    // later access takes, and it ignores an address that is not mapped.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

#[cfg(test)]
mod tests {
    use core::ptr;

    use super::prefetch;

    #[test]
    fn every_address_is_allowed_and_nothing_is_changed() {
        let value = 7_u64;
        prefetch(&raw const value);
        prefetch(ptr::null::<u64>());
        prefetch(ptr::without_provenance::<u64>(usize::MAX));
        assert_eq!(value, 7);
    }
}
