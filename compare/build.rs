//! Passes the version of the compiler to the program, which shows it in its report.

use std::env;
use std::process::Command;

fn main() {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_else(|| "rustc of unknown version".to_owned());
    println!("cargo::rustc-env=COMPARE_RUSTC={}", version.trim());
    println!("cargo::rerun-if-changed=build.rs");
}
