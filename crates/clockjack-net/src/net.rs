//! [`Net`]: the handle of a node.

use alloc::{
    boxed::Box,
    format,
    string::{String, ToString as _},
};
use core::{
    fmt,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use clockjack_actor::{
    ActorRef, ActorSystem, Ask, DeadLetterReason, Mailbox, Props, ServiceKey, SystemMessage,
};
use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_wire::{Wire, frame::EXPORT_NAME_MAX};

use crate::{
    Address, ExportError, FindError, JoinError, Members, MemoryServer, NetConfig, NetEvent,
    NetMetrics, NodeId, Shared, Unreachable,
    channel::Outbound,
    driver::{Driver, NetMsg},
    engine::Connect,
    error::{ExportErrorKind, FindErrorKind, JoinErrorKind},
    log::member_value,
    membership::Membership,
    node::is_node_name,
    proxy::RemoteProxy,
    receiver,
    share::ShareActor,
    shared::{Export, NetShared, ProxyEntry, SharedState},
};

/// How long [`Net::find`] waits for an answer.
const FIND_TIMEOUT: Duration = Duration::from_secs(5);

/// The node of an actor system: exports local actors, and reaches those of other nodes. Cheap to
/// clone.
///
/// # Examples
///
/// ```
/// # use clockjack_actor::{ActorRef, ActorSystem, ReplyTo};
/// # use clockjack_macros::Wire;
/// use clockjack_net::{JoinError, MemoryServer, Net, NetConfig};
///
/// #[derive(Wire)]
/// #[wire(id = "demo.Counter")]
/// enum Msg {
///     Add(u64),
///     Sum(ReplyTo<u64>),
/// }
///
/// fn join(system: &ActorSystem, server: &MemoryServer) -> Result<Net, JoinError> {
///     Net::join_memory(system, server, NetConfig::new("node-1"))
/// }
///
/// fn reach(net: &Net, counter: &ActorRef<Msg>) -> Result<(), Box<dyn core::error::Error>> {
///     let address = net.export("counter", counter)?;
///     // On another node, which got the address in a message:
///     let remote = net.actor(&address)?;
///     remote.tell(Msg::Add(2))?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Net {
    shared: Arc<NetShared>,
    driver: ActorRef<NetMsg>,
}

impl Net {
    /// Joins a cluster of this node alone, on a server of its own in this process, which does not
    /// survive the process. The name of the node is that of the system.
    ///
    /// # Errors
    ///
    /// As [`join_memory`](Self::join_memory).
    pub fn memory(system: &ActorSystem) -> Result<Self, JoinError> {
        Self::join_memory(system, &MemoryServer::new(), NetConfig::new(system.name()))
    }

    /// Joins the cluster of a server in this process. All systems on one server must share a clock,
    /// as the systems of a `TestCluster` do. The call returns at once;
    /// [`NetEvent::Joined`] and [`members`](Self::members) say when the node is a member.
    ///
    /// # Errors
    ///
    /// If the name of the node is invalid, if its roles do not fit into the log, if the system has
    /// a net already, or if it shuts down.
    pub fn join_memory(
        system: &ActorSystem,
        server: &MemoryServer,
        config: NetConfig,
    ) -> Result<Self, JoinError> {
        Self::join(system, server.clone(), config)
    }

    /// Joins the cluster behind an [engine](crate::engine), which the crate of the engine calls.
    /// The call returns at once; [`NetEvent::Joined`] and [`members`](Self::members) say when the
    /// node is a member.
    ///
    /// # Errors
    ///
    /// As [`join_memory`](Self::join_memory).
    pub fn join(
        system: &ActorSystem,
        mut connect: impl Connect + 'static,
        config: NetConfig,
    ) -> Result<Self, JoinError> {
        if !is_node_name(&config.name) {
            return Err(JoinError(JoinErrorKind::InvalidName));
        }
        if member_value(&config.name, &config.roles, u64::MAX).is_none() {
            return Err(JoinError(JoinErrorKind::RolesTooLong));
        }
        let membership = Membership::new(config, connect.join_number());
        let state = SharedState::new(membership.me(), membership.view.members());
        let shared = Arc::new(NetShared {
            system: system.uncounted(),
            state: SpinLock::new(state),
            metrics: Arc::new(SpinLock::new(NetMetrics::default())),
        });
        let driver = Driver::new(shared.clone(), membership, Box::new(connect));
        let props = Props::once(driver).mailbox(Mailbox::unbounded());
        match system.spawn_system("net", props) {
            Ok(driver) => Ok(Self { shared, driver }),
            Err(_) => Err(JoinError(JoinErrorKind::Stopping)),
        }
    }

    /// Makes a local actor reachable from other nodes, under a name.
    ///
    /// # Errors
    ///
    /// If the name is taken by an actor that runs, if it is empty or too long, if there are too
    /// many exports, or if the actor has stopped.
    pub fn export<M: Wire>(
        &self,
        name: &str,
        actor: &ActorRef<M>,
    ) -> Result<Address<M>, ExportError> {
        if name.is_empty() || name.len() > EXPORT_NAME_MAX {
            return Err(ExportError(ExportErrorKind::InvalidName));
        }
        let export = self.add_export(Some(name.into()), actor)?;
        Ok(Address::new(self.me(), export))
    }

    pub(crate) fn export_unnamed<M: Wire>(&self, actor: &ActorRef<M>) -> Result<u64, ExportError> {
        self.add_export(None, actor)
    }

    fn add_export<M: Wire>(
        &self,
        name: Option<String>,
        actor: &ActorRef<M>,
    ) -> Result<u64, ExportError> {
        if actor.is_stopped() || self.driver.is_stopped() {
            return Err(ExportError(ExportErrorKind::Stopped));
        }
        let (target, watched) = (actor.clone(), actor.clone());
        let metrics = self.shared.metrics.clone();
        let export = Arc::new(Export {
            name,
            type_hash: M::ID.hash(),
            oldest: M::OLDEST,
            newest: M::VERSION,
            is_stopped: Box::new(move || watched.is_stopped()),
            receive: Box::new(move |system, driver, route| {
                receiver::start(system, driver, route, &target, metrics.clone())
            }),
        });
        let (added, removed) = self.shared.state.with(|state| state.add_export(export));
        drop(removed);
        added.map_err(ExportError)
    }

    pub(crate) fn remove_export(&self, export: u64) {
        let removed = self.shared.state.with(|state| state.remove_export(export));
        drop(removed);
    }

    /// A local reference to an actor of another node: the same remote proxy on each call, while it
    /// lives. Messages are sent at most once and in order; `ask`, `watch` and dead letters work as
    /// for a local actor. The proxy stops when the remote actor stops, when its node is lost, or
    /// when this node is lost.
    ///
    /// # Errors
    ///
    /// If the node is not a member, or this node has left.
    pub fn actor<M: Wire>(&self, address: &Address<M>) -> Result<ActorRef<M>, Unreachable> {
        let key = (address.node.incarnation(), address.export, M::ID.hash());
        let unreachable = || Unreachable(address.node.clone());
        // The window with the incarnation that it belongs to: the driver ends the channel if it
        // has read the end of that incarnation before it hears of the proxy.
        let (link, proxy, id, me) = self.shared.state.with(|state| {
            let mut members = state.members.members.iter();
            let is_member = members.any(|member| member.node == address.node);
            state.n_channels += 1;
            let link = is_member.then(|| state.link(key.0));
            (link, state.proxy(key), state.n_channels, state.me.incarnation())
        });
        if let Some(proxy) = proxy {
            return Ok(proxy);
        }
        let link = link.ok_or_else(unreachable)?;
        let channel = Outbound::new((id, me), key, M::VERSION, link, |system, path| {
            system.report_dead_letter::<M>(path, DeadLetterReason::Unreachable);
        });
        let channel = Arc::new(channel);
        let proxy = RemoteProxy::<M> {
            channel: channel.clone(),
            driver: self.driver.clone(),
            shared: self.shared.clone(),
            waiting: Default::default(),
            message: PhantomData,
        };
        let name = proxy_name(&address.node, id);
        let proxy = self.shared.system.spawn_system(&name, Props::once(proxy));
        let proxy = proxy.map_err(|_| unreachable())?;
        // Before anyone can use the proxy, so that the channel is opened before its first message.
        if self.driver.tell(NetMsg::Opened(channel.clone())).is_err() {
            drop(proxy.try_send_system(SystemMessage::Stop));
            return Err(unreachable());
        }
        let entry = ProxyEntry { pid: proxy.pid(), channel, proxy: Box::new(proxy.clone()) };
        let (winner, unused) = self.shared.state.with(|state| match state.proxy(key) {
            _ if state.has_left => (None, Some(entry)),
            Some(other) => (Some(other), Some(entry)),
            None => (Some(proxy.clone()), state.proxies.insert(key, entry)),
        });
        drop(unused);
        if winner.as_ref() != Some(&proxy) {
            // Another thread was first, or this node has left. Nobody has seen this proxy.
            drop(proxy.try_send_system(SystemMessage::Stop));
        }
        winner.ok_or_else(unreachable)
    }

    /// Asks a node for the address of an export.
    pub fn find<M: Wire>(&self, node: &NodeId, name: &str) -> Find<M> {
        let (find_node, name) = (node.clone(), String::from(name));
        let ask = self.driver.ask(
            |reply| NetMsg::Find { node: find_node, type_hash: M::ID.hash(), name, reply },
            FIND_TIMEOUT,
        );
        Find { ask, node: node.clone(), message: PhantomData }
    }

    /// Shares a key with all nodes that share it too: local actors that are registered under it at
    /// the receptionist are seen there, and theirs appear in the local receptionist, as remote
    /// proxies. Nothing else changes for users of the receptionist and of group routers.
    ///
    /// # Errors
    ///
    /// If this node shares the key already, or has left.
    pub fn share<M: Wire>(&self, key: &ServiceKey<M>) -> Result<Shared<M>, ExportError> {
        let actor = ShareActor {
            net: self.clone(),
            key: key.clone(),
            local: Default::default(),
            remote: Default::default(),
        };
        // The name of the actor is that of the key, as far as paths allow: one per key and type.
        let escaped: String = key.name().bytes().map(|byte| format!("{byte:02x}")).collect();
        let name = format!("net-share-{:016x}-{escaped}", M::ID.hash());
        let props = Props::once(actor).mailbox(Mailbox::unbounded());
        match self.shared.system.spawn_system(&name, props) {
            Ok(actor) => Ok(Shared::new(actor)),
            Err(refused) if refused.is_name_taken() => Err(ExportError(ExportErrorKind::NameTaken)),
            Err(refused) if refused.is_invalid_name() => {
                Err(ExportError(ExportErrorKind::InvalidName))
            }
            Err(_) => Err(ExportError(ExportErrorKind::Stopped)),
        }
    }

    /// Whether this is the remote proxy of an actor of another node. A proxy that has stopped still
    /// is one.
    #[must_use]
    pub fn is_remote<M: 'static>(&self, actor: &ActorRef<M>) -> bool {
        is_proxy_path(&actor.path().to_string())
    }

    /// The members that this node has read from the log.
    #[must_use]
    pub fn members(&self) -> Members {
        self.shared.state.with(|state| state.members.clone())
    }

    /// This node, in its current incarnation.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.shared.state.with(|state| state.me.clone())
    }

    /// What this node has counted.
    #[must_use]
    pub fn metrics(&self) -> NetMetrics {
        self.shared.metrics.with(|metrics| *metrics)
    }

    /// Sends each [`NetEvent`] from now on to an actor, until the actor stops. Returns false if
    /// this node has left.
    pub fn subscribe(&self, to: &ActorRef<NetEvent>) -> bool {
        self.driver.tell(NetMsg::Subscribe(to.clone())).is_ok()
    }

    /// Leaves the cluster: the other nodes see it at once. Remote proxies stop, local actors
    /// continue. The shutdown of the system does the same.
    pub fn leave(&self) {
        // It may have left before.
        drop(self.driver.try_send_system(SystemMessage::Stop));
    }

    pub(crate) fn driver(&self) -> &ActorRef<NetMsg> {
        &self.driver
    }
}

fn proxy_name(node: &NodeId, channel: u64) -> String {
    format!("net-{node}-{channel}")
}

/// Whether a path is that of a remote proxy. The table of proxies cannot say it: a proxy leaves the
/// table before it has stopped, and would count as a local actor from then on. Only the names of
/// proxies contain a node.
fn is_proxy_path(path: &str) -> bool {
    path.strip_prefix("/system/net-").is_some_and(|name| name.contains('@'))
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Net").field("me", &self.me()).finish_non_exhaustive()
    }
}

/// The future of [`Net::find`].
#[must_use = "futures do nothing unless they are polled"]
pub struct Find<M> {
    ask: Ask<Result<u64, FindErrorKind>>,
    node: NodeId,
    message: PhantomData<fn(M)>,
}

impl<M: Wire> Future for Find<M> {
    type Output = Result<Address<M>, FindError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = Pin::new(&mut self.ask).poll(cx);
        answer.map(|answer| match answer {
            Ok(Ok(export)) => Ok(Address::new(self.node.clone(), export)),
            Ok(Err(kind)) => Err(FindError { node: self.node.clone(), kind }),
            Err(late) => {
                let is_timed_out = late.is_timed_out();
                let kind =
                    if is_timed_out { FindErrorKind::TimedOut } else { FindErrorKind::Unreachable };
                Err(FindError { node: self.node.clone(), kind })
            }
        })
    }
}

impl<M> fmt::Debug for Find<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Find").field("node", &self.node).finish_non_exhaustive()
    }
}
