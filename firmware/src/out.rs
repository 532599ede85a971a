//! Output to the host, and the exit of the program.
//!
//! Lines without a mark are the trace, which is compared with a golden file. Lines that begin with
//! `#` are facts, which differ between targets.

use core::fmt;

/// Writes a line.
pub fn line(text: fmt::Arguments<'_>) {
    semihosting::println!("{text}");
}

/// Writes a fact: a name and a number.
pub fn fact(name: &str, number: u64) {
    semihosting::println!("# {name} {number}");
}

/// Exits the program; zero is success.
pub fn exit(code: i32) -> ! {
    semihosting::process::exit(code)
}

/// A writer for dumps.
#[derive(Debug)]
pub struct Out;

impl fmt::Write for Out {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        semihosting::print!("{text}");
        Ok(())
    }
}

/// Writes a line of the trace, as `println!` would.
#[macro_export]
macro_rules! line {
    ($($text:tt)*) => { $crate::out::line(core::format_args!($($text)*)) };
}
