//! The state that a pool's router shares with the threads that change the number of its routees.
//!
//! Roles: the *router*, an actor, which sends messages to routees, and *resizers*, any thread.
//!
//! 1. The routees are in a list under a lock, with a version that increases with every change. The
//!    router has a copy of the list, which it renews before it routes a message, if the version has
//!    changed. It copies a few routees at a time under the lock. A change in between may or may not
//!    be in the copy: the copy has the version from before, so the router renews it again.
//! 2. A thread that wants another number of routees stores that number, and then changes the list
//!    towards it, one routee at a time, each under the lock. A new routee is started outside of the
//!    lock, and added only if it is still needed. So two concurrent resizers leave the number that
//!    was stored last.
//! 3. A surplus routee is removed from the list. A timer checks repeatedly until the router has
//!    either renewed its copy or is idle, in which case it will renew it before the next message.
//!    After that, no further message can reach the routee, and it is asked to retire: it stops by
//!    itself once it has handled its messages and has no pending future.
//! 4. If the scheduler refuses or drops the timer, the routee is *left* to the router, which asks
//!    it to retire when it renews its copy. Who leaves a routee checks again afterwards, because
//!    the router may have renewed its copy just before. A router that does not get a message any
//!    more keeps such a routee until its own end.

use alloc::{boxed::Box, format, vec::Vec};
use core::fmt;

use clockjack_exec::State;
use clockjack_sched::FireContext;
use clockjack_sync::{
    Arc,
    primitive::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    spin_lock::SpinLock,
};

use super::Resizer;
use crate::{
    Actor, ActorRef, DispatcherId, Props, SpawnError,
    cell::{
        header::{AnyActor, STOP, STOP_WHEN_IDLE, STOPPED, SystemSend as _},
        spawn::{self, Placement},
    },
    room::{Segments, with_room},
};

/// See the [module](self).
pub(super) struct PoolShared<A: Actor, F> {
    pub(super) config: SpinLock<Config<A, F>>,
    factory: F,
    list: SpinLock<RouteeList<A::Msg>>,
    /// Rule 4: surplus routees, each with the version from which on the router does not know it.
    left: SpinLock<Segments<(usize, ActorRef<A::Msg>)>>,
    version: AtomicUsize,
    /// The version of the router's copy.
    seen_version: AtomicUsize,
    wanted: AtomicUsize,
}

/// A function that changes the props of each routee.
pub(super) type Shape<A, F> = Arc<Box<dyn Fn(Props<A, F>) -> Props<A, F> + Send + Sync>>;

/// The settings of a pool.
pub(super) struct Config<A: Actor, F> {
    pub(super) shape: Option<Shape<A, F>>,
    pub(super) dispatcher: DispatcherId,
    pub(super) resizer: Option<Resizer>,
    pub(super) is_supervised: bool,
}

struct RouteeList<M> {
    routees: Segments<ActorRef<M>>,
    router: Option<AnyActor>,
    next_name: u64,
}

/// How many routees the router copies while it holds the lock.
const PAGE_LEN: usize = 32;

/// Lets a routee stop once it has handled its messages. The router must not be able to send to it.
fn ask_to_retire<M: 'static>(routee: &ActorRef<M>) {
    routee.any().wake_with(STOP_WHEN_IDLE);
}

/// Whether an actor is running or ready to run.
pub(super) fn is_busy(actor: &AnyActor) -> bool {
    matches!(actor.state(), State::Ready | State::Running)
}

impl<A: Actor, F> PoolShared<A, F> {
    pub(super) fn new(n: usize, factory: F) -> Self {
        Self {
            config: SpinLock::new(Config {
                shape: None,
                dispatcher: DispatcherId::DEFAULT,
                resizer: None,
                is_supervised: false,
            }),
            factory,
            list: SpinLock::new(RouteeList {
                routees: Segments::new(),
                router: None,
                next_name: 0,
            }),
            left: SpinLock::new(Segments::new()),
            version: AtomicUsize::new(0),
            seen_version: AtomicUsize::new(0),
            wanted: AtomicUsize::new(n),
        }
    }

    pub(super) fn wanted(&self) -> usize {
        // Relaxed: an independent number; the thread that changes it also adjusts the list.
        self.wanted.load(Relaxed)
    }

    /// Registers the router. Returns false if there is one already.
    pub(super) fn set_router(&self, router: AnyActor) -> bool {
        self.list.with(|list| {
            let is_free = list.router.is_none();
            if is_free {
                list.router = Some(router);
            }
            is_free
        })
    }

    /// The router has stopped, so its routees have stopped, too, or will stop.
    pub(super) fn router_stopped(&self) {
        let old = self.list.with(|list| {
            self.bump_version();
            (list.router.take(), core::mem::take(&mut list.routees))
        });
        let left = self.left.with(core::mem::take);
        drop((old, left));
    }

    /// Called under the lock when the list has changed.
    fn bump_version(&self) {
        // Release: pairs with `refresh`.
        self.version.fetch_add(1, Release);
    }

    /// The routees, if they have changed since the router's last copy.
    pub(super) fn refresh(&self) -> Option<Vec<ActorRef<A::Msg>>> {
        // Acquire: pairs with `changed`.
        let version = self.version.load(Acquire);
        // Relaxed: only the router writes it.
        if version == self.seen_version.load(Relaxed) {
            return None;
        }
        let routees = self.copy();
        // Release: pairs with the Acquire load in `is_unreachable`. From here on the router sends
        // messages only to the routees of the new copy.
        self.seen_version.store(version, Release);
        self.retire_left(None);
        Some(routees)
    }

    /// Whether no further message of the router can reach a routee that was removed from the list
    /// with this version (rule 3). Without a router, the caller is the router.
    fn is_unreachable(&self, version: usize, router: Option<&AnyActor>) -> bool {
        // Acquire: pairs with the Release store in `refresh`.
        let has_seen = self.seen_version.load(Acquire) >= version;
        has_seen || router.is_some_and(|router| !is_busy(router) || router.is_stopped())
    }

    /// Leaves a routee to the router (rule 4).
    fn leave(&self, version: usize, routee: ActorRef<A::Msg>) {
        with_room(&self.left, |left| left, |left| left.push((version, routee)));
    }

    /// Asks the routees to retire that were left, and that can get no further message.
    fn retire_left(&self, router: Option<&AnyActor>) {
        let mut left = self.left.with(core::mem::take);
        while let Some((version, routee)) = left.pop() {
            if self.is_unreachable(version, router) {
                ask_to_retire(&routee);
            } else if !routee.is_stopped() {
                self.leave(version, routee);
            }
        }
    }

    fn copy(&self) -> Vec<ActorRef<A::Msg>> {
        let mut copy = Vec::with_capacity(self.len());
        loop {
            let mut page = [const { None }; PAGE_LEN];
            self.list.with(|list| list.read_page(copy.len(), &mut page));
            let n_before = copy.len();
            copy.extend(page.into_iter().flatten());
            if copy.len() - n_before < PAGE_LEN {
                return copy;
            }
        }
    }

    fn len(&self) -> usize {
        self.list.with(|list| list.routees.len())
    }
}

impl<A, F> PoolShared<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    /// Starts a routee.
    fn start_routee(
        &self,
        router: &AnyActor,
        nth: u64,
    ) -> Result<ActorRef<A::Msg>, SpawnError<()>> {
        // `shape` is user code: it runs, and may be dropped, outside of the lock.
        let (shape, dispatcher, is_supervised) = self
            .config
            .with(|config| (config.shape.clone(), config.dispatcher, config.is_supervised));
        let props = Props::new(self.factory.clone()).dispatcher(dispatcher);
        let props = if let Some(shape) = shape { shape(props) } else { props };
        let name = format!("${nth}");
        #[expect(unsafe_code, reason = "spawns `Send` actors on any thread")]
        // SAFETY: actor, factory and messages are `Send`.
        let made = unsafe {
            spawn::spawn_named(router, is_supervised, Placement::Dispatcher, &name, props)
        };
        made.map_err(SpawnError::discard)
    }

    /// Starts a new routee in place of one that has stopped. `None` if no routee can be started, or
    /// if the index does not exist any more.
    pub(super) fn replace(&self, index: usize) -> Option<ActorRef<A::Msg>> {
        let (router, nth) = self.list.with(|list| list.next_name())?;
        let fresh = self.start_routee(&router, nth).ok()?;
        let placed = self.list.with(|list| {
            // The old routee accepts no more messages; its children may still be stopping.
            let is_over =
                |place: &&mut ActorRef<A::Msg>| place.any().flags() & (STOP | STOPPED) != 0;
            let place = list.routees.get_mut(index).filter(is_over)?;
            self.bump_version();
            Some(core::mem::replace(place, fresh.clone()))
        });
        if placed.is_none() {
            fresh.any().wake_with(STOP);
            return None;
        }
        Some(fresh)
    }
}

/// Operations that need the counted pointer to the shared state.
pub(super) trait Adjust {
    /// Sets the number of routees (at least one) and adjusts the list.
    fn resize(&self, n: usize) -> Result<(), SpawnError<()>>;
    /// Adjusts the list to the number that was set, if there is a router.
    fn adjust(&self) -> Result<(), SpawnError<()>>;
}

/// The next change of the list.
enum Adjustment<M> {
    Nothing,
    Start(AnyActor, u64),
    Retire(AnyActor, ActorRef<M>),
}

impl<A, F> Adjust for Arc<PoolShared<A, F>>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn resize(&self, n: usize) -> Result<(), SpawnError<()>> {
        // Relaxed: as in `wanted`.
        self.wanted.store(n.max(1), Relaxed);
        self.adjust()
    }

    fn adjust(&self) -> Result<(), SpawnError<()>> {
        loop {
            let adjustment = self.list.with(|list| list.next_adjustment(self));
            match adjustment {
                Adjustment::Nothing => return Ok(()),
                Adjustment::Retire(router, routee) => {
                    // Acquire: reads a version that includes the removal above.
                    let version = self.version.load(Acquire);
                    let shared = self.clone();
                    retire(Retirement { shared, router, routee: Some(routee), version });
                }
                Adjustment::Start(router, nth) => {
                    let made = self.start_routee(&router, nth)?;
                    let unwanted = with_room(
                        &self.list,
                        |list| &mut list.routees,
                        |list| list.add(self, made),
                    );
                    if let Some(unwanted) = unwanted {
                        unwanted.any().wake_with(STOP);
                    }
                }
            }
        }
    }
}

impl<M: 'static> RouteeList<M> {
    /// Reads the routees from an index on.
    fn read_page(&self, from: usize, page: &mut [Option<ActorRef<M>>; PAGE_LEN]) {
        for (place, index) in page.iter_mut().zip(from..) {
            *place = self.routees.get(index).cloned();
        }
    }

    /// The router, and the number in the name of the next routee.
    fn next_name(&mut self) -> Option<(AnyActor, u64)> {
        let router = self.router.clone()?;
        self.next_name += 1;
        Some((router, self.next_name))
    }

    fn next_adjustment<A: Actor<Msg = M>, F>(
        &mut self,
        shared: &PoolShared<A, F>,
    ) -> Adjustment<M> {
        let wanted = shared.wanted();
        if self.routees.len() < wanted {
            return self
                .next_name()
                .map_or(Adjustment::Nothing, |(router, nth)| Adjustment::Start(router, nth));
        }
        if self.routees.len() == wanted {
            return Adjustment::Nothing;
        }
        let (Some(router), Some(routee)) = (self.router.clone(), self.routees.pop()) else {
            return Adjustment::Nothing;
        };
        shared.bump_version();
        Adjustment::Retire(router, routee)
    }

    /// Adds a routee, for which there is room, if it is still needed; otherwise returns it.
    fn add<A: Actor<Msg = M>, F>(
        &mut self,
        shared: &PoolShared<A, F>,
        routee: ActorRef<M>,
    ) -> Option<ActorRef<M>> {
        if self.router.is_none() || self.routees.len() >= shared.wanted() {
            return Some(routee);
        }
        self.routees.push(routee);
        shared.bump_version();
        None
    }
}

/// A routee that was removed from the list, and is to stop once it has handled its messages.
struct Retirement<A: Actor, F> {
    shared: Arc<PoolShared<A, F>>,
    router: AnyActor,
    /// `None` once somebody else is responsible.
    routee: Option<ActorRef<A::Msg>>,
    version: usize,
}

impl<A: Actor, F> Retirement<A, F> {
    fn is_unreachable(&self) -> bool {
        self.shared.is_unreachable(self.version, Some(&self.router))
    }
}

impl<A: Actor, F> Drop for Retirement<A, F> {
    /// The job was refused, or dropped by the close of the scheduler (rule 4).
    fn drop(&mut self) {
        let Some(routee) = self.routee.take() else { return };
        if self.is_unreachable() {
            ask_to_retire(&routee);
            return;
        }
        self.shared.leave(self.version, routee);
        // The lock of the list orders this check after that of the router, if the router has found
        // the list empty.
        if self.is_unreachable() {
            self.shared.retire_left(Some(&self.router));
        }
    }
}

/// Checks after a while whether a routee can be asked to retire (rule 3).
fn retire<A, F>(mut retirement: Retirement<A, F>)
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    let scheduler = retirement.router.system().handle().scheduler().clone();
    let check = move |_: &FireContext| {
        let routee = retirement.routee.take();
        let Some(routee) = routee.filter(|routee| !routee.is_stopped()) else { return };
        if retirement.is_unreachable() {
            ask_to_retire(&routee);
        } else {
            let (shared, router) = (retirement.shared.clone(), retirement.router.clone());
            let version = retirement.version;
            retire(Retirement { shared, router, routee: Some(routee), version });
        }
    };
    drop(scheduler.jobs().schedule_internal(crate::events::RETRY, check));
}

/// A handle to change the number of a pool's routees, from any thread. Cheap to clone.
pub struct PoolHandle<M> {
    pool: Arc<Box<dyn PoolControl<M>>>,
}

trait PoolControl<M>: Send + Sync {
    fn resize(&self, n: usize) -> Result<(), SpawnError<()>>;
    fn len(&self) -> usize;
    fn wanted(&self) -> usize;
}

impl<A, F> PoolControl<A::Msg> for Arc<PoolShared<A, F>>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn resize(&self, n: usize) -> Result<(), SpawnError<()>> {
        Adjust::resize(self, n)
    }

    fn len(&self) -> usize {
        PoolShared::len(self)
    }

    fn wanted(&self) -> usize {
        PoolShared::wanted(self)
    }
}

impl<M> PoolHandle<M> {
    pub(super) fn new<A, F>(shared: Arc<PoolShared<A, F>>) -> Self
    where
        A: Actor<Msg = M> + Send,
        M: Send,
        F: FnMut() -> A + Clone + Send + Sync + 'static,
    {
        Self { pool: Arc::new(Box::new(shared)) }
    }

    /// Sets the number of routees (at least one). New routees are started at once, if the router
    /// has started. Surplus routees get no more messages, and stop when they have handled the
    /// messages that they have.
    ///
    /// # Errors
    ///
    /// If a routee could not be started. The pool continues with the routees that it has.
    pub fn resize(&self, n: usize) -> Result<(), SpawnError<()>> {
        self.pool.resize(n)
    }

    /// The number of routees, including stopped ones that were not replaced yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Whether there are no routees: before the router has started, and after it has stopped.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of routees that was set.
    #[must_use]
    pub fn wanted(&self) -> usize {
        self.pool.wanted()
    }
}

impl<M> Clone for PoolHandle<M> {
    fn clone(&self) -> Self {
        Self { pool: self.pool.clone() }
    }
}

impl<M> fmt::Debug for PoolHandle<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolHandle").field("len", &self.len()).finish_non_exhaustive()
    }
}
