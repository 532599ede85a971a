//! What is specific to Windows: events of the console, and the lock of the loader.
#![cfg(all(windows, not(loom)))]

#[path = "windows/child.rs"]
mod child;
#[path = "windows/console.rs"]
mod console;
#[path = "windows/loader.rs"]
mod loader;
#[path = "support/signals_on_one_thread.rs"]
mod signals_on_one_thread;
#[cfg(feature = "tokio")]
#[path = "windows/tokio_run.rs"]
mod tokio_run;

/// Two events, one after the other, and the exit code of a program that the second one ends.
const PAIRS: [(u32, u32, i32); 2] =
    [(child::SIGINT, child::SIGTERM, 143), (child::CTRL_BREAK, child::SIGINT, 130)];
