//! A thread for what is no actor and must not share one: a lane of a graph, for instance.
//!
//! Nobody finds it by a name, and it ends with who asked for it. What it asks of the operating
//! system it asks before anything runs there, of itself, and the answers come with it.

use alloc::{boxed::Box, vec::Vec};
use core::{any::Any, fmt};

use clockjack_exec::{Handle, StartError};

use super::ActorSystem;

/// What a thread asks of the operating system for itself.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadPolicy {
    /// The processors that it may run on; none: as it was started.
    pub cpus: Vec<u32>,
    /// Its niceness, from -20 to 19.
    pub niceness: Option<i32>,
    /// Its class and its priority there, from 1 to 99.
    pub realtime: Option<(RealtimeClass, i32)>,
}

/// A class of threads that go before all that are in none.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealtimeClass {
    /// Until it waits.
    Fifo,
    /// In turns with those of its own priority.
    RoundRobin,
}

/// What became of one thing that was asked for.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PolicyAnswer {
    /// It was not.
    #[default]
    NotAsked,
    /// It is so.
    Applied,
    /// This host has no such thing.
    Unsupported,
    /// The operating system has refused it, and said this.
    Refused(Box<str>),
}

/// What became of a [`ThreadPolicy`], one answer for each field.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyAnswers {
    /// Of the processors.
    pub cpus: PolicyAnswer,
    /// Of the niceness.
    pub niceness: PolicyAnswer,
    /// Of the class and the priority there.
    pub realtime: PolicyAnswer,
}

/// A thread with an executor of its own. It ends when this is dropped, also on the thread itself,
/// and with its system.
#[doc(hidden)]
pub struct OwnThread {
    handle: Handle,
    answers: PolicyAnswers,
    /// Ends the thread by its drop.
    _end: Box<dyn Any + Send + Sync>,
}

impl OwnThread {
    /// For hosts: `end` ends the thread when it is dropped, and waits for nothing.
    pub fn new(
        handle: Handle,
        answers: PolicyAnswers,
        end: impl Any + Send + Sync + 'static,
    ) -> Self {
        Self { handle, answers, _end: Box::new(end) }
    }

    /// Its executor.
    #[must_use]
    pub fn executor(&self) -> &Handle {
        &self.handle
    }

    /// What the operating system has said.
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
    /// Makes a thread of this name for who asks, with an executor of its own by the clock of the
    /// system. What the operating system refuses of the policy is no error: it is in the answers.
    ///
    /// # Errors
    ///
    /// On a host without threads, if the operating system has no thread to give, and when the
    /// system has terminated.
    #[doc(hidden)]
    pub fn own_thread(&self, name: &str, policy: &ThreadPolicy) -> Result<OwnThread, StartError> {
        self.check_alive()?;
        let host = self.inner().dispatchers.host().ok_or_else(|| StartError::unsupported(name))?;
        host.own_thread(name, policy)
    }
}
