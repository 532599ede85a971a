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
use crate::{
    ActorRef,
    cell::header::AnyActor,
    room::{HashSlab, hash_of_pid, with_room},
};

/// The wakers of all [`Stopped`] futures, each with the pid that it waits for.
pub(super) struct StopWaiters {
    waiting: SpinLock<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// By pid.
    all: HashSlab<Waiter>,
    next: u64,
}

struct Waiter {
    pid: Pid,
    /// In the order of registration.
    number: u64,
    waker: Waker,
}

impl Waiting {
    /// Removes one that waits for this actor.
    fn remove_one_of(&mut self, pid: Pid) -> Option<Waiter> {
        let index = self.all.with_hash(hash_of_pid(pid)).find(|(_, one)| one.pid == pid)?.0;
        self.all.remove(index)
    }

    fn remove(&mut self, (index, number): (u32, u64)) -> Option<(Waiter, impl Sized + use<>)> {
        self.all.get(index).filter(|one| one.number == number)?;
        Some((self.all.remove(index)?, self.all.take_unneeded()))
    }
}

impl StopWaiters {
    pub(super) fn new() -> Self {
        Self { waiting: SpinLock::new(Waiting::default()) }
    }

    /// Wakes all futures that wait for this actor, which has stopped. If a waker panics, the others
    /// are woken all the same.
    pub(super) fn wake_waiters_of(&self, pid: Pid, executor: &Handle) {
        let next = || self.waiting.with(|waiting| waiting.remove_one_of(pid));
        let mut woken = core::iter::from_fn(next).collect::<Vec<_>>();
        drop(self.waiting.with(|waiting| waiting.all.take_unneeded()));
        woken.sort_unstable_by_key(|one| one.number);
        for one in woken {
            wake_catching_panics(executor, one.waker);
        }
    }
}

/// A future that completes when an actor has stopped. Made by [`ActorSystem::when_stopped`].
#[must_use = "a future does nothing unless it is polled"]
pub struct Stopped {
    actor: AnyActor,
    /// The index and the number of the entry in the table of waiters.
    id: Option<(u32, u64)>,
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
        Self { actor, id: None }
    }

    fn unregister(&mut self) -> Option<Waker> {
        let id = self.id.take()?;
        let waiting = &self.actor.system().stop_waiters.waiting;
        let (removed, _) = waiting.with(|waiting| waiting.remove(id))?;
        Some(removed.waker)
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
        let add = |waiting: &mut Waiting| {
            let number = waiting.next;
            waiting.next += 1;
            (waiting.all.insert(hash_of_pid(pid), Waiter { pid, number, waker }), number)
        };
        let waiting = &system.stop_waiters.waiting;
        self.id = Some(with_room(waiting, |waiting| &mut waiting.all, add));
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
