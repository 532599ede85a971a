//! tokio inside a pool, and Clockjack inside tokio.
#![cfg(not(loom))]

extern crate alloc;

#[path = "tokio/drive.rs"]
mod drive;
#[path = "support/dues.rs"]
mod dues;
#[path = "tokio/failure_bridge.rs"]
mod failure_bridge;
#[path = "support/in_time.rs"]
mod in_time;
#[path = "tokio/pool.rs"]
mod pool;
#[path = "tokio/scheduler.rs"]
mod scheduler;
#[path = "tokio/linux.rs"]
mod signals;
#[path = "tokio/system.rs"]
mod system;
#[path = "../../clockjack-actor/tests/support/timer_order.rs"]
mod timer_order;

use core::time::Duration;

use tokio::{
    runtime::{Builder, Runtime},
    time::timeout,
};

/// Far beyond what a loaded machine needs; what takes longer hangs.
const LONG: Duration = Duration::from_secs(20);

fn one_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime on this thread starts")
}

fn two_threads() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().expect("a runtime of two threads starts")
}

/// Runs a test inside tokio, for which hanging is failing.
fn within(runtime: &Runtime, test: impl Future<Output = ()>) {
    runtime.block_on(async { timeout(LONG, test).await.expect("it ends in time") });
}
