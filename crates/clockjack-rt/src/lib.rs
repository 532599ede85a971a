//! Clockjack on an operating system: threads, clock, parking.
//!
//! This is the crate that reads a clock, sleeps and starts threads, so that no crate below has to.
//!
//! | part | what it is |
//! |---|---|
//! | [`clock`] | [`OsClock`]: ticks counted by the monotonic clock of the system |
//! | [`parker`] | [`Parker`]: where one thread sleeps until it is called or a deadline passes |
//! | [`thread`] | named threads, precise sleeping, one CPU for one thread |
//! | [`blocking`] | [`BlockingPool`]: threads for closures that wait |
//!
//! # Platforms
//!
//! Linux sleeps on a futex with an absolute deadline, and can be told the CPU and the timer slack
//! of a thread. Elsewhere a lock and a condition variable of std do the sleeping, which is as
//! precise as std is there, and affinity is refused as not supported.
//!
//! # tokio
//!
//! The feature `tokio` is for programs that have both, and goes two ways.
//!
//! *tokio inside Clockjack*: a pool with [`PoolConfig::tokio`] has one more thread, `cj-tokio`,
//! with a tokio runtime, and every worker is entered into it. So sockets, sleeps and `tokio::spawn`
//! work in processes and futures; what is spawned runs on that thread, and is dropped with the
//! pool. The pool takes a thread of its own even if it is made inside another runtime: its
//! processes may then outlive that one. tokio's own features, `net` among them, are chosen by who
//! uses them.
//!
//! *Clockjack inside tokio*: `TokioToolbox` makes an executor that is driven by a task of an
//! existing application, and never blocks its thread. A pool can be used there as well, its joins
//! awaited in any task; only its shutdown and its drop wait, so they belong into
//! `tokio::task::spawn_blocking` where that matters.

extern crate alloc;

mod block_on;
pub mod blocking;
mod blocking_command;
pub mod clock;
mod current;
mod host;
#[cfg(target_os = "linux")]
#[path = "clock/linux.rs"]
mod monotonic;
#[cfg(not(target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic;
// Both twins are compiled and tested where the tests run.
#[cfg(all(test, target_os = "linux"))]
#[path = "clock/portable.rs"]
mod monotonic_portable;
pub mod parker;
#[cfg(all(target_os = "linux", not(loom)))]
#[doc(hidden)]
#[path = "parker/futex.rs"]
pub mod parker_futex;
#[doc(hidden)]
#[path = "parker/portable.rs"]
pub mod parker_portable;
mod pool;
mod prim;
pub mod thread;
#[cfg(target_os = "linux")]
#[path = "thread/linux.rs"]
mod thread_control;
#[cfg(not(target_os = "linux"))]
#[path = "thread/portable.rs"]
mod thread_control;
#[cfg(all(test, target_os = "linux"))]
#[path = "thread/portable.rs"]
mod thread_control_portable;
#[cfg(not(all(feature = "tokio", not(loom))))]
#[path = "tokio_host/absent.rs"]
mod tokio_host;
#[cfg(all(feature = "tokio", not(loom)))]
#[path = "tokio_host/enabled.rs"]
mod tokio_host;
#[cfg(all(test, feature = "tokio", not(loom)))]
#[path = "tokio_host/absent.rs"]
mod tokio_host_absent;
#[cfg(all(feature = "tokio", not(loom)))]
mod tokio_toolbox;

pub use blocking::{BlockingConfig, BlockingPool, BlockingReport, BlockingStats, Rejected};
pub use clock::{OsClock, OsInstant};
pub use parker::Parked;
#[cfg(all(target_os = "linux", not(loom)))]
pub use parker_futex::Parker;
#[cfg(not(all(target_os = "linux", not(loom))))]
pub use parker_portable::Parker;

pub use blocking_command::Blocking;
pub use clockjack_exec as exec;
pub use clockjack_exec::yield_now;
pub use current::{interval, sleep, spawn};
pub use pool::{PoolConfig, ShutdownReport, Straggler, WorkerPool};
#[cfg(all(feature = "tokio", not(loom)))]
pub use tokio_toolbox::{TokioExecutor, TokioToolbox};
