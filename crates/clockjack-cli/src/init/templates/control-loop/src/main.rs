//! All `clockjack` commands, for graphs that can also use the components of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    clockjack_cli::main({{crate}}::registry())
}
