//! All commands of `clockjack`, for graphs that may also use the components of this package:
//! `cargo run -p clockjack-own-components -- run examples/own-components/heater.yaml --steps 50`

use std::process::ExitCode;

fn main() -> ExitCode {
    clockjack_cli::main(clockjack_own_components::registry())
}
