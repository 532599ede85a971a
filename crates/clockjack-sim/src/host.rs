//! Hosts for simulated systems: one thread, or several workers that are interleaved on one thread.

pub(crate) mod any;
pub(crate) mod executor;
pub mod multi_worker;
pub mod single_thread;

use core::panic::AssertUnwindSafe;
use std::panic::catch_unwind;

use clockjack_exec::PanicPayload;

/// Catches a panic, as hosts with threads do.
fn catch_panic(call: &mut dyn FnMut()) -> Result<(), PanicPayload> {
    catch_unwind(AssertUnwindSafe(call)).map_err(PanicPayload::new)
}
