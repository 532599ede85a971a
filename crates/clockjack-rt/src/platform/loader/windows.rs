//! The loader's lock of Windows, under which no thread can start or end.
//!
//! Windows runs the destructors of a thread's local variables in `LdrShutdownThread`, while the
//! thread holds the lock of the loader. A thread takes the same lock when it starts and when it
//! ends ("Dynamic-Link Library Best Practices", Microsoft). So a destructor that waits until
//! another thread has started or ended waits for ever: the other thread needs the lock, and the
//! lock is released only after the destructor has returned.
//!
//! There is no documented call that says whether this thread holds the lock. The lock is a critical
//! section whose address is in the process environment block, at an offset that has been the same
//! since Windows NT 3.5 for 32 bits, and since the first version for 64 bits; Wine has both.
#![expect(unsafe_code, reason = "the lock is found through ntdll")]

use core::ffi::{c_int, c_void};

/// The offset of the field `LoaderLock` in the process environment block.
const LOADER_LOCK_OFFSET: usize = if cfg!(target_pointer_width = "64") { 0x110 } else { 0xa0 };

#[link(name = "ntdll")]
unsafe extern "system" {
    /// Has no precondition.
    safe fn RtlGetCurrentPeb() -> *const u8;
    /// The argument points to an initialised critical section.
    fn RtlIsCriticalSectionLockedByThread(section: *const c_void) -> c_int;
}

/// Whether no other thread can start or end until this thread returns to the system.
pub(crate) fn is_locked_by_this_thread() -> bool {
    // SAFETY: the block has more bytes than this, and exists as long as the process.
    let field = unsafe { RtlGetCurrentPeb().add(LOADER_LOCK_OFFSET) };
    // SAFETY: the field is an aligned pointer, which the loader has set before any code of the
    // program ran and never changes.
    let lock = unsafe { field.cast::<*const c_void>().read() };
    if lock.is_null() {
        return false;
    }
    // SAFETY: the pointer is not null, so it is that of the loader's critical section, which is
    // initialised and exists as long as the process. Only its owner is read.
    unsafe { RtlIsCriticalSectionLockedByThread(lock) != 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    struct SaysAtEnd(mpsc::Sender<bool>);

    impl Drop for SaysAtEnd {
        fn drop(&mut self) {
            let _ = self.0.send(is_locked_by_this_thread());
        }
    }

    thread_local! {
        static AT_END: core::cell::RefCell<Option<SaysAtEnd>> =
            const { core::cell::RefCell::new(None) };
    }

    #[test]
    fn only_the_destructor_of_a_thread_local_runs_under_the_lock() {
        assert!(!is_locked_by_this_thread());
        let (says, said) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            drop(SaysAtEnd(says.clone()));
            AT_END.set(Some(SaysAtEnd(says)));
        });
        thread.join().unwrap();
        assert_eq!(said.iter().collect::<Vec<_>>(), [false, true]);
    }
}
