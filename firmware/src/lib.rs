//! The board: what a program on bare metal needs below Clockjack.
//!
//! | part | what it gives |
//! |---|---|
//! | [`board`] | the tick interrupt, a clock and driver fed by it, sleep, a toolbox, `block_on` |
//! | [`heap`] | memory of a fixed size that counts, and that can be shut |
//! | [`stack`] | how deep the stack has been |
//! | [`out`] | lines to the host by semihosting, and the end of the program |
//!
//! A program is a function and [`program!`]; `src/bin/station.rs` is one. Everything above this
//! crate is the same on every board: what differs is in `arch/`, one file for an architecture, and
//! `boards/`, one file for a memory.
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

/// Makes a function the program: it is called with a heap, before the first tick, and its end is
/// the end of the program.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        /// What the start-up code calls.
        #[unsafe(no_mangle)]
        extern "C" fn main() -> ! {
            $crate::start($run)
        }
    };
}

/// Gives the program its heap, runs it, and ends with success.
pub fn start(run: fn()) -> ! {
    stack::paint();
    heap::init();
    run();
    out::exit(0)
}

/// Writes what the program took of the memory as facts.
pub fn report() {
    heap::report();
    out::fact("stack-max", stack::most() as u64);
}

#[panic_handler]
fn panicked(info: &PanicInfo<'_>) -> ! {
    out::line(format_args!("panic: {info}"));
    out::exit(101)
}
