//! [`Pool`]: a router that starts its routees.

use alloc::{boxed::Box, string::ToString as _, vec::Vec};
use core::fmt;

use clockjack_sync::Arc;

use super::{
    Logic, Resizer, Routing, Undelivered,
    logic::{Load, Random, RoundRobin, SmallestMailbox},
    shared::{Adjust as _, PoolHandle, PoolShared, Shape},
};
use crate::{
    Actor, Context, DispatcherId, Failure, IntoProps, Mailbox, Next, Props, Scope, Strategy,
    props::SettingsRef,
};

/// The number of messages after which a pool with a resizer checks its load.
pub const MESSAGES_PER_LOAD_CHECK: usize = 10;

/// A router that starts its routees as its children. See the [module](super) for what happens to a
/// message.
///
/// # Examples
///
/// ```
/// use clockjack_actor::{Actor, ActorRef, ActorSystem, Context, Failure, Next, Pool, Strategy};
///
/// struct Worker;
///
/// impl Actor for Worker {
///     type Msg = String;
///
///     fn receive(&mut self, _: &mut Context<'_, Self>, _: String) -> Result<Next, Failure> {
///         Ok(Next::Stay)
///     }
/// }
///
/// fn workers(system: &ActorSystem) -> ActorRef<String> {
///     let pool = Pool::round_robin(4, || Worker).supervise(Strategy::restart());
///     system.spawn("workers", pool).expect("the name is free")
/// }
/// ```
pub struct Pool<A: Actor, F> {
    shared: Arc<PoolShared<A, F>>,
    logic: Logic<A::Msg>,
    mailbox: Mailbox,
    strategy: Option<(Scope, Strategy)>,
}

impl<A, F> Pool<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn new(n: usize, logic: Logic<A::Msg>, factory: F) -> Self {
        let shared = Arc::new(PoolShared::new(n, factory));
        Self { shared, logic, mailbox: Mailbox::DEFAULT, strategy: None }
    }

    /// Routes to `n` routees in rotation.
    pub fn round_robin(n: usize, factory: F) -> Self {
        Self::new(n, Logic::RoundRobin(RoundRobin::new()), factory)
    }

    /// Routes to pseudo-random ones of `n` routees, from the sequence of this seed.
    pub fn random(n: usize, seed: u64, factory: F) -> Self {
        Self::new(n, Logic::Random(Random::new(seed)), factory)
    }

    /// Routes to the one of `n` routees with the fewest messages.
    pub fn smallest_mailbox(n: usize, factory: F) -> Self {
        Self::new(n, Logic::Smallest(SmallestMailbox::new()), factory)
    }

    /// Routes messages with the same hash to the same one of `n` routees. If the number of routees
    /// changes, as few messages as possible change their routee.
    pub fn consistent_hash(
        n: usize,
        hash: impl Fn(&A::Msg) -> u64 + Send + Sync + 'static,
        factory: F,
    ) -> Self {
        Self::new(n, Logic::Hash(Arc::new(Box::new(hash))), factory)
    }

    /// Sends each message to all of `n` routees.
    pub fn broadcast(n: usize, factory: F) -> Self
    where
        A::Msg: Clone,
    {
        Self::new(n, Logic::Broadcast(<A::Msg as Clone>::clone), factory)
    }

    /// Sets the mailbox of the router itself.
    #[must_use]
    pub fn mailbox(self, mailbox: Mailbox) -> Self {
        Self { mailbox, ..self }
    }

    /// Sets the dispatcher of the routees. The router itself, which only passes messages on, runs
    /// on the default dispatcher. If the dispatcher does not exist, the router fails at its start.
    ///
    /// # Examples
    ///
    /// ```
    /// use clockjack_actor::{ActorSystem, DispatcherConfig, Pool, Props};
    ///
    /// let builder = ActorSystem::builder("shop").dispatcher(DispatcherConfig::pool("reports", 2));
    /// let reports = builder.dispatcher_id("reports").expect("it was added above");
    /// # use clockjack_actor::{Actor, Context, Failure, Next};
    /// # struct Report;
    /// # impl Actor for Report {
    /// #     type Msg = u32;
    /// #     fn receive(&mut self, _: &mut Context<'_, Self>, _: u32) -> Result<Next, Failure> {
    /// #         Ok(Next::Stay)
    /// #     }
    /// # }
    /// let stash = 16; // closures may capture values
    /// let pool = Pool::round_robin(4, || Report)
    ///     .dispatcher(reports)
    ///     .routees(move |props| props.stash(stash));
    /// # let _ = (builder, pool);
    /// ```
    #[must_use]
    pub fn dispatcher(self, dispatcher: DispatcherId) -> Self {
        self.shared.config.with(|config| config.dispatcher = dispatcher);
        self
    }

    /// Sets a function that changes the props of each routee: its mailbox, its stash, its
    /// dispatcher.
    #[must_use]
    pub fn routees(
        self,
        shape: impl Fn(Props<A, F>) -> Props<A, F> + Send + Sync + 'static,
    ) -> Self {
        let shape: Shape<A, F> = Arc::new(Box::new(shape));
        // Dropped outside of the lock: an earlier function is user code.
        let earlier = self.shared.config.with(|config| config.shape.replace(shape));
        drop(earlier);
        self
    }

    /// Sets the strategy for routees that fail; it applies to each routee separately. Without this
    /// setting, a routee that fails stops, and is replaced when the next message goes to it.
    #[must_use]
    pub fn supervise(self, strategy: Strategy) -> Self {
        self.supervise_in(Scope::OneForOne, strategy)
    }

    /// As [`supervise`](Self::supervise), with the scope of the decisions.
    #[must_use]
    pub fn supervise_in(self, scope: Scope, strategy: Strategy) -> Self {
        self.shared.config.with(|config| config.is_supervised = true);
        Self { strategy: Some((scope, strategy)), ..self }
    }

    /// Sets a resizer, which changes the number of routees by their load, every
    /// [`MESSAGES_PER_LOAD_CHECK`] messages.
    #[must_use]
    pub fn resizer(self, resizer: Resizer) -> Self {
        self.shared.config.with(|config| config.resizer = Some(resizer));
        self
    }

    /// A handle to change the number of routees, from any thread and at any time.
    #[must_use]
    pub fn handle(&self) -> PoolHandle<A::Msg> {
        PoolHandle::new(self.shared.clone())
    }
}

impl<A: Actor, F> fmt::Debug for Pool<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl<A, F> IntoProps for Pool<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    type Actor = PoolRouter<A, F>;
    type Factory = Box<dyn FnMut() -> PoolRouter<A, F> + Send>;

    fn into_props(self) -> Props<PoolRouter<A, F>, Self::Factory> {
        let Self { shared, logic, mailbox, strategy } = self;
        let factory: Self::Factory = Box::new(move || PoolRouter {
            shared: shared.clone(),
            routing: Routing::new(logic.clone()),
            n_until_load_check: MESSAGES_PER_LOAD_CHECK,
            owns_pool: false,
        });
        let props = Props::new(factory).mailbox(mailbox);
        match strategy {
            Some((scope, strategy)) => props.supervise_children(scope, strategy),
            None => props,
        }
    }

    fn peek_settings(&self) -> Option<SettingsRef> {
        let resizer = self.shared.config.with(|config| config.resizer);
        let invalid = if self.shared.wanted() == 0 {
            Some("a pool has at least one routee".to_string())
        } else if let Some(Err(fault)) = resizer.map(|resizer| resizer.check()) {
            Some(fault.to_string())
        } else {
            let strategy = self.strategy.as_ref().map(|(_, strategy)| strategy.check());
            strategy.and_then(Result::err).map(|fault| fault.to_string())
        };
        Some(SettingsRef { dispatcher: DispatcherId::DEFAULT, invalid })
    }
}

/// The actor behind a [`Pool`].
pub struct PoolRouter<A: Actor, F> {
    shared: Arc<PoolShared<A, F>>,
    routing: Routing<A::Msg>,
    n_until_load_check: usize,
    /// Whether this router is the one that is registered in the shared state.
    owns_pool: bool,
}

impl<A, F> PoolRouter<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    fn refresh(&mut self) {
        if let Some(routees) = self.shared.refresh() {
            self.routing.set(routees, |index| index as u64);
        }
    }

    /// Asks the resizer, if there is one, and changes the number of routees.
    fn check_load(&mut self) {
        self.n_until_load_check = MESSAGES_PER_LOAD_CHECK;
        let Some(resizer) = self.shared.config.with(|config| config.resizer) else { return };
        let routees = self.routing.routees();
        let loads = routees.iter().map(|routee| {
            let mailbox_len = routee.mailbox_len();
            // A routee that awaits a future is idle, but handles no messages meanwhile; its waiting
            // messages make it count as busy.
            let is_busy = mailbox_len > 0 || super::shared::is_busy(routee.any());
            Load { mailbox_len, is_busy }
        });
        let wanted = resizer.wanted(loads);
        if wanted == routees.len() {
            return;
        }
        // If there is no room, the number stays until the next check.
        let _ = self.shared.resize(wanted);
        self.refresh();
    }
}

impl<A, F> Actor for PoolRouter<A, F>
where
    A: Actor + Send,
    A::Msg: Send,
    F: FnMut() -> A + Clone + Send + Sync + 'static,
{
    type Msg = A::Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.owns_pool = self.shared.set_router(crate::actor_ref::untyped(cx.poll.self_ref()));
        if !self.owns_pool {
            return Err(Failure::msg("the pool already has another router"));
        }
        self.shared.adjust().map_err(|kind| Failure::msg(kind.to_string()))?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: A::Msg) -> Result<Next, Failure> {
        self.refresh();
        self.n_until_load_check -= 1;
        if self.n_until_load_check == 0 {
            self.check_load();
        }
        let Self { shared, routing, .. } = self;
        let mut undelivered = Vec::new();
        let mut replaced = |index| shared.replace(index);
        routing.route(msg, &mut replaced, &mut |one| undelivered.push(one));
        for Undelivered { index, reason } in undelivered {
            let routee = index.and_then(|index| self.routing.routees().get(index));
            let path = routee.map_or_else(|| cx.path().clone(), |routee| routee.path());
            cx.system().inner().dead_letter::<A::Msg>(&path, reason);
        }
        Ok(Next::Stay)
    }
}

impl<A: Actor, F> Drop for PoolRouter<A, F> {
    fn drop(&mut self) {
        if self.owns_pool {
            self.shared.router_stopped();
        }
    }
}

impl<A: Actor, F> fmt::Debug for PoolRouter<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolRouter").finish_non_exhaustive()
    }
}
