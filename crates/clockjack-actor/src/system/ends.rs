//! Futures of the end of single actors, for those who are none.

use alloc::vec::Vec;
use core::{
    fmt,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_exec::{Handle, Pid};
use clockjack_sync::lock::Lock;

use super::{ActorSystem, wake_contained};
use crate::{ActorRef, base::AnyActor};

/// Who waits for whose end.
pub(super) struct Ends {
    waiting: Lock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    list: Vec<(Pid, u64, Waker)>,
    next_id: u64,
}

impl Ends {
    pub(super) fn new() -> Self {
        Self { waiting: Lock::new(Waiting::default()) }
    }

    /// An actor has ended. A waker that panics hinders nobody else.
    pub(super) fn forget(&self, pid: Pid, executor: &Handle) {
        let woken = self.waiting.with(|waiting| {
            let is_its = |entry: &mut (Pid, u64, Waker)| entry.0 == pid;
            waiting.list.extract_if(.., is_its).collect::<Vec<_>>()
        });
        for (_, _, waker) in woken {
            wake_contained(executor, waker);
        }
    }
}

/// A future of the end of an actor. Made by [`ActorSystem::when_stopped`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Stopped {
    actor: AnyActor,
    /// Zero if it does not wait.
    id: u64,
}

impl ActorSystem {
    /// Waits until an actor has ended, for those who are none themselves and cannot watch; at once
    /// if it has.
    pub fn when_stopped<M: 'static>(&self, who: &ActorRef<M>) -> Stopped {
        Stopped::new(who.any().clone())
    }
}

impl Stopped {
    pub(crate) fn new(actor: AnyActor) -> Self {
        Self { actor, id: 0 }
    }

    fn leave(&mut self) -> Option<Waker> {
        let id = core::mem::take(&mut self.id);
        if id == 0 {
            return None;
        }
        self.actor.system().ends.waiting.with(|waiting| {
            let at = waiting.list.iter().position(|entry| entry.1 == id)?;
            Some(waiting.list.swap_remove(at).2)
        })
    }
}

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        drop(self.leave());
        let pid = self.actor.pid();
        let waker = cx.waker().clone();
        let system = self.actor.system();
        system.listed().begin(pid);
        let id = system.ends.waiting.with(|waiting| {
            waiting.next_id += 1;
            waiting.list.push((pid, waiting.next_id, waker));
            waiting.next_id
        });
        self.id = id;
        // After the entry: see `listed`.
        if self.actor.is_ended() {
            drop(self.leave());
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

impl fmt::Debug for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopped").field("path", &*self.actor.path).finish_non_exhaustive()
    }
}
