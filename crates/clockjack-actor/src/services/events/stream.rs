//! [`EventStream`]: delivers events to actors that have subscribed to them.
//!
//! # Protocol
//!
//! Roles: *publishers*, any thread, and interrupts that [`tell`](crate::ActorRef::tell) (a refused
//! message is a dead letter, and so an event); the *runner* of a subscriber, the thread that polls
//! it; *subscribers* that come and go, on threads. Each subscriber has a
//! [backlog](super::backlog) under a lock.
//!
//! 1. A publisher copies the event into the backlog of each subscriber that wants it, and then, as
//!    the drainer, from the backlog into the mailbox. It may have interrupted the holder of a lock,
//!    so it tries the lock a bounded number of times; if that fails, the event is counted as lost.
//!    A drainer waits for the lock: it got the lock once, so it has not interrupted a holder.
//! 2. A publisher that may be an interrupt ([`Publisher::Any`]) neither allocates nor frees memory,
//!    and arms no timer. All memory of a backlog was allocated by the subscription. An evicted
//!    event is dropped only if other references to its path remain; otherwise it waits in the
//!    backlog until a thread drops it. A publisher that is a thread drops what it has evicted.
//! 3. A publisher that finds the mailbox full puts the event back, sets EVENTS in the flag word of
//!    the subscriber, and wakes the subscriber if the flag was clear. The runner clears the flag,
//!    drops evicted events, and drains the backlog. If the mailbox is still full, the runner sets
//!    the flag again, without waking itself: a full mailbox is not empty, so the runner takes a
//!    message next, or waits for something else, and in both cases reads its flags before it can
//!    go idle.
//!
//! *Why no event waits for ever*: the event is in the backlog before the flag is set, and the flag
//! is set before the wake, so the poll that clears the flag finds the event. *Why no thread hangs*:
//! publishers do not wait (rule 1), and other threads wait for holders that run a bounded number of
//! instructions.

use core::fmt;

use clockjack_exec::{Handle, Pid};
use clockjack_observe::{
    Counter,
    bus::{Bus, CAPACITY_MAX, Cursor, Visit, with_bounded_wait},
};
use clockjack_sched::Scheduler;
use clockjack_sync::{
    Arc,
    primitive::atomic::{AtomicUsize, Ordering::Relaxed},
    spin_lock::SpinLock,
};

use super::{
    EventKinds, SystemEvent,
    backlog::{Backlog, BacklogEntry},
    bridge::{Bridge, Forwarded},
};
use crate::{ActorPath, ActorRef, cell::header::EVENTS, system::call_catching_panics};

/// The default limit of events that wait for a subscriber whose mailbox is full.
pub const EVENTS_WAITING_MAX: usize = 256;

/// Delivers events to actors that have subscribed to them. Cheap to clone.
///
/// An event goes into the mailbox of each subscriber. If the mailbox is full, the event waits in a
/// bounded backlog. If the backlog is full, the oldest event is dropped and counted, and the
/// subscriber receives the number as [`SystemEvent::EventsDropped`] as soon as it has room. A
/// subscriber that stops is removed. While a kind of event has no subscriber, publishing it costs
/// one load.
///
/// A `tell` that is refused may come from an interrupt, so its event frees no memory: the events
/// that make room for it are kept until the subscriber runs. If more wait for that than the backlog
/// holds (16 on a microcontroller), the new event is dropped and counted instead of the oldest.
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
    bridges: [Bridge; 2],
}

impl Inner {
    pub(super) fn bridge(&self, forwarded: Forwarded) -> &Bridge {
        &self.bridges[forwarded as usize]
    }
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
            bridges: [Forwarded::Warnings, Forwarded::TickRate].map(Bridge::new),
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
        self.update_bridges();
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
            self.update_bridges();
        }
        is_removed
    }

    /// Closes the stream of a system that has terminated: removes all subscribers.
    pub(crate) fn close(&self) {
        self.0.bus.close(|_| ());
        self.0.bus.remove_all();
        self.update_bridges();
    }

    fn update_bridges(&self) {
        for bridge in &self.0.bridges {
            bridge.update(&self.0, &self.0.executor);
        }
    }

    /// Sends a subscriber what waits for it, and drops what was evicted. The runner of the
    /// subscriber calls this when it finds EVENTS.
    #[cold]
    pub(crate) fn serve(&self, pid: Pid) {
        let mut found = None;
        self.0.bus.visit_waiting(u32::MAX, &mut Cursor::default(), |one| {
            let is_it = one.to.pid() == pid;
            found = is_it.then(|| one.clone());
            !is_it
        });
        if let Some(found) = found {
            found.drop_evicted();
            deliver(&self.0, &found, true);
            drop(found);
            self.0.bus.sweep();
        }
    }

    /// Whether events of this kind have a subscriber.
    #[inline]
    pub(crate) fn wants(&self, kind: EventKinds) -> bool {
        self.0.wants(kind)
    }

    /// Sends an event to all its subscribers. Not for interrupts: an event that makes room for this
    /// one is dropped, which may free memory.
    pub fn publish(&self, event: &SystemEvent) {
        self.0.publish(event, Publisher::Thread);
    }

    /// As [`publish`](Self::publish), for a caller that may be an interrupt.
    pub(crate) fn publish_quietly(&self, event: &SystemEvent) {
        self.0.publish(event, Publisher::Any);
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
        deliver(&self.0, &found, false);
        Some(n_lost)
    }

    /// For hosts: whether this actor receives events of any of these kinds.
    #[doc(hidden)]
    #[must_use]
    pub fn delivers_to(&self, subscriber: Pid, kinds: EventKinds) -> bool {
        let mut is_found = false;
        self.0.bus.visit_waiting(kinds.0, &mut Cursor::default(), |one| {
            is_found = one.to.pid() == subscriber;
            !is_found
        });
        is_found
    }

    /// The number of subscribers.
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.0.bus.n_subscribers()
    }
}

impl Subscriber {
    /// For threads.
    fn drop_evicted(&self) {
        while let Some(event) = self.backlog.with(Backlog::take_evicted) {
            drop(event);
        }
    }
}

impl Inner {
    #[inline]
    pub(super) fn wants(&self, kind: EventKinds) -> bool {
        self.bus.wants(kind.0)
    }
}

/// Who publishes an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Publisher {
    /// A thread, which may free memory.
    Thread,
    /// A thread or an interrupt (rule 2).
    Any,
}

/// Publishing, which needs the counted pointer to the stream.
pub(super) trait Publish {
    fn publish(&self, event: &SystemEvent, by: Publisher);
}

impl Publish for Arc<Inner> {
    fn publish(&self, event: &SystemEvent, by: Publisher) {
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
                match by {
                    Publisher::Thread => push(self, &subscriber, event.clone()),
                    Publisher::Any => push_quietly(self, &subscriber, event.clone()),
                }
                deliver(self, &subscriber, false);
            }
            if visit != Visit::Stopped {
                return;
            }
        }
    }
}

/// Appends an event to the backlog of a subscriber, without waiting, and drops the events that make
/// room for it.
fn push(stream: &Arc<Inner>, subscriber: &Subscriber, event: SystemEvent) {
    let mut event = Some(event);
    let pushed = with_bounded_wait(&subscriber.backlog, |backlog| {
        backlog.push(event.take().expect("the closure is called once"))
    });
    match pushed {
        Some(evicted) => stream.dropped.add(evicted.iter().flatten().count()),
        None => lose(stream, subscriber),
    }
}

/// As [`push`], without allocating or freeing memory: the caller may be an interrupt, and has a
/// second reference to all that the event refers to, so that a refused event may be dropped here.
fn push_quietly(stream: &Arc<Inner>, subscriber: &Subscriber, event: SystemEvent) {
    let mut event = Some(event);
    let pushed = with_bounded_wait(&subscriber.backlog, |backlog| {
        let event = event.take().expect("the closure is called once");
        backlog.push_quietly(event, SystemEvent::release_quietly)
    });
    let Some(pushed) = pushed else { return lose(stream, subscriber) };
    stream.dropped.add(pushed.n_lost);
    drop(pushed.refused);
    if pushed.needs_thread {
        let actor = subscriber.to.any();
        actor.set_flags(EVENTS);
        actor.wake();
    }
}

/// Counts an event that was lost because the lock of the backlog was taken.
fn lose(stream: &Inner, subscriber: &Subscriber) {
    stream.dropped.increment();
    // Relaxed: a count.
    subscriber.lost_aside.fetch_add(1, Relaxed);
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

/// Sends a subscriber the events of its backlog. `by_runner` if the caller polls the subscriber.
///
/// The caller may have interrupted the holder of the backlog's lock, and then returns: that thread
/// pushes or drains, and sends what is there afterwards. A caller that has become the drainer has
/// not interrupted a holder, and waits for other threads only.
fn deliver(stream: &Arc<Inner>, subscriber: &Arc<Subscriber>, by_runner: bool) {
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
                sent = subscriber.to.offer(event);
            }
        });
        match sent {
            Err(refused) => {
                core::mem::forget(guard);
                let is_full = refused.is_full();
                put_back(subscriber, refused.into_inner());
                if is_full {
                    call_runner(subscriber, by_runner);
                }
                // A subscriber that has stopped is removed as any actor that has stopped, and its
                // events with it.
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

/// The subscriber has no room: puts the event back.
fn put_back(subscriber: &Subscriber, event: SystemEvent) {
    let entry = match event {
        SystemEvent::EventsDropped(n) => BacklogEntry::Lost(n),
        event => BacklogEntry::Item(event),
    };
    let mut entry = Some(entry);
    subscriber.backlog.with(|backlog| entry.take().map(|entry| backlog.put_back_quietly(entry)));
}

/// Lets the runner of the subscriber [serve](EventStream::serve) the backlog. The runner itself
/// does so before it takes the next message of its full mailbox; nobody wakes it for that.
fn call_runner(subscriber: &Subscriber, by_runner: bool) {
    let actor = subscriber.to.any();
    let was_set = actor.set_flags(EVENTS) & EVENTS != 0;
    if !was_set && !by_runner {
        actor.wake();
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
