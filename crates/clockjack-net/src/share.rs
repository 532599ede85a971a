//! Services of all nodes in the local receptionist, and local services in the log.
//!
//! One actor per shared key subscribes to the key at the local receptionist. Local actors that are
//! registered under the key are exported and announced in the log; services that the log names on
//! other nodes are registered locally, as remote proxies. A proxy is never announced again.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::fmt;

use clockjack_actor::{
    Actor, ActorRef, Context, Failure, Listing, Next, Pid, ServiceKey, Signal, SystemMessage,
};
use clockjack_wire::Wire;

use crate::{Address, Net, driver::NetMsg, log::Service};

/// The right to share a key. Dropping it ends the sharing: other nodes no longer see the services
/// of this node, and their services leave the local receptionist.
#[must_use = "dropping it ends the sharing"]
pub struct Shared<M: Wire> {
    actor: ActorRef<ShareMsg<M>>,
}

impl<M: Wire> Shared<M> {
    pub(crate) fn new(actor: ActorRef<ShareMsg<M>>) -> Self {
        Self { actor }
    }

    /// Shares the key as long as the system runs.
    pub fn forever(self) {
        core::mem::forget(self);
    }
}

impl<M: Wire> Drop for Shared<M> {
    fn drop(&mut self) {
        // It may have stopped with the system.
        drop(self.actor.try_send_system(SystemMessage::Stop));
    }
}

impl<M: Wire> fmt::Debug for Shared<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("by", &self.actor).finish()
    }
}

/// A service of another node.
#[derive(Clone, Debug)]
pub(crate) enum ServiceChange {
    Up(String, Service),
    Down(Service),
}

/// The messages of a [`ShareActor`].
pub(crate) enum ShareMsg<M> {
    Local(Listing<M>),
    Remote(ServiceChange),
}

/// See the [module](self).
pub(crate) struct ShareActor<M: Wire> {
    pub(crate) net: Net,
    pub(crate) key: ServiceKey<M>,
    /// The exports of local services.
    pub(crate) local: BTreeMap<Pid, u64>,
    /// The proxies of remote services.
    pub(crate) remote: BTreeMap<(u64, u64), ActorRef<M>>,
}

impl<M: Wire> Actor for ShareActor<M> {
    type Msg = ShareMsg<M>;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let me = cx.self_ref();
        let share = NetMsg::Share {
            key: self.key.name().into(),
            type_hash: M::ID.hash(),
            to: me.map(ShareMsg::Remote),
        };
        cx.watch(self.net.driver())?;
        // If the driver has stopped, the watch says so.
        drop(self.net.driver().tell(share));
        cx.system().receptionist().subscribe(&self.key, &me.map(ShareMsg::Local))?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: ShareMsg<M>) -> Result<Next, Failure> {
        match msg {
            ShareMsg::Local(listing) => self.local_changed(&listing)?,
            ShareMsg::Remote(ServiceChange::Up(name, service)) => {
                self.remote_up(cx, &name, service)
            }
            ShareMsg::Remote(ServiceChange::Down(service)) => {
                if let Some(proxy) = self.remote.remove(&(service.incarnation, service.export)) {
                    cx.system().receptionist().deregister(&self.key, &proxy);
                }
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            // This node has left: a later net of this system may share the key.
            Signal::Terminated(_) => return Ok(Next::Stop),
            Signal::PostStop => {}
            _ => return Ok(Next::Unhandled),
        }
        for proxy in core::mem::take(&mut self.remote).into_values() {
            cx.system().receptionist().deregister(&self.key, &proxy);
        }
        for export in core::mem::take(&mut self.local).into_values() {
            self.withdraw(export);
        }
        let (key, type_hash) = (self.key.name().into(), M::ID.hash());
        // The driver may have stopped before.
        drop(self.net.driver().tell(NetMsg::Unshare { key, type_hash }));
        Ok(Next::Stay)
    }
}

impl<M: Wire> ShareActor<M> {
    /// The local receptionist has a new listing.
    fn local_changed(&mut self, listing: &Listing<M>) -> Result<(), Failure> {
        let services = listing.services();
        let is_gone = |pid: &Pid| !services.iter().any(|service| service.pid() == *pid);
        let gone: Vec<Pid> = self.local.keys().copied().filter(is_gone).collect();
        for pid in gone {
            if let Some(export) = self.local.remove(&pid) {
                self.withdraw(export);
            }
        }
        for service in services {
            let pid = service.pid();
            if self.local.contains_key(&pid) || self.net.is_remote(service) {
                continue;
            }
            let export = match self.net.export_unnamed(service) {
                Ok(export) => export,
                // It has stopped since: the next listing is without it. Or this node has left, and
                // the end of the driver says so.
                Err(refused) if refused.is_stopped() => continue,
                Err(refused) => return Err(refused.into()),
            };
            self.local.insert(pid, export);
            let (key, type_hash) = (self.key.name().into(), M::ID.hash());
            // As above, if the driver has stopped.
            drop(self.net.driver().tell(NetMsg::Register { key, type_hash, export }));
        }
        Ok(())
    }

    fn withdraw(&self, export: u64) {
        self.net.remove_export(export);
        let (key, type_hash) = (self.key.name().into(), M::ID.hash());
        // The driver may have stopped before; then the node is no member any more.
        drop(self.net.driver().tell(NetMsg::Unregister { key, type_hash, export }));
    }

    fn remote_up(&mut self, cx: &mut Context<'_, Self>, name: &str, service: Service) {
        let node = crate::NodeId::new(name, service.incarnation);
        let address = Address::<M>::new(node, service.export);
        // A node that is lost by now, or an actor that has stopped by now: the log, or the next
        // listing, says so too.
        if let Ok(proxy) = self.net.actor(&address)
            && cx.system().receptionist().register(&self.key, &proxy).is_ok()
        {
            self.remote.insert((service.incarnation, service.export), proxy);
        }
    }
}
