//! The command `clockjack`. Everything is in the library, where tests can call it.

use std::process::ExitCode;

use clockjack_graph::Registry;

fn main() -> ExitCode {
    clockjack_cli::main(Registry::standard())
}
