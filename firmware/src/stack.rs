//! How deep the stack has been: it is painted at the start, and what has lost its paint was used.

/// What an unused word looks like.
const PAINT: u32 = 0xA5C3_5A3C;
/// How far down it is painted at most, in bytes; no program here goes deeper.
const PAINTED_MAX: usize = 64 * 1024;
/// What is left alone below the caller's frame, for the frames of [`paint`] itself.
const MARGIN: usize = 256;

// Made by the linker script of the run-time: the end of what is static, and of the memory. Only
// their addresses are meant.
unsafe extern "C" {
    static __sheap: u32;
    static _stack_start: u32;
}

/// From where to where the stack may be, in addresses.
fn bounds() -> (usize, usize) {
    let (bottom, top) = (&raw const __sheap, &raw const _stack_start);
    (bottom.addr().max(top.addr().saturating_sub(PAINTED_MAX)).next_multiple_of(4), top.addr())
}

/// Paints what is not used yet.
#[inline(never)]
pub(crate) fn paint() {
    let here = 0_u32;
    let (bottom, _) = bounds();
    let until = (&raw const here).addr().saturating_sub(MARGIN);
    for word in (bottom..until).step_by(4) {
        // SAFETY: between what is static and this frame there is nothing else, and no interrupt
        // has been let in yet that would have a frame there.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(word).write_volatile(PAINT) };
    }
}

/// The most that was in use since the start, in bytes. Interrupts have their frames there too.
#[must_use]
pub fn most() -> usize {
    let (bottom, top) = bounds();
    let is_painted = |word: &usize| {
        // SAFETY: it is memory, and was written at the start.
        unsafe { core::ptr::with_exposed_provenance::<u32>(*word).read_volatile() == PAINT }
    };
    let unused = (bottom..top).step_by(4).take_while(is_painted).count();
    top - bottom - 4 * unused
}
