//! The inbox of a domain: what comes from outside between epochs. These are values from feeds,
//! messages of other domains, results of tasks, and changes of settings.
//!
//! Any thread puts items in; the coordinator takes all of them at the beginning of an epoch. One
//! lock protects the queue and the waker of the coordinator. The coordinator checks the queue and
//! registers its waker under one lock; a thread that puts an item in later therefore finds the
//! waker. So the coordinator never sleeps while the inbox has an item. Wakers are called outside
//! the lock.
//!
//! A flag, which changes under the lock, says whether there is anything: an epoch without incoming
//! items takes no lock. The coordinator decides to sleep under the lock only.
//!
//! # Bounds
//!
//! The reader takes items at its own pace, or not at all while a call hangs. So each kind of item
//! has a bound of its own:
//!
//! * values from feeds: `fed_max`; the feed is refused, or waits;
//! * messages of other domains: for each edge, as many as its channel keeps. Under the lock, one
//!   more evicts the oldest message of its edge, or is refused, as the channel would do. What is
//!   lost counts for its edge, and [`take`](Inbox::take) reports it to the domain, whose channel
//!   adds it to its own counts. So every message is either taken, or reported as lost, or was
//!   refused by a closed inbox;
//! * results of tasks: there are at most as many as tasks.
//!
//! The search for the oldest message of an edge passes at most what these bounds allow, and in
//! practice little: each eviction moves the messages of that edge towards the end.

use core::{
    sync::atomic::{AtomicBool, Ordering},
    task::{Poll, Waker},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_exec::Failure;

use super::{
    message::{Meta, Stamp},
    tasks::TaskOrigin,
};
use crate::{data::Value, describe::EdgePolicy, lock::lock, run::engine::node::catch_panic};

/// The result of a task; it may have no value.
pub(crate) type TaskResult = Result<Option<Value>, Failure>;

/// An incoming item.
pub(crate) enum Incoming {
    /// A value for the input of a component: the channel of this edge.
    Fed { edge: u32, value: Value, stamp: Option<Stamp> },
    /// A value that a component at the boundary publishes at an output.
    FedOut { component: usize, port: usize, value: Value, stamp: Option<Stamp> },
    /// A message of another domain.
    FromDomain { edge: u32, value: Value, meta: Meta },
    /// A blocking edge to another domain has room again.
    RoomAvailable,
    /// A change of settings.
    Config(super::reconfigure::Transaction),
    /// A task has ended: its number, its origin, its result; `None` if it was dropped.
    TaskEnded { number: u64, origin: TaskOrigin, result: Option<TaskResult> },
}

impl Incoming {
    /// Whether it counts against the bound for feeds.
    pub(crate) fn is_fed(&self) -> bool {
        matches!(self, Self::Fed { .. } | Self::FedOut { .. })
    }

    /// Whether it is a message of another domain on this edge.
    fn is_of(&self, edge: u32) -> bool {
        matches!(self, Self::FromDomain { edge: of, .. } if *of == edge)
    }

    /// Whether it is the result of a task.
    pub(crate) fn is_task(&self) -> bool {
        matches!(self, Self::TaskEnded { .. })
    }
}

/// What became of a message of another domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Sent {
    /// It is in the inbox. An older one may have made room for it.
    Accepted,
    /// Its edge had no room, and counts it as lost.
    Lost,
    /// The inbox is closed.
    Closed,
}

/// The inbox of a domain. Clones are the same inbox.
#[derive(Clone)]
pub(crate) struct Inbox(Arc<Shared>);

/// Closes the inboxes of a run when the run ends, however that happens: no sender may wait for a
/// closed run.
pub(crate) struct CloseOnDrop(pub(crate) Arc<[Inbox]>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        for inbox in &*self.0 {
            // Nobody reads the counts of a run that was cancelled.
            drop(inbox.close(&mut Vec::new()));
        }
    }
}

struct Shared {
    state: Mutex<State>,
    has_any: AtomicBool,
}

struct State {
    incoming: VecDeque<Incoming>,
    n_fed: usize,
    fed_max: usize,
    /// The edges from other domains, in ascending order.
    edges: Vec<InboxEdge>,
    /// The waker of the coordinator, while it sleeps.
    coordinator: Option<Waker>,
    /// The wakers of senders that wait for room.
    waiters: Vec<Waker>,
    is_closed: bool,
}

/// The messages of one edge from another domain.
#[derive(Debug)]
pub(crate) struct InboxEdge {
    edge: u32,
    /// How many may be here.
    max: u32,
    /// Whether the oldest one makes room; else new ones are refused.
    evicts: bool,
    n_inside: u32,
    /// How many were lost and not reported yet.
    n_lost: u64,
}

impl InboxEdge {
    pub(crate) fn new(edge: u32, policy: &EdgePolicy) -> Self {
        let (max, evicts) = (policy.n_places(), policy.overflow.evicts());
        Self { edge, max, evicts, n_inside: 0, n_lost: 0 }
    }
}

/// Why an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InboxRefusal {
    Full,
    Closed,
}

impl Inbox {
    /// `edges`: those from other domains, in ascending order.
    pub(crate) fn new(fed_max: usize, edges: Vec<InboxEdge>) -> Self {
        let state = State {
            incoming: VecDeque::new(),
            n_fed: 0,
            fed_max,
            edges,
            coordinator: None,
            waiters: Vec::new(),
            is_closed: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), has_any: AtomicBool::new(false) }))
    }

    pub(crate) fn put(&self, item: Incoming) -> Result<(), (Incoming, InboxRefusal)> {
        self.put_or_wait(item, None)
    }

    /// As `put`; if it is full, `waiter` is woken when it may have room.
    pub(crate) fn put_or_wait(
        &self,
        item: Incoming,
        waiter: Option<&Waker>,
    ) -> Result<(), (Incoming, InboxRefusal)> {
        let mut state = self.lock();
        if state.is_closed {
            return Err((item, InboxRefusal::Closed));
        }
        if item.is_fed() {
            if state.n_fed >= state.fed_max {
                if let Some(waiter) = waiter
                    && !state.waiters.iter().any(|one| one.will_wake(waiter))
                {
                    state.waiters.push(waiter.clone());
                }
                return Err((item, InboxRefusal::Full));
            }
            state.n_fed += 1;
        }
        self.push(state, item);
        Ok(())
    }

    /// Puts in a message of another domain, on one of the edges that this inbox was made for.
    pub(crate) fn send(&self, edge: u32, value: Value, meta: Meta) -> Sent {
        let mut state = self.lock();
        if state.is_closed {
            return Sent::Closed;
        }
        let mut evicted = None;
        let at = state.edges.binary_search_by_key(&edge, |one| one.edge);
        let State { incoming, edges, .. } = &mut *state;
        let of_edge = &mut edges[at.expect("the inbox has all edges to its domain")];
        if of_edge.n_inside < of_edge.max {
            of_edge.n_inside += 1;
        } else {
            of_edge.n_lost += 1;
            if !of_edge.evicts {
                // The value may run code of users when it is dropped: not under the lock.
                drop(state);
                return Sent::Lost;
            }
            let oldest = incoming.iter().position(|one| one.is_of(edge));
            evicted = oldest.and_then(|oldest| incoming.remove(oldest));
            debug_assert!(evicted.is_some(), "the count of the edge is that of the queue");
        }
        self.push(state, Incoming::FromDomain { edge, value, meta });
        // As above.
        drop(evicted);
        Sent::Accepted
    }

    /// Appends an item, and wakes the coordinator outside the lock.
    fn push(&self, mut state: MutexGuard<'_, State>, item: Incoming) {
        state.incoming.push_back(item);
        // Relaxed: the queue itself is read under the lock.
        self.0.has_any.store(true, Ordering::Relaxed);
        let coordinator = state.coordinator.take();
        drop(state);
        if let Some(coordinator) = coordinator {
            coordinator.wake();
        }
    }

    /// Moves all items to the end of `into`. Values from feeds count against the bound until
    /// [`release`](Self::release). Appends to `lost` the edges that lost messages since the last
    /// call, with how many.
    pub(crate) fn take(&self, into: &mut VecDeque<Incoming>, lost: &mut Vec<(u32, u64)>) {
        if !self.has_any() {
            return;
        }
        let mut state = self.lock();
        state.take_lost(lost);
        // Relaxed: as in `put_or_wait`.
        self.0.has_any.store(false, Ordering::Relaxed);
        if into.is_empty() {
            core::mem::swap(&mut state.incoming, into);
        } else {
            into.append(&mut state.incoming);
        }
    }

    /// `n_fed` values from feeds are in the graph now: there is room for others.
    pub(crate) fn release(&self, n_fed: usize) {
        let mut state = self.lock();
        state.n_fed -= n_fed;
        let waiters = core::mem::take(&mut state.waiters);
        drop(state);
        wake_all(waiters);
    }

    /// Ready if there is an item, or if `is_woken` says that the coordinator is needed.
    pub(crate) fn poll_any(&self, waker: &Waker, is_woken: impl Fn() -> bool) -> Poll<()> {
        let mut state = self.lock();
        if !state.incoming.is_empty() || is_woken() {
            return Poll::Ready(());
        }
        state.coordinator = Some(waker.clone());
        Poll::Pending
    }

    /// Registers the coordinator's waker: any later item wakes it.
    pub(crate) fn register_coordinator(&self, waker: &Waker) {
        self.lock().coordinator = Some(waker.clone());
    }

    /// Whether something is in it.
    pub(crate) fn has_any(&self) -> bool {
        // Relaxed: as in `put_or_wait`.
        self.0.has_any.load(Ordering::Relaxed)
    }

    /// How many results of tasks are in it.
    pub(crate) fn n_tasks(&self) -> usize {
        self.lock().incoming.iter().filter(|one| one.is_task()).count()
    }

    /// Wakes the coordinator. The caller has stored the reason before.
    pub(crate) fn wake(&self) {
        let coordinator = self.lock().coordinator.take();
        if let Some(coordinator) = coordinator {
            coordinator.wake();
        }
    }

    /// Closes the inbox; returns the remaining items, and appends to `lost` as
    /// [`take`](Self::take) does.
    pub(crate) fn close(&self, lost: &mut Vec<(u32, u64)>) -> VecDeque<Incoming> {
        let mut state = self.lock();
        state.is_closed = true;
        state.take_lost(lost);
        let left = core::mem::take(&mut state.incoming);
        // Relaxed: as in `put_or_wait`.
        self.0.has_any.store(false, Ordering::Relaxed);
        let waiters = core::mem::take(&mut state.waiters);
        drop(state);
        wake_all(waiters);
        left
    }

    /// Whether the run has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

impl State {
    /// All messages leave the inbox: empties the counts of the edges.
    fn take_lost(&mut self, lost: &mut Vec<(u32, u64)>) {
        for of_edge in &mut self.edges {
            of_edge.n_inside = 0;
            let n_lost = core::mem::take(&mut of_edge.n_lost);
            if n_lost > 0 {
                lost.push((of_edge.edge, n_lost));
            }
        }
    }
}

/// Wakes senders outside of the graph. A panic in a foreign waker is caught and ignored.
fn wake_all(waiters: Vec<Waker>) {
    for waiter in waiters {
        wake_outside(waiter);
    }
}

/// Wakes a future outside of the graph, as `wake_all` does.
pub(crate) fn wake_outside(waker: Waker) {
    let woken = catch_panic(|| {
        waker.wake();
        Ok(())
    });
    drop(woken);
}
