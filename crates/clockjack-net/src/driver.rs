//! The driver: the actor that owns the membership and the links of a node.
//!
//! Everything that travels passes through it: packs from the engine are read here and their frames
//! go to the proxies and receivers; frames of proxies and receivers are packed here, per node,
//! until the mailbox has been read up to the first of them. A tick per second renews the lease,
//! repeats what was not confirmed, and checks the neighbour.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::time::Duration;

use clockjack_actor::{Actor, ActorRef, Context, Failure, Next, ReplyTo, Signal, TerminationCause};
use clockjack_sync::Arc;
use clockjack_time::TimerInstant;
use clockjack_wire::frame::{EXPORT_NAME_MAX, EndCause, Frame, Message, Pack};

use crate::{
    NetEvent, NodeId,
    announced::{Announced, Entry},
    channel::Outbound,
    engine::{Connect, Engine, EngineEvent, LogWrite, Moment, Notify},
    error::FindErrorKind,
    links::{Finds, LinkTick, Links},
    log::{Change, Service},
    membership::{Membership, OwnChange},
    packs::{Packs, Pushed},
    share::ServiceChange,
    shared::{NetShared, SharedState},
    window::OutLink,
};

/// How often the driver repeats what was not confirmed.
const TICK: Duration = Duration::from_secs(1);

/// What the parts of a node send to its driver.
pub(crate) enum NetMsg {
    /// The engine has something to read.
    Ready,
    Tick,
    /// Send the packs.
    Flush,
    /// A proxy was started.
    Opened(Arc<Outbound>),
    /// A proxy has stopped.
    Closed(Arc<Outbound>),
    Send {
        channel: Arc<Outbound>,
        number: u64,
        request: u64,
        body: Vec<u8>,
    },
    /// Bytes of the link from a node were freed, enough for a grant.
    Freed(u64),
    /// A target has taken its messages up to a number.
    Taken {
        from: u64,
        channel: u64,
        number: u64,
    },
    /// A receiver has stopped.
    TargetEnded {
        from: u64,
        channel: u64,
        cause: EndCause,
    },
    Answer {
        from: u64,
        channel: u64,
        request: u64,
        body: Option<Vec<u8>>,
    },
    Find {
        node: NodeId,
        type_hash: u64,
        name: String,
        reply: ReplyTo<Result<u64, FindErrorKind>>,
    },
    Share {
        key: String,
        type_hash: u64,
        to: ActorRef<ServiceChange>,
    },
    Unshare {
        key: String,
        type_hash: u64,
    },
    Register {
        key: String,
        type_hash: u64,
        export: u64,
    },
    Unregister {
        key: String,
        type_hash: u64,
        export: u64,
    },
    Subscribe(ActorRef<NetEvent>),
}

/// See the [module](self).
pub(crate) struct Driver {
    shared: Arc<NetShared>,
    membership: Membership,
    /// None once the actor has started.
    connect: Option<Box<dyn Connect>>,
    /// None until the actor has started.
    engine: Option<Box<dyn Engine>>,
    links: Links,
    finds: Finds,
    /// The services of this node: key, type and export.
    registered: Vec<(String, u64, u64)>,
    shares: BTreeMap<(String, u64), ActorRef<ServiceChange>>,
    subscribers: Vec<ActorRef<NetEvent>>,
    packs: Packs,
    announced: Announced,
    writes: Vec<LogWrite>,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<NetShared>,
        membership: Membership,
        connect: Box<dyn Connect>,
    ) -> Self {
        Self {
            shared,
            membership,
            connect: Some(connect),
            engine: None,
            links: Links::default(),
            finds: Finds::default(),
            registered: Vec::new(),
            shares: BTreeMap::new(),
            subscribers: Vec::new(),
            packs: Packs::default(),
            announced: Announced::default(),
            writes: Vec::new(),
        }
    }
}

impl Actor for Driver {
    type Msg = NetMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let me = cx.self_ref();
        // A node that has stopped needs no notification, and one without room has a tick.
        let notify = Notify::new(move || drop(me.tell(NetMsg::Ready)));
        let connect = self.connect.take().ok_or_else(|| Failure::msg("a node starts once"))?;
        let engine = self.engine.insert(connect.connect(notify));
        engine.subscribe(self.membership.me().incarnation());
        cx.timers().fixed_rate("tick", TICK, || NetMsg::Tick)?;
        let now = moment(cx.now());
        self.membership.join(now, &mut self.writes);
        self.write(now);
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: NetMsg) -> Result<Next, Failure> {
        let now = moment(cx.now());
        match msg {
            NetMsg::Ready => self.read(cx, now),
            NetMsg::Tick => self.tick(cx, now),
            NetMsg::Flush => self.flush(),
            NetMsg::Opened(channel) => self.opened(cx, channel),
            NetMsg::Closed(channel) => {
                if self.links.remove_outbound(channel.peer, channel.id) {
                    self.push(cx, channel.peer, &Frame::Close { channel: channel.id });
                }
            }
            NetMsg::Send { channel, number, request, body } => {
                self.send(cx, &channel, number, request, &body);
            }
            NetMsg::Taken { from, channel, number } => {
                if let Some(grant) = self.links.taken(from, channel, number) {
                    self.push(cx, from, &grant);
                }
            }
            NetMsg::Freed(from) => {
                if let Some(grant) = self.links.freed(from) {
                    self.push(cx, from, &grant);
                }
            }
            NetMsg::TargetEnded { from, channel, cause } => {
                if let Some(end) = self.links.target_ended(from, channel, cause) {
                    self.push(cx, from, &end);
                }
            }
            NetMsg::Answer { from, channel, request, body } => {
                let body = body.as_deref();
                self.push(cx, from, &Frame::Answer { channel, request, body });
            }
            NetMsg::Find { node, type_hash, name, reply } => {
                self.find(cx, node, type_hash, name, reply);
            }
            NetMsg::Share { key, type_hash, to } => self.share(key, type_hash, to),
            NetMsg::Unshare { key, type_hash } => drop(self.shares.remove(&(key, type_hash))),
            NetMsg::Register { key, type_hash, export } => {
                // This one only: those that were written before are not in the view until the log
                // is read.
                let entry = (key, type_hash, export);
                if self.membership.is_member() {
                    self.announce(now, core::slice::from_ref(&entry));
                }
                self.registered.push(entry);
            }
            NetMsg::Unregister { key, type_hash, export } => {
                self.withdraw(now, (key, type_hash, export));
            }
            NetMsg::Subscribe(to) => {
                if self.membership.is_member() {
                    to.tell_or_dead_letter(NetEvent::Joined(self.membership.me()));
                }
                self.subscribers.push(to);
            }
        }
        Ok(Next::Stay)
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if !matches!(signal, Signal::PostStop) {
            return Ok(Next::Unhandled);
        }
        self.flush();
        self.membership.leave(&mut self.writes);
        self.write(moment(cx.now()));
        self.links.end_all(TerminationCause::SelfLost);
        // Also those of proxies that the mailbox of this actor still names. A proxy that is opened
        // from now on finds the flag.
        let channels: Vec<Arc<Outbound>> = self.shared.state.with(|state| {
            state.has_left = true;
            state.proxies.values().map(|entry| entry.channel.clone()).collect()
        });
        channels.iter().for_each(|channel| channel.end(TerminationCause::SelfLost));
        self.finds.end_all();
        // The connection ends with the membership.
        self.engine = None;
        Ok(Next::Stay)
    }
}

fn moment(now: TimerInstant) -> Moment {
    Moment::from_nanos(now.tick().get().saturating_mul(u64::from(now.resolution().nanos().get())))
}

impl Driver {
    fn tick(&mut self, cx: &mut Context<'_, Self>, now: Moment) {
        if self.membership.tick(now, &mut self.writes) {
            self.abandon_attempt();
        }
        let (me, view) = (self.membership.me().incarnation(), &self.membership.view);
        let mut missing = BTreeSet::new();
        if view.next_member(0) == Some(me) {
            // One member removes what lost ones have left behind, also what they wrote after their
            // end. By the tick: when the end of a node is read, the member that would remove may
            // be lost, too.
            missing.extend(view.orphans().cloned().map(Entry::End));
        }
        self.add_missing(&mut missing);
        self.announced.repeat(now, &missing, &mut self.writes);
        self.write(now);
        if let Some(next) = self.membership.view.next_member(me) {
            self.push(cx, next, &Frame::Ping);
        }
        let LinkTick { frames, blocked } = self.links.tick();
        for (peer, frame) in frames {
            self.push(cx, peer, &frame);
        }
        for peer in blocked {
            let member = self.membership.view.member(peer);
            if let Some(to) = member.map(|member| member.node.clone()) {
                self.publish(&NetEvent::Blocked { to });
            }
        }
        let (links, remote_proxies) = self.links.count();
        let (members, lease_age) = (self.membership.view.members(), self.membership.lease_age(now));
        self.shared.metrics.with(|metrics| {
            (metrics.links, metrics.remote_proxies) = (links, remote_proxies);
            metrics.members = members.members.len() as u64;
            (metrics.log_sequence, metrics.lease_age) = (members.sequence, lease_age);
        });
        for (peer, request, type_hash, name) in self.finds.pending() {
            self.push(cx, peer, &Frame::Find { request, type_hash, name: &name });
        }
        // Keys may have expired without a write.
        self.read(cx, now);
    }

    /// An attempt to join has failed: what was sent in its name belongs to no member.
    fn abandon_attempt(&mut self) {
        let me = self.membership.me();
        if let Some(engine) = &mut self.engine {
            engine.subscribe(me.incarnation());
        }
        let ended = self.shared.state.with(|state| {
            state.me = me;
            core::mem::take(&mut state.links)
        });
        drop(ended);
        self.links.end_all(TerminationCause::SelfLost);
        self.finds.end_all();
        self.packs.clear();
    }

    /// Reads what the engine has received.
    fn read(&mut self, cx: &mut Context<'_, Self>, now: Moment) {
        let Some(engine) = &mut self.engine else { return };
        for event in engine.poll(now) {
            match &event {
                EngineEvent::Log(_) | EngineEvent::Snapshot { .. } | EngineEvent::LogReplaced => {
                    self.read_log(now, &event)
                }
                EngineEvent::Disconnected => self.publish(&NetEvent::Suspended),
                EngineEvent::Reconnected => {
                    self.membership.reconnected(now);
                    self.publish(&NetEvent::Resumed);
                }
                EngineEvent::Refused(what) => {
                    self.publish(&NetEvent::Refused { what: what.clone() });
                }
                EngineEvent::Dropped(n) => self.publish(&NetEvent::Dropped { n: *n }),
                EngineEvent::Pack(pack) => self.read_pack(cx, now, pack),
                EngineEvent::NoResponders(to) => self.membership.no_responders(now, *to),
            }
        }
    }

    fn read_log(&mut self, now: Moment, event: &EngineEvent) {
        let mut changes = Vec::new();
        let own = self.membership.read(now, event, &mut changes, &mut self.writes);
        // The members first: a subscriber that hears of a change finds it there.
        let (me, members) = (self.membership.me(), self.membership.view.members());
        // Links of nodes that are lost, to be dropped outside of the lock.
        let ended: BTreeMap<u64, Arc<OutLink>> = self.shared.state.with(|state| {
            state.me = me.clone();
            state.members = members;
            if matches!(own, Some(OwnChange::Lost(_) | OwnChange::Taken)) {
                // Another incarnation has links of its own.
                return core::mem::take(&mut state.links);
            }
            let SharedState { links, members, .. } = state;
            let is_lost = |peer| !members.members.iter().any(|one| one.node.incarnation() == peer);
            links.extract_if(.., |peer, _| is_lost(*peer)).collect()
        });
        drop(ended);
        if let (Some(OwnChange::Taken | OwnChange::Lost(_)), Some(engine)) =
            (&own, &mut self.engine)
        {
            engine.subscribe(me.incarnation());
        }
        if matches!(own, Some(OwnChange::Lost(_) | OwnChange::Taken)) {
            self.links.end_all(TerminationCause::SelfLost);
            self.finds.end_all();
            self.packs.clear();
        }
        if let Some(OwnChange::Lost(old)) = &own {
            self.shared.metrics.with(|metrics| metrics.rejoins += 1);
            self.publish(&NetEvent::Lost(old.clone()));
            // The event above has said it.
            changes.retain(|change| match change {
                Change::MemberDown(member) => member.node != *old,
                _ => true,
            });
        }
        for change in changes {
            self.changed(change);
        }
        if own == Some(OwnChange::Joined) {
            self.publish(&NetEvent::Joined(me));
            // A new incarnation has no services in the log.
            let registered = core::mem::take(&mut self.registered);
            self.announce(now, &registered);
            self.registered = registered;
            self.repeat_services();
        }
        self.write(now);
    }

    /// Something changed in the log.
    fn changed(&mut self, change: Change) {
        let me = self.membership.me().incarnation();
        match change {
            Change::MemberUp(member) if member.node.incarnation() != me => {
                self.publish(&NetEvent::MemberUp(member));
            }
            Change::MemberDown(member) if member.node.incarnation() != me => {
                let peer = member.node.incarnation();
                self.links.end_peer(peer, TerminationCause::NodeLost);
                self.finds.end_peer(peer);
                self.packs.remove(peer);
                self.shared.metrics.with(|metrics| metrics.members_lost += 1);
                self.publish(&NetEvent::MemberDown(member));
            }
            Change::ServiceUp(service) if service.incarnation != me => {
                let member = self.membership.view.member(service.incarnation);
                let name = member.map(|member| String::from(member.node.name()));
                let to = self.shares.get(&(service.key.clone(), service.type_hash));
                if let (Some(name), Some(to)) = (name, to) {
                    to.tell_or_dead_letter(ServiceChange::Up(name, service));
                }
            }
            Change::ServiceDown(service) if service.incarnation != me => {
                let to = self.shares.get(&(service.key.clone(), service.type_hash));
                if let Some(to) = to {
                    to.tell_or_dead_letter(ServiceChange::Down(service));
                }
            }
            Change::ServiceDown(service) => self.announced.read(&Entry::End(service)),
            Change::ServiceUp(service) => self.announced.read(&Entry::Begin(service)),
            Change::MemberUp(_) | Change::MemberDown(_) => {}
        }
    }

    fn publish(&mut self, event: &NetEvent) {
        self.subscribers.retain(|to| !to.is_stopped());
        for to in &self.subscribers {
            to.tell_or_dead_letter(event.clone());
        }
    }

    fn write(&mut self, now: Moment) {
        let Some(engine) = &mut self.engine else { return };
        for write in self.writes.drain(..) {
            engine.write(now, write);
        }
    }

    /// Writes services of this node, which is a member, to the log.
    fn announce(&mut self, now: Moment, services: &[(String, u64, u64)]) {
        let incarnation = self.membership.me().incarnation();
        for (key, type_hash, export) in services {
            let (key, type_hash, export) = (key.clone(), *type_hash, *export);
            let begin = Entry::Begin(Service { key, type_hash, incarnation, export });
            self.announced.write(now, begin, &mut self.writes);
        }
        self.write(now);
    }

    /// Adds what the log does not show: the write of a service of this node, or of its end, was
    /// lost or is on its way. A service that is written twice changes nothing.
    fn add_missing(&self, missing: &mut BTreeSet<Entry>) {
        if !self.membership.is_member() {
            return;
        }
        let incarnation = self.membership.me().incarnation();
        let in_log = self.membership.view.services_of(incarnation);
        let in_log: BTreeSet<(&str, u64, u64)> =
            in_log.map(|one| (&*one.key, one.type_hash, one.export)).collect();
        let here = self.registered.iter().map(|(key, hash, export)| (&**key, *hash, *export));
        let here: BTreeSet<(&str, u64, u64)> = here.collect();
        let service = |&(key, type_hash, export): &(&str, u64, u64)| Service {
            key: String::from(key),
            type_hash,
            incarnation,
            export,
        };
        missing.extend(here.difference(&in_log).map(service).map(Entry::Begin));
        missing.extend(in_log.difference(&here).map(service).map(Entry::End));
    }

    fn withdraw(&mut self, now: Moment, entry: (String, u64, u64)) {
        self.registered.retain(|one| *one != entry);
        let (key, type_hash, export) = entry;
        let incarnation = self.membership.me().incarnation();
        let end = Entry::End(Service { key, type_hash, incarnation, export });
        self.announced.write(now, end, &mut self.writes);
        self.write(now);
    }

    fn share(&mut self, key: String, type_hash: u64, to: ActorRef<ServiceChange>) {
        self.send_services(&key, type_hash, &to);
        self.shares.insert((key, type_hash), to);
    }

    /// This node has joined again: its proxies of remote services have stopped, and are needed
    /// again.
    fn repeat_services(&self) {
        for ((key, type_hash), to) in &self.shares {
            self.send_services(key, *type_hash, to);
        }
    }

    fn send_services(&self, key: &str, type_hash: u64, to: &ActorRef<ServiceChange>) {
        let me = self.membership.me().incarnation();
        let view = &self.membership.view;
        for service in view.services(key, type_hash).filter(|one| one.incarnation != me) {
            if let Some(member) = view.member(service.incarnation) {
                let name = String::from(member.node.name());
                to.tell_or_dead_letter(ServiceChange::Up(name, service.clone()));
            }
        }
    }

    fn opened(&mut self, cx: &mut Context<'_, Self>, channel: Arc<Outbound>) {
        if channel.me != self.membership.me().incarnation() {
            // The end of that incarnation was read first. Its window is not that of this one's
            // link, and no grant would reach it.
            return channel.end(TerminationCause::SelfLost);
        }
        if self.membership.view.member(channel.peer).is_none() {
            return channel.end(TerminationCause::NodeLost);
        }
        if channel.may_open() {
            self.push(cx, channel.peer, &channel.open());
        }
        self.links.add_outbound(channel);
    }

    fn send(
        &mut self,
        cx: &mut Context<'_, Self>,
        channel: &Outbound,
        number: u64,
        request: u64,
        body: &[u8],
    ) {
        if self.links.outbound(channel.peer, channel.id).is_none() {
            // The node is lost, or this one was and has joined again: the peer does not know the
            // channel under the new incarnation, and the message would count on a new link.
            self.shared.metrics.with(|metrics| metrics.unsent += 1);
            return channel.unreachable(&self.shared.system);
        }
        let message = Message {
            channel: channel.id,
            number,
            request,
            type_hash: channel.type_hash,
            version: channel.version,
            time_left_ms: None,
            trace: None,
            body,
        };
        channel.pushed(number);
        self.links.sent(channel.peer, body);
        self.shared.metrics.with(|metrics| metrics.messages_out += 1);
        self.push(cx, channel.peer, &Frame::Message(message));
    }

    fn find(
        &mut self,
        cx: &mut Context<'_, Self>,
        node: NodeId,
        type_hash: u64,
        name: String,
        reply: ReplyTo<Result<u64, FindErrorKind>>,
    ) {
        if name.is_empty() || name.len() > EXPORT_NAME_MAX {
            // No export has this name, and the peer would refuse the question.
            return reply.reply(Err(FindErrorKind::NotExported));
        }
        let peer = node.incarnation();
        if peer == self.membership.me().incarnation() {
            return reply.reply(self.local_export(type_hash, &name));
        }
        if self.membership.view.member(peer).is_none() {
            return reply.reply(Err(FindErrorKind::Unreachable));
        }
        let request = self.finds.add(peer, type_hash, name.clone(), reply);
        self.push(cx, peer, &Frame::Find { request, type_hash, name: &name });
    }

    fn local_export(&self, type_hash: u64, name: &str) -> Result<u64, FindErrorKind> {
        let found = self.shared.state.with(|state| state.find(name));
        let found = found.filter(|(_, export)| export.type_hash == type_hash);
        found.map(|(id, _)| id).ok_or(FindErrorKind::NotExported)
    }

    /// Adds a frame to the pack for a node. The pack is sent when the mailbox has been read up to
    /// the message that this sends, or when it is full.
    fn push(&mut self, cx: &mut Context<'_, Self>, to: u64, frame: &Frame<'_>) {
        let me = self.membership.me().incarnation();
        match self.packs.push(me, to, frame) {
            Pushed::Full(packs) => {
                packs.into_iter().for_each(|pack| self.send_pack(to, pack));
            }
            Pushed::First => {
                if cx.self_ref().tell(NetMsg::Flush).is_err() {
                    self.flush();
                }
            }
            Pushed::Waits => {}
        }
    }

    fn flush(&mut self) {
        for (to, pack) in self.packs.take() {
            self.send_pack(to, pack);
        }
    }

    fn send_pack(&mut self, to: u64, pack: Vec<u8>) {
        let Some(engine) = &mut self.engine else { return };
        self.shared.metrics.with(|metrics| {
            metrics.packs_out += 1;
            metrics.bytes_out += pack.len() as u64;
        });
        engine.publish(to, pack);
    }

    /// Reads the frames of a pack. A pack that is not from a member, or not for this incarnation,
    /// is dropped: nothing follows the end of an incarnation.
    fn read_pack(&mut self, cx: &mut Context<'_, Self>, now: Moment, bytes: &[u8]) {
        let Ok(pack) = Pack::read(bytes) else { return self.refuse_pack() };
        let from = pack.from;
        let member = self.membership.view.member(from).map(|member| member.node.clone());
        let is_for_me = pack.to == self.membership.me().incarnation();
        let Some(node) = member.filter(|_| is_for_me && !self.links.is_muted(from, now)) else {
            return self.refuse_pack();
        };
        self.shared.metrics.with(|metrics| {
            metrics.packs_in += 1;
            metrics.bytes_in += bytes.len() as u64;
        });
        self.membership.heard(from);
        for frame in pack {
            let is_valid = match frame {
                Ok(frame) => self.read_frame(cx, &node, frame),
                // A newer node may send a kind of frame that this one does not know.
                Err(refused) => refused.is_unknown_kind(),
            };
            if !is_valid && self.links.broke_rule(from, now) {
                return self.publish(&NetEvent::Muted(node));
            }
        }
    }

    fn refuse_pack(&self) {
        self.shared.metrics.with(|metrics| metrics.packs_refused += 1);
    }

    /// Messages of a node were lost.
    fn count_lost(&mut self, from: &NodeId, n: u64) {
        if n > 0 {
            self.shared.metrics.with(|metrics| metrics.lost += n);
            self.publish(&NetEvent::Gap { from: from.clone(), n });
        }
    }

    /// Handles a frame; returns whether the peer kept to the rules.
    fn read_frame(&mut self, cx: &mut Context<'_, Self>, node: &NodeId, frame: Frame<'_>) -> bool {
        let from = node.incarnation();
        match frame {
            Frame::Message(message) => {
                let me = cx.self_ref();
                let Some(n_lost) = self.links.message(from, &message, &me) else { return false };
                self.shared.metrics.with(|metrics| metrics.messages_in += 1);
                self.count_lost(node, n_lost);
            }
            Frame::Open { channel, export, type_hash, version } => {
                self.open(cx, from, channel, export, type_hash, version);
            }
            Frame::Query { channel, sent } => {
                let (answer, n_lost) = self.links.query(from, channel, sent);
                self.count_lost(node, n_lost);
                self.push(cx, from, &answer);
            }
            Frame::Close { channel } => self.links.close(from, channel),
            Frame::LinkQuery { sent } => {
                let grant = self.links.link_query(from, sent, &cx.self_ref());
                self.push(cx, from, &grant);
            }
            Frame::LinkGrant { limit, received } => {
                let gets_on = self.links.link_grant(from, limit, received);
                let event = gets_on.then(|| NetEvent::Unblocked { to: node.clone() });
                event.iter().for_each(|event| self.publish(event));
            }
            Frame::Forget { channel, request } => {
                if let Some(confirmation) = self.links.forget(from, channel, request) {
                    self.push(cx, from, &confirmation);
                }
            }
            Frame::Grant { channel, limit, received } => {
                if let Some(channel) = self.links.outbound(from, channel) {
                    channel.grant(limit, received);
                } else {
                    // The proxy has stopped, and the receiver has not learned it.
                    self.push(cx, from, &Frame::Close { channel });
                }
            }
            Frame::End { channel, cause } => {
                if let Some(channel) = self.links.outbound(from, channel) {
                    channel.end(match cause {
                        EndCause::Failed => TerminationCause::Failed,
                        _ => TerminationCause::Stopped,
                    });
                } else {
                    // The proxy has stopped already, or never was: the receiver need not repeat.
                    self.push(cx, from, &Frame::Close { channel });
                }
            }
            Frame::Answer { channel, request, body } => {
                let channel = self.links.outbound(from, channel);
                let reply = channel.and_then(|channel| channel.take_request(request));
                // Without a body the reply is dropped, and the asker learns that there is no
                // answer. So it does if the body cannot be read, which breaks no rule: answers have
                // no version, and a newer node may answer with another type.
                if let (Some(reply), Some(body)) = (reply, body) {
                    let _ = reply.answer(body);
                }
            }
            Frame::Find { request, type_hash, name } => {
                let export = self.local_export(type_hash, name).unwrap_or(0);
                if export != 0 || self.links.may_answer_unknown(from, name) {
                    self.push(cx, from, &Frame::Found { request, export });
                }
            }
            Frame::Found { request, export } => self.finds.found(from, request, export),
            // A ping says what it has to by arriving. The others are kinds of newer nodes.
            _ => {}
        }
        true
    }

    /// Opens a channel from another node; a repeated request is confirmed again.
    fn open(
        &mut self,
        cx: &mut Context<'_, Self>,
        from: u64,
        channel: u64,
        export: u64,
        type_hash: u64,
        version: u16,
    ) {
        if let Some(answer) = self.links.is_open(from, channel) {
            return self.push(cx, from, &answer);
        }
        if !self.links.may_open(from, moment(cx.now())) {
            // A sender repeats an opening that is not confirmed.
            return self.shared.metrics.with(|metrics| metrics.opens_refused += 1);
        }
        let route = match self.links.route(from, channel) {
            Ok(route) => route,
            Err(refusal) => return self.push(cx, from, &refusal),
        };
        let found = self.shared.state.with(|state| state.export(export));
        let answer = match found {
            None => Frame::End { channel, cause: EndCause::NotExported },
            Some(export)
                if export.type_hash != type_hash
                    || !(export.oldest..=export.newest).contains(&version) =>
            {
                Frame::End { channel, cause: EndCause::OtherType }
            }
            Some(export) => match (export.receive)(&self.shared.system, &cx.self_ref(), route) {
                Some(receiver) => self.links.add_inbound(from, channel, receiver),
                None => Frame::End { channel, cause: EndCause::Stopped },
            },
        };
        self.push(cx, from, &answer);
    }
}
