//! What the command's exit codes mean. Numbers stay what they are; new ones may come.
//!
//! A process that is interrupted by Ctrl-C ends by its signal and has no code of its own; shells
//! show 130.

/// All went well; also if the reader of the output went away before its end, and for `--help` and
/// `--version`.
pub const OK: u8 = 0;

/// Something that must not happen: a check of the simulation did not hold, a run was not the one it
/// was compared with, or the output could not be written. Standard error says which.
pub const FAILED: u8 = 1;

/// The arguments are wrong, or there are none, or a file that they name is not what it should be;
/// nothing was done. Standard error says what is wrong and which values are allowed.
pub const USAGE: u8 = 2;
