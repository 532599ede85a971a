//! A publish/subscribe bus: a list of subscribers behind a spin lock, and a bounded queue per
//! reader that counts its losses.
//!
//! A [`Bus`] is the list: it knows which kinds of events each subscriber wants. What a subscriber
//! is, its owner decides: a [`Queue`], a closure, an actor. A publisher passes each event to the
//! subscribers that want it. Without subscribers, publishing costs one load.
//!
//! # Protocol
//!
//! Roles: *publishers* are any threads and interrupts, perhaps in a critical section of their own;
//! *wakers* are the same threads, later and outside of it; *subscribers* come and go, on threads.
//!
//! ```text
//!   wanted        [ CLOSED | the kinds that some subscriber wants ]
//!   wake_pending  some queue has an event or a loss whose reader was not woken yet
//!   list          under the lock: subscribers with their kinds, in the order of their subscription
//!   queue         under its own lock: events, each with the number of events lost before it
//! ```
//!
//! 1. Subscribers wait for the lock of the list. A publisher or waker does not: if the lock is not
//!    free after [a bounded number of attempts](SPINS_MAX), because the holder is preempted or is
//!    the very code that an interrupt has interrupted, the publisher counts the event in `missed`
//!    and returns. The same holds for the lock of a queue, whose owner counts the loss.
//! 2. No holder of a lock allocates, frees memory or calls foreign code. A subscriber prepares the
//!    memory for a longer list before it locks, and drops the old one afterwards. A queue has all
//!    its memory from the beginning.
//! 3. A publisher may clone the counted pointer of a subscriber, under the lock. A subscriber that
//!    unsubscribes while such a clone exists leaves its entry in the list, as *retired*: it wants
//!    nothing. So a publisher is never the last owner, and frees nothing. The next thread that
//!    subscribes or unsubscribes removes retired entries that have no other owner; only holders of
//!    the lock clone, so that decision is final.
//! 4. A publisher pushes, then sets `wake_pending`. A waker clears `wake_pending` under the lock,
//!    and wakes the readers of all queues that have something, one at a time: it takes a
//!    [`Waker`] under the lock, and wakes it outside. The swap that clears the flag acquires what
//!    the push released.
//! 5. A waker that does not get the lock sets `wake_pending`, and tries once more. Between the two
//!    there is a sequentially consistent fence, and each holder of the lock has one between its
//!    unlocking and its next look at the flag. So either the second attempt succeeds, or the holder
//!    sees the flag. Each holder looks: a publisher and a subscriber call [`Bus::wake_readers`]
//!    afterwards, and a waker looks again before it returns.
//! 6. A reader that finds nothing registers its waker, and reads again. A reader that finds the
//!    lock of its queue taken has nothing either: the publisher that holds it has yet to set
//!    `wake_pending`.
//! 7. A full queue drops the new event or its oldest one, as [`Overflow`] says, and counts it. The
//!    count is read in the place of the lost events, once.
//! 8. Closing sets CLOSED under the lock. A later subscriber is refused.
//!
//! *Why no thread hangs*: only subscribers wait, for holders that run a bounded number of
//! instructions. *Why no wake-up is lost*: rules 4 and 5, and the protocol of [`AtomicWaker`].

use alloc::{collections::VecDeque, vec::Vec};
use core::{fmt, task::Waker};

use clockjack_sync::{
    Arc, const_unless_loom,
    primitive::{
        IS_MODEL,
        atomic::{
            AtomicBool, AtomicU32, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
            fence,
        },
        hint,
    },
    spin_lock::SpinLock,
    waker::AtomicWaker,
};

/// How often a publisher tries to take a lock, before it counts the event as lost. Enough for any
/// holder that runs; the number bounds the time that an interrupt loses.
pub const SPINS_MAX: usize = if IS_MODEL { 1 } else { 2_048 };

/// The largest capacity of a [`Queue`], whose memory is allocated in advance.
pub const CAPACITY_MAX: usize = 1 << 14;

/// In `wanted`: the bus is closed.
const CLOSED: u32 = 1 << 31;

/// Calls `f` under the lock, unless the lock is taken for long: for code that may have interrupted
/// the holder of the lock. Rule 1.
pub fn with_bounded_wait<T, R>(lock: &SpinLock<T>, mut f: impl FnMut(&mut T) -> R) -> Option<R> {
    for _ in 0..SPINS_MAX {
        if let Some(result) = lock.try_with(&mut f) {
            return Some(result);
        }
        hint::spin_loop();
    }
    None
}

/// A list of subscribers; see the [module](self).
pub struct Bus<S> {
    wanted: AtomicU32,
    wake_pending: AtomicBool,
    /// Events that no subscriber received, because the lock was taken.
    missed: AtomicUsize,
    list: SpinLock<Vec<Entry<S>>>,
    next_id: AtomicUsize,
}

struct Entry<S> {
    id: usize,
    /// None of them for an entry that is retired.
    kinds: u32,
    is_retired: bool,
    subscriber: Arc<S>,
}

/// How far a publication has come: see [`Bus::visit`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Cursor {
    /// Entries below this number were visited.
    next: usize,
    /// Entries from this number on came after the beginning of the publication; zero before the
    /// first visit.
    end: usize,
}

/// How a [visit](Bus::visit) has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visit {
    /// All subscribers were visited.
    Done,
    /// The caller has stopped it; there may be more subscribers.
    Stopped,
    /// The lock was taken for long, and the remaining subscribers miss the event.
    Missed,
}

/// A subscriber that has a queue whose reader may wait.
pub trait Reader {
    /// Takes the waker of a reader that must be woken.
    fn take_waker(&self) -> Option<Waker>;
}

impl<S> Bus<S> {
    const_unless_loom! {
        /// A bus without subscribers.
        #[must_use]
        pub const fn new() -> Self {
            Self {
                wanted: AtomicU32::new(0),
                wake_pending: AtomicBool::new(false),
                missed: AtomicUsize::new(0),
                list: SpinLock::new(Vec::new()),
                next_id: AtomicUsize::new(1),
            }
        }
    }

    /// Whether a subscriber wants an event of these kinds, of which there are at most 31. One load;
    /// ask before you create an event.
    #[inline(always)]
    pub fn wants(&self, kinds: u32) -> bool {
        // Relaxed: a hint. A subscription that happens before this call is seen.
        self.wanted.load(Relaxed) & kinds != 0
    }

    /// Adds a subscriber, unless there are `max` already. Returns its number.
    ///
    /// # Errors
    ///
    /// If there are too many subscribers, or if the bus is closed. The subscriber is returned.
    pub fn subscribe(
        &self,
        kinds: u32,
        max: usize,
        subscriber: Arc<S>,
    ) -> Result<usize, Refused<S>> {
        self.replace(kinds, max, subscriber, |_| false)
    }

    /// As [`subscribe`](Self::subscribe), and removes the first subscriber for which `is_replaced`
    /// returns true, in one step.
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Self::subscribe).
    pub fn replace(
        &self,
        kinds: u32,
        max: usize,
        subscriber: Arc<S>,
        is_replaced: impl Fn(&S) -> bool,
    ) -> Result<usize, Refused<S>> {
        self.sweep();
        // Relaxed: only the number must be unique; the lock orders the entries.
        let id = self.next_id.fetch_add(1, Relaxed);
        let entry = Entry { id, kinds: kinds & !CLOSED, is_retired: false, subscriber };
        let (mut offered, mut longer, mut replaced) = (Some(entry), Vec::new(), None);
        let is_refused = loop {
            let step = self.locked(|list| {
                // Relaxed: the lock orders this.
                if self.wanted.load(Relaxed) & CLOSED != 0 {
                    return Ok(Some(true));
                }
                if longer.capacity() <= list.len() {
                    return Err(list.len() + 1);
                }
                let is_it = |entry: &Entry<S>| is_replaced(&entry.subscriber);
                let live = list.iter().filter(|entry| !entry.is_retired);
                let n_replaced = usize::from(live.clone().any(is_it));
                if live.count() - n_replaced >= max {
                    return Ok(Some(false));
                }
                replaced = retire(list, is_it)
                    .and_then(|at| Arc::is_unique(&list[at].subscriber).then(|| list.remove(at)));
                // Rule 2: moved within memory that exists; the old memory is dropped outside.
                longer.append(list);
                core::mem::swap(list, &mut longer);
                list.extend(offered.take());
                self.update_wanted(list);
                Ok(None)
            });
            match step {
                Ok(is_refused) => break is_refused,
                Err(len) => longer.reserve_exact(len),
            }
        };
        drop((longer, replaced));
        match (is_refused, offered) {
            (Some(is_closed), Some(entry)) => {
                Err(Refused { subscriber: entry.subscriber, is_closed })
            }
            _ => Ok(id),
        }
    }

    /// Removes a subscriber, and says whether there was one with this number. If the caller has a
    /// pointer to it, then it drops that first: so the subscriber is freed here.
    pub fn unsubscribe(&self, id: usize) -> bool {
        self.remove_first(|entry| entry.id == id)
    }

    /// Removes the first subscriber for which `is_it` returns true, and says whether there was one.
    pub fn remove(&self, is_it: impl Fn(&S) -> bool) -> bool {
        self.remove_first(|entry| is_it(&entry.subscriber))
    }

    fn remove_first(&self, is_it: impl Fn(&Entry<S>) -> bool) -> bool {
        let mut is_found = false;
        let removed = self.locked(|list| {
            let at = retire(list, is_it)?;
            is_found = true;
            self.update_wanted(list);
            Arc::is_unique(&list[at].subscriber).then(|| list.remove(at))
        });
        drop(removed);
        self.sweep();
        is_found
    }

    /// Frees the subscribers that have unsubscribed during a publication. Subscribing and
    /// unsubscribing do this too; not for interrupts.
    pub fn sweep(&self) {
        let is_over = |entry: &Entry<S>| entry.is_retired && Arc::is_unique(&entry.subscriber);
        loop {
            let removed = self.locked(|list| {
                let at = list.iter().position(is_over)?;
                Some(list.remove(at))
            });
            if removed.is_none() {
                return;
            }
        }
    }

    /// Refuses further subscribers, and calls `f` for each subscriber, under the lock: `f` must not
    /// allocate or call foreign code. Rule 8.
    pub fn close(&self, mut f: impl FnMut(&S)) {
        self.locked(|list| {
            // Release: pairs with `is_closed`.
            self.wanted.fetch_or(CLOSED, AcqRel);
            list.iter().for_each(|entry| f(&entry.subscriber));
        });
    }

    /// Removes all subscribers, which are dropped after the lock is released.
    pub fn remove_all(&self) {
        let old = self.locked(|list| {
            let old = core::mem::take(list);
            self.update_wanted(list);
            old
        });
        drop(old);
    }

    /// Whether the bus is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // Acquire: pairs with the closing.
        self.wanted.load(Acquire) & CLOSED != 0
    }

    /// Calls `f` for the subscribers that want an event of these kinds (`u32::MAX`: for all), under
    /// the lock, until `f` returns false; the next call with the same cursor continues. Subscribers
    /// that came after the first call are not visited.
    ///
    /// `f` must not allocate or call foreign code. If the lock is taken for long, the subscribers
    /// that were not visited yet miss the event, which is [counted](Self::missed).
    pub fn visit(
        &self,
        kinds: u32,
        cursor: &mut Cursor,
        mut f: impl FnMut(&Arc<S>) -> bool,
    ) -> Visit {
        let visit = with_bounded_wait(&self.list, |list| visit_list(list, kinds, cursor, &mut f));
        // Rule 5: between the unlocking and the next look at `wake_pending`.
        fence(SeqCst);
        visit.unwrap_or_else(|| {
            // Relaxed: a count.
            self.missed.fetch_add(1, Relaxed);
            Visit::Missed
        })
    }

    /// As [`visit`](Self::visit), but waits for the lock: not for interrupts.
    pub fn visit_waiting(
        &self,
        kinds: u32,
        cursor: &mut Cursor,
        mut f: impl FnMut(&Arc<S>) -> bool,
    ) -> Visit {
        self.locked(|list| visit_list(list, kinds, cursor, &mut f))
    }

    /// How many events no subscriber received, because the lock was taken for long; wraps.
    pub fn missed(&self) -> usize {
        // Relaxed: a count.
        self.missed.load(Relaxed)
    }

    /// The number of subscribers. Waits for the lock: not for interrupts.
    #[must_use]
    pub fn n_subscribers(&self) -> usize {
        self.locked(|list| list.iter().filter(|entry| !entry.is_retired).count())
    }

    /// Says that a queue has something for its reader. Rule 4.
    pub fn mark_for_wake(&self) {
        // Release: pairs with the swap in `wake_marked`.
        self.wake_pending.store(true, Release);
    }

    /// Whether [`wake_readers`](Self::wake_readers) has something to do.
    #[inline]
    pub fn has_pending_wakes(&self) -> bool {
        // Relaxed: this thread sees its own mark; other threads wake readers for theirs.
        self.wake_pending.load(Relaxed)
    }

    /// For threads, which wait for the lock.
    fn locked<R>(&self, f: impl FnOnce(&mut Vec<Entry<S>>) -> R) -> R {
        let result = self.list.with(f);
        // Rule 5: between the unlocking and the next look at `wake_pending`.
        fence(SeqCst);
        result
    }

    fn update_wanted(&self, list: &[Entry<S>]) {
        // Relaxed: the lock orders this; publishers take it as a hint.
        let closed = self.wanted.load(Relaxed) & CLOSED;
        self.wanted.store(list.iter().fold(closed, |wanted, one| wanted | one.kinds), Relaxed);
    }
}

impl<S: Reader> Bus<S> {
    /// Wakes the readers of queues that have something. Calls their wakers, so the caller must hold
    /// no lock. One load if there is none to wake.
    #[inline]
    pub fn wake_readers(&self) {
        if self.has_pending_wakes() {
            self.wake_marked();
        }
    }

    #[cold]
    fn wake_marked(&self) {
        /// Sets the flag again if a waker panics, for the next `wake_readers`.
        struct Unwoken<'b, S>(&'b Bus<S>);
        impl<S> Drop for Unwoken<'_, S> {
            fn drop(&mut self) {
                self.0.mark_for_wake();
            }
        }
        let mut n_failed = 0;
        while n_failed < 2 {
            let found = with_bounded_wait(&self.list, |list| {
                // Cleared only under the lock: a waker that fails to take the lock leaves it set
                // (rule 5). Acquire: pairs with the marks (rule 4).
                self.wake_pending.swap(false, AcqRel);
                list.iter().find_map(|entry| entry.subscriber.take_waker())
            });
            match found {
                Some(Some(waker)) => {
                    let unwoken = Unwoken(self);
                    waker.wake();
                    core::mem::forget(unwoken);
                }
                Some(None) => {
                    fence(SeqCst);
                    // Relaxed: after the fence (rule 5).
                    if !self.wake_pending.load(Relaxed) {
                        return;
                    }
                }
                None => {
                    n_failed += 1;
                    self.mark_for_wake();
                    fence(SeqCst);
                }
            }
        }
    }
}

/// Marks the first such entry as retired, and returns its index. Rule 3.
fn retire<S>(list: &mut [Entry<S>], is_it: impl Fn(&Entry<S>) -> bool) -> Option<usize> {
    let at = list.iter().position(|entry| !entry.is_retired && is_it(entry))?;
    list[at].is_retired = true;
    list[at].kinds = 0;
    Some(at)
}

fn visit_list<S>(
    list: &[Entry<S>],
    kinds: u32,
    cursor: &mut Cursor,
    f: &mut impl FnMut(&Arc<S>) -> bool,
) -> Visit {
    if cursor.end == 0 {
        cursor.end = list.last().map_or(1, |entry| entry.id + 1);
    }
    for entry in list {
        let is_wanted = !entry.is_retired && (kinds == u32::MAX || entry.kinds & kinds != 0);
        if !is_wanted || entry.id < cursor.next || entry.id >= cursor.end {
            continue;
        }
        cursor.next = entry.id + 1;
        if !f(&entry.subscriber) {
            return Visit::Stopped;
        }
    }
    Visit::Done
}

impl<S> Default for Bus<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> fmt::Debug for Bus<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("wanted", &self.wanted)
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}

/// A subscriber that was not added.
#[derive(Debug)]
pub struct Refused<S> {
    /// The subscriber.
    pub subscriber: Arc<S>,
    /// Whether the bus is closed; otherwise there are too many subscribers.
    pub is_closed: bool,
}

/// What a full [`Queue`] drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The new event.
    DropNewest,
    /// The oldest event.
    DropOldest,
}

/// What a reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<E> {
    /// An event.
    Event(E),
    /// So many events were lost here.
    Lost(usize),
}

/// A bounded queue of events for one reader; see the [module](self).
pub struct Queue<E> {
    capacity: usize,
    overflow: Overflow,
    state: SpinLock<QueueState<E>>,
    /// Losses while the lock was taken; they are reported when the queue is empty.
    lost_aside: AtomicUsize,
    lost_total: AtomicUsize,
    /// There is something that the reader was not woken for.
    is_marked: AtomicBool,
    waker: AtomicWaker,
}

struct QueueState<E> {
    /// Events, each with the number of events that were lost before it.
    events: VecDeque<(usize, E)>,
    /// Events lost after the last one in the queue.
    lost_last: usize,
    is_closed: bool,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the queue, and nothing was lost for it.
    Kept,
    /// It, or an older event, was lost.
    Lost,
    /// The queue is closed.
    Closed,
}

impl<E> Queue<E> {
    /// A queue of `capacity` events, at least 1 and at most [`CAPACITY_MAX`].
    #[must_use]
    pub fn new(capacity: usize, overflow: Overflow) -> Self {
        let capacity = capacity.clamp(1, CAPACITY_MAX);
        let events = VecDeque::with_capacity(capacity);
        Self {
            capacity,
            overflow,
            state: SpinLock::new(QueueState { events, lost_last: 0, is_closed: false }),
            lost_aside: AtomicUsize::new(0),
            lost_total: AtomicUsize::new(0),
            is_marked: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Appends an event, or counts it as lost. Does not wait, allocate, or wake the reader.
    pub fn push(&self, event: E) -> Pushed {
        let mut offered = Some(event);
        let pushed = with_bounded_wait(&self.state, |state| {
            if state.is_closed {
                return (Pushed::Closed, None);
            }
            let is_full = state.events.len() >= self.capacity;
            if is_full && self.overflow == Overflow::DropNewest {
                state.lost_last = state.lost_last.wrapping_add(1);
                return (Pushed::Lost, None);
            }
            let oldest = if is_full { state.events.pop_front() } else { None };
            if let Some(event) = offered.take() {
                let lost_before = core::mem::take(&mut state.lost_last);
                state.events.push_back((lost_before, event));
            }
            match (&oldest, state.events.front_mut()) {
                (Some((lost, _)), Some(front)) => front.0 = front.0.wrapping_add(lost + 1),
                _ => return (Pushed::Kept, None),
            }
            (Pushed::Lost, oldest)
        });
        let pushed = match pushed {
            Some((pushed, oldest)) => {
                drop(oldest);
                pushed
            }
            None => {
                // Relaxed: the mark that follows orders it.
                self.lost_aside.fetch_add(1, Relaxed);
                Pushed::Lost
            }
        };
        if pushed == Pushed::Lost {
            // Relaxed: a count.
            self.lost_total.fetch_add(1, Relaxed);
        }
        if pushed != Pushed::Closed {
            // Release: pairs with `take_waker`.
            self.is_marked.store(true, Release);
        }
        pushed
    }

    /// The next event or loss, if there is one now; and whether the queue is closed and everything
    /// was read.
    pub fn pop(&self) -> (Option<Item<E>>, bool) {
        let popped = with_bounded_wait(&self.state, |state| match state.events.front_mut() {
            Some((lost, _)) if *lost > 0 => (Some(Item::Lost(core::mem::take(lost))), false),
            Some(_) => (state.events.pop_front().map(|(_, event)| Item::Event(event)), false),
            None if state.lost_last > 0 => {
                (Some(Item::Lost(core::mem::take(&mut state.lost_last))), false)
            }
            None => (None, state.is_closed),
        });
        match popped {
            Some((None, is_closed)) => {
                // Relaxed, twice: one reader takes each loss; the load avoids a useless write.
                let lost = if self.lost_aside.load(Relaxed) == 0 {
                    0
                } else {
                    self.lost_aside.swap(0, Relaxed)
                };
                if lost > 0 { (Some(Item::Lost(lost)), false) } else { (None, is_closed) }
            }
            Some(popped) => popped,
            None => (None, false),
        }
    }

    /// Registers the waker of the reader, which then calls [`pop`](Self::pop) again.
    pub fn register(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Refuses further events; the reader gets the rest, and then the end.
    pub fn close(&self) {
        self.state.with(|state| state.is_closed = true);
        // Release: pairs with `take_waker`.
        self.is_marked.store(true, Release);
    }

    /// Closes the queue for a reader that has gone, and drops what it holds.
    pub fn abandon(&self) {
        let old = self.state.with(|state| {
            state.is_closed = true;
            core::mem::take(&mut state.events)
        });
        drop(old);
        drop(self.waker.take());
    }

    /// How many events were lost since the beginning; wraps.
    pub fn lost_total(&self) -> usize {
        // Relaxed: a count.
        self.lost_total.load(Relaxed)
    }

    /// How many events wait.
    pub fn len(&self) -> usize {
        self.state.with(|state| state.events.len())
    }

    /// Whether no event waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<E> Reader for Queue<E> {
    fn take_waker(&self) -> Option<Waker> {
        // Relaxed load: avoids a useless write; the mark of this thread is seen. Acquire: pairs
        // with the push, so the woken reader sees the event.
        let is_marked = self.is_marked.load(Relaxed) && self.is_marked.swap(false, AcqRel);
        if is_marked { self.waker.take() } else { None }
    }
}

impl<E> fmt::Debug for Queue<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("capacity", &self.capacity)
            .field("lost_total", &self.lost_total())
            .finish_non_exhaustive()
    }
}
