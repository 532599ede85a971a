//! Padding to cache lines, so that two writers do not share a line (no false sharing).

use core::ops::{Deref, DerefMut};

/// A value alone on its cache lines.
///
/// 128 bytes on x86-64 and AArch64, where the prefetcher pulls lines in pairs or lines are that
/// long; 32 on 32-bit microcontrollers, which have small lines or none; 64 elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64"),
    repr(align(128))
)]
#[cfg_attr(any(target_arch = "arm", target_arch = "riscv32"), repr(align(32)))]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "powerpc64",
        target_arch = "arm",
        target_arch = "riscv32"
    )),
    repr(align(64))
)]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Padded<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}
