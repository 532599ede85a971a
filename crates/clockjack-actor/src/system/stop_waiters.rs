//! Futures that complete when an actor has stopped, for code outside of actors.

use alloc::vec::Vec;
use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_exec::{Handle, Pid};
use clockjack_sync::spin_lock::SpinLock;

use super::{ActorSystem, wake_catching_panics};
use crate::{ActorRef, cell::header::AnyActor};

/// The wakers of all [`Stopped`] futures, each with the pid that it waits for.
pub(super) struct StopWaiters {
    waiting: SpinLock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    list: Vec<(Pid, u64, Waker)>,
    next_id: u64,
}

impl StopWaiters {
    pub(super) fn new() -> Self {
        Self { waiting: SpinLock::new(Waiting::default()) }
    }

    /// Wakes all futures that wait for this actor, which has stopped. If a waker panics, the others
    /// are woken all the same.
    pub(super) fn wake_waiters_of(&self, pid: Pid, executor: &Handle) {
        let woken = self.waiting.with(|waiting| {
            let is_its = |entry: &mut (Pid, u64, Waker)| entry.0 == pid;
            waiting.list.extract_if(.., is_its).collect::<Vec<_>>()
        });
        for (_, _, waker) in woken {
            wake_catching_panics(executor, waker);
        }
    }
}

/// A future that completes when an actor has stopped. Made by [`ActorSystem::when_stopped`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Stopped {
    actor: AnyActor,
    /// The id of the entry in the list of waiters; 0 if there is none.
    id: u64,
}

impl ActorSystem {
    /// Returns a future that completes when the actor has stopped; at once if it already has. For
    /// code outside of actors, which cannot [`watch`](crate::Context::watch).
    pub fn when_stopped<M: 'static>(&self, who: &ActorRef<M>) -> Stopped {
        Stopped::new(who.any().clone())
    }
}

impl Stopped {
    pub(crate) fn new(actor: AnyActor) -> Self {
        Self { actor, id: 0 }
    }

    fn unregister(&mut self) -> Option<Waker> {
        let id = core::mem::take(&mut self.id);
        if id == 0 {
            return None;
        }
        self.actor.system().stop_waiters.waiting.with(|waiting| {
            let at = waiting.list.iter().position(|entry| entry.1 == id)?;
            Some(waiting.list.swap_remove(at).2)
        })
    }
}

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        drop(self.unregister());
        let pid = self.actor.pid();
        let waker = cx.waker().clone();
        let system = self.actor.system();
        system.listed_filter().insert(pid);
        let id = system.stop_waiters.waiting.with(|waiting| {
            waiting.next_id += 1;
            waiting.list.push((pid, waiting.next_id, waker));
            waiting.next_id
        });
        self.id = id;
        // After the registration: see `listed_filter`.
        if self.actor.is_stopped() {
            drop(self.unregister());
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.unregister());
    }
}

impl fmt::Debug for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopped").field("path", &*self.actor.path).finish_non_exhaustive()
    }
}
