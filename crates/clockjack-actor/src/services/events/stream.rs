//! [`EventStream`]: delivers events to actors that have subscribed to them.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use clockjack_exec::{Handle, Pid};
use clockjack_observe::Counter;
use clockjack_sched::{DispatcherId, FireContext, Scheduler};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicU32, Ordering::Relaxed},
    spin_lock::SpinLock,
};

use super::{
    EventKinds, SystemEvent,
    backlog::{Backlog, BacklogEntry},
    bridge::Bridge,
};
use crate::{ActorPath, ActorRef, system::call_catching_panics};

/// The default limit of events that wait for a subscriber whose mailbox is full.
pub const EVENTS_WAITING_MAX: usize = 256;

/// The delay after which events are sent again to a subscriber whose mailbox was full, if no new
/// event comes before.
pub(crate) const RETRY: Duration = Duration::from_millis(10);

/// Delivers events to actors that have subscribed to them. Cheap to clone.
///
/// An event goes into the mailbox of each subscriber. If the mailbox is full, the event waits in a
/// bounded backlog. If the backlog is full, the oldest event is dropped and counted, and the
/// subscriber receives the number as [`SystemEvent::EventsDropped`] as soon as it has room. A
/// subscriber that stops is removed. While a kind of event has no subscriber, publishing it costs
/// one load.
///
/// To prevent feedback loops, two kinds of events are not published: dead letters caused by a full
/// mailbox of a subscriber to dead letters, and messages that a subscriber to unhandled messages
/// leaves unhandled itself. Each event about one of these could cause the next.
#[derive(Clone)]
pub struct EventStream(Arc<Inner>);

pub(super) struct Inner {
    /// The kinds that have a subscriber; a publisher of another kind looks no further.
    wanted: AtomicU32,
    list: SpinLock<List>,
    dropped: Counter,
    executor: Handle,
    pub(super) scheduler: Scheduler,
    pub(super) bridge: Bridge,
}

#[derive(Default)]
struct List {
    subscribers: Vec<Arc<Subscriber>>,
    /// No further subscriptions are accepted.
    is_closed: bool,
}

struct Subscriber {
    kinds: EventKinds,
    to: ActorRef<SystemEvent>,
    backlog: SpinLock<Backlog<SystemEvent>>,
}

impl EventStream {
    pub(crate) fn new(executor: Handle, scheduler: Scheduler) -> Self {
        Self(Arc::new(Inner {
            wanted: AtomicU32::new(0),
            list: SpinLock::new(List::default()),
            dropped: Counter::new(),
            executor,
            scheduler,
            bridge: Bridge::new(),
        }))
    }

    /// Subscribes `to` to events of these kinds. A second call for the same actor replaces the
    /// kinds. Returns false, without effect, if `to` has stopped, if the system has terminated, or
    /// if it is sealed.
    pub fn subscribe(&self, kinds: EventKinds, to: ActorRef<SystemEvent>) -> bool {
        self.subscribe_bounded(kinds, to, EVENTS_WAITING_MAX)
    }

    /// As [`subscribe`](Self::subscribe), with a limit for the events that wait when the mailbox is
    /// full (at least one).
    pub fn subscribe_bounded(
        &self,
        kinds: EventKinds,
        to: ActorRef<SystemEvent>,
        waiting_max: usize,
    ) -> bool {
        let actor = to.any().clone();
        if actor.system().is_sealed() {
            return false;
        }
        let listed = actor.system().listed_filter();
        listed.insert(actor.pid());
        let backlog = SpinLock::new(Backlog::new(waiting_max));
        let new = Arc::new(Subscriber { kinds, to, backlog });
        let mut is_listed = true;
        let old = self.0.list.with(|list| {
            if list.is_closed {
                is_listed = false;
                return Some(new);
            }
            let subscribers = &mut list.subscribers;
            let at = subscribers.iter().position(|one| one.to == new.to);
            let old = at.map(|at| subscribers.remove(at));
            subscribers.push(new);
            self.0.update_wanted(subscribers);
            old
        });
        drop(old);
        if actor.is_stopped() {
            self.remove_actor(actor.pid());
            is_listed = false;
        }
        self.0.bridge.update(&self.0, &self.0.executor);
        is_listed
    }

    /// Unsubscribes `to`. Returns false if it was not subscribed.
    pub fn unsubscribe(&self, to: &ActorRef<SystemEvent>) -> bool {
        self.remove(|one| one.to == *to)
    }

    /// Removes a subscriber that has stopped.
    pub(crate) fn remove_actor(&self, pid: Pid) -> bool {
        self.remove(|one| one.to.pid() == pid)
    }

    fn remove(&self, is_it: impl Fn(&Subscriber) -> bool) -> bool {
        let old = self.0.list.with(|list| {
            let at = list.subscribers.iter().position(|one| is_it(one))?;
            let old = list.subscribers.remove(at);
            self.0.update_wanted(&list.subscribers);
            Some(old)
        });
        if old.is_some() {
            self.0.bridge.update(&self.0, &self.0.executor);
        }
        old.is_some()
    }

    /// Closes the stream of a system that has terminated: removes all subscribers.
    pub(crate) fn close(&self) {
        let old = self.0.list.with(|list| {
            list.is_closed = true;
            self.0.update_wanted(&[]);
            core::mem::take(&mut list.subscribers)
        });
        drop(old);
        self.0.bridge.update(&self.0, &self.0.executor);
    }

    /// Whether events of this kind have a subscriber.
    #[inline]
    pub(crate) fn wants(&self, kind: EventKinds) -> bool {
        self.0.wants(kind)
    }

    /// Sends an event to all its subscribers.
    pub fn publish(&self, event: &SystemEvent) {
        self.0.publish(event);
    }

    /// The number of events that were dropped because a subscriber had no room.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.dropped.get()
    }

    /// The number of dropped events of this subscriber; `None` if the actor is not subscribed.
    #[must_use]
    pub fn dropped_by(&self, subscriber: &ActorRef<SystemEvent>) -> Option<u64> {
        let is_it = |one: &&Arc<Subscriber>| one.to == *subscriber;
        let found = self.0.list.with(|list| list.subscribers.iter().find(is_it).cloned())?;
        Some(found.backlog.with(|backlog| backlog.lost_total()))
    }

    /// The number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.list.with(|list| list.subscribers.len())
    }
}

impl Inner {
    fn update_wanted(&self, list: &[Arc<Subscriber>]) {
        let wanted = list.iter().fold(0, |wanted, one| wanted | one.kinds.0);
        // Relaxed: no order is promised between a subscription and a concurrent publication.
        self.wanted.store(wanted, Relaxed);
    }

    #[inline]
    pub(super) fn wants(&self, kind: EventKinds) -> bool {
        // Relaxed: as in `count`.
        self.wanted.load(Relaxed) & kind.0 != 0
    }
}

/// Publishing, which needs the counted pointer to the stream.
pub(super) trait Publish {
    fn publish(&self, event: &SystemEvent);
}

impl Publish for Arc<Inner> {
    fn publish(&self, event: &SystemEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        let list = self.list.with(|list| list.subscribers.clone());
        if let Some((kinds, path)) = feedback_loop(event) {
            let is_its =
                |one: &Arc<Subscriber>| one.kinds.intersects(kinds) && *one.to.any().path == *path;
            if list.iter().any(is_its) {
                return;
            }
        }
        for subscriber in list.iter().filter(|one| one.kinds.intersects(kind)) {
            let event = event.clone();
            let evicted = subscriber.backlog.with(|backlog| backlog.push(event));
            if evicted.is_some() {
                self.dropped.increment();
            }
            drop(evicted);
            deliver(self, subscriber);
        }
    }
}

/// Detects a feedback loop: if a subscriber that receives this event could cause another one by
/// that, returns the kinds of such subscribers and the path at which they would be.
fn feedback_loop(event: &SystemEvent) -> Option<(EventKinds, &ActorPath)> {
    match event {
        SystemEvent::DeadLetter(letter) | SystemEvent::SuppressedDeadLetter(letter) => {
            let is_overflow = letter.reason.is_overflow();
            is_overflow.then_some((EventKinds::ALL_DEAD_LETTERS, &letter.recipient))
        }
        SystemEvent::Unhandled(unhandled) => Some((EventKinds::UNHANDLED, &unhandled.path)),
        _ => None,
    }
}

/// Sends a subscriber the events of its backlog.
fn deliver(stream: &Arc<Inner>, subscriber: &Arc<Subscriber>) {
    if !subscriber.backlog.with(Backlog::begin_drain) {
        return;
    }
    // If the function of a mapped ref panics and the host cannot catch that, the guard ends the
    // drain; otherwise no events would be delivered any more.
    let guard = DrainGuard(subscriber);
    loop {
        let Some(entry) = subscriber.backlog.with(Backlog::next) else {
            // The drain is over, and another thread may have started the next one.
            return core::mem::forget(guard);
        };
        let is_item = matches!(entry, BacklogEntry::Item(_));
        let mut event = Some(match entry {
            BacklogEntry::Item(event) => event,
            BacklogEntry::Lost(n) => SystemEvent::EventsDropped(n),
        });
        let mut sent = Ok(());
        let has_returned = call_catching_panics(&stream.executor, &mut || {
            if let Some(event) = event.take() {
                sent = subscriber.to.tell(event);
            }
        });
        match sent {
            Err(refused) if refused.is_full() => {
                core::mem::forget(guard);
                return put_back(stream, subscriber, refused.into_inner());
            }
            Err(_) => {
                EventStream(stream.clone()).remove_actor(subscriber.to.pid());
                return;
            }
            Ok(()) if has_returned => {}
            Ok(()) => {
                // The function of a mapped ref has panicked.
                stream.dropped.increment();
                subscriber.backlog.with(|backlog| backlog.count_lost(1));
                if !is_item {
                    // Even the report about dropped events cannot be sent; the next event tries
                    // again.
                    return;
                }
            }
        }
    }
}

/// The subscriber has no room: puts the event back and sets a timer for the next attempt.
fn put_back(stream: &Arc<Inner>, subscriber: &Arc<Subscriber>, event: SystemEvent) {
    let entry = match event {
        SystemEvent::EventsDropped(n) => BacklogEntry::Lost(n),
        event => BacklogEntry::Item(event),
    };
    let (lost, needs_timer) =
        subscriber.backlog.with(|backlog| (backlog.put_back(entry), backlog.needs_timer()));
    if lost.is_some() {
        stream.dropped.increment();
    }
    drop(lost);
    if !needs_timer {
        return;
    }
    let (again, to) = (stream.clone(), subscriber.clone());
    let job = move |_: &FireContext| {
        to.backlog.with(Backlog::timer_fired);
        deliver(&again, &to);
    };
    if stream.scheduler.schedule_once_fn(RETRY, DispatcherId::DEFAULT, job).is_err() {
        // The next event drains the backlog.
        subscriber.backlog.with(Backlog::timer_fired);
    }
}

struct DrainGuard<'s>(&'s Subscriber);

impl Drop for DrainGuard<'_> {
    fn drop(&mut self) {
        self.0.backlog.with(Backlog::end_drain);
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("subscribers", &self.subscribers())
            .field("dropped", &self.dropped())
            .finish_non_exhaustive()
    }
}
