//! All commands of `clockjack`, for graphs that may also name the components of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    clockjack_cli::main({{crate}}::registry())
}
