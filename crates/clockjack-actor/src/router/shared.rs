//! What a pool's router shares with those who change the number of its routees.
//!
//! Roles: the *router*, an actor, who tells messages to routees, and *resizers*, any thread.
//!
//! 1. The routees stand in a list under a lock, with a version that rises with every change. The
//!    router has a copy, which it renews before a message if the version has changed.
//! 2. Whoever wants another number notes that, and then brings the list to what is noted, one
//!    routee at a time, each under the lock; a routee is made outside of it, and put in only if it
//!    is still wanted. So two who do so at a time leave what was noted last.
//! 3. A routee that is not wanted any more leaves the list. A timer looks until the router has
//!    either renewed its copy or waits, so that it will before the next message. Then the routee is
//!    told to retire: it stops by itself once it has handled what it was told, and no future of it
//!    is under way.

use alloc::{boxed::Box, format, vec::Vec};
use core::fmt;

use clockjack_exec::State;
use clockjack_sched::{DispatcherId, FireContext};
use clockjack_sync::{
    Counted,
    lock::Lock,
    mutant,
    prim::atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
};

use crate::{
    Actor, ActorRef, Props, SpawnErrorKind,
    header::{AnyActor, STOPPED, STOP_WHEN_IDLE, STOP, SystemSend as _},
    router_logic::Resizer,
    spawn::{self, Placement},
};

/// See the [module](self).
pub(super) struct PoolShared<A: Actor, F> {
    pub(super) config: Lock<Config<A, F>>,
    factory: F,
    list: Lock<RouteeList<A::Msg>>,
    version: AtomicUsize,
    /// Which version the router has.
    seen_version: AtomicUsize,
    wanted: AtomicUsize,
}

/// What is set for each routee.
pub(super) type Shape<A, F> = fn(Props<A, F>) -> Props<A, F>;

/// What is set for a pool.
pub(super) struct Config<A: Actor, F> {
    pub(super) shape: Option<Shape<A, F>>,
    pub(super) resizer: Option<Resizer>,
    pub(super) is_supervised: bool,
}

struct RouteeList<M> {
    routees: Vec<ActorRef<M>>,
    router: Option<AnyActor>,
    next_name: u64,
}

/// Whether an actor handles something, or is about to.
pub(super) fn is_busy(actor: &AnyActor) -> bool {
    matches!(actor.state(), State::Ready | State::Running)
}

impl<A: Actor, F> PoolShared<A, F> {
    pub(super) fn new(n: usize, factory: F) -> Self {
        Self {
            config: Lock::new(Config { shape: None, resizer: None, is_supervised: false }),
            factory,
            list: Lock::new(RouteeList { routees: Vec::new(), router: None, next_name: 0 }),
            version: AtomicUsize::new(0),
            seen_version: AtomicUsize::new(0),
            wanted: AtomicUsize::new(n),
        }
    }

    pub(super) fn wanted(&self) -> usize {
        // Relaxed: a number by itself; who changes it brings the list to it.
        self.wanted.load(Relaxed)
    }

    /// A router begins; false if there is one.
    pub(super) fn set_router(&self, router: AnyActor) -> bool {
        self.list.with(|list| {
            let is_free = list.router.is_none();
            if is_free {
                list.router = Some(router);
            }
            is_free
        })
    }

    /// The router has ended, and so its routees have or will.
    pub(super) fn router_stopped(&self) {
        let old = self.list.with(|list| {
            self.bump_version();
            (list.router.take(), core::mem::take(&mut list.routees))
        });
        drop(old);
    }

    /// The list has changed; called under the lock.
    fn bump_version(&self) {
        // Release: pairs with `refresh`.
        self.version.fetch_add(1, Release);
    }

    /// The routees, if they are others than the router knows.
    pub(super) fn refresh(&self) -> Option<Vec<ActorRef<A::Msg>>> {
        // Acquire: pairs with `changed`.
        let version = self.version.load(Acquire);
        // Relaxed: written by the router alone.
        if version == self.seen_version.load(Relaxed) {
            return None;
        }
        let routees = self.list.with(|list| list.routees.clone());
        // Release: pairs with `is_unreachable`: from here on it tells those that it has now.
        self.seen_version.store(version, Release);
        Some(routees)
    }
}

impl<A, F> PoolShared<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    /// Starts a routee.
    fn start_routee(&self, router: &AnyActor, nth: u64) -> Result<ActorRef<A::Msg>, SpawnErrorKind> {
        let (shape, is_supervised) =
            self.config.with(|config| (config.shape, config.is_supervised));
        let props = Props::new(self.factory.clone());
        let props = if let Some(shape) = shape { shape(props) } else { props };
        let name = format!("${nth}");
        #[expect(unsafe_code, reason = "promises that what may change threads is `Send`")]
        // SAFETY: actor, factory and messages are `Send`.
        let made =
            unsafe { spawn::spawn_named(router, is_supervised, Placement::Dispatcher, &name, props) };
        made.map_err(|refused| refused.kind().clone())
    }

    /// Puts a fresh routee in the place of one that has stopped. None if there is none to be had,
    /// or no such place any more.
    pub(super) fn replace(&self, index: usize) -> Option<ActorRef<A::Msg>> {
        let (router, nth) = self.list.with(|list| list.next_name())?;
        let fresh = self.start_routee(&router, nth).ok()?;
        let placed = self.list.with(|list| {
            // It takes no more messages; perhaps its children have still to end.
            let is_over = |place: &&mut ActorRef<A::Msg>| {
                place.any().flags() & (STOP | STOPPED) != 0 && !mutant!("pool-waits-for-the-end")
            };
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

/// What needs the counted pointer to it.
pub(super) trait Adjust {
    /// Wants another number of routees, at least one.
    fn resize(&self, n: usize) -> Result<(), SpawnErrorKind>;
    /// Brings the list to the number that is wanted, if there is a router.
    fn adjust(&self) -> Result<(), SpawnErrorKind>;
}

/// What is to be done next.
enum Adjustment<M> {
    Nothing,
    Start(AnyActor, u64),
    Retire(AnyActor, ActorRef<M>),
}

impl<A, F> Adjust for Counted<PoolShared<A, F>>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn resize(&self, n: usize) -> Result<(), SpawnErrorKind> {
        // Relaxed: as in `wanted`.
        self.wanted.store(n.max(1), Relaxed);
        self.adjust()
    }

    fn adjust(&self) -> Result<(), SpawnErrorKind> {
        loop {
            let adjustment = self.list.with(|list| list.next_adjustment(self));
            match adjustment {
                Adjustment::Nothing => return Ok(()),
                Adjustment::Retire(router, routee) => {
                    // Acquire: the change was made before.
                    let version = self.version.load(Acquire);
                    retire(self.clone(), router, routee, version);
                }
                Adjustment::Start(router, nth) => {
                    let made = self.start_routee(&router, nth)?;
                    let unwanted = self.list.with(|list| list.add(self, made));
                    if let Some(unwanted) = unwanted {
                        unwanted.any().wake_with(STOP);
                    }
                }
            }
        }
    }
}

impl<M: 'static> RouteeList<M> {
    /// The router, and the number of the next routee's name.
    fn next_name(&mut self) -> Option<(AnyActor, u64)> {
        let router = self.router.clone()?;
        self.next_name += 1;
        Some((router, self.next_name))
    }

    fn next_adjustment<A: Actor<Msg = M>, F>(&mut self, shared: &PoolShared<A, F>) -> Adjustment<M> {
        let wanted = shared.wanted();
        if self.routees.len() < wanted {
            return self.next_name().map_or(Adjustment::Nothing, |(router, nth)| Adjustment::Start(router, nth));
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

    /// Puts a routee in, if it is still wanted; else it comes back.
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

/// Stops a routee that was taken out, once it has handled what it was told.
fn retire<A, F>(
    shared: Counted<PoolShared<A, F>>,
    router: AnyActor,
    routee: ActorRef<A::Msg>,
    version: usize,
) where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    let scheduler = router.system().handle().scheduler().clone();
    let last = routee.clone();
    let check = move |_: &FireContext| {
        // Acquire: pairs with `refresh`.
        let has_seen = shared.seen_version.load(Acquire) >= version;
        let is_unreachable = has_seen || !is_busy(&router) || router.is_stopped();
        if is_unreachable {
            routee.any().wake_with(if mutant!("pool-retires-at-once") { STOP } else { STOP_WHEN_IDLE });
        } else if !routee.is_stopped() {
            retire(shared.clone(), router.clone(), routee.clone(), version);
        }
    };
    let after = crate::events::RETRY;
    if scheduler.schedule_once_fn(after, DispatcherId::DEFAULT, check).is_err() {
        // The scheduler is closed: so the system ends anyway.
        last.any().wake_with(STOP);
    }
}

/// Changes the number of a pool's routees, from any thread. Cheap to clone.
pub struct PoolHandle<M> {
    pool: Counted<Box<dyn PoolControl<M>>>,
}

trait PoolControl<M>: Send + Sync {
    fn resize(&self, n: usize) -> Result<(), SpawnErrorKind>;
    fn len(&self) -> usize;
    fn wanted(&self) -> usize;
}

impl<A, F> PoolControl<A::Msg> for Counted<PoolShared<A, F>>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn resize(&self, n: usize) -> Result<(), SpawnErrorKind> {
        Adjust::resize(self, n)
    }

    fn len(&self) -> usize {
        self.list.with(|list| list.routees.len())
    }

    fn wanted(&self) -> usize {
        PoolShared::wanted(self)
    }
}

impl<M> PoolHandle<M> {
    pub(super) fn new<A, F>(shared: Counted<PoolShared<A, F>>) -> Self
    where
        A: Actor<Msg = M> + Send,
        M: Send,
        F: FnMut() -> A + Clone + Send + Sync + 'static,
    {
        Self { pool: Counted::new(Box::new(shared)) }
    }

    /// Wants so many routees, at least one. New ones are started at once, if the router has; those
    /// that are too many get no more messages, and stop when they have handled what they have.
    ///
    /// # Errors
    ///
    /// If a routee was not started. The pool goes on with those that it has.
    pub fn resize(&self, n: usize) -> Result<(), SpawnErrorKind> {
        self.pool.resize(n)
    }

    /// How many routees there are, stopped ones among them that were not replaced yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pool.len()
    }

    /// Whether there is none: before the router has started, and after its end.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many are wanted.
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
