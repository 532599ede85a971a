//! The actors: they ask each other, reply, and fail where a fault occurs.

use core::time::Duration;

use clockjack_actor::{
    Actor, ActorError, ActorRef, Backoff, Context, Failure, Mailbox, Next, Overflow, Props, Signal,
    Strategy,
};

use super::run_state::{End, RunState, TrackedRequest, WaitKind};
use crate::{fault::Class, host::multi_worker::interleave, random::Stream, run::inject_panic};

/// The messages of the actors.
pub(super) enum Msg {
    /// An action.
    Do(Action),
    /// An action, sent as a control message, which overtakes user messages.
    Urgent(Action),
    /// A request, and how to treat it.
    Asks(TrackedRequest, RequestHandling),
    /// The result of an ask.
    Heard,
}

/// An action of an actor.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Work,
    Fail,
    Stop,
    /// Asks another actor, or itself.
    Ask {
        to: usize,
        ticks: u64,
        how: WaitKind,
        handling: RequestHandling,
    },
    /// Sleeps.
    Sleep {
        ticks: u64,
        how: WaitKind,
    },
    /// Replies to all requests that the actor has kept.
    ReplyToKept {
        is_back: bool,
    },
}

/// How an actor treats a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum RequestHandling {
    Answer {
        is_back: bool,
    },
    /// Keeps it for later.
    Keep,
    /// Drops it.
    Drop,
    /// Forwards it to another actor, which replies.
    HandOn {
        to: usize,
    },
    /// Replies, and then the handler fails.
    AnswerAndFail,
    /// The handler fails while it owns the request.
    Fail,
}

impl Action {
    pub(super) fn draw(work: &mut Stream, n_nodes: usize, failing: u64) -> Self {
        let to = work.index(n_nodes);
        let ticks = work.between(1, 250);
        let how = [
            WaitKind::Message,
            WaitKind::Concurrent,
            WaitKind::Concurrent,
            WaitKind::Exclusive,
            WaitKind::Borrowed,
        ];
        let how = how[work.index(how.len())];
        let handling = RequestHandling::draw(work, n_nodes, failing);
        match work.below(30 + failing) {
            0..5 => Self::Work,
            5..20 => Self::Ask { to, ticks, how, handling },
            20..24 => {
                let how = if how == WaitKind::Message { WaitKind::Concurrent } else { how };
                Self::Sleep { ticks, how }
            }
            24..29 => Self::ReplyToKept { is_back: work.chance(5_000) },
            29 if work.chance(2_000) => Self::Stop,
            29 => Self::Work,
            _ => Self::Fail,
        }
    }
}

impl RequestHandling {
    pub(super) fn draw(work: &mut Stream, n_nodes: usize, failing: u64) -> Self {
        let to = work.index(n_nodes);
        match work.below(20 + failing) {
            0..9 => Self::Answer { is_back: work.chance(5_000) },
            9..14 => Self::Keep,
            14..16 => Self::Drop,
            16..20 => Self::HandOn { to },
            _ if work.chance(5_000) => Self::AnswerAndFail,
            _ => Self::Fail,
        }
    }
}

/// The plan of an actor.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePlan {
    /// The capacity of the mailbox; `None` means unbounded.
    capacity: Option<usize>,
    is_evicting: bool,
    strategy: u64,
}

impl NodePlan {
    pub(super) fn draw(shape: &mut Stream) -> Self {
        Self {
            capacity: shape.chance(4_000).then(|| shape.index(5) + 1),
            is_evicting: shape.chance(3_000),
            strategy: shape.below(6),
        }
    }

    fn mailbox(&self) -> Mailbox {
        let Some(capacity) = self.capacity else { return Mailbox::unbounded() };
        let overflow = if self.is_evicting { Overflow::DropOldest } else { Overflow::Fail };
        Mailbox::bounded(capacity).overflow(overflow)
    }

    fn strategy(&self) -> Option<Strategy> {
        let ms = Duration::from_millis;
        Some(match self.strategy {
            1 => Strategy::restart(),
            2 => Strategy::resume(),
            3 => Strategy::restart().limit(3, ms(400)),
            4 => Strategy::restart().backoff(Backoff::new(ms(2), ms(40)).jitter(0.5)).stash(3),
            5 => Strategy::restart(),
            _ => return None,
        })
    }
}

pub(super) fn name(index: usize) -> String {
    format!("n{index}")
}

pub(super) struct Node {
    run_state: RunState,
    index: usize,
    value: u64,
    kept: Vec<TrackedRequest>,
}

/// The props of an actor of the plan.
pub(super) fn props(
    run_state: &RunState,
    index: usize,
    plan: NodePlan,
) -> Props<Node, impl FnMut() -> Node + Send + use<>> {
    let futures_max = u16::try_from(run_state.futures_max).unwrap_or(u16::MAX);
    let run_state = run_state.clone();
    let props = Props::new(move || {
        let mut oracle = run_state.oracle();
        oracle.n_values += 1;
        let value = oracle.n_values;
        drop(oracle);
        Node { run_state: run_state.clone(), index, value, kept: Vec::new() }
    });
    let props = props.mailbox(plan.mailbox()).futures(futures_max, 64);
    match plan.strategy() {
        Some(strategy) => props.supervise(strategy),
        None => props,
    }
}

impl Actor for Node {
    type Msg = Msg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.run_state.sim.record("start", &[self.index as u64, self.value]);
        let mut oracle = self.run_state.oracle();
        oracle.alive.insert(self.value, self.index);
        oracle.refs.insert(self.index, cx.self_ref());
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let run_state = self.run_state.clone();
        let _running = run_state.enters(self.value, !matches!(msg, Msg::Urgent(_)));
        run_state.sim.record("receive", &[self.index as u64, self.value]);
        // On a host with several workers, other workers run here.
        interleave();
        match msg {
            Msg::Do(action) | Msg::Urgent(action) => {
                inject_faults(&run_state)?;
                return self.perform(cx, action);
            }
            Msg::Asks(request, handling) => self.answer(request, handling)?,
            Msg::Heard => {}
        }
        inject_faults(&run_state)?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let word = match signal {
            Signal::PreRestart => "restart",
            Signal::PostStop => "stop",
            _ => return Ok(Next::Unhandled),
        };
        self.run_state.sim.record(word, &[self.index as u64, self.value]);
        self.run_state.value_ends(self.value);
        Ok(Next::Stay)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // A value whose start was aborted has received no signal.
        self.run_state.oracle().alive.remove(&self.value);
    }
}

impl Node {
    fn answer(
        &mut self,
        request: TrackedRequest,
        handling: RequestHandling,
    ) -> Result<(), Failure> {
        match handling {
            RequestHandling::Answer { is_back } => request.answer(is_back),
            RequestHandling::Keep => self.kept.push(request),
            RequestHandling::Drop => drop(request),
            RequestHandling::HandOn { to } => {
                let to = self.run_state.oracle().refs.get(&to).cloned();
                // An actor that does not exist, or whose mailbox is full, does not take it: the
                // request is dropped.
                if let Some(to) = to {
                    drop(to.tell(Msg::Asks(request, RequestHandling::Answer { is_back: true })));
                }
            }
            RequestHandling::AnswerAndFail => {
                request.answer(false);
                return Err(Failure::msg("injected failure"));
            }
            RequestHandling::Fail => return Err(Failure::msg("injected failure")),
        }
        Ok(())
    }

    fn perform(&mut self, cx: &mut Context<'_, Self>, action: Action) -> Result<Next, Failure> {
        match action {
            Action::Work => {}
            Action::Fail => return Err(Failure::msg("injected failure")),
            Action::Stop => return Ok(Next::Stop),
            Action::ReplyToKept { is_back } => {
                core::mem::take(&mut self.kept).into_iter().for_each(|one| one.answer(is_back));
            }
            Action::Ask { to, ticks, how, handling } => {
                let target = self.run_state.oracle().refs.get(&to).cloned();
                if let Some(target) = target {
                    self.ask(cx, &target, (to, ticks), how, handling);
                }
            }
            Action::Sleep { ticks, how } => self.sleep(cx, ticks, how),
        }
        Ok(Next::Stay)
    }

    fn ask(
        &self,
        cx: &mut Context<'_, Self>,
        target: &ActorRef<Msg>,
        (to, ticks): (usize, u64),
        how: WaitKind,
        handling: RequestHandling,
    ) {
        let run_state = &self.run_state;
        let guard =
            run_state.begins(Some((self.value, self.index)), how, Some((to, target)), ticks);
        let (id, after) = (guard.id, Duration::from_millis(ticks));
        let request = |reply| Msg::Asks(run_state.request(id, reply), handling);
        let begun = if how == WaitKind::Message {
            cx.ask(target, request, after, move |_, answer| {
                guard.ends(End::of(&answer));
                Ok(Msg::Heard)
            })
            .map_err(ActorError::discard)
        } else {
            let ask = target.ask(request, after);
            let future = async move {
                let answer = ask.await;
                guard.ends(End::of(&answer));
            };
            self.begin(cx, future, how)
        };
        self.report_start(begun);
    }

    fn sleep(&self, cx: &mut Context<'_, Self>, ticks: u64, how: WaitKind) {
        let guard = self.run_state.begins(Some((self.value, self.index)), how, None, ticks);
        let sleep = cx.system().executor().sleep(Duration::from_millis(ticks));
        let future = async move {
            // An error means that the system shuts down: then the sleep did not complete.
            if sleep.await.is_ok() {
                guard.ends(End::Slept);
            }
        };
        let begun = self.begin(cx, future, how);
        self.report_start(begun);
    }

    fn begin(
        &self,
        cx: &mut Context<'_, Self>,
        future: impl Future<Output = ()> + Send + 'static,
        how: WaitKind,
    ) -> Result<(), ActorError<()>> {
        let then = |me: &mut Self, _: &mut Context<'_, Self>, ()| me.continuation();
        match how {
            WaitKind::Exclusive => cx.wait(future, then).map_err(ActorError::discard),
            WaitKind::Borrowed => cx
                .wait_mut(move |me: &mut Self| {
                    Box::pin(async move {
                        future.await;
                        me.continuation()
                    })
                })
                .map_err(ActorError::discard),
            WaitKind::Outside | WaitKind::Message | WaitKind::Concurrent => {
                cx.spawn_future(future, then).map_err(ActorError::discard)
            }
        }
    }

    fn report_start(&self, begun: Result<(), ActorError<()>>) {
        match begun {
            Ok(()) => self.run_state.is_taken(self.value),
            Err(refused) => self.run_state.is_refused(self.value, &refused),
        }
    }

    /// The continuation after a future.
    fn continuation(&mut self) -> Result<Next, Failure> {
        let run_state = self.run_state.clone();
        run_state.sim.record("then", &[self.index as u64, self.value]);
        inject_faults(&run_state)?;
        Ok(Next::Stay)
    }
}

/// The faults of a handler.
fn inject_faults(run_state: &RunState) -> Result<(), Failure> {
    let sim = &run_state.sim;
    sim.may_be_slow();
    if sim.fault(Class::HandlerError).is_some() {
        return Err(Failure::msg("injected failure"));
    }
    if sim.fault(Class::HandlerPanic).is_some() {
        inject_panic();
    }
    Ok(())
}
