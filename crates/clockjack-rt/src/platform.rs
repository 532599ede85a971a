//! What differs by operating system: the clock, parking, and settings of threads.

pub mod clock;
#[cfg(target_os = "linux")]
#[path = "platform/clock/linux.rs"]
mod monotonic;
#[cfg(not(target_os = "linux"))]
#[path = "platform/clock/portable.rs"]
mod monotonic;
// Both implementations are compiled and tested where the tests run.
#[cfg(target_os = "linux")]
#[path = "platform/fork/linux.rs"]
pub(crate) mod fork;
#[cfg(not(target_os = "linux"))]
#[path = "platform/fork/portable.rs"]
pub(crate) mod fork;
#[cfg(windows)]
#[path = "platform/loader/windows.rs"]
pub(crate) mod loader;
#[cfg(not(windows))]
#[path = "platform/loader/portable.rs"]
pub(crate) mod loader;
#[cfg(all(test, target_os = "linux"))]
#[path = "platform/clock/portable.rs"]
mod monotonic_portable;
pub mod parker;
#[cfg(all(target_os = "linux", not(loom)))]
#[path = "platform/parker/futex.rs"]
pub mod parker_futex;
#[path = "platform/parker/portable.rs"]
pub mod parker_portable;
pub(crate) mod primitive;
#[cfg(not(any(unix, windows)))]
#[path = "platform/signals/portable.rs"]
mod signal_handler;
#[cfg(unix)]
#[path = "platform/signals/unix.rs"]
mod signal_handler;
#[cfg(windows)]
#[path = "platform/signals/windows.rs"]
mod signal_handler;
#[cfg(all(test, any(unix, windows)))]
#[path = "platform/signals/portable.rs"]
mod signal_handler_portable;
pub(crate) mod signals;
pub mod thread;
#[cfg(target_os = "linux")]
#[path = "platform/thread/linux.rs"]
pub(crate) mod thread_control;
#[cfg(not(target_os = "linux"))]
#[path = "platform/thread/portable.rs"]
pub(crate) mod thread_control;
#[cfg(all(test, target_os = "linux"))]
#[path = "platform/thread/portable.rs"]
mod thread_control_portable;
