//! The configuration of a pool for blocking work.

use core::{error::Error, fmt, time::Duration};
use std::borrow::Cow;

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

    /// Checks whether the configuration is valid.
    ///
    /// # Errors
    ///
    /// If `threads_max` is zero, or if `name` contains a zero byte.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self.threads_max == 0 {
            return Err(InvalidConfig { reason: InvalidReason::NoThreads });
        }
        if self.name.contains('\0') {
            return Err(InvalidConfig { reason: InvalidReason::Name });
        }
        Ok(())
    }
}

impl Default for BlockingConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// An invalid configuration. Retrying does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConfig {
    reason: InvalidReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidReason {
    NoThreads,
    Name,
}

impl InvalidConfig {
    /// Whether `threads_max` is zero.
    #[must_use]
    pub const fn is_no_threads(&self) -> bool {
        matches!(self.reason, InvalidReason::NoThreads)
    }

    /// Whether `name` is not a valid thread name.
    #[must_use]
    pub const fn is_name(&self) -> bool {
        matches!(self.reason, InvalidReason::Name)
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            InvalidReason::NoThreads => {
                "invalid pool for blocking work: threads_max is 0, but must be at least 1"
            }
            InvalidReason::Name => "invalid pool for blocking work: the name contains a zero byte",
        })
    }
}

impl Error for InvalidConfig {}
