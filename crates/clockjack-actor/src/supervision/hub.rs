//! Broadcasts failures to subscribers.
//!
//! The list of subscribers is copy-on-write, as `CopyOnWriteArrayList` of Java: a publisher
//! iterates over the list that it has read, while others replace the list.
//!
//! # Protocol
//!
//! Roles: *publishers* and *subscribers*, any number, on any thread. The hub holds a copy-on-write
//! list behind a lock: a list is never changed, only replaced.
//!
//! 1. Subscribing replaces the list by a copy with one more entry, unsubscribing by a copy with one
//!    entry less. The old list is dropped outside of the lock, because closures may be dropped with
//!    it.
//! 2. Publishing copies the pointer to the list under the lock, and iterates over that list outside
//!    of it. So a subscriber may itself publish, subscribe and unsubscribe.
//! 3. A subscriber that has unsubscribed does not receive later failures. A publication that is in
//!    progress on another thread may still call it once.
//! 4. A full queue drops its oldest failure and counts it.
//!
//! *Why it cannot hang*: each thread takes one lock at a time, and no foreign code runs under a
//! lock.

use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::{error::Error, fmt};

use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    spin_lock::SpinLock,
};

use crate::failure_info::FailureInfo;

/// The default limit of subscribers of a hub.
pub const SUBSCRIBERS_MAX: usize = 64;

/// The most failures for which the memory of a queue is allocated in advance.
const PREPARED_MAX: usize = 1_024;

/// Broadcasts failures to subscribers. Clones refer to the same hub.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{ActorPath, FailureInfo, FailureReport, Pid, hub::FailureEventHub};
///
/// let hub = FailureEventHub::new();
/// let printer = hub.subscribe(|info| println!("{info}"))?;
/// let queue = hub.subscribe_queue(16)?;
///
/// let path = ActorPath::root().child("user").child("worker");
/// let worker = Pid::new(1, 2, core::num::NonZeroU64::MIN);
/// let info = FailureInfo::new(worker, path, FailureReport::new("out of paper"));
/// assert_eq!(hub.publish(&info), 2);
///
/// drop(printer);
/// assert_eq!(hub.publish(&info), 1);
/// assert_eq!(queue.drain().len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FailureEventHub(Arc<Shared>);

struct Shared {
    list: SpinLock<List>,
    subscribers_max: usize,
    /// A system that uses the hub is sealed and allocates no more memory.
    is_sealed: AtomicBool,
}

/// Copy-on-write: never changed, only replaced.
type List = Arc<Vec<Arc<Subscriber>>>;

enum Subscriber {
    Call(Box<dyn Fn(&FailureInfo) + Send + Sync>),
    Queue(Arc<BoundedQueue>),
}

impl FailureEventHub {
    /// A hub for at most [`SUBSCRIBERS_MAX`] subscribers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capacity(SUBSCRIBERS_MAX)
    }

    /// A hub for at most this many subscribers.
    #[must_use]
    pub fn with_capacity(subscribers_max: usize) -> Self {
        let list = SpinLock::new(Arc::new(Vec::new()));
        let is_sealed = AtomicBool::new(false);
        Self(Arc::new(Shared { list, subscribers_max, is_sealed }))
    }

    /// Calls `listener` for each failure from now on, on the thread that publishes the failure,
    /// until the returned subscription is dropped.
    ///
    /// # Errors
    ///
    /// If there are too many subscribers (transient), or if a system that uses the hub is sealed.
    pub fn subscribe(
        &self,
        listener: impl Fn(&FailureInfo) + Send + Sync + 'static,
    ) -> Result<Subscription, HubFull> {
        self.check_open()?;
        self.add(Subscriber::Call(Box::new(listener)))
    }

    /// Keeps the newest `capacity` failures from now on (at least one), until they are taken.
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_queue(&self, capacity: usize) -> Result<FailureQueue, HubFull> {
        self.check_open()?;
        let queue = Arc::new(BoundedQueue::new(capacity.max(1)));
        let subscription = self.add(Subscriber::Queue(queue.clone()))?;
        Ok(FailureQueue { queue, _subscription: subscription })
    }

    /// Passes a failure to all subscribers, in the order of their subscription. Returns the number
    /// of subscribers.
    ///
    /// If a subscriber panics, those after it are not called: see
    /// [`publish_with`](Self::publish_with).
    pub fn publish(&self, info: &FailureInfo) -> usize {
        self.publish_with(info, |call| call())
    }

    /// As [`publish`](Self::publish), but `catch_unwind` makes each call of a subscriber, and may
    /// catch its panic.
    pub fn publish_with(
        &self,
        info: &FailureInfo,
        mut catch_unwind: impl FnMut(&mut dyn FnMut()),
    ) -> usize {
        let list = self.0.list.with(|list| list.clone());
        for subscriber in &*list {
            match &**subscriber {
                Subscriber::Call(listener) => catch_unwind(&mut || listener(info)),
                Subscriber::Queue(queue) => queue.push(info.clone()),
            }
        }
        list.len()
    }

    /// The number of subscribers.
    #[must_use]
    pub fn n_subscribers(&self) -> usize {
        self.0.list.with(|list| list.len())
    }

    /// Refuses further subscribers, because a system that uses the hub is sealed.
    pub(crate) fn seal(&self) {
        // Release: pairs with `check_open`.
        self.0.is_sealed.store(true, Release);
    }

    fn check_open(&self) -> Result<(), HubFull> {
        // Acquire: pairs with `seal`.
        let is_sealed = self.0.is_sealed.load(Acquire);
        let n_max = self.0.subscribers_max;
        if is_sealed { Err(HubFull { n_max, is_sealed }) } else { Ok(()) }
    }

    fn add(&self, subscriber: Subscriber) -> Result<Subscription, HubFull> {
        let entry = Arc::new(subscriber);
        let n_max = self.0.subscribers_max;
        // The replaced list, or the refused entry, is dropped after the lock is released.
        let replaced = self.0.list.with(|list| {
            let has_room = list.len() < n_max;
            has_room.then(|| {
                let next = list.iter().chain([&entry]).cloned().collect();
                core::mem::replace(list, Arc::new(next))
            })
        });
        match replaced {
            Some(_old) => Ok(Subscription { hub: self.clone(), entry }),
            None => Err(HubFull { n_max, is_sealed: false }),
        }
    }

    fn remove(&self, entry: &Arc<Subscriber>) {
        let replaced = self.0.list.with(|list| {
            let others = list.iter().filter(|other| !Arc::ptr_eq(other, entry));
            let next = others.cloned().collect();
            core::mem::replace(list, Arc::new(next))
        });
        drop(replaced);
    }
}

impl Default for FailureEventHub {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FailureEventHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureEventHub")
            .field("n_subscribers", &self.n_subscribers())
            .finish_non_exhaustive()
    }
}

/// A subscription; dropping it unsubscribes.
#[must_use = "the subscription ends when this is dropped"]
pub struct Subscription {
    hub: FailureEventHub,
    entry: Arc<Subscriber>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.remove(&self.entry);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

/// A subscription with a queue of failures; dropping it unsubscribes.
#[must_use = "the subscription ends when this is dropped"]
pub struct FailureQueue {
    queue: Arc<BoundedQueue>,
    _subscription: Subscription,
}

impl FailureQueue {
    /// Takes the oldest failure.
    #[must_use]
    pub fn pop(&self) -> Option<FailureInfo> {
        self.queue.state.with(|state| state.infos.pop_front())
    }

    /// Takes all failures, the oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<FailureInfo> {
        // The new buffer is allocated outside of the lock, and stays with the queue.
        let room = VecDeque::with_capacity(self.queue.capacity.min(PREPARED_MAX));
        let infos = self.queue.state.with(|state| core::mem::replace(&mut state.infos, room));
        infos.into()
    }

    /// The number of failures that were dropped because the queue was full. Wraps.
    #[must_use]
    pub fn n_dropped(&self) -> usize {
        self.queue.state.with(|state| state.n_dropped)
    }
}

impl fmt::Debug for FailureQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureQueue")
            .field("capacity", &self.queue.capacity)
            .field("n_dropped", &self.n_dropped())
            .finish_non_exhaustive()
    }
}

/// The queue of one subscriber.
struct BoundedQueue {
    capacity: usize,
    state: SpinLock<QueueState>,
}

struct QueueState {
    infos: VecDeque<FailureInfo>,
    n_dropped: usize,
}

impl BoundedQueue {
    fn new(capacity: usize) -> Self {
        let infos = VecDeque::with_capacity(capacity.min(PREPARED_MAX));
        let state = QueueState { infos, n_dropped: 0 };
        Self { capacity, state: SpinLock::new(state) }
    }

    fn push(&self, info: FailureInfo) {
        let oldest = self.state.with(|state| {
            let is_full = state.infos.len() >= self.capacity;
            let oldest = if is_full { state.infos.pop_front() } else { None };
            state.n_dropped = state.n_dropped.wrapping_add(usize::from(is_full));
            state.infos.push_back(info);
            oldest
        });
        drop(oldest);
    }
}

/// The error of a hub that accepts no more subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubFull {
    n_max: usize,
    is_sealed: bool,
}

impl HubFull {
    /// Whether a system that uses the hub is sealed, which is permanent. Otherwise the hub has the
    /// maximum number of subscribers.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_sealed
    }
}

impl fmt::Display for HubFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_sealed {
            return f.write_str("the hub belongs to a sealed system");
        }
        write!(f, "the hub already has the maximum of {} subscribers", self.n_max)
    }
}

impl Error for HubFull {}

#[cfg(test)]
mod tests {
    use alloc::{
        format,
        string::{String, ToString as _},
        sync::Arc,
        vec,
    };
    use core::panic::AssertUnwindSafe;
    use std::{panic::catch_unwind, sync::Mutex, thread};

    use super::*;
    use crate::{ActorPath, failure_info::FailureReport};

    type Log = Arc<Mutex<Vec<String>>>;

    fn info(reason: impl fmt::Display) -> FailureInfo {
        let pid = clockjack_exec::Pid::new(1, 1, core::num::NonZeroU64::MIN);
        FailureInfo::new(pid, ActorPath::root(), FailureReport::new(&reason.to_string()))
    }

    fn listener(name: &'static str, log: &Log) -> impl Fn(&FailureInfo) + Send + Sync + use<> {
        let log = log.clone();
        move |info| log.lock().unwrap().push(format!("{name} {}", info.reason))
    }

    fn reasons(infos: &[FailureInfo]) -> Vec<String> {
        infos.iter().map(|info| info.reason.to_string()).collect()
    }

    #[test]
    fn all_subscribers_are_told_in_order_until_they_leave() {
        let (hub, log) = (FailureEventHub::new(), Log::default());
        let a = hub.subscribe(listener("a", &log)).unwrap();
        let b = hub.subscribe(listener("b", &log)).unwrap();
        assert_eq!(hub.publish(&info(1)), 2);
        drop(a);
        assert_eq!(hub.publish(&info(2)), 1);
        drop(b);
        assert_eq!(hub.publish(&info(3)), 0);
        assert_eq!(*log.lock().unwrap(), ["a 1", "b 1", "b 2"]);
    }

    #[test]
    fn a_queue_keeps_the_newest_and_counts_the_rest() {
        let hub = FailureEventHub::new();
        let queue = hub.subscribe_queue(2).unwrap();
        for n in 1..=5 {
            hub.publish(&info(n));
        }
        assert_eq!(reasons(&queue.drain()), ["4", "5"]);
        assert_eq!(queue.n_dropped(), 3);
        hub.publish(&info(6));
        assert_eq!(queue.pop().unwrap().reason.to_string(), "6");
        assert!(queue.pop().is_none());
        drop(queue);
        assert_eq!(hub.n_subscribers(), 0);
        // One is the least that a queue holds.
        let least = hub.subscribe_queue(0).unwrap();
        hub.publish(&info(7));
        hub.publish(&info(8));
        assert_eq!(reasons(&least.drain()), ["8"]);
    }

    #[test]
    fn a_queue_without_a_bound_takes_no_more_memory_than_it_needs() {
        let hub = FailureEventHub::new();
        let queue = hub.subscribe_queue(usize::MAX).unwrap();
        for n in 0..2 * PREPARED_MAX {
            hub.publish(&info(n));
        }
        assert_eq!((queue.drain().len(), queue.n_dropped()), (2 * PREPARED_MAX, 0));
    }

    #[test]
    fn one_subscriber_too_many_is_refused() {
        let hub = FailureEventHub::with_capacity(1);
        let first = hub.subscribe_queue(1).unwrap();
        assert!(hub.subscribe(|_| ()).is_err());
        let error = hub.subscribe_queue(1).unwrap_err();
        assert_eq!(error.to_string(), "the hub already has the maximum of 1 subscribers");
        drop(first);
        assert!(hub.subscribe(|_| ()).is_ok());
    }

    #[test]
    fn a_subscriber_may_publish_subscribe_and_leave_from_within() {
        let (hub, log) = (FailureEventHub::new(), Log::default());
        let held: Arc<Mutex<Vec<Subscription>>> = Arc::default();
        let within = {
            let (hub, log, held) = (hub.clone(), log.clone(), held.clone());
            move |info: &FailureInfo| {
                let left = core::mem::take(&mut *held.lock().unwrap());
                drop(left);
                let new = hub.subscribe(listener("new", &log)).unwrap();
                hub.publish(&info.escalate_to_parent(info.actor));
                held.lock().unwrap().push(new);
            }
        };
        let first = hub.subscribe(within).unwrap();
        held.lock().unwrap().push(first);
        hub.publish(&info(1));
        hub.publish(&info(2));
        assert_eq!(*log.lock().unwrap(), ["new 1", "new 2"]);
        assert_eq!(hub.n_subscribers(), 1);
    }

    /// Asks the hub something when it is dropped, which would hang under the hub's lock.
    struct Curious(FailureEventHub, Arc<Mutex<usize>>);

    impl Drop for Curious {
        fn drop(&mut self) {
            *self.1.lock().unwrap() += 1 + self.0.n_subscribers();
        }
    }

    #[test]
    fn closures_die_outside_of_the_lock() {
        let (hub, died) = (FailureEventHub::with_capacity(1), Arc::default());
        let curious = || Curious(hub.clone(), Arc::clone(&died));
        let listener = |curious: Curious| move |_: &FailureInfo| drop(curious.0.clone());
        let kept = hub.subscribe(listener(curious())).unwrap();
        assert!(hub.subscribe(listener(curious())).is_err());
        assert_eq!(*died.lock().unwrap(), 2);
        drop(kept);
        assert_eq!(*died.lock().unwrap(), 3);
    }

    #[test]
    fn a_guard_keeps_a_panic_from_the_other_subscribers() {
        let (hub, log) = (FailureEventHub::new(), Log::default());
        let _bad = hub.subscribe(|_| panic!("it does")).unwrap();
        let _good = hub.subscribe(listener("good", &log)).unwrap();
        let mut n_caught = 0;
        let n_called = hub.publish_with(&info(1), |call| {
            n_caught += usize::from(catch_unwind(AssertUnwindSafe(call)).is_err());
        });
        assert_eq!((n_called, n_caught), (2, 1));
        // Without one the panic goes to who publishes, and the hub works on.
        assert!(catch_unwind(AssertUnwindSafe(|| hub.publish(&info(2)))).is_err());
        assert_eq!(hub.n_subscribers(), 2);
        assert_eq!(*log.lock().unwrap(), ["good 1"]);
    }

    #[test]
    fn what_several_publish_at_once_is_all_there() {
        const EACH: usize = 200;
        let hub = FailureEventHub::new();
        let queue = hub.subscribe_queue(EACH).unwrap();
        let mut taken = vec![];
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..EACH).for_each(|n| assert!(hub.publish(&info(n)) >= 1)));
            }
            // Others come and go meanwhile.
            scope.spawn(|| (0..EACH).for_each(|_| drop(hub.subscribe(|_| ()).unwrap())));
            taken.extend(queue.drain());
        });
        taken.extend(queue.drain());
        assert_eq!(taken.len() + queue.n_dropped(), 2 * EACH);
        assert_eq!(hub.n_subscribers(), 1);
    }
}
