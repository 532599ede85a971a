//! Timers of crates that have no keyed timers: the actor keeps the handle of each timer.
//!
//! The keys of the load are small numbers, so the handles are in a `Vec`. A user with other keys
//! needs a map, which costs more.

use core::time::Duration;

use tokio::task::JoinHandle;

use super::subject::{Mail, Timers};

/// The handles of an actor's timers, by key.
#[derive(Debug)]
pub(crate) struct Handles<H>(Vec<Option<H>>);

impl<H> Default for Handles<H> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<H> Handles<H> {
    /// Keeps the handle of a new timer and returns the handle that the key had.
    #[must_use]
    pub(crate) fn replace(&mut self, key: u32, handle: H) -> Option<H> {
        let index = key as usize;
        if index >= self.0.len() {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index].replace(handle)
    }

    /// Returns the handle of a key.
    pub(crate) fn take(&mut self, key: u32) -> Option<H> {
        self.0.get_mut(key as usize)?.take()
    }
}

/// A reference to an actor through which a tokio task sends a message after a delay.
pub(crate) trait SendAfter {
    /// What the task returns.
    type Output;

    /// Starts the task.
    fn send_after(&self, delay: Duration, mail: Mail) -> JoinHandle<Self::Output>;
}

/// The timers of an actor, each of which is a task that is aborted to cancel the timer.
pub(crate) struct TaskTimers<'a, R: SendAfter> {
    /// The actor itself.
    pub(crate) own: &'a R,
    pub(crate) handles: &'a mut Handles<JoinHandle<R::Output>>,
}

impl<R: SendAfter> Timers for TaskTimers<'_, R> {
    fn arm(&mut self, key: u32, delay: Duration, mail: Mail) {
        if let Some(old) = self.handles.replace(key, self.own.send_after(delay, mail)) {
            old.abort();
        }
    }

    fn cancel(&mut self, key: u32) {
        if let Some(handle) = self.handles.take(key) {
            handle.abort();
        }
    }

    fn fired(&mut self, key: u32) {
        drop(self.handles.take(key));
    }
}
