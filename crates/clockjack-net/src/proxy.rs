//! [`RemoteProxy`]: the local actor that encodes messages for one remote actor.
//!
//! The proxy takes a message out of its mailbox, encodes it, takes a number, and passes the frame
//! to the driver. Without credit it waits, and reads no further message meanwhile: so its mailbox
//! fills up, `tell` returns "full" and `send` waits. A control message that arrives meanwhile goes
//! before the one that waits. The proxy stops once: when its channel has ended.

use alloc::{collections::VecDeque, vec::Vec};
use core::marker::PhantomData;

use clockjack_actor::{
    Actor, ActorRef, Context, DeadLetterReason, Failure, Next, Signal, TerminationCause,
};
use clockjack_sync::Arc;
use clockjack_wire::{PendingReply, Wire, encode};

use crate::{
    channel::{Credit, Ended, Outbound},
    driver::NetMsg,
    shared::NetShared,
    window::cost,
};

/// The bytes of a message, and the right to answer it.
pub(crate) type Encoded = (Vec<u8>, Option<PendingReply>);

/// See the [module](self).
pub(crate) struct RemoteProxy<M> {
    pub(crate) channel: Arc<Outbound>,
    pub(crate) driver: ActorRef<NetMsg>,
    pub(crate) shared: Arc<NetShared>,
    /// Messages that wait for credit; all but the last one are control messages.
    pub(crate) waiting: VecDeque<Encoded>,
    pub(crate) message: PhantomData<fn(M)>,
}

impl<M: Wire> Actor for RemoteProxy<M> {
    type Msg = M;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.channel.set_path(cx.path().clone());
        let ended = Ended(self.channel.clone());
        cx.spawn_future(ended, |me: &mut Self, cx: &mut Context<'_, Self>, cause| {
            cx.stop_self_because(cause);
            // After the stop: so the askers learn that the actor has stopped.
            drop(me.channel.take_requests());
        })?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: M) -> Result<Next, Failure> {
        match encode(msg) {
            // While a message waits for credit, only control messages arrive. They go before it,
            // in their order.
            Ok(message) if !self.waiting.is_empty() => {
                self.waiting.insert(self.waiting.len() - 1, message);
                Ok(Next::Stay)
            }
            Ok(message) => {
                self.waiting.push_back(message);
                self.send_waiting(cx)
            }
            Err(refused) => {
                cx.system().report_dead_letter::<M>(cx.path(), DeadLetterReason::Unsendable);
                drop(refused);
                Ok(Next::Stay)
            }
        }
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        if !matches!(signal, Signal::PostStop) {
            return Ok(Next::Unhandled);
        }
        let Outbound { peer, export, type_hash, .. } = *self.channel;
        self.channel.end(TerminationCause::Stopped);
        for _ in core::mem::take(&mut self.waiting) {
            self.unreachable(cx);
        }
        drop(self.channel.take_requests());
        let key = (peer, export, type_hash);
        let pid = cx.pid();
        let removed = self.shared.state.with(|state| {
            // There may be a newer proxy already.
            let is_mine = state.proxies.get(&key).is_some_and(|entry| entry.pid == pid);
            if is_mine { state.proxies.remove(&key) } else { None }
        });
        drop(removed);
        // The driver may have stopped before.
        drop(self.driver.tell(NetMsg::Closed(self.channel.clone())));
        Ok(Next::Stay)
    }
}

impl<M: Wire> RemoteProxy<M> {
    /// Sends encoded messages, in this order, as soon as there is credit.
    fn send_waiting(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        while let Some(message) = self.waiting.pop_front() {
            if let Some(message) = self.send(cx, message) {
                self.waiting.push_front(message);
                let is_link_full = !self.channel.link.has_credit();
                self.shared.metrics.with(|metrics| {
                    metrics.link_full += u64::from(is_link_full);
                    metrics.channel_full += u64::from(!is_link_full);
                });
                let credit = Credit(self.channel.clone());
                cx.wait(credit, |me: &mut Self, cx: &mut Context<'_, Self>, ()| {
                    me.send_waiting(cx)
                })?;
                break;
            }
        }
        Ok(Next::Stay)
    }

    /// Sends a message, or returns it if there is no credit.
    fn send(&self, cx: &mut Context<'_, Self>, message: Encoded) -> Option<Encoded> {
        let (body, reply) = message;
        if reply.as_ref().is_some_and(|reply| !reply.is_wanted()) {
            // The ask was over while it waited here. Its asker knows.
            self.shared.metrics.with(|metrics| metrics.asks_over += 1);
            return None;
        }
        if let Some(number) = self.channel.take_number(cost(&body)) {
            self.send_numbered(cx, number, body, reply);
        } else if self.channel.has_ended() {
            self.unreachable(cx);
        } else {
            return Some((body, reply));
        }
        None
    }

    fn send_numbered(
        &self,
        cx: &mut Context<'_, Self>,
        number: u64,
        body: Vec<u8>,
        reply: Option<PendingReply>,
    ) {
        let request = match reply.map(|reply| self.channel.add_request(reply)) {
            Some(Ok(request)) => request,
            Some(Err(_)) => {
                self.channel.link.give_back(cost(&body));
                return self.unreachable(cx);
            }
            None => 0,
        };
        let channel = self.channel.clone();
        // The mailbox of the driver has no bound; it may have stopped.
        if self.driver.tell(NetMsg::Send { channel, number, request, body }).is_err() {
            self.unreachable(cx);
        }
    }

    fn unreachable(&self, cx: &mut Context<'_, Self>) {
        cx.system().report_dead_letter::<M>(cx.path(), DeadLetterReason::Unreachable);
    }
}
