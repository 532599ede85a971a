//! Broadcasts failures to subscribers.
//!
//! The hub is a [`clockjack_observe::bus`] whose subscribers are closures and queues. A publication
//! calls each subscriber outside of the lock, so a subscriber may itself publish, subscribe and
//! unsubscribe. A subscriber that has unsubscribed does not receive later failures; a publication
//! that is in progress on another thread may still call it once. Publishers wait for the lock,
//! whose holders change the list of subscribers: the hub is for threads, not for interrupts.

use alloc::{boxed::Box, vec::Vec};
use core::{error::Error, fmt};

use clockjack_observe::bus::{Bus, Cursor, Item, Overflow, Queue};
use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};

use crate::failure_info::FailureInfo;

/// The default limit of subscribers of a hub.
pub const SUBSCRIBERS_MAX: usize = 64;

/// All failures are of one kind.
const KIND: u32 = 1;

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
    bus: Bus<Subscriber>,
    subscribers_max: usize,
    /// A system that uses the hub is sealed and allocates no more memory.
    is_sealed: AtomicBool,
}

enum Subscriber {
    Call(Box<dyn Fn(&FailureInfo) + Send + Sync>),
    Queue(Arc<Queue<FailureInfo>>),
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
        let is_sealed = AtomicBool::new(false);
        Self(Arc::new(Shared { bus: Bus::new(), subscribers_max, is_sealed }))
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

    /// Keeps the newest `capacity` failures from now on, until they are taken: at least one, at
    /// most [`CAPACITY_MAX`](clockjack_observe::bus::CAPACITY_MAX).
    ///
    /// # Errors
    ///
    /// As [`subscribe`](Self::subscribe).
    pub fn subscribe_queue(&self, capacity: usize) -> Result<FailureQueue, HubFull> {
        self.check_open()?;
        let queue = Arc::new(Queue::new(capacity, Overflow::DropOldest));
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
        let (mut cursor, mut n_reached) = (Cursor::default(), 0);
        loop {
            let mut next = None;
            self.0.bus.visit_waiting(KIND, &mut cursor, |subscriber| {
                next = Some(subscriber.clone());
                false
            });
            let Some(subscriber) = next else { break };
            n_reached += 1;
            match &*subscriber {
                Subscriber::Call(listener) => catch_unwind(&mut || listener(info)),
                Subscriber::Queue(queue) => drop(queue.push(info.clone())),
            }
        }
        self.0.bus.sweep();
        n_reached
    }

    /// The number of subscribers.
    #[must_use]
    pub fn n_subscribers(&self) -> usize {
        self.0.bus.n_subscribers()
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
        let n_max = self.0.subscribers_max;
        match self.0.bus.subscribe(KIND, n_max, Arc::new(subscriber)) {
            Ok(id) => Ok(Subscription { hub: self.clone(), id }),
            Err(_) => Err(HubFull { n_max, is_sealed: false }),
        }
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
    id: usize,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.hub.0.bus.unsubscribe(self.id);
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
    queue: Arc<Queue<FailureInfo>>,
    _subscription: Subscription,
}

impl FailureQueue {
    /// Takes the oldest failure.
    #[must_use]
    pub fn pop(&self) -> Option<FailureInfo> {
        loop {
            match self.queue.pop().0? {
                Item::Event(info) => return Some(info),
                Item::Lost(_) => {}
            }
        }
    }

    /// Takes all failures, the oldest first.
    #[must_use]
    pub fn drain(&self) -> Vec<FailureInfo> {
        core::iter::from_fn(|| self.pop()).collect()
    }

    /// The number of failures that were dropped because the queue was full. Wraps.
    #[must_use]
    pub fn n_dropped(&self) -> usize {
        self.queue.lost_total()
    }
}

impl fmt::Debug for FailureQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureQueue").field("n_dropped", &self.n_dropped()).finish_non_exhaustive()
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

    use clockjack_observe::bus::CAPACITY_MAX;

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
    fn a_queue_has_a_bound_whatever_is_asked_for() {
        let hub = FailureEventHub::new();
        let queue = hub.subscribe_queue(usize::MAX).unwrap();
        let info = info("again");
        for _ in 0..=CAPACITY_MAX {
            hub.publish(&info);
        }
        assert_eq!((queue.drain().len(), queue.n_dropped()), (CAPACITY_MAX, 1));
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
