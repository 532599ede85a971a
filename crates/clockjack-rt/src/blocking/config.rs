//! The configuration of a pool for blocking work.

use core::time::Duration;
use std::borrow::Cow;

use clockjack_exec::StartError;

/// The configuration of a [`BlockingPool`](crate::BlockingPool).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingConfig {
    /// The maximum number of threads, at least one.
    pub threads_max: usize,
    /// The maximum number of closures that wait while all threads are busy. With zero, none waits.
    pub queue_max: usize,
    /// How long an idle thread stays before it exits, at least one millisecond.
    pub keep_alive: Duration,
    /// The stack size of a thread in bytes, or `None` for std's default.
    pub stack_size: Option<usize>,
    /// The name of the threads; a number is appended.
    pub name: Cow<'static, str>,
}

impl BlockingConfig {
    /// 64 threads that stay for 10 s when idle, 4096 queued closures, std's stack size.
    pub const DEFAULT: Self = Self {
        threads_max: 64,
        queue_max: 4096,
        keep_alive: Duration::from_secs(10),
        stack_size: None,
        name: Cow::Borrowed("cj-blocking"),
    };

    /// Refuses a configuration with which no thread could be started.
    pub(super) fn check(&self) -> Result<(), StartError> {
        if self.threads_max == 0 {
            return Err(StartError::zero_workers());
        }
        if self.name.contains('\0') {
            return Err(StartError::thread(&"the name of the blocking threads has a zero byte"));
        }
        Ok(())
    }
}

impl Default for BlockingConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
