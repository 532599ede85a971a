//! The maximum depth of the stack: the stack is filled with a pattern at the start, and words that
//! no longer contain the pattern were used.

/// The pattern of an unused word.
const PAINT: u32 = 0xA5C3_5A3C;
/// The maximum number of bytes that are filled; no program here needs more.
const PAINTED_MAX: usize = 64 * 1024;
/// The bytes below the caller's frame that are not filled, for the frames of [`paint`] itself.
const MARGIN: usize = 256;

// Defined by the linker script: the end of static memory and of the stack. Only their addresses are
// used.
unsafe extern "C" {
    static __sheap: u32;
    static _stack_start: u32;
}

/// The address range of the stack.
fn bounds() -> (usize, usize) {
    let (bottom, top) = (&raw const __sheap, &raw const _stack_start);
    (bottom.addr().max(top.addr().saturating_sub(PAINTED_MAX)).next_multiple_of(4), top.addr())
}

/// Fills the unused part with the pattern.
#[inline(never)]
pub(crate) fn paint() {
    let here = 0_u32;
    let (bottom, _) = bounds();
    let until = (&raw const here).addr().saturating_sub(MARGIN);
    for word in (bottom..until).step_by(4) {
        // SAFETY: there is nothing else between static memory and this frame, and interrupts, which
        // would use frames there, are not enabled yet.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(word).write_volatile(PAINT) };
    }
}

/// The maximum number of bytes in use since the start, including the frames of interrupts.
#[must_use]
pub fn most() -> usize {
    let (bottom, top) = bounds();
    let is_painted = |word: &usize| {
        // SAFETY: the address is in the memory of the stack, which was written at the start.
        unsafe { core::ptr::with_exposed_provenance::<u32>(*word).read_volatile() == PAINT }
    };
    let unused = (bottom..top).step_by(4).take_while(is_painted).count();
    top - bottom - 4 * unused
}
