//! What is specific to Windows: events of the console, and the lock of the loader.
#![cfg(all(windows, not(loom)))]

#[path = "windows/console.rs"]
mod console;
#[path = "windows/loader.rs"]
mod loader;
