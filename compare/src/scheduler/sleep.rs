//! One tokio task per one-shot, which sleeps and fires; a cancel aborts it.

use core::time::Duration;

use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::subject::Timers;
use super::tokio::Guest;
use crate::receiver::Shot;
use crate::report::{Facts, Standing};

pub(crate) const NAME: &str = "tokio-sleep";

pub(crate) struct SleepTasks;

/// Spawns on the runtime of the current worker.
pub(crate) struct Here;

impl Guest for SleepTasks {
    const FACTS: Facts = Facts {
        name: NAME,
        package: Some("tokio"),
        standing: Standing::Rival,
        note: "one task with `sleep` per timer in multi_thread without I/O, cancelled by its \
               `JoinHandle`",
    };

    type Timers = Here;

    fn start(_: &Runtime) -> Self {
        Self
    }

    fn timers(&self) -> Here {
        Here
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
