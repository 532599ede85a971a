//! [`RemoteProxy`]: the local actor that encodes messages for one remote actor.
//!
//! The proxy takes a message out of its mailbox, encodes it, takes a number, and passes the frame
//! to the driver. Without credit it waits, and reads no further message meanwhile: so its mailbox
//! fills up, `tell` returns "full" and `send` waits. It stops once: when its channel has ended.

use alloc::vec::Vec;
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

/// See the [module](self).
pub(crate) struct RemoteProxy<M> {
    pub(crate) channel: Arc<Outbound>,
    pub(crate) driver: ActorRef<NetMsg>,
    pub(crate) shared: Arc<NetShared>,
    pub(crate) message: PhantomData<fn(M)>,
}

impl<M: Wire> Actor for RemoteProxy<M> {
    type Msg = M;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
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
            Ok((body, reply)) => self.send(cx, body, reply),
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
    /// Sends an encoded message, as soon as there is credit.
    fn send(
        &mut self,
        cx: &mut Context<'_, Self>,
        body: Vec<u8>,
        reply: Option<PendingReply>,
    ) -> Result<Next, Failure> {
        if reply.as_ref().is_some_and(|reply| !reply.is_wanted()) {
            // The ask was over while it waited here. Its asker knows.
            self.shared.metrics.with(|metrics| metrics.asks_over += 1);
            return Ok(Next::Stay);
        }
        if let Some(number) = self.channel.take_number(cost(&body)) {
            return self.send_numbered(cx, number, body, reply);
        }
        if self.channel.has_ended() {
            return self.unreachable(cx, reply);
        }
        let is_link_full = !self.channel.link.has_credit();
        self.shared.metrics.with(|metrics| {
            metrics.link_full += u64::from(is_link_full);
            metrics.channel_full += u64::from(!is_link_full);
        });
        let credit = Credit(self.channel.clone());
        cx.wait(credit, move |me: &mut Self, cx: &mut Context<'_, Self>, ()| {
            me.send(cx, body, reply)
        })?;
        Ok(Next::Stay)
    }

    fn send_numbered(
        &mut self,
        cx: &mut Context<'_, Self>,
        number: u64,
        body: Vec<u8>,
        reply: Option<PendingReply>,
    ) -> Result<Next, Failure> {
        let request = match reply.map(|reply| self.channel.add_request(reply)) {
            Some(Ok(request)) => request,
            Some(Err(reply)) => {
                self.channel.link.give_back(cost(&body));
                return self.unreachable(cx, Some(reply));
            }
            None => 0,
        };
        let channel = self.channel.clone();
        match self.driver.tell(NetMsg::Send { channel, number, request, body }) {
            Ok(()) => Ok(Next::Stay),
            Err(refused) if refused.is_full() => {
                let sending = self.driver.send(refused.into_inner());
                cx.wait(sending, |me: &mut Self, cx: &mut Context<'_, Self>, sent| match sent {
                    Ok(()) => Ok(Next::Stay),
                    Err(_) => me.unreachable(cx, None),
                })?;
                Ok(Next::Stay)
            }
            Err(_) => self.unreachable(cx, None),
        }
    }

    fn unreachable(
        &self,
        cx: &mut Context<'_, Self>,
        reply: Option<PendingReply>,
    ) -> Result<Next, Failure> {
        cx.system().report_dead_letter::<M>(cx.path(), DeadLetterReason::Unreachable);
        drop(reply);
        Ok(Next::Stay)
    }
}
