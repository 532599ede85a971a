//! The links of a node: its channels to and from each other node, and its open questions.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    string::String,
    vec::Vec,
};
use core::time::Duration;

use clockjack_actor::{ActorRef, ReplyTo, TerminationCause};
use clockjack_sync::Arc;
use clockjack_wire::frame::{EndCause, Frame, Message};

use crate::{
    channel::{Arrival, Inbound, Outbound},
    driver::NetMsg,
    engine::Moment,
    error::FindErrorKind,
    receiver::{Delivery, Route},
    window::{InLink, OPENS_BURST, OPENS_PER_SECOND, OutLink, cost},
};

/// The most channels that one node may have open to this one.
pub const CHANNELS_MAX: usize = 65_536;

/// The most channels that a node may open at once: more than it does, because frames of some
/// seconds may arrive together.
const OPENS_MAX: u64 = OPENS_BURST + 2 * OPENS_PER_SECOND;

/// The most names of no export that a node gets an answer for between two ticks.
const UNKNOWN_NAMES_MAX: usize = 64;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// How many broken rules within [`MUTED_FOR`] mute a node.
const BROKEN_RULES_MAX: u32 = 10;

/// After how many ticks the grant of a channel is repeated.
const GRANT_EVERY: u64 = 30;

/// How long a node is muted.
const MUTED_FOR: Duration = Duration::from_secs(60);

/// The links to all other nodes.
#[derive(Default)]
pub(crate) struct Links {
    links: BTreeMap<u64, Link>,
    n_ticks: u64,
}

#[derive(Default)]
struct Link {
    outbound: BTreeMap<u64, Arc<Outbound>>,
    inbound: BTreeMap<u64, InboundChannel>,
    sending: Option<Sending>,
    receiving: Option<Arc<InLink>>,
    opens: OpenAllowance,
    /// Names of no export that were answered since the last tick.
    unknown_names: BTreeSet<String>,
    n_broken_rules: u32,
    broken_since: Moment,
    muted_until: Option<Moment>,
}

/// How many channels another node may open now.
struct OpenAllowance {
    left: u64,
    since: Moment,
}

impl Default for OpenAllowance {
    fn default() -> Self {
        Self { left: OPENS_MAX, since: Moment::default() }
    }
}

impl OpenAllowance {
    fn take(&mut self, now: Moment) -> bool {
        let elapsed = now.since(self.since).as_nanos() * u128::from(OPENS_PER_SECOND);
        let n_new = u64::try_from(elapsed / NANOS_PER_SECOND).unwrap_or(u64::MAX);
        if n_new > 0 {
            self.left = self.left.saturating_add(n_new).min(OPENS_MAX);
            self.since = now;
        }
        let may_open = self.left > 0;
        self.left -= u64::from(may_open);
        may_open
    }
}

/// What the driver knows about the window of a link to another node.
struct Sending {
    window: Arc<OutLink>,
    /// The bytes of messages that were sent.
    sent: u64,
    /// What the receiver has confirmed.
    received: u64,
    /// What was sent at the last tick, to see whether the link rests.
    sent_at_tick: u64,
    /// Whether subscribers know that the window is full.
    is_blocked: bool,
}

/// What a tick of the links has found.
#[derive(Default)]
pub(crate) struct LinkTick {
    /// What has to be sent.
    pub(crate) frames: Vec<(u64, Frame<'static>)>,
    /// The nodes whose window has been full for a second.
    pub(crate) blocked: Vec<u64>,
}

struct InboundChannel {
    numbers: Inbound,
    receiver: ActorRef<Delivery>,
    /// The target has stopped; repeated until the sender closes the channel.
    end: Option<EndCause>,
}

impl Links {
    fn channel(&mut self, from: u64, channel: u64) -> Option<&mut InboundChannel> {
        self.links.get_mut(&from)?.inbound.get_mut(&channel)
    }

    pub(crate) fn add_outbound(&mut self, channel: Arc<Outbound>) {
        let link = self.links.entry(channel.peer).or_default();
        link.sending.get_or_insert_with(|| Sending {
            window: channel.link.clone(),
            sent: 0,
            received: 0,
            sent_at_tick: 0,
            is_blocked: false,
        });
        link.outbound.insert(channel.id, channel);
    }

    pub(crate) fn outbound(&self, peer: u64, channel: u64) -> Option<Arc<Outbound>> {
        self.links.get(&peer)?.outbound.get(&channel).cloned()
    }

    /// Removes a channel; returns whether the peer may still have it open.
    pub(crate) fn remove_outbound(&mut self, peer: u64, channel: u64) -> bool {
        self.links.get_mut(&peer).is_some_and(|link| link.outbound.remove(&channel).is_some())
    }

    /// If the channel is open: the frame that confirms it.
    pub(crate) fn is_open(&mut self, from: u64, channel: u64) -> Option<Frame<'static>> {
        let open = self.channel(from, channel)?;
        Some(match open.end {
            Some(cause) => Frame::End { channel, cause },
            None => open.numbers.grant(channel),
        })
    }

    /// The route of a new channel, or its refusal if the peer has too many. That breaks no rule:
    /// the peer cannot know it, and its proxy stops.
    pub(crate) fn route(&mut self, from: u64, channel: u64) -> Result<Route, Frame<'static>> {
        let n_open = self.links.get(&from).map_or(0, |link| link.inbound.len());
        if n_open >= CHANNELS_MAX {
            return Err(Frame::End { channel, cause: EndCause::Unknown });
        }
        Ok(Route { from, channel })
    }

    /// Whether a node may open another channel now. One that keeps to its own limit always may.
    pub(crate) fn may_open(&mut self, from: u64, now: Moment) -> bool {
        self.links.entry(from).or_default().opens.take(now)
    }

    /// Whether a node gets an answer that there is no export of a name: once between two ticks.
    pub(crate) fn may_answer_unknown(&mut self, from: u64, name: &str) -> bool {
        let known = &mut self.links.entry(from).or_default().unknown_names;
        known.len() < UNKNOWN_NAMES_MAX && known.insert(name.into())
    }

    /// Adds a channel; returns the frame that confirms it.
    pub(crate) fn add_inbound(
        &mut self,
        from: u64,
        channel: u64,
        receiver: ActorRef<Delivery>,
    ) -> Frame<'static> {
        let numbers = Inbound::new();
        let grant = numbers.grant(channel);
        let link = self.links.entry(from).or_default();
        link.inbound.insert(channel, InboundChannel { numbers, receiver, end: None });
        grant
    }

    /// Delivers a message. Returns how many were lost before it, or `None` if the sender had no
    /// credit for it. A message of a channel that was not opened is lost: its sender numbers on,
    /// and the gap is counted when the channel is open.
    pub(crate) fn message(
        &mut self,
        from: u64,
        message: &Message<'_>,
        driver: &ActorRef<NetMsg>,
    ) -> Option<u64> {
        let link = self.links.entry(from).or_default();
        let open = link.inbound.get(&message.channel);
        if open.is_some_and(|open| open.numbers.has_arrived(message.number)) {
            // Its bytes were counted.
            return Some(0);
        }
        let window =
            link.receiving.get_or_insert_with(|| Arc::new(InLink::new(from, driver.clone())));
        let held = InLink::arrive(window, cost(message.body))?;
        let Some(channel) = link.inbound.get_mut(&message.channel) else { return Some(0) };
        let n_lost = match channel.numbers.arrive(message.number) {
            Arrival::Next { n_lost } => n_lost,
            Arrival::Repeated => return Some(0),
            Arrival::BeyondWindow => return None,
        };
        let delivery = Delivery::Message {
            number: message.number,
            request: message.request,
            type_hash: message.type_hash,
            version: message.version,
            time_left: message.time_left_ms.map(Duration::from_millis),
            body: message.body.to_vec(),
            held,
        };
        // The receiver has stopped if its target has; it makes a dead letter of what it had.
        channel.receiver.tell_or_dead_letter(delivery);
        Some(n_lost)
    }

    /// The sender reports how far it has sent. Returns the answer, and how many were lost.
    pub(crate) fn query(&mut self, from: u64, channel: u64, sent: u64) -> (Frame<'static>, u64) {
        let Some(open) = self.channel(from, channel) else {
            return (Frame::End { channel, cause: EndCause::Unknown }, 0);
        };
        let n_lost = open.numbers.sender_reports(sent);
        if n_lost > 0 {
            // In its place: after what has arrived, before what will.
            open.receiver.tell_or_dead_letter(Delivery::Lost(open.numbers.received()));
        }
        match open.end {
            Some(cause) => (Frame::End { channel, cause }, n_lost),
            None => (open.numbers.grant(channel), n_lost),
        }
    }

    /// The bytes of a message were sent to a node.
    pub(crate) fn sent(&mut self, to: u64, body: &[u8]) {
        if let Some(link) = self.links.get_mut(&to).and_then(|link| link.sending.as_mut()) {
            link.sent += cost(body);
        }
    }

    /// The sender reports how many bytes it has sent on its link. Returns the answer.
    pub(crate) fn link_query(
        &mut self,
        from: u64,
        sent: u64,
        driver: &ActorRef<NetMsg>,
    ) -> Frame<'static> {
        let link = self.links.entry(from).or_default();
        // All messages of the link may be lost.
        let window =
            link.receiving.get_or_insert_with(|| Arc::new(InLink::new(from, driver.clone())));
        window.sender_reports(sent);
        window.grant()
    }

    /// Bytes of a link were freed, enough for a grant.
    pub(crate) fn freed(&mut self, from: u64) -> Option<Frame<'static>> {
        Some(self.links.get(&from)?.receiving.as_ref()?.grant())
    }

    /// A node allows bytes up to a number. Returns whether subscribers know that the window
    /// is full, and it is not any more.
    pub(crate) fn link_grant(&mut self, from: u64, limit: u64, received: u64) -> bool {
        let Some(link) = self.links.get_mut(&from).and_then(|link| link.sending.as_mut()) else {
            return false;
        };
        // No more than was sent: the receiver is not trusted.
        link.received = link.received.max(received.min(link.sent));
        link.window.grant(limit);
        link.is_blocked && link.window.has_credit() && core::mem::take(&mut link.is_blocked)
    }

    /// Nobody waits for the answer to a request of another node. Returns the confirmation, unless
    /// the receiver gives it.
    pub(crate) fn forget(
        &mut self,
        from: u64,
        channel: u64,
        request: u64,
    ) -> Option<Frame<'static>> {
        // It goes before the messages that wait. The receiver may have stopped.
        let is_told = self
            .channel(from, channel)
            .is_some_and(|open| open.receiver.tell_control(Delivery::Forget(request)).is_ok());
        (!is_told).then_some(Frame::Answer { channel, request, body: None })
    }

    /// How many links there are, and how many remote proxies.
    pub(crate) fn count(&self) -> (u64, u64) {
        let proxies = self.links.values().map(|link| link.outbound.len() as u64).sum();
        (self.links.len() as u64, proxies)
    }

    /// A target has taken messages. Returns the grant, if the limit has risen.
    pub(crate) fn taken(&mut self, from: u64, channel: u64, number: u64) -> Option<Frame<'static>> {
        let open = self.channel(from, channel)?;
        open.numbers.taken(number).then(|| open.numbers.grant(channel))
    }

    /// A receiver has stopped. Returns the frame for the sender, unless the channel was closed.
    pub(crate) fn target_ended(
        &mut self,
        from: u64,
        channel: u64,
        cause: EndCause,
    ) -> Option<Frame<'static>> {
        self.channel(from, channel)?.end = Some(cause);
        Some(Frame::End { channel, cause })
    }

    /// The sender no longer uses a channel.
    pub(crate) fn close(&mut self, from: u64, channel: u64) {
        let Some(link) = self.links.get_mut(&from) else { return };
        if let Some(closed) = link.inbound.remove(&channel) {
            // It has stopped before if its target has.
            drop(closed.receiver.tell(Delivery::Close));
        }
    }

    /// Collects what has to be repeated, and forgets requests that nobody waits for.
    pub(crate) fn tick(&mut self) -> LinkTick {
        self.n_ticks += 1;
        let LinkTick { mut frames, mut blocked } = LinkTick::default();
        for (peer, link) in &mut self.links {
            link.unknown_names.clear();
            if let Some(sending) = &mut link.sending {
                sending.window.refill_opens();
                frames.extend(sending.tick().map(|frame| (*peer, frame)));
                if sending.window.tick() && !core::mem::replace(&mut sending.is_blocked, true) {
                    blocked.push(*peer);
                }
            }
            for channel in link.outbound.values() {
                let id = channel.id;
                let over = channel.drop_unwanted().into_iter();
                frames.extend(over.map(|request| (*peer, Frame::Forget { channel: id, request })));
                frames.extend(channel.tick().map(|frame| (*peer, frame)));
            }
            for (id, channel) in &link.inbound {
                let end = channel.end.map(|cause| Frame::End { channel: *id, cause });
                frames.extend(end.map(|frame| (*peer, frame)));
                // If the close of the channel was lost, the sender closes it again. Not all
                // channels in one tick.
                if channel.end.is_none() && self.n_ticks.wrapping_add(*id) % GRANT_EVERY == 0 {
                    frames.push((*peer, channel.numbers.grant(*id)));
                }
            }
        }
        LinkTick { frames, blocked }
    }

    /// Ends everything from and to a node.
    pub(crate) fn end_peer(&mut self, peer: u64, cause: TerminationCause) {
        if let Some(link) = self.links.remove(&peer) {
            link.end(cause);
        }
    }

    pub(crate) fn end_all(&mut self, cause: TerminationCause) {
        for link in core::mem::take(&mut self.links).into_values() {
            link.end(cause);
        }
    }

    pub(crate) fn is_muted(&mut self, from: u64, now: Moment) -> bool {
        let Some(link) = self.links.get_mut(&from) else { return false };
        link.muted_until.take_if(|until| *until <= now);
        link.muted_until.is_some()
    }

    /// A node broke a rule. Returns whether it is muted from now on.
    pub(crate) fn broke_rule(&mut self, from: u64, now: Moment) -> bool {
        let link = self.links.entry(from).or_default();
        if link.n_broken_rules == 0 || now.since(link.broken_since) > MUTED_FOR {
            (link.n_broken_rules, link.broken_since) = (0, now);
        }
        link.n_broken_rules += 1;
        if link.n_broken_rules < BROKEN_RULES_MAX {
            return false;
        }
        link.n_broken_rules = 0;
        link.muted_until = Some(now.after(MUTED_FOR));
        true
    }
}

impl Sending {
    /// The report that a tick sends, if the receiver has not confirmed what was sent last, or if
    /// there is no credit: its grant may be lost.
    fn tick(&mut self) -> Option<Frame<'static>> {
        let rests = core::mem::replace(&mut self.sent_at_tick, self.sent) == self.sent;
        let is_due = (rests && self.received < self.sent) || !self.window.has_credit();
        is_due.then_some(Frame::LinkQuery { sent: self.sent })
    }
}

impl Link {
    fn end(self, cause: TerminationCause) {
        for channel in self.outbound.into_values() {
            channel.end(cause);
        }
        for channel in self.inbound.into_values() {
            // It has stopped before if its target has.
            drop(channel.receiver.tell(Delivery::Close));
        }
    }
}

/// Questions for the exports of other nodes.
#[derive(Default)]
pub(crate) struct Finds {
    pending: BTreeMap<u64, Question>,
    n_questions: u64,
}

struct Question {
    peer: u64,
    type_hash: u64,
    name: String,
    reply: ReplyTo<Result<u64, FindErrorKind>>,
}

impl Finds {
    /// Adds a question; returns its number.
    pub(crate) fn add(
        &mut self,
        peer: u64,
        type_hash: u64,
        name: String,
        reply: ReplyTo<Result<u64, FindErrorKind>>,
    ) -> u64 {
        self.n_questions += 1;
        self.pending.insert(self.n_questions, Question { peer, type_hash, name, reply });
        self.n_questions
    }

    /// The questions that have to be repeated; those that nobody waits for are forgotten.
    pub(crate) fn pending(&mut self) -> Vec<(u64, u64, u64, String)> {
        self.pending.retain(|_, question| question.reply.is_wanted());
        let all = self.pending.iter();
        all.map(|(request, one)| (one.peer, *request, one.type_hash, one.name.clone())).collect()
    }

    /// A node has answered.
    pub(crate) fn found(&mut self, from: u64, request: u64, export: u64) {
        if self.pending.get(&request).is_some_and(|question| question.peer == from)
            && let Some(question) = self.pending.remove(&request)
        {
            let answer = if export == 0 { Err(FindErrorKind::NotExported) } else { Ok(export) };
            question.reply.reply(answer);
        }
    }

    pub(crate) fn end_peer(&mut self, peer: u64) {
        for question in self.take(|question| question.peer == peer) {
            question.reply.reply(Err(FindErrorKind::Unreachable));
        }
    }

    pub(crate) fn end_all(&mut self) {
        for question in self.take(|_| true) {
            question.reply.reply(Err(FindErrorKind::Unreachable));
        }
    }

    fn take(&mut self, is_it: impl Fn(&Question) -> bool) -> Vec<Question> {
        let over: Vec<u64> =
            self.pending.iter().filter(|(_, one)| is_it(one)).map(|(at, _)| *at).collect();
        over.iter().filter_map(|request| self.pending.remove(request)).collect()
    }
}

#[cfg(test)]
mod tests {
    use clockjack_testkit::ManualTime;

    use super::*;

    #[test]
    fn a_channel_beyond_the_limit_of_a_node_is_answered_by_its_end() {
        let time = ManualTime::start();
        let receiver = time.probe::<Delivery>().actor_ref();
        let mut links = Links::default();
        let open = |links: &mut Links, from, channel| {
            let route = links.route(from, channel);
            route.map(|_| links.add_inbound(from, channel, receiver.clone()))
        };
        for channel in 1..=CHANNELS_MAX as u64 {
            assert!(open(&mut links, 7, channel).is_ok(), "channel {channel}");
        }
        let channel = CHANNELS_MAX as u64 + 1;
        let refusal = Frame::End { channel, cause: EndCause::Unknown };
        assert_eq!(open(&mut links, 7, channel), Err(refusal));
        assert!(open(&mut links, 8, channel).is_ok(), "another node has its own limit");
        links.close(7, 1);
        assert!(open(&mut links, 7, channel).is_ok());
    }
}
