//! A tokio task for each one-shot, which sleeps and fires; a cancel aborts it.

use core::future::Future;
use core::time::Duration;

use tokio::task::JoinHandle;

use super::receiver::Shot;
use super::subject::{Subject, Timers};
use super::tokio::MultiThread;
use crate::failure::Failure;
use crate::report::{Facts, Standing};

pub(crate) const NAME: &str = "tokio-sleep";

pub(crate) struct SleepTasks {
    runtime: MultiThread,
}

/// The tasks find their runtime by the worker they are spawned on.
pub(crate) struct Here;

impl Subject for SleepTasks {
    const FACTS: Facts = Facts {
        name: NAME,
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "a task with `sleep` a timer in multi_thread without I/O, cancelled by its \
               `JoinHandle`",
    };

    type Timers = Here;

    fn start() -> Result<Self, Failure> {
        Ok(Self { runtime: MultiThread::start(NAME)? })
    }

    fn timers(&self) -> Here {
        Here
    }

    fn block_on<F>(&self, root: F) -> F::Output
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.runtime.block_on(root)
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }

    fn stop(self) {
        drop(self.runtime);
    }
}

impl Timers for Here {
    type Key = JoinHandle<()>;

    fn schedule(&self, delay: Duration, mut shot: Shot) -> JoinHandle<()> {
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            shot.fire();
        })
    }

    fn cancel(&self, key: JoinHandle<()>) {
        key.abort();
    }
}
