//! Channels: numbers and windows between a remote proxy and its target.
//!
//! The sender numbers its messages from one and may send up to the *limit*, an absolute number that
//! the receiver raises by grants. So a lost grant loses no credit: the next one is larger. The
//! receiver delivers each number at most once and in order; numbers that never came are a gap, and
//! are counted when a larger number arrives, or when the sender reports how far it has sent.
//!
//! The sending half is shared by the proxy, which takes numbers and waits for credit, and by the
//! driver, which applies grants, answers and the end. One lock protects it; wakers and answers are
//! used after it was released.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::{
    mem,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use clockjack_actor::{ActorPath, ActorSystem, TerminationCause};
use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_wire::{PendingReply, frame::Frame};

use crate::window::OutLink;

/// The number of messages that may be sent before the first grant.
pub(crate) const WINDOW_FIRST: u64 = 64;

/// The number of messages that a receiver accepts beyond the last one that its target has taken.
pub(crate) const WINDOW: u64 = 1_024;

/// How many requests a tick repeats that the receiver has not confirmed as forgotten.
const FORGETS_REPEATED: usize = 64;

/// The sending half of a channel.
pub(crate) struct Outbound {
    pub(crate) id: u64,
    /// The incarnation of this node that the channel belongs to, and the window of its link, too.
    pub(crate) me: u64,
    /// The incarnation of the receiver.
    pub(crate) peer: u64,
    pub(crate) export: u64,
    pub(crate) type_hash: u64,
    pub(crate) version: u16,
    /// The window of all channels to the receiver.
    pub(crate) link: Arc<OutLink>,
    /// Reports a message of the proxy as a dead letter.
    dead_letter: fn(&ActorSystem, &ActorPath),
    state: SpinLock<OutboundState>,
}

#[derive(Default)]
struct OutboundState {
    /// The last number that the proxy has taken.
    sent: u64,
    /// The last number that the driver has sent. It may be behind, and reports never say more: a
    /// message that is sent after a report of it would count as lost.
    pushed: u64,
    limit: u64,
    /// The last number that the receiver has confirmed.
    received: u64,
    /// Whether the opening was sent, or is about to be. Otherwise the channel has no credit: what
    /// is sent before its opening is lost.
    may_open: bool,
    /// Whether the receiver has confirmed the opening.
    is_open: bool,
    end: Option<TerminationCause>,
    path: Option<ActorPath>,
    n_requests: u64,
    replies: BTreeMap<u64, PendingReply>,
    /// Requests that nobody waits for, until the receiver confirms that it has forgotten them.
    forgotten: BTreeSet<u64>,
    credit_waker: Option<Waker>,
    end_waker: Option<Waker>,
    /// What was sent at the last tick, to see whether the channel rests.
    sent_at_tick: u64,
}

impl Outbound {
    /// A channel of an incarnation of this node to an export: the incarnation of its node, its
    /// number, and the type of its messages with their version.
    pub(crate) fn new(
        (id, me): (u64, u64),
        (peer, export, type_hash): (u64, u64, u64),
        version: u16,
        link: Arc<OutLink>,
        dead_letter: fn(&ActorSystem, &ActorPath),
    ) -> Self {
        let may_open = link.take_open();
        let limit = if may_open { WINDOW_FIRST } else { 0 };
        let state = OutboundState { limit, may_open, ..OutboundState::default() };
        let state = SpinLock::new(state);
        Self { id, me, peer, export, type_hash, version, link, dead_letter, state }
    }

    /// The path of the proxy, which has started.
    pub(crate) fn set_path(&self, path: ActorPath) {
        self.state.with(|state| state.path = Some(path));
    }

    /// Reports a message as a dead letter: its target is not reached any more.
    pub(crate) fn unreachable(&self, system: &ActorSystem) {
        if let Some(path) = self.state.with(|state| state.path.clone()) {
            (self.dead_letter)(system, &path);
        }
    }

    /// The number of the next message, which counts so many bytes, if the windows of the channel
    /// and of the link have credit.
    pub(crate) fn take_number(&self, bytes: u64) -> Option<u64> {
        // Only the proxy takes numbers: the credit that it finds stays, unless the channel ends.
        let has_credit = self.state.with(|state| state.sent < state.limit && state.end.is_none());
        if !has_credit || !self.link.reserve(bytes) {
            return None;
        }
        let number = self.state.with(|state| {
            let has_credit = state.sent < state.limit && state.end.is_none();
            has_credit.then(|| {
                state.sent += 1;
                state.sent
            })
        });
        if number.is_none() {
            self.link.give_back(bytes);
        }
        number
    }

    /// The driver has sent the message with this number.
    pub(crate) fn pushed(&self, number: u64) {
        self.state.with(|state| state.pushed = number);
    }

    /// Keeps the right to answer a request, and returns the number of the request. Gives it back if
    /// the channel has ended.
    pub(crate) fn add_request(&self, reply: PendingReply) -> Result<u64, PendingReply> {
        self.state.with(|state| {
            if state.end.is_some() {
                return Err(reply);
            }
            state.n_requests += 1;
            state.replies.insert(state.n_requests, reply);
            Ok(state.n_requests)
        })
    }

    /// The receiver has done with a request: returns the right to answer it, unless nobody waits.
    pub(crate) fn take_request(&self, request: u64) -> Option<PendingReply> {
        self.state.with(|state| {
            state.forgotten.remove(&request);
            state.replies.remove(&request)
        })
    }

    /// All rights to answer, when there will be no answers any more.
    pub(crate) fn take_requests(&self) -> BTreeMap<u64, PendingReply> {
        self.state.with(|state| mem::take(&mut state.replies))
    }

    /// Forgets requests whose askers no longer wait. Returns their numbers, and the first of those
    /// that the receiver has not confirmed: it would keep them for good if a frame was lost.
    pub(crate) fn drop_unwanted(&self) -> Vec<u64> {
        let replies = self.take_requests();
        let (wanted, unwanted): (BTreeMap<_, _>, BTreeMap<_, _>) =
            replies.into_iter().partition(|(_, reply)| reply.is_wanted());
        self.state.with(|state| {
            state.replies.extend(wanted);
            let repeated = state.forgotten.iter().take(FORGETS_REPEATED).copied();
            let forgets = repeated.chain(unwanted.keys().copied()).collect();
            state.forgotten.extend(unwanted.keys());
            forgets
        })
    }

    /// The receiver allows messages up to a number, and has got those up to another.
    pub(crate) fn grant(&self, limit: u64, received: u64) {
        let waker = self.state.with(|state| {
            state.is_open = true;
            state.limit = state.limit.max(limit);
            // No more than was sent: the receiver is not trusted.
            state.received = state.received.max(received.min(state.sent));
            if state.sent < state.limit { state.credit_waker.take() } else { None }
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether the opening may be sent now; otherwise a [`tick`](Self::tick) sends it.
    pub(crate) fn may_open(&self) -> bool {
        self.state.with(|state| state.may_open)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state.with(|state| state.end.is_some())
    }

    /// Ends the channel. Only the first cause counts.
    pub(crate) fn end(&self, cause: TerminationCause) {
        let wakers = self.state.with(|state| {
            state.end.get_or_insert(cause);
            [state.credit_waker.take(), state.end_waker.take()]
        });
        for waker in wakers.into_iter().flatten() {
            waker.wake();
        }
    }

    /// The frame that a tick repeats, if the receiver has not confirmed something: the opening, or
    /// what was sent last, if nothing was sent since the last tick.
    pub(crate) fn tick(&self) -> Option<Frame<'static>> {
        let has_to_open = self.state.with(|state| !state.is_open && state.end.is_none());
        if has_to_open && self.link.take_open() {
            self.state.with(|state| state.may_open = true);
            return Some(self.open());
        }
        self.state.with(|state| {
            let rests = mem::replace(&mut state.sent_at_tick, state.pushed) == state.pushed;
            if state.end.is_some() || !state.is_open {
                None
            } else if (rests && state.received < state.pushed) || state.sent >= state.limit {
                Some(Frame::Query { channel: self.id, sent: state.pushed })
            } else {
                None
            }
        })
    }

    pub(crate) fn open(&self) -> Frame<'static> {
        Frame::Open {
            channel: self.id,
            export: self.export,
            type_hash: self.type_hash,
            version: self.version,
        }
    }
}

/// Completes when there is credit, or the channel has ended. Other proxies may take the credit of
/// the link in between: then it has to be waited for again.
pub(crate) struct Credit(pub(crate) Arc<Outbound>);

impl Future for Credit {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (channel, link) = (&self.0, &self.0.link);
        let waker = cx.waker().clone();
        // Always, because the end of the channel wakes this one.
        let (old, has_ended, has_credit) = channel.state.with(|state| {
            let old = state.credit_waker.replace(waker);
            (old, state.end.is_some(), state.sent < state.limit)
        });
        drop(old);
        if has_ended || (has_credit && link.wait(channel.id, cx.waker().clone()).is_err()) {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        self.link.forget(self.id);
    }
}

/// Completes when the channel has ended.
pub(crate) struct Ended(pub(crate) Arc<Outbound>);

impl Future for Ended {
    type Output = TerminationCause;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TerminationCause> {
        let mut waker = Some(cx.waker().clone());
        let (poll, old) = self.0.state.with(|state| match state.end {
            Some(cause) => (Poll::Ready(cause), None),
            None => (Poll::Pending, mem::replace(&mut state.end_waker, waker.take())),
        });
        drop(old);
        poll
    }
}

/// What to do with a message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Deliver it; this many before it were lost.
    Next { n_lost: u64 },
    /// It, or a later one, has arrived before.
    Repeated,
    /// The sender had no credit for it.
    BeyondWindow,
}

/// The receiving half of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inbound {
    received: u64,
    limit: u64,
}

impl Inbound {
    pub(crate) const fn new() -> Self {
        Self { received: 0, limit: WINDOW_FIRST }
    }

    /// Whether a message with this number, or a later one, has arrived before.
    pub(crate) fn has_arrived(&self, number: u64) -> bool {
        number <= self.received
    }

    /// A message with this number has arrived.
    pub(crate) fn arrive(&mut self, number: u64) -> Arrival {
        if number > self.limit {
            return Arrival::BeyondWindow;
        }
        let Some(n_lost) = number.checked_sub(self.received + 1) else { return Arrival::Repeated };
        self.received = number;
        Arrival::Next { n_lost }
    }

    /// The sender reports that it has sent up to this number. Returns how many were lost.
    pub(crate) fn sender_reports(&mut self, sent: u64) -> u64 {
        // No more than the sender had credit for: it is not trusted.
        let sent = sent.min(self.limit);
        let n_lost = sent.saturating_sub(self.received);
        self.received += n_lost;
        n_lost
    }

    /// The target has taken all messages up to this number. Returns whether the limit has risen.
    pub(crate) fn taken(&mut self, number: u64) -> bool {
        let limit = number.saturating_add(WINDOW);
        let has_risen = limit > self.limit;
        self.limit = self.limit.max(limit);
        has_risen
    }

    pub(crate) fn grant(&self, channel: u64) -> Frame<'static> {
        Frame::Grant { channel, limit: self.limit, received: self.received }
    }

    /// The last number that has arrived.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::window::LINK_WINDOW;

    fn outbound() -> Outbound {
        Outbound::new((1, 5), (2, 3, 4), 1, Arc::new(OutLink::new()), |_, _| ())
    }

    proptest! {
        /// Any losses, repetitions and reports: what is delivered is a subsequence in order, each
        /// number is delivered or counted as lost, and the window is never exceeded.
        #[test]
        fn every_number_is_delivered_once_or_counted_as_lost(
            steps in proptest::collection::vec((0..10_u8, any::<bool>()), 1..2_000),
        ) {
            let outbound = outbound();
            let mut inbound = Inbound::new();
            let (mut delivered, mut n_lost, mut sent) = (Vec::new(), 0, 0);
            for (step, is_lost) in steps {
                match step {
                    0..=6 => {
                        let Some(number) = outbound.take_number(1) else { continue };
                        sent = number;
                        if is_lost {
                            continue;
                        }
                        match inbound.arrive(number) {
                            Arrival::Next { n_lost: n } => {
                                n_lost += n;
                                delivered.push(number);
                            }
                            other => prop_assert!(false, "{:?}", other),
                        }
                        prop_assert_eq!(inbound.arrive(number), Arrival::Repeated);
                    }
                    7 => n_lost += inbound.sender_reports(sent),
                    8 => {
                        inbound.taken(inbound.received());
                    }
                    _ => {
                        let Frame::Grant { limit, received, .. } = inbound.grant(1) else {
                            unreachable!("it is a grant")
                        };
                        if !is_lost {
                            outbound.grant(limit, received);
                        }
                    }
                }
            }
            n_lost += inbound.sender_reports(sent);
            prop_assert!(delivered.is_sorted());
            prop_assert_eq!(delivered.len() as u64 + n_lost, sent);
            prop_assert_eq!(inbound.arrive(u64::MAX), Arrival::BeyondWindow);
            // All credit is returned.
            inbound.taken(inbound.received());
            let Frame::Grant { limit, received, .. } = inbound.grant(1) else {
                unreachable!("it is a grant")
            };
            prop_assert_eq!((limit, received), (sent + WINDOW, sent));
        }
    }

    #[test]
    fn a_sender_without_credit_gets_no_number() {
        let outbound = outbound();
        let numbers: Vec<u64> = core::iter::from_fn(|| outbound.take_number(1)).collect();
        assert_eq!(numbers.len() as u64, WINDOW_FIRST);
        outbound.grant(WINDOW_FIRST, 10);
        assert_eq!(outbound.take_number(1), None, "the same grant again");
        outbound.grant(WINDOW_FIRST + 1, 10);
        assert_eq!(outbound.take_number(1), Some(WINDOW_FIRST + 1));
        outbound.grant(u64::MAX, 10);
        outbound.end(TerminationCause::Stopped);
        assert_eq!(outbound.take_number(1), None, "it has ended");
    }

    /// A message behind the report, in the mailbox of the driver, would count as lost.
    #[test]
    fn a_report_names_no_message_that_was_not_sent() {
        let outbound = outbound();
        outbound.grant(WINDOW_FIRST, 0);
        while outbound.take_number(1).is_some() {}
        let reported = |outbound: &Outbound| match outbound.tick() {
            Some(Frame::Query { sent, .. }) => sent,
            other => panic!("{other:?}"),
        };
        assert_eq!(reported(&outbound), 0);
        outbound.pushed(WINDOW_FIRST);
        assert_eq!(reported(&outbound), WINDOW_FIRST);
    }

    #[test]
    fn a_channel_with_credit_waits_for_that_of_its_link() {
        let outbound = outbound();
        assert_eq!(outbound.take_number(LINK_WINDOW), Some(1));
        assert_eq!(outbound.take_number(1), None, "the link is full");
        outbound.link.grant(LINK_WINDOW + 1);
        assert_eq!(outbound.take_number(1), Some(2), "no number was lost");
    }
}
