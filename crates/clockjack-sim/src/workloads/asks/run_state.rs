//! The oracle of the asks workload: records asks and futures when they start, and checks the
//! invariants.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard},
};

use clockjack_actor::{ActorError, ActorRef, AskError, ReplyTo};

use super::node::Msg;
use crate::{
    context::{SimContext, lock},
    invariant::Invariant,
};

/// How the result of an ask, or of another future, is awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// By a separate future outside of the system.
    Outside,
    /// The reply arrives as a message.
    Message,
    /// The actor continues to handle messages.
    Concurrent,
    /// The actor handles no user messages until the future ends.
    Exclusive,
    /// The future borrows the actor: the actor handles no messages at all.
    Borrowed,
}

impl WaitKind {
    /// The code in traces.
    pub(super) fn code(self) -> u64 {
        self as u64
    }

    /// Whether the actor handles no user messages while it waits.
    fn is_wait(self) -> bool {
        matches!(self, Self::Exclusive | Self::Borrowed)
    }
}

/// How a future ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A reply arrived, for the ask with this number.
    Answered(u64),
    TimedOut,
    Stopped,
    Dropped,
    ToItself,
    /// The ask could not be started.
    Refused,
    /// A sleep completed.
    Slept,
    /// The future was dropped before it ended, together with its owner.
    Cancelled,
}

impl End {
    pub(super) fn of(answer: &Result<u64, AskError>) -> Self {
        match answer {
            Ok(id) => Self::Answered(*id),
            Err(error) if error.is_timed_out() => Self::TimedOut,
            Err(error) if error.is_stopped() => Self::Stopped,
            Err(error) if error.is_dropped() => Self::Dropped,
            Err(error) if error.is_to_itself() => Self::ToItself,
            Err(_) => Self::Refused,
        }
    }

    fn code(self) -> u64 {
        match self {
            Self::Answered(_) => 0,
            Self::TimedOut => 1,
            Self::Stopped => 2,
            Self::Dropped => 3,
            Self::ToItself => 4,
            Self::Refused => 5,
            Self::Slept => 6,
            Self::Cancelled => 7,
        }
    }
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// The future is a sleep, or the request was not sent.
    None,
    /// Sent, or kept by the receiver.
    Open,
    /// Replied to; whether the asker still wanted the reply.
    Answered(bool),
    /// The owner has dropped the request.
    Dropped,
}

/// A future that was started.
struct FutureRecord {
    /// The value that started the future, and its actor index; `None` outside of the system.
    owner: Option<(u64, usize)>,
    how: WaitKind,
    to: Option<usize>,
    /// The receiver, until the future ends: later, another actor may have the same index.
    who: Option<ActorRef<Msg>>,
    due: u64,
    request: Request,
    end: Option<End>,
}

#[derive(Default)]
pub(super) struct Oracle {
    futures: Vec<FutureRecord>,
    /// The indices of futures that have not ended.
    open: BTreeSet<usize>,
    /// Started actor values, with their actor index.
    pub(super) alive: BTreeMap<u64, usize>,
    pub(super) n_values: u64,
    /// Values with a running handler.
    busy: BTreeSet<u64>,
    /// The actors by their index in the plan.
    pub(super) refs: BTreeMap<usize, ActorRef<Msg>>,
    /// Actors that were reported as stopped since the system was last idle.
    claims: Vec<ActorRef<Msg>>,
    /// Requests that exist somewhere.
    n_requests: u64,
    /// Unwanted replies whose sender did not ask to get them back.
    pub(super) n_late: u64,
    n_answered: u64,
    /// Messages that have reached a handler.
    pub(super) n_heard: u64,
}

/// The state that all actors of a run share.
#[derive(Clone)]
pub(super) struct RunState {
    pub(super) sim: SimContext,
    /// The maximum number of pending futures per actor.
    pub(super) futures_max: u64,
    oracle: Arc<Mutex<Oracle>>,
}

impl RunState {
    pub(super) fn new(sim: &SimContext, futures_max: u64) -> Self {
        Self { sim: sim.clone(), futures_max, oracle: Arc::default() }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// A future is about to start: it must not time out before these ticks have passed.
    pub(super) fn begins(
        &self,
        owner: Option<(u64, usize)>,
        how: WaitKind,
        asked: Option<(usize, &ActorRef<Msg>)>,
        ticks: u64,
    ) -> FutureGuard {
        let due = self.sim.now() + ticks;
        let mut oracle = self.oracle();
        let id = oracle.futures.len();
        let (to, who) = (asked.map(|asked| asked.0), asked.map(|asked| asked.1.clone()));
        oracle.futures.push(FutureRecord {
            owner,
            how,
            to,
            who,
            due,
            request: Request::None,
            end: None,
        });
        oracle.open.insert(id);
        drop(oracle);
        let to = to.map_or(u64::MAX, |to| to as u64);
        self.sim.record("begin", &[id as u64, to, how.code(), due]);
        FutureGuard { run_state: self.clone(), id, is_over: false }
    }

    /// The number of pending futures of a value.
    fn n_open(oracle: &Oracle, value: u64) -> u64 {
        let is_its = |id: &&usize| oracle.futures[**id].owner.is_some_and(|owner| owner.0 == value);
        oracle.open.iter().filter(is_its).count() as u64
    }

    /// The last future of a value was rejected.
    pub(super) fn is_refused(&self, value: u64, refused: &ActorError<()>) {
        let oracle = self.oracle();
        let n_open = Self::n_open(&oracle, value);
        let is_waiting = Self::is_waiting(&oracle, value).is_some();
        drop(oracle);
        self.sim.record("refused", &[value, n_open]);
        let is_right = refused.is_too_many_futures() && n_open >= self.futures_max
            || refused.is_already_waiting() && is_waiting;
        self.check(Invariant::M1, is_right, || {
            format!("{refused} with {n_open} futures, waiting {is_waiting}")
        });
    }

    /// The last future of a value was accepted: the limit must not be exceeded.
    pub(super) fn is_taken(&self, value: u64) {
        let n_open = Self::n_open(&self.oracle(), value);
        let most = self.futures_max;
        self.check(Invariant::M1, n_open <= most, || format!("{n_open} futures, of {most}"));
    }

    fn is_waiting(oracle: &Oracle, value: u64) -> Option<WaitKind> {
        let of = |id: &usize| {
            let record = &oracle.futures[*id];
            let is_its = record.owner.is_some_and(|owner| owner.0 == value);
            (is_its && record.how.is_wait()).then_some(record.how)
        };
        oracle.open.iter().find_map(of)
    }

    /// A request is sent.
    pub(super) fn request(&self, id: usize, reply: ReplyTo<u64>) -> TrackedRequest {
        let mut oracle = self.oracle();
        oracle.futures[id].request = Request::Open;
        oracle.n_requests += 1;
        drop(oracle);
        TrackedRequest { reply: Some(reply), note: Token { run_state: self.clone(), id } }
    }

    /// A future has ended, or was dropped.
    fn ends(&self, id: usize, end: End) {
        let now = self.sim.now();
        let mut oracle = self.oracle();
        oracle.open.remove(&id);
        oracle.n_answered += u64::from(matches!(end, End::Answered(_)));
        let record = &mut oracle.futures[id];
        let before = record.end.replace(end);
        let FutureRecord { owner, how, to, due, request, .. } = *record;
        let who = record.who.take();
        let is_alive = owner.is_none_or(|(value, _)| oracle.alive.contains_key(&value));
        if end == End::Stopped {
            oracle.claims.extend(who);
        }
        drop(oracle);
        self.sim.record("end", &[id as u64, end.code(), now]);
        let invariant = if request == Request::None { Invariant::A10 } else { Invariant::A9 };
        self.check(invariant, before.is_none(), || {
            format!("{id} ends by {before:?}, then {end:?}")
        });
        if end != End::Cancelled {
            self.check(Invariant::A10, is_alive, || {
                format!("{id} ends by {end:?}, after its actor")
            });
        }
        match end {
            End::Answered(of) => {
                let is_right = of == id as u64 && request == Request::Answered(true);
                self.check(Invariant::A9, is_right, || {
                    format!("{id} got the reply to {of}: {request:?}")
                });
            }
            End::TimedOut | End::Slept => self.check(Invariant::T1, now >= due, || {
                format!("{id} ends by {end:?} at {now}, due at {due}")
            }),
            End::Dropped => self.check(Invariant::A9, request == Request::Dropped, || {
                format!("{id} is reported as dropped: {request:?}")
            }),
            End::ToItself => {
                let is_right = how.is_wait() && owner.map(|owner| owner.1) == to;
                self.check(Invariant::A9, is_right, || format!("{id}: {to:?} is not the asker"));
            }
            End::Refused => self.check(Invariant::A9, false, || format!("{id} was refused")),
            End::Stopped | End::Cancelled => {}
        }
        if !matches!(end, End::Answered(_) | End::Cancelled) {
            self.check(Invariant::A9, request != Request::Answered(true), || {
                format!("{id} ends by {end:?}, but its reply was accepted")
            });
        }
    }

    /// A request was replied to, whether wanted or not, or was dropped.
    fn request_done(&self, id: usize, request: Request) {
        let mut oracle = self.oracle();
        let before = core::mem::replace(&mut oracle.futures[id].request, request);
        oracle.n_requests -= 1;
        let end = oracle.futures[id].end;
        drop(oracle);
        self.check(Invariant::A9, before == Request::Open, || {
            format!("{id}: {before:?}, then {request:?}")
        });
        let is_late = end.is_some() && request == Request::Answered(true);
        self.check(Invariant::A9, !is_late, || {
            format!("{id} ended by {end:?}, but its reply was accepted")
        });
    }

    /// A handler of a value starts; `is_user` means that it handles a user message.
    pub(super) fn enters(&self, value: u64, is_user: bool) -> RunningCall<'_> {
        let mut oracle = self.oracle();
        oracle.n_heard += 1;
        let is_free = oracle.busy.insert(value);
        let is_alive = oracle.alive.contains_key(&value);
        let waits = Self::is_waiting(&oracle, value);
        drop(oracle);
        self.check(Invariant::A1, is_free, || format!("value {value} is in two handlers"));
        self.check(Invariant::A8, is_alive, || {
            format!("a handler of value {value}, which is not alive")
        });
        let is_held = if is_user { waits.is_some() } else { waits == Some(WaitKind::Borrowed) };
        self.check(Invariant::A10, !is_held, || {
            format!("value {value} has a message and waits: {waits:?}")
        });
        RunningCall { run_state: self, value }
    }

    /// A value ends, by a restart or a stop: its futures must have been dropped before.
    pub(super) fn value_ends(&self, value: u64) {
        let mut oracle = self.oracle();
        oracle.alive.remove(&value);
        let n_open = Self::n_open(&oracle, value);
        drop(oracle);
        self.check(Invariant::A10, n_open == 0, || {
            format!("{n_open} futures outlive value {value}")
        });
    }

    /// The number of pending futures.
    pub(super) fn n_open_all(&self) -> usize {
        self.oracle().open.len()
    }

    /// The number of asks that got a reply.
    pub(super) fn n_answered(&self) -> u64 {
        self.oracle().n_answered
    }

    /// The system is idle: nothing may be overdue, and every future that can have ended must have
    /// ended.
    pub(super) fn check_idle_state(&self) {
        let now = self.sim.now();
        let mut oracle = self.oracle();
        let claims = core::mem::take(&mut oracle.claims);
        for id in &oracle.open {
            let FutureRecord { owner, due, request, how, .. } = oracle.futures[*id];
            // Other futures wait while the actor is borrowed.
            let lent = owner.and_then(|(value, _)| Self::is_waiting(&oracle, value));
            if lent == Some(WaitKind::Borrowed) && how != WaitKind::Borrowed {
                continue;
            }
            self.check(Invariant::T2, due > now, || format!("{id}, {how:?}, was due at {due}"));
            let is_settled = matches!(request, Request::Answered(_) | Request::Dropped);
            self.check(Invariant::A9, !is_settled, || {
                format!("{id} is still pending: {request:?}")
            });
        }
        drop(oracle);
        for who in claims {
            self.check(Invariant::A9, who.is_stopped(), || {
                format!("{} has not stopped", who.path())
            });
        }
    }

    /// Nothing may be left.
    pub(super) fn check_end(&self) {
        let oracle = self.oracle();
        let (n_open, n_requests) = (oracle.open.len() as u64, oracle.n_requests);
        let n_alive = oracle.alive.len() as u64;
        let n_cards = oracle.futures.len() as u64;
        drop(oracle);
        self.sim.record("asked", &[n_cards]);
        self.sim.check_equal(Invariant::A9, "pending futures", n_open, 0);
        self.sim.check_equal(Invariant::A3, "remaining requests", n_requests, 0);
        self.sim.check_equal(Invariant::S2, "live actor values", n_alive, 0);
    }
}

/// A running handler.
pub(super) struct RunningCall<'d> {
    run_state: &'d RunState,
    value: u64,
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.run_state.oracle().busy.remove(&self.value);
    }
}

/// A guard of a future: the oracle learns how the future ends.
pub(super) struct FutureGuard {
    run_state: RunState,
    pub(super) id: usize,
    is_over: bool,
}

impl FutureGuard {
    pub(super) fn ends(mut self, end: End) {
        self.is_over = true;
        self.run_state.ends(self.id, end);
    }
}

impl Drop for FutureGuard {
    fn drop(&mut self) {
        if !self.is_over {
            self.run_state.ends(self.id, End::Cancelled);
        }
    }
}

/// A request with its reply handle.
pub(super) struct TrackedRequest {
    reply: Option<ReplyTo<u64>>,
    note: Token,
}

impl TrackedRequest {
    /// Replies; `is_back` requests that an unwanted reply is returned.
    pub(super) fn answer(mut self, is_back: bool) {
        let Some(reply) = self.reply.take() else { return };
        let Token { run_state, id } = self.note.clone();
        let is_wanted = reply.is_wanted();
        if is_back {
            let is_taken = reply.try_reply(id as u64).is_ok();
            run_state.check(Invariant::A9, is_taken == is_wanted, || {
                format!("the answer to {id} is taken: {is_taken}, wanted: {is_wanted}")
            });
        } else {
            run_state.oracle().n_late += u64::from(!is_wanted);
            reply.reply(id as u64);
        }
        run_state.sim.record("answer", &[id as u64, u64::from(is_wanted)]);
        run_state.request_done(id, Request::Answered(is_wanted));
    }
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            let Token { run_state, id } = &self.note;
            run_state.sim.record("let-go", &[*id as u64]);
            run_state.request_done(*id, Request::Dropped);
            // Only this drop informs the asker.
            drop(reply);
        }
    }
}

#[derive(Clone)]
struct Token {
    run_state: RunState,
    id: usize,
}
