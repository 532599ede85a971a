//! The board support that a bare-metal program needs below Clockjack.
//!
//! | part | contents |
//! |---|---|
//! | [`board`] | the tick interrupt, its clock and driver, sleep, a toolbox, `block_on` |
//! | [`heap`] | a heap of fixed size with counters, which can be closed |
//! | [`stack`] | the maximum depth of the stack |
//! | [`out`] | lines to the host by semihosting, and the exit of the program |
//!
//! A program is a function and [`program!`], for example `src/bin/station.rs`. Everything above
//! this crate is the same on every board; `arch/` has one file per architecture, and `boards/` one
//! file per memory layout.
#![no_std]

pub mod board;
pub mod heap;
pub mod out;
pub mod stack;

#[cfg(target_arch = "arm")]
#[path = "arch/cortex_m.rs"]
mod arch;
#[cfg(target_arch = "riscv32")]
#[path = "arch/riscv.rs"]
mod arch;

use core::panic::PanicInfo;

/// Declares a function as the program: it is called with a heap, before the first tick; the program
/// exits when the function returns.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        /// The entry point that the start-up code calls.
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::start($run)
        }
    };
}

/// Sets up the heap, runs the program, and exits with success.
pub fn start(run: fn()) -> ! {
    stack::paint();
    heap::init();
    run();
    out::exit(0)
}

/// Prints the memory use of the program as facts.
pub fn report() {
    heap::report();
    out::fact("stack-max", stack::most() as u64);
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    out::line(format_args!("panic: {info}"));
    out::exit(101)
}
