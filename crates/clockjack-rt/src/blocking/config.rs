//! How large a pool for blocking work may grow.

use core::{error::Error, fmt, time::Duration};
use std::borrow::Cow;

/// How large a [`BlockingPool`](crate::BlockingPool) may grow, and how long it stays so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingConfig {
    /// How many threads there may be, at least one.
    pub threads_max: usize,
    /// How many closures may wait while all threads are busy. Zero: none waits.
    pub queue_max: usize,
    /// For how long a thread that has nothing to do stays, at least a millisecond.
    pub keep_alive: Duration,
    /// Bytes of stack of a thread, or `None` for what std takes.
    pub stack_size: Option<usize>,
    /// What the threads are called, with a number behind it.
    pub name: Cow<'static, str>,
}

impl BlockingConfig {
    /// 64 threads that stay for 10 s, 4096 closures that wait, std's stack.
    pub const DEFAULT: Self = Self {
        threads_max: 64,
        queue_max: 4096,
        keep_alive: Duration::from_secs(10),
        stack_size: None,
        name: Cow::Borrowed("cj-blocking"),
    };

    /// Whether a pool can be made of it.
    ///
    /// # Errors
    ///
    /// If there may be no thread, or a thread's name would contain a zero byte.
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

/// A configuration that no pool can be made of. Trying again does not help.
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

    /// Whether `name` cannot be that of a thread.
    #[must_use]
    pub const fn is_name(&self) -> bool {
        matches!(self.reason, InvalidReason::Name)
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.reason {
            InvalidReason::NoThreads => {
                "invalid pool for blocking work: threads_max is 0, at least 1"
            }
            InvalidReason::Name => "invalid pool for blocking work: a zero byte in the name",
        })
    }
}

impl Error for InvalidConfig {}
