//! [`EventStream`]: delivers events to actors that have subscribed to them.

use core::{fmt, time::Duration};

use clockjack_exec::{Handle, Pid};
use clockjack_observe::{
    Counter,
    bus::{Bus, CAPACITY_MAX, Cursor, Visit, with_bounded_wait},
};
use clockjack_sched::{DispatcherId, FireContext, Scheduler};
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicUsize, Ordering::Relaxed},
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
    bus: Bus<Subscriber>,
    dropped: Counter,
    executor: Handle,
    pub(super) scheduler: Scheduler,
    pub(super) bridge: Bridge,
}

struct Subscriber {
    to: ActorRef<SystemEvent>,
    backlog: SpinLock<Backlog<SystemEvent>>,
    /// Events that were lost because the lock of the backlog was taken, and not reported yet.
    lost_aside: AtomicUsize,
}

/// How many subscribers a publisher serves before it looks at the list again.
const BATCH: usize = 8;

impl EventStream {
    pub(crate) fn new(executor: Handle, scheduler: Scheduler) -> Self {
        Self(Arc::new(Inner {
            bus: Bus::new(),
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
        let backlog = SpinLock::new(Backlog::prepared(waiting_max.min(CAPACITY_MAX)));
        let lost_aside = AtomicUsize::new(0);
        let new = Arc::new(Subscriber { to: to.clone(), backlog, lost_aside });
        let subscribed = self.0.bus.replace(kinds.0, usize::MAX, new, |one| one.to == to);
        let mut is_listed = subscribed.is_ok();
        drop(subscribed);
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
        let is_removed = self.0.bus.remove(is_it);
        if is_removed {
            self.0.bridge.update(&self.0, &self.0.executor);
        }
        is_removed
    }

    /// Closes the stream of a system that has terminated: removes all subscribers.
    pub(crate) fn close(&self) {
        self.0.bus.close(|_| ());
        self.0.bus.remove_all();
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

    /// The number of events that were dropped because a subscriber had no room, or could not be
    /// reached without waiting.
    #[must_use]
    pub fn dropped(&self) -> usize {
        self.0.dropped.get().wrapping_add(self.0.bus.missed())
    }

    /// The number of dropped events of this subscriber; `None` if the actor is not subscribed.
    #[must_use]
    pub fn dropped_by(&self, subscriber: &ActorRef<SystemEvent>) -> Option<u64> {
        let mut found = None;
        self.0.bus.visit_waiting(u32::MAX, &mut Cursor::default(), |one| {
            let is_it = one.to == *subscriber;
            found = is_it.then(|| one.clone());
            !is_it
        });
        let found = found?;
        let n_lost = found.backlog.with(|backlog| backlog.lost_total());
        // A publisher that has found the lock taken has left the delivery to this thread.
        deliver(&self.0, &found);
        Some(n_lost)
    }

    /// The number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.bus.n_subscribers()
    }
}

impl Inner {
    #[inline]
    pub(super) fn wants(&self, kind: EventKinds) -> bool {
        self.bus.wants(kind.0)
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
        if let Some((kinds, path)) = feedback_loop(event) {
            let mut is_loop = false;
            let visit = self.bus.visit(kinds.0, &mut Cursor::default(), |one| {
                is_loop = *one.to.any().path == *path;
                !is_loop
            });
            if is_loop || visit == Visit::Missed {
                return;
            }
        }
        let mut cursor = Cursor::default();
        loop {
            let (mut batch, mut len) = ([const { None }; BATCH], 0);
            let visit = self.bus.visit(kind.0, &mut cursor, |one| {
                batch[len] = Some(one.clone());
                len += 1;
                len < BATCH
            });
            for subscriber in batch.into_iter().flatten() {
                push(self, &subscriber, event.clone());
                deliver(self, &subscriber);
            }
            if visit != Visit::Stopped {
                return;
            }
        }
    }
}

/// Appends an event to the backlog of a subscriber, without waiting and without an allocation.
fn push(stream: &Arc<Inner>, subscriber: &Subscriber, event: SystemEvent) {
    let mut event = Some(event);
    let pushed = with_bounded_wait(&subscriber.backlog, |backlog| {
        event.take().and_then(|event| backlog.push(event))
    });
    if !matches!(pushed, Some(None)) {
        stream.dropped.increment();
    }
    if pushed.is_none() {
        // Relaxed: a count.
        subscriber.lost_aside.fetch_add(1, Relaxed);
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
///
/// The caller may have interrupted the holder of the backlog's lock, and then returns: that thread
/// pushes or drains, and sends what is there afterwards. A caller that has become the drainer has
/// not interrupted a holder, and waits for other threads only.
fn deliver(stream: &Arc<Inner>, subscriber: &Arc<Subscriber>) {
    let begins = with_bounded_wait(&subscriber.backlog, |backlog| {
        // Relaxed: a count.
        if subscriber.lost_aside.load(Relaxed) > 0 {
            backlog.count_lost(subscriber.lost_aside.swap(0, Relaxed) as u64);
        }
        backlog.begin_drain()
    });
    if begins != Some(true) {
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
            // It has stopped, and is removed as any actor that has stopped.
            Err(_) => return,
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
        again.bus.sweep();
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
