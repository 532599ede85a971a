//! Selects the board: its memory layout for the linker, and the size of its heap.
//!
//! Each target has a default board; the environment variable `CLOCKJACK_BOARD` names another one.

use std::{env, error::Error, fs, path::Path};

/// Properties of a board in addition to its memory: bytes of its heap, ticks of its timer per
/// millisecond.
const BOARDS: [(&str, u32, u32); 4] = [
    ("microbit", 10 * 1024, 16_000),
    ("mps2-an385", 128 * 1024, 25_000),
    ("mps2-an386", 3 * 1024 * 1024, 25_000),
    ("virt", 128 * 1024, 10_000),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-env-changed=CLOCKJACK_BOARD");
    println!("cargo:rerun-if-changed=boards");
    let target = env::var("TARGET")?;
    let usual = match target.as_str() {
        "thumbv6m-none-eabi" | "thumbv7m-none-eabi" => "mps2-an385",
        "thumbv7em-none-eabi" | "thumbv7em-none-eabihf" => "mps2-an386",
        "riscv32imac-unknown-none-elf" => "virt",
        _ => return Err(format!("no board is known for {target}").into()),
    };
    let board = env::var("CLOCKJACK_BOARD").unwrap_or_else(|_| usual.to_owned());
    let (_, heap, clock) = BOARDS
        .into_iter()
        .find(|(name, ..)| *name == board)
        .ok_or_else(|| format!("there is no board `{board}`"))?;
    let out = env::var("OUT_DIR")?;
    fs::copy(format!("boards/{board}.x"), Path::new(&out).join("memory.x"))?;
    fs::write(
        Path::new(&out).join("board.rs"),
        format!(
            "/// The board.\npub const NAME: &str = {board:?};\n\
             pub(crate) const HEAP_BYTES: usize = {heap};\n\
             pub(crate) const CLOCKS_PER_MILLI: u32 = {clock};\n"
        ),
    )?;
    println!("cargo:rustc-link-search={out}");
    println!("cargo:rustc-link-arg-bins=-Tlink.x");
    Ok(())
}
