//! The command `clockjack`. The implementation is in the library, so that tests can call it.

use std::process::ExitCode;

use clockjack_graph::Registry;

fn main() -> ExitCode {
    clockjack_cli::main(Registry::standard())
}
