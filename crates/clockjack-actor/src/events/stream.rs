//! How events come to actors that have asked for them.

use alloc::vec::Vec;
use core::{fmt, time::Duration};

use clockjack_exec::{Handle, Pid};
use clockjack_observe::Counter;
use clockjack_sched::{DispatcherId, FireContext, Scheduler};
use clockjack_sync::{
    Counted,
    lock::Lock,
    mutant,
    prim::atomic::{AtomicU32, Ordering::Relaxed},
};

use super::{
    EventKinds, SystemEvent,
    backlog::{Backlog, BacklogEntry},
    bridge::Bridge,
};
use crate::{ActorPath, ActorRef, system::call_catching_panics};

/// How many events wait for a subscriber whose mailbox is full, if nothing else is set.
pub const EVENTS_WAITING_MAX: usize = 256;

/// After how long a subscriber whose mailbox was full is tried again, if no event comes before.
pub(crate) const RETRY: Duration = Duration::from_millis(10);

/// Tells events to actors that have asked for them. Cheap to clone.
///
/// An event goes into the mailbox of each subscriber. For one whose mailbox is full it waits, with
/// others up to a bound; beyond it the oldest goes, is counted, and the subscriber is told how
/// many by [`SystemEvent::EventsDropped`] as soon as it has room. A subscriber that stops is
/// removed. While nobody wants a kind of event, publishing it costs one load.
///
/// A dead letter for want of room is told to nobody if it was for a subscriber to dead letters, and
/// so it is with what a subscriber to unhandled messages leaves unhandled itself: each event about
/// it could make the next.
#[derive(Clone)]
pub struct EventStream(Counted<Inner>);

pub(super) struct Inner {
    /// The kinds that somebody wants; nobody looks further for others.
    wanted: AtomicU32,
    list: Lock<List>,
    dropped: Counter,
    executor: Handle,
    pub(super) scheduler: Scheduler,
    pub(super) bridge: Bridge,
}

#[derive(Default)]
struct List {
    subscribers: Vec<Counted<Subscriber>>,
    /// Nobody may subscribe any more.
    is_closed: bool,
}

struct Subscriber {
    kinds: EventKinds,
    to: ActorRef<SystemEvent>,
    backlog: Lock<Backlog<SystemEvent>>,
}

impl EventStream {
    pub(crate) fn new(executor: Handle, scheduler: Scheduler) -> Self {
        Self(Counted::new(Inner {
            wanted: AtomicU32::new(0),
            list: Lock::new(List::default()),
            dropped: Counter::new(),
            executor,
            scheduler,
            bridge: Bridge::new(),
        }))
    }

    /// Tells `to` all events of these kinds from now on. A second call for the same actor sets
    /// other kinds. Without effect, and false, if `to` has stopped, the system has terminated, or
    /// it was sealed.
    pub fn subscribe(&self, kinds: EventKinds, to: ActorRef<SystemEvent>) -> bool {
        self.subscribe_bounded(kinds, to, EVENTS_WAITING_MAX)
    }

    /// As [`subscribe`](Self::subscribe); so many events wait when the mailbox is full, at least
    /// one.
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
        let backlog = Lock::new(Backlog::new(waiting_max));
        let new = Counted::new(Subscriber { kinds, to, backlog });
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

    /// Tells `to` nothing any more. False if it was told nothing before.
    pub fn unsubscribe(&self, to: &ActorRef<SystemEvent>) -> bool {
        self.remove(|one| one.to == *to)
    }

    /// An actor has ended.
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

    /// The system has ended: nobody is told anything any more.
    pub(crate) fn close(&self) {
        let old = self.0.list.with(|list| {
            list.is_closed = true;
            self.0.update_wanted(&[]);
            core::mem::take(&mut list.subscribers)
        });
        drop(old);
        self.0.bridge.update(&self.0, &self.0.executor);
    }

    /// Whether anybody wants events of this kind.
    #[inline]
    pub(crate) fn wants(&self, kind: EventKinds) -> bool {
        self.0.wants(kind)
    }

    /// Tells an event to all who want it.
    pub fn publish(&self, event: &SystemEvent) {
        self.0.publish(event);
    }

    /// How many events subscribers had no room for.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.dropped.get()
    }

    /// How many of them were for this subscriber; none if it is none.
    #[must_use]
    pub fn dropped_by(&self, subscriber: &ActorRef<SystemEvent>) -> Option<u64> {
        let is_it = |one: &&Counted<Subscriber>| one.to == *subscriber;
        let found = self.0.list.with(|list| list.subscribers.iter().find(is_it).cloned())?;
        Some(found.backlog.with(|backlog| backlog.lost_total()))
    }

    /// How many subscribers there are.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.list.with(|list| list.subscribers.len())
    }
}

impl Inner {
    fn update_wanted(&self, list: &[Counted<Subscriber>]) {
        let wanted = list.iter().fold(0, |wanted, one| wanted | one.kinds.0);
        // Relaxed: who subscribes is told what is published after that, and no order is promised
        // between the two.
        self.wanted.store(wanted, Relaxed);
    }

    #[inline]
    pub(super) fn wants(&self, kind: EventKinds) -> bool {
        // Relaxed: as in `count`.
        self.wanted.load(Relaxed) & kind.0 != 0
    }
}

/// What publishing needs of a shared stream.
pub(super) trait Publish {
    fn publish(&self, event: &SystemEvent);
}

impl Publish for Counted<Inner> {
    fn publish(&self, event: &SystemEvent) {
        let kind = event.kind();
        if !self.wants(kind) {
            return;
        }
        let list = self.list.with(|list| list.subscribers.clone());
        if let Some((kinds, path)) = feedback_loop(event)
            && !mutant!("events-loop-of-losses")
        {
            let is_its = |one: &Counted<Subscriber>| {
                one.kinds.intersects(kinds) && *one.to.any().path == *path
            };
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

/// If whoever is told of this event could cause another one by that: subscribers to which kinds
/// could, if they stand at this path.
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

/// Tells a subscriber what waits for it.
fn deliver(stream: &Counted<Inner>, subscriber: &Counted<Subscriber>) {
    if !subscriber.backlog.with(Backlog::begin_drain) {
        return;
    }
    // A panic of a mapped ref's function that the host cannot catch must not end all service.
    let guard = DrainGuard(subscriber);
    loop {
        let Some(entry) = subscriber.backlog.with(Backlog::next) else {
            // The service is over, and perhaps another one has begun.
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
                    // It cannot even be told of that; the next event tries again.
                    return;
                }
            }
        }
    }
}

/// The subscriber has no room: a timer sees to it that it is tried again.
fn put_back(stream: &Counted<Inner>, subscriber: &Counted<Subscriber>, event: SystemEvent) {
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
    if !needs_timer || mutant!("events-wait-for-the-next") {
        return;
    }
    let (again, to) = (stream.clone(), subscriber.clone());
    let job = move |_: &FireContext| {
        to.backlog.with(Backlog::timer_fired);
        deliver(&again, &to);
    };
    if stream.scheduler.schedule_once_fn(RETRY, DispatcherId::DEFAULT, job).is_err() {
        // The next event serves it.
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
