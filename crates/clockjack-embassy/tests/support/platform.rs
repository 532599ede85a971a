//! Embassy's std platform for a test: an executor on a dedicated thread, which never stops.

use core::{pin::Pin, time::Duration};
use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread,
};

use embassy_executor::{Executor, Spawner};

/// The time limit of a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A task of any kind.
pub(crate) type Task = Pin<Box<dyn Future<Output = ()>>>;

#[embassy_executor::task(pool_size = 64)]
async fn any(task: Task) {
    task.await;
}

/// Starts an Embassy task.
pub(crate) fn start(spawner: Spawner, task: impl Future<Output = ()> + 'static) {
    spawner.spawn(any(Box::pin(task))).expect("there are not so many");
}

/// Runs a body in an Embassy task, and returns its output.
#[track_caller]
pub(crate) fn run<T: Send + 'static>(body: impl AsyncFnOnce(Spawner) -> T + Send + 'static) -> T {
    let (told, heard) = mpsc::channel();
    thread::spawn(move || {
        let executor = Box::leak(Box::new(Executor::new()));
        executor.run(|spawner| {
            start(spawner, async move {
                // The receiver has been dropped if the test has timed out.
                drop(told.send(body(spawner).await));
            });
        });
    });
    match heard.recv_timeout(PATIENCE) {
        Ok(output) => output,
        Err(RecvTimeoutError::Timeout) => panic!("it hangs"),
        Err(RecvTimeoutError::Disconnected) => panic!("it has panicked"),
    }
}
