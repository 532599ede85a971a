//! A dedicated thread for code other than actors, for instance a lane of a graph.
//!
//! The thread cannot be looked up by name, and stops when its owner drops it. It applies its
//! scheduling policy to itself before any other code runs on it; the results are returned together
//! with the thread.

use alloc::{boxed::Box, vec::Vec};
use core::{any::Any, fmt};

use clockjack_exec::{Handle, StartError};

use super::ActorSystem;

/// The scheduling settings that a thread requests from the operating system.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPolicy {
    /// The processors on which the thread may run; empty: no change.
    pub cpus: Vec<u32>,
    /// The niceness, from -20 to 19.
    pub niceness: Option<i32>,
    /// The real-time class and the priority in it, from 1 to 99.
    pub realtime: Option<(RealtimeClass, i32)>,
}

/// A real-time scheduling class, whose threads run before all ordinary threads.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealtimeClass {
    /// The thread runs until it blocks (`SCHED_FIFO`).
    Fifo,
    /// Time slices among the threads of the same priority (`SCHED_RR`).
    RoundRobin,
}

/// The result of one requested setting.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyAnswer {
    /// The setting was not requested.
    #[default]
    NotAsked,
    /// The setting is in effect.
    Applied,
    /// The host does not support the setting.
    Unsupported,
    /// The operating system refused the setting with this message.
    Refused(Box<str>),
}

/// The results of applying a [`ThreadPolicy`], one per field.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyAnswers {
    /// The result for the processors.
    pub cpus: PolicyAnswer,
    /// The result for the niceness.
    pub niceness: PolicyAnswer,
    /// The result for the real-time class and priority.
    pub realtime: PolicyAnswer,
}

/// A thread with its own executor. The thread stops when this value is dropped, also on the thread
/// itself, and when the system terminates.
#[doc(hidden)]
pub struct OwnThread {
    handle: Handle,
    answers: PolicyAnswers,
    /// Stops the thread when it is dropped.
    _end: Box<dyn Any + Send + Sync>,
}

impl OwnThread {
    /// For hosts: dropping `end` stops the thread, without waiting for it.
    pub fn new(
        handle: Handle,
        answers: PolicyAnswers,
        end: impl Any + Send + Sync + 'static,
    ) -> Self {
        Self { handle, answers, _end: Box::new(end) }
    }

    /// The executor of the thread.
    #[must_use]
    pub fn executor(&self) -> &Handle {
        &self.handle
    }

    /// The results of applying the thread's policy.
    #[must_use]
    pub fn answers(&self) -> &PolicyAnswers {
        &self.answers
    }
}

impl fmt::Debug for OwnThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnThread").field("answers", &self.answers).finish_non_exhaustive()
    }
}

impl ActorSystem {
    /// Starts a thread with this name and its own executor, which uses the clock of the system. If
    /// the operating system refuses a setting of the policy, that is not an error: the refusal is
    /// part of the results.
    ///
    /// # Errors
    ///
    /// If the host has no threads, if the operating system cannot start a thread, or if the system
    /// has terminated.
    #[doc(hidden)]
    pub fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        self.check_alive()?;
        let host = self.inner().dispatchers.host().ok_or_else(|| StartError::unsupported(name))?;
        host.own_thread(name, policy)
    }
}
