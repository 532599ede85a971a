//! The text of an expected panic.

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

pub(crate) fn panic_of<R>(call: impl FnOnce() -> R) -> String {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(_) => panic!("it was expected to panic"),
        Err(payload) => match payload.downcast::<String>() {
            Ok(text) => *text,
            Err(payload) => payload.downcast_ref::<&str>().expect("a text").to_string(),
        },
    }
}
