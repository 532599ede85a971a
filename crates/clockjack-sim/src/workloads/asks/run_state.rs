//! What is known of asks and of futures by those who begin them, and the invariants that follow.

use alloc::{
    collections::{BTreeMap, BTreeSet},
    format,
    string::String,
    sync::Arc,
    vec::Vec,
};
use std::sync::{Mutex, MutexGuard};

use clockjack_actor::{ActorRef, AskError, FutureRefusedKind, ReplyTo};

use super::node::Msg;
use crate::{
    context::{SimContext, open},
    invariant::Invariant,
};

/// How an ask, or another future, is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By nobody of the system: a future by itself.
    Outside,
    /// The answer comes as a message.
    Message,
    /// The actor goes on with messages.
    Beside,
    /// The actor takes no user messages until it is over.
    Exclusive,
    /// The actor is lent to it: it takes none at all.
    Lent,
}

impl How {
    /// Its number in traces.
    pub(super) fn code(self) -> u64 {
        self as u64
    }

    /// Whether the actor takes no messages while it waits.
    fn is_wait(self) -> bool {
        matches!(self, Self::Exclusive | Self::Lent)
    }
}

/// How a future has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// There is an answer: to the ask of this number.
    Answered(u64),
    TimedOut,
    Stopped,
    Dropped,
    ToItself,
    /// It could not be made.
    Refused,
    /// A sleep is over.
    Slept,
    /// It was dropped before it had ended: with who has begun it.
    GivenUp,
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
            Self::GivenUp => 7,
        }
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    /// It is a sleep, or was not sent.
    None,
    /// On its way, or kept by who was asked.
    Open,
    /// It was answered; whether somebody wanted that.
    Answered(bool),
    /// Whoever had it has let go of it.
    Dropped,
}

/// A future that was begun.
struct FutureRecord {
    /// The value that has begun it, and which actor that is; none outside.
    owner: Option<(u64, usize)>,
    how: How,
    to: Option<usize>,
    /// Who was asked, as long as that has not ended: another one may have the number later.
    who: Option<ActorRef<Msg>>,
    due: u64,
    request: Request,
    end: Option<End>,
}

#[derive(Default)]
pub(super) struct Oracle {
    futures: Vec<FutureRecord>,
    /// Cards without an end.
    open: BTreeSet<usize>,
    /// Values of actors that are started, and which actor each is.
    pub(super) alive: BTreeMap<u64, usize>,
    pub(super) n_values: u64,
    /// Values that are in a handler.
    busy: BTreeSet<u64>,
    /// The actors, by their numbers in the plan.
    pub(super) refs: BTreeMap<usize, ActorRef<Msg>>,
    /// Who was said to have stopped since all was quiet last.
    claims: Vec<ActorRef<Msg>>,
    /// Requests that are somewhere.
    n_requests: u64,
    /// Answers that nobody wanted, and that were not asked for back.
    pub(super) n_late: u64,
    n_answered: u64,
    /// Messages that have come to a handler.
    pub(super) n_heard: u64,
}

/// What all actors of a run share.
#[derive(Clone)]
pub(super) struct RunState {
    pub(super) sim: SimContext,
    /// How many futures an actor may have under way.
    pub(super) futures_max: u64,
    oracle: Arc<Mutex<Oracle>>,
}

impl RunState {
    pub(super) fn new(sim: &SimContext, futures_max: u64) -> Self {
        Self { sim: sim.clone(), futures_max, oracle: Arc::default() }
    }

    pub(super) fn oracle(&self) -> MutexGuard<'_, Oracle> {
        open(&self.oracle)
    }

    fn check(&self, invariant: Invariant, is_kept: bool, text: impl FnOnce() -> String) {
        self.sim.check(invariant, is_kept, text);
    }

    /// A future is description to begin: it will not end by time before these ticks have passed.
    pub(super) fn begins(
        &self,
        owner: Option<(u64, usize)>,
        how: How,
        asked: Option<(usize, &ActorRef<Msg>)>,
        ticks: u64,
    ) -> TimerHandle {
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
        self.sim.note("begin", &[id as u64, to, how.code(), due]);
        TimerHandle { run_state: self.clone(), id, is_over: false }
    }

    /// The futures of a value that are under way.
    fn n_open(oracle: &Oracle, value: u64) -> u64 {
        let is_its = |id: &&usize| oracle.futures[**id].owner.is_some_and(|owner| owner.0 == value);
        oracle.open.iter().filter(is_its).count() as u64
    }

    /// The last future of a value was refused.
    pub(super) fn is_refused(&self, value: u64, kind: FutureRefusedKind) {
        let oracle = self.oracle();
        let n_open = Self::n_open(&oracle, value);
        let is_waiting = Self::is_waiting(&oracle, value).is_some();
        drop(oracle);
        self.sim.note("refused", &[value, n_open]);
        let is_right = match kind {
            FutureRefusedKind::TooMany => n_open >= self.futures_max,
            FutureRefusedKind::AlreadyWaiting => is_waiting,
            _ => false,
        };
        self.check(Invariant::M1, is_right, || {
            format!("{kind:?} with {n_open} futures, waiting {is_waiting}")
        });
    }

    /// The last future of a value was taken: then there was workers.
    pub(super) fn is_taken(&self, value: u64) {
        let n_open = Self::n_open(&self.oracle(), value);
        let most = self.futures_max;
        self.check(Invariant::M1, n_open <= most, || format!("{n_open} futures, of {most}"));
    }

    fn is_waiting(oracle: &Oracle, value: u64) -> Option<How> {
        let of = |id: &usize| {
            let record = &oracle.futures[*id];
            let is_its = record.owner.is_some_and(|owner| owner.0 == value);
            (is_its && record.how.is_wait()).then_some(record.how)
        };
        oracle.open.iter().find_map(of)
    }

    /// A request leaves.
    pub(super) fn request(&self, id: usize, reply: ReplyTo<u64>) -> Asked {
        let mut oracle = self.oracle();
        oracle.futures[id].request = Request::Open;
        oracle.n_requests += 1;
        drop(oracle);
        Asked { reply: Some(reply), note: Token { run_state: self.clone(), id } }
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
        self.sim.note("end", &[id as u64, end.code(), now]);
        let invariant = if request == Request::None { Invariant::A10 } else { Invariant::A9 };
        self.check(invariant, before.is_none(), || {
            format!("{id} ends by {before:?}, then {end:?}")
        });
        if end != End::GivenUp {
            self.check(Invariant::A10, is_alive, || {
                format!("{id} ends by {end:?}, after its actor")
            });
        }
        match end {
            End::Answered(of) => {
                let is_right = of == id as u64 && request == Request::Answered(true);
                self.check(Invariant::A9, is_right, || {
                    format!("{id} has the answer to {of}: {request:?}")
                });
            }
            End::TimedOut | End::Slept => self.check(Invariant::T1, now >= due, || {
                format!("{id} ends by {end:?} at {now}, due at {due}")
            }),
            End::Dropped => self.check(Invariant::A9, request == Request::Dropped, || {
                format!("{id} is told of a drop: {request:?}")
            }),
            End::ToItself => {
                let is_right = how.is_wait() && owner.map(|owner| owner.1) == to;
                self.check(Invariant::A9, is_right, || format!("{id}: {to:?} is not who asks"));
            }
            End::Refused => self.check(Invariant::A9, false, || format!("{id} was refused")),
            End::Stopped | End::GivenUp => {}
        }
        if !matches!(end, End::Answered(_) | End::GivenUp) {
            self.check(Invariant::A9, request != Request::Answered(true), || {
                format!("{id} ends by {end:?}, and its answer was taken")
            });
        }
    }

    /// A request was answered, and somebody wanted that or not; or it was let go of.
    fn settles(&self, id: usize, request: Request) {
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
            format!("{id} ended by {end:?}, and its answer is taken")
        });
    }

    /// A handler of a value begins; `is_user` says that it is for a user message.
    pub(super) fn enters(&self, value: u64, is_user: bool) -> Visit<'_> {
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
        let is_held = if is_user { waits.is_some() } else { waits == Some(How::Lent) };
        self.check(Invariant::A10, !is_held, || {
            format!("value {value} has a message and waits: {waits:?}")
        });
        Visit { run_state: self, value }
    }

    /// A value ends, by a restart or for good: its futures have been dropped before.
    pub(super) fn value_ends(&self, value: u64) {
        let mut oracle = self.oracle();
        oracle.alive.remove(&value);
        let n_open = Self::n_open(&oracle, value);
        drop(oracle);
        self.check(Invariant::A10, n_open == 0, || {
            format!("{n_open} futures outlive value {value}")
        });
    }

    /// How many futures are under way.
    pub(super) fn n_open_all(&self) -> usize {
        self.oracle().open.len()
    }

    /// How many asks have had an answer.
    pub(super) fn n_answered(&self) -> u64 {
        self.oracle().n_answered
    }

    /// All is quiet: nothing is overdue, whoever can learn of its end has.
    pub(super) fn check_quiet(&self) {
        let now = self.sim.now();
        let mut oracle = self.oracle();
        let claims = core::mem::take(&mut oracle.claims);
        for id in &oracle.open {
            let FutureRecord { owner, due, request, how, .. } = oracle.futures[*id];
            // Others wait while the actor is lent.
            let lent = owner.and_then(|(value, _)| Self::is_waiting(&oracle, value));
            if lent == Some(How::Lent) && how != How::Lent {
                continue;
            }
            self.check(Invariant::T2, due > now, || format!("{id}, {how:?}, was due at {due}"));
            let is_settled = matches!(request, Request::Answered(_) | Request::Dropped);
            self.check(Invariant::A9, !is_settled, || format!("{id} waits on: {request:?}"));
        }
        drop(oracle);
        for who in claims {
            self.check(Invariant::A9, who.is_stopped(), || {
                format!("{} has not stopped", who.path())
            });
        }
    }

    /// Nothing is left.
    pub(super) fn check_end(&self) {
        let oracle = self.oracle();
        let (n_open, n_requests) = (oracle.open.len() as u64, oracle.n_requests);
        let n_alive = oracle.alive.len() as u64;
        let n_cards = oracle.futures.len() as u64;
        drop(oracle);
        self.sim.note("asked", &[n_cards]);
        self.sim.check_equal(Invariant::A9, "futures without an end", n_open, 0);
        self.sim.check_equal(Invariant::A3, "requests that are somewhere", n_requests, 0);
        self.sim.check_equal(Invariant::S2, "values that are alive", n_alive, 0);
    }
}

/// A handler under way.
pub(super) struct Visit<'d> {
    run_state: &'d RunState,
    value: u64,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.run_state.oracle().busy.remove(&self.value);
    }
}

/// Goes with a future: however that ends, the oracle know.
pub(super) struct TimerHandle {
    run_state: RunState,
    pub(super) id: usize,
    is_over: bool,
}

impl TimerHandle {
    pub(super) fn ends(mut self, end: End) {
        self.is_over = true;
        self.run_state.ends(self.id, end);
    }
}

impl Drop for TimerHandle {
    fn drop(&mut self) {
        if !self.is_over {
            self.run_state.ends(self.id, End::GivenUp);
        }
    }
}

/// A request, with what it is to be answered by.
pub(super) struct Asked {
    reply: Option<ReplyTo<u64>>,
    note: Token,
}

impl Asked {
    /// Answers; `is_back` says that an answer nobody wants is to come back.
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
        run_state.sim.note("answer", &[id as u64, u64::from(is_wanted)]);
        run_state.settles(id, Request::Answered(is_wanted));
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            let Token { run_state, id } = &self.note;
            run_state.sim.note("let-go", &[*id as u64]);
            run_state.settles(*id, Request::Dropped);
            // The asker learns it by this, and not before.
            drop(reply);
        }
    }
}

#[derive(Clone)]
struct Token {
    run_state: RunState,
    id: usize,
}
