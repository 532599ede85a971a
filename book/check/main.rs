//! Writes the generated pages and pictures of the book: `cargo xtask book`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match clockjack_book::reference::write() {
        Ok(n_changed) => {
            say(&format!("{n_changed} files changed"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "a command says what it has done")]
fn say(text: &str) {
    println!("{text}");
}
