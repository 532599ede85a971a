//! Catches panics: the one `catch_unwind` of every host in this crate.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use clockjack_exec::PanicPayload;

/// Calls a function and catches its panic. This is a [`CatchUnwind`](crate::sched::CatchUnwind) for
/// a [`ManualRunner`](crate::sched::ManualRunner) on a platform with unwinding.
///
/// # Errors
///
/// The panic.
#[inline]
pub fn catch_panic(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    // `AssertUnwindSafe`: executors and schedulers do not touch their own state while user code
    // runs, and they drop the state of user code that has panicked.
    catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
}

#[cfg(test)]
mod tests {
    use std::panic::panic_any;

    use super::*;

    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic_any(Self);
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_text_whatever_was_thrown() {
        assert!(catch_panic(&mut || ()).is_ok());
        let text = |call: &mut dyn FnMut()| {
            let payload = catch_panic(call).expect_err("it panics");
            let text = payload.message().to_owned();
            payload.drop_caught(catch_panic);
            text
        };
        assert_eq!(text(&mut || panic!("plain")), "plain");
        assert_eq!(text(&mut || panic!("made of {}", 2)), "made of 2");
        assert_eq!(text(&mut || panic_any(7)), "a panic whose payload is not a text");
        assert_eq!(text(&mut || panic_any(Bomb)), "a panic whose payload is not a text");
    }
}
