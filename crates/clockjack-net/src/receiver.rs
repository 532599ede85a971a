//! [`Receiver`]: one queue per channel, which decodes messages and passes them to their target.
//!
//! A target whose mailbox is full delays its own receiver only. The receiver waits with `send`, so
//! the order stays, and reports how far it is; the driver turns the reports into grants. A request
//! waits as any other message does: it counts in both windows until it is in the mailbox.
//!
//! The receiver does not know when an ask times out. It waits for an answer until the sender says
//! that nobody waits any more, which the sender repeats until it is confirmed.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    vec::Vec,
};
use core::{
    pin::Pin,
    task::{self, Poll, Waker},
    time::Duration,
};

use clockjack_actor::{
    Actor, ActorRef, ActorSystem, Context, DeadLetterReason, Failure, Mailbox, Next, Props, Signal,
    Terminated, TerminationCause,
};
use clockjack_sync::{Arc, spin_lock::SpinLock};
use clockjack_wire::{AnswerError, AskFor, DecodeError, Decoded, Wire, decode, frame::EndCause};

use crate::{NetMetrics, channel::WINDOW_FIRST, driver::NetMsg, window::Held};

/// After how many messages a receiver reports how far it is.
const REPORT_EVERY: u64 = WINDOW_FIRST / 2;

/// The most requests of a channel that the target has not answered. More than the window: a request
/// counts as taken when it is in the mailbox, and may be answered much later.
const ASKS_MAX: u16 = 16 * 1_024;

/// The most requests that are kept as forgotten before they were read: no more wait here.
const FORGOTTEN_MAX: usize = 1_024;

/// Whether somebody waits for the answer to a request.
#[derive(Default)]
struct Interest(SpinLock<(bool, Option<Waker>)>);

impl Interest {
    /// Nobody waits any more.
    fn end(&self) {
        let waker = self.0.with(|(is_over, waker)| {
            *is_over = true;
            waker.take()
        });
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A future of a request; `None` as soon as nobody waits for the answer. Dropped then, the request
/// does not wait for room any more.
struct Wanted<F> {
    future: F,
    interest: Arc<Interest>,
}

impl<F: Future + Unpin> Future for Wanted<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> Poll<Self::Output> {
        let new = cx.waker().clone();
        let (is_over, old) =
            self.interest.0.with(|(is_over, waker)| (*is_over, waker.replace(new)));
        drop(old);
        if is_over {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.future).poll(cx).map(Some)
    }
}

/// The sender of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) from: u64,
    pub(crate) channel: u64,
}

/// What the driver passes to a receiver, in the order of the numbers.
#[derive(Debug)]
pub(crate) enum Delivery {
    Message {
        number: u64,
        /// Zero if no answer is expected.
        request: u64,
        type_hash: u64,
        version: u16,
        time_left: Option<Duration>,
        body: Vec<u8>,
        held: Held,
    },
    /// Nobody waits for the answer to a request. Sent as a control message, so it goes before what
    /// waits.
    Forget(u64),
    /// The messages up to this number were lost, if they did not arrive.
    Lost(u64),
    /// The sender no longer uses the channel.
    Close,
}

/// See the [module](self).
struct Receiver<M> {
    target: ActorRef<M>,
    driver: ActorRef<NetMsg>,
    route: Route,
    metrics: Arc<SpinLock<NetMetrics>>,
    /// The number that was reported last.
    reported: u64,
    /// The requests whose answers are waited for.
    asks: BTreeMap<u64, Arc<Interest>>,
    /// What waits for room in the mailbox of the target; zero if it is no request.
    entering: Option<(u64, Arc<Interest>)>,
    /// The last request that was read.
    last_request: u64,
    /// Requests that were not read yet, and that nobody waits for.
    forgotten: BTreeSet<u64>,
    end: Option<EndCause>,
}

/// Starts a receiver.
pub(crate) fn start<M: Wire>(
    system: &ActorSystem,
    driver: &ActorRef<NetMsg>,
    route: Route,
    target: &ActorRef<M>,
    metrics: Arc<SpinLock<NetMetrics>>,
) -> Option<ActorRef<Delivery>> {
    let (target, driver) = (target.clone(), driver.clone());
    let receiver = Receiver {
        target,
        driver,
        route,
        metrics,
        reported: 0,
        asks: BTreeMap::new(),
        entering: None,
        last_request: 0,
        forgotten: BTreeSet::new(),
        end: None,
    };
    // One future more than requests: the one that waits for room in the mailbox of the target.
    let futures_max = ASKS_MAX + 1;
    // The window of the channel is the bound of the mailbox.
    let props = Props::once(receiver).mailbox(Mailbox::unbounded()).futures_max(futures_max);
    let name = format!("net-{:016x}-{}", route.from, route.channel);
    system.spawn_system(&name, props).ok()
}

impl<M: Wire> Actor for Receiver<M> {
    type Msg = Delivery;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let target = self.target.clone();
        cx.watch(&target)?;
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, delivery: Delivery) -> Result<Next, Failure> {
        match delivery {
            Delivery::Message { number, request, type_hash, version, time_left, body, held } => {
                self.last_request = self.last_request.max(request);
                let is_forgotten = self.forgotten.remove(&request);
                // Requests arrive in their order: smaller ones were lost.
                self.forgotten = self.forgotten.split_off(&self.last_request);
                if is_forgotten {
                    self.count_forgotten();
                    self.taken(number);
                    return Ok(Next::Stay);
                }
                let decoded = check_type::<M>(type_hash).and_then(|()| decode::<M>(version, &body));
                match decoded {
                    Ok(Decoded::Tell(msg)) => {
                        // A request that was read as a message without a `ReplyTo`: nobody will
                        // answer it.
                        self.answer(request, None);
                        self.enter(cx, number, 0, msg, held)
                    }
                    Ok(Decoded::Ask(ask)) => {
                        let within = time_left.unwrap_or(Duration::MAX);
                        match self.ask(cx, request, ask, within) {
                            Some(msg) => self.enter(cx, number, request, msg, held),
                            None => {
                                self.answer(request, None);
                                self.taken(number);
                                Ok(Next::Stay)
                            }
                        }
                    }
                    Err(_) => {
                        let path = self.target.path();
                        let reason = DeadLetterReason::Undecodable;
                        cx.system().report_dead_letter::<M>(&path, reason);
                        self.answer(request, None);
                        self.taken(number);
                        Ok(Next::Stay)
                    }
                }
            }
            Delivery::Forget(request) => {
                self.forget(request);
                Ok(Next::Stay)
            }
            Delivery::Lost(number) => {
                self.report(number);
                Ok(Next::Stay)
            }
            Delivery::Close => Ok(Next::Stop),
        }
    }

    fn signal(&mut self, cx: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        match signal {
            Signal::Terminated(end) => {
                self.end = Some(cause_of(&end));
                // The signal overtakes answers that the target gave before it stopped: their
                // futures are ready, and are polled before the mailbox. So this actor stops by its
                // mailbox; what is waiting there becomes dead letters of the target.
                let is_queued = cx.self_ref().tell(Delivery::Close).is_ok();
                Ok(if is_queued { Next::Stay } else { Next::Stop })
            }
            Signal::PostStop => {
                let Route { from, channel, .. } = self.route;
                let cause = self.end.unwrap_or(EndCause::Unknown);
                // The driver may have stopped before.
                drop(self.driver.tell(NetMsg::TargetEnded { from, channel, cause }));
                Ok(Next::Stay)
            }
            _ => Ok(Next::Unhandled),
        }
    }
}

fn check_type<M: Wire>(hash: u64) -> Result<(), DecodeError> {
    if hash == M::ID.hash() { Ok(()) } else { Err(DecodeError::unknown_type(hash, M::ID)) }
}

fn cause_of(end: &Terminated) -> EndCause {
    match end.cause() {
        TerminationCause::Failed => EndCause::Failed,
        _ => EndCause::Stopped,
    }
}

impl<M: Wire> Receiver<M> {
    fn target_stopped(&self, cx: &mut Context<'_, Self>) {
        let path = self.target.path();
        cx.system().report_dead_letter::<M>(&path, DeadLetterReason::Stopped);
    }

    /// Waits for the answer to a request, and returns the request, which has not been sent. One
    /// beyond [`ASKS_MAX`] is refused, and so are all if this actor stops, or its system is out of
    /// memory.
    fn ask(
        &mut self,
        cx: &mut Context<'_, Self>,
        request: u64,
        ask: AskFor<M>,
        within: Duration,
    ) -> Option<M> {
        if self.asks.len() >= usize::from(ASKS_MAX) {
            return None;
        }
        let (msg, future) = ask.unsent(&self.target, within).ok()?;
        let interest = Arc::new(Interest::default());
        let answering = Wanted { future, interest: interest.clone() };
        let then = move |me: &mut Self, _: &mut Context<'_, Self>, answer: Option<_>| {
            me.answered(request, answer);
        };
        cx.spawn_future(answering, then).ok()?;
        self.asks.insert(request, interest);
        Some(msg)
    }

    /// The target has answered a request, or nobody waits for the answer.
    fn answered(&mut self, request: u64, answer: Option<Result<Vec<u8>, AnswerError>>) {
        self.asks.remove(&request);
        // Without an answer, the request need not wait for room any more.
        if let Some((_, interest)) = self.entering.take_if(|(entering, _)| *entering == request) {
            interest.end();
        }
        if answer.is_none() {
            self.count_forgotten();
        }
        self.answer(request, answer.and_then(Result::ok));
    }

    /// Puts a message into the mailbox of the target, as soon as there is room; a request, unless
    /// nobody waits for its answer by then.
    fn enter(
        &mut self,
        cx: &mut Context<'_, Self>,
        number: u64,
        request: u64,
        msg: M,
        held: Held,
    ) -> Result<Next, Failure> {
        match self.target.tell(msg) {
            Ok(()) => self.taken(number),
            Err(refused) if refused.is_full() => {
                let interest = Arc::new(Interest::default());
                self.entering = Some((request, interest.clone()));
                let entering = Wanted { future: self.target.send(refused.into_inner()), interest };
                cx.wait(entering, move |me: &mut Self, cx: &mut Context<'_, Self>, sent| {
                    me.entering = None;
                    if matches!(sent, Some(Err(_))) {
                        me.target_stopped(cx);
                    }
                    me.taken(number);
                    drop(held);
                })?;
            }
            Err(_) => {
                self.target_stopped(cx);
                self.taken(number);
            }
        }
        Ok(Next::Stay)
    }

    /// Nobody waits for the answer to a request: it is dropped where it waits, in the mailbox of
    /// this actor or for room in that of the target. The answer confirms it to the sender, which
    /// repeats what is not confirmed.
    fn forget(&mut self, request: u64) {
        if let Some(interest) = self.asks.get(&request) {
            return interest.end();
        }
        if request > self.last_request {
            if self.forgotten.len() >= FORGOTTEN_MAX {
                return;
            }
            self.forgotten.insert(request);
        }
        self.answer(request, None);
    }

    fn count_forgotten(&self) {
        self.metrics.with(|metrics| metrics.asks_forgotten += 1);
    }

    fn answer(&self, request: u64, body: Option<Vec<u8>>) {
        if request != 0 {
            let Route { from, channel, .. } = self.route;
            let answer = NetMsg::Answer { from, channel, request, body };
            // A refused answer: the asker waits for its deadline.
            self.driver.tell_or_dead_letter(answer);
        }
    }

    /// The target has taken the message with this number.
    fn taken(&mut self, number: u64) {
        if number >= self.reported + REPORT_EVERY {
            self.report(number);
        }
    }

    fn report(&mut self, number: u64) {
        self.reported = self.reported.max(number);
        let Route { from, channel, .. } = self.route;
        // If the driver has no room, the sender queries and the next report counts.
        drop(self.driver.tell(NetMsg::Taken { from, channel, number }));
    }
}
