//! What the handle, the driver and the proxies of a node share.

use alloc::{boxed::Box, collections::BTreeMap, string::String, vec::Vec};
use core::any::Any;

use clockjack_actor::{ActorRef, ActorSystem, Pid, system::UncountedSystem};
use clockjack_sync::{Arc, spin_lock::SpinLock};

use crate::{
    NetMetrics,
    channel::Outbound,
    driver::NetMsg,
    error::ExportErrorKind,
    node::{Members, NodeId},
    receiver::{Delivery, Route},
    window::OutLink,
};

/// The most exports of a node.
pub const EXPORTS_MAX: usize = 1 << 16;

/// The smallest number of exports that is searched for those of stopped actors.
const SWEEP_MIN: usize = 1_024;

/// See the [module](self).
pub(crate) struct NetShared {
    pub(crate) system: UncountedSystem,
    pub(crate) state: SpinLock<SharedState>,
    pub(crate) metrics: Arc<SpinLock<NetMetrics>>,
}

pub(crate) struct SharedState {
    pub(crate) me: NodeId,
    pub(crate) members: Members,
    /// The refs of the remote proxies, by incarnation, export and type.
    pub(crate) proxies: BTreeMap<(u64, u64, u64), ProxyEntry>,
    /// The windows of the links to other members, by incarnation.
    pub(crate) links: BTreeMap<u64, Arc<OutLink>>,
    pub(crate) n_channels: u64,
    /// The driver has stopped: a proxy that is opened now would never learn its end.
    pub(crate) has_left: bool,
    exports: BTreeMap<u64, Arc<Export>>,
    /// The exports that have a name.
    names: BTreeMap<String, u64>,
    n_exports: u64,
    /// The number of exports at which those of stopped actors are removed.
    sweep_at: usize,
}

/// The remote proxy of an actor.
pub(crate) struct ProxyEntry {
    pub(crate) pid: Pid,
    pub(crate) channel: Arc<Outbound>,
    /// An `ActorRef` of the type that the key names.
    pub(crate) proxy: Box<dyn Any + Send>,
}

/// An actor that other nodes can reach.
pub(crate) struct Export {
    pub(crate) name: Option<String>,
    pub(crate) type_hash: u64,
    pub(crate) oldest: u16,
    pub(crate) newest: u16,
    pub(crate) is_stopped: Box<dyn Fn() -> bool + Send + Sync>,
    /// Starts the receiver of a channel.
    pub(crate) receive: Box<ReceiverFactory>,
}

/// Starts the receiver of a channel; `None` if the system shuts down.
pub(crate) type ReceiverFactory =
    dyn Fn(&ActorSystem, &ActorRef<NetMsg>, Route) -> Option<ActorRef<Delivery>> + Send + Sync;

impl SharedState {
    pub(crate) fn new(me: NodeId, members: Members) -> Self {
        Self {
            me,
            members,
            proxies: BTreeMap::new(),
            links: BTreeMap::new(),
            n_channels: 0,
            has_left: false,
            exports: BTreeMap::new(),
            names: BTreeMap::new(),
            n_exports: 0,
            sweep_at: SWEEP_MIN,
        }
    }

    /// Adds an export. A name whose actor has stopped may be used again. The removed exports are
    /// returned in any case, to be dropped outside of the lock.
    pub(crate) fn add_export(
        &mut self,
        export: Arc<Export>,
    ) -> (Result<u64, ExportErrorKind>, Vec<Arc<Export>>) {
        let mut removed = Vec::new();
        if let Some((id, old)) = export.name.as_deref().and_then(|name| self.find(name)) {
            if !(old.is_stopped)() {
                return (Err(ExportErrorKind::NameTaken), removed);
            }
            removed.extend(self.remove_export(id));
        }
        if self.exports.len() >= self.sweep_at {
            self.sweep(&mut removed);
        }
        if self.exports.len() >= EXPORTS_MAX {
            return (Err(ExportErrorKind::Full), removed);
        }
        self.n_exports += 1;
        let id = self.n_exports;
        if let Some(name) = &export.name {
            self.names.insert(name.clone(), id);
        }
        self.exports.insert(id, export);
        (Ok(id), removed)
    }

    /// Removes the exports of stopped actors. The next time is when the table has doubled, so an
    /// export costs a constant number of steps on average.
    fn sweep(&mut self, removed: &mut Vec<Arc<Export>>) {
        let stopped: Vec<u64> = self
            .exports
            .iter()
            .filter(|(_, export)| (export.is_stopped)())
            .map(|(id, _)| *id)
            .collect();
        removed.extend(stopped.into_iter().filter_map(|id| self.remove_export(id)));
        self.sweep_at = (2 * self.exports.len()).clamp(SWEEP_MIN, EXPORTS_MAX);
    }

    /// The export with a name.
    pub(crate) fn find(&self, name: &str) -> Option<(u64, Arc<Export>)> {
        let id = *self.names.get(name)?;
        self.export(id).map(|export| (id, export))
    }

    pub(crate) fn export(&self, id: u64) -> Option<Arc<Export>> {
        self.exports.get(&id).cloned()
    }

    pub(crate) fn remove_export(&mut self, id: u64) -> Option<Arc<Export>> {
        let removed = self.exports.remove(&id)?;
        if let Some(name) = &removed.name {
            self.names.remove(name);
        }
        Some(removed)
    }

    /// The window of the link to a member.
    pub(crate) fn link(&mut self, peer: u64) -> Arc<OutLink> {
        self.links.entry(peer).or_insert_with(|| Arc::new(OutLink::new())).clone()
    }

    /// The proxy of an actor, unless it is about to stop.
    pub(crate) fn proxy<M: 'static>(&self, key: (u64, u64, u64)) -> Option<ActorRef<M>> {
        let entry = self.proxies.get(&key).filter(|entry| !entry.channel.has_ended())?;
        entry.proxy.downcast_ref::<ActorRef<M>>().cloned()
    }
}

#[cfg(test)]
mod tests {
    use alloc::{format, vec};

    use super::*;

    fn export(name: String, is_stopped: bool) -> Arc<Export> {
        Arc::new(Export {
            name: Some(name),
            type_hash: 1,
            oldest: 1,
            newest: 1,
            is_stopped: Box::new(move || is_stopped),
            receive: Box::new(|_, _, _| None),
        })
    }

    fn state() -> SharedState {
        SharedState::new(NodeId::new("a", 1), Members { sequence: 0, members: vec![] })
    }

    #[test]
    fn exports_of_stopped_actors_do_not_fill_the_table() {
        let mut state = state();
        state.add_export(export("runs".into(), false)).0.expect("there is room");
        for n in 0..2 * EXPORTS_MAX {
            let (added, _) = state.add_export(export(format!("stopped-{n}"), true));
            assert!(added.is_ok(), "export {n}");
            assert!(state.exports.len() <= SWEEP_MIN);
        }
        assert!(state.find("runs").is_some());
        assert!(state.names.len() <= SWEEP_MIN);
    }

    #[test]
    fn a_table_of_actors_that_run_is_full_at_its_limit() {
        let mut state = state();
        for n in 0..EXPORTS_MAX - 1 {
            state.add_export(export(format!("{n}"), false)).0.expect("there is room");
        }
        state.add_export(export("stopped".into(), true)).0.expect("there is room");
        let (added, removed) = state.add_export(export("instead".into(), false));
        assert!(added.is_ok(), "the stopped one makes room");
        assert_eq!(removed.len(), 1);
        let (refused, _) = state.add_export(export("more".into(), false));
        assert_eq!(refused, Err(ExportErrorKind::Full));
        state.remove_export(1);
        assert!(state.add_export(export("more".into(), false)).0.is_ok());
    }
}
