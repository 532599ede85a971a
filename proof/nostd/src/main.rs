//! Compiles only if no core crate links std, and, without `alloc`, none needs an allocator.
//!
//! `cargo xtask nostd` checks it in three ways: without features, with `alloc`, and with each
//! planted error, which must be refused.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

#[cfg(feature = "alloc")]
use clockjack_actor as _;
#[cfg(feature = "alloc")]
use clockjack_exec as _;
use clockjack_observe as _;
#[cfg(feature = "alloc")]
use clockjack_sched as _;
use clockjack_sync as _;
use clockjack_time as _;

#[cfg(feature = "plant_alloc")]
extern crate alloc;
#[cfg(feature = "plant_std")]
extern crate std;

#[cfg(feature = "alloc")]
mod empty_heap;

#[panic_handler]
fn stop(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
