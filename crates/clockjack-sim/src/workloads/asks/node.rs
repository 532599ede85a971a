//! The actors: they ask each other, answer, and fail where a fault is.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::time::Duration;

use clockjack_actor::{
    Actor, ActorRef, Backoff, Context, Failure, FutureRefusedKind, Mailbox, Next, Overflow, Props,
    Signal, Strategy,
};

use super::run_state::{Asked, End, How, RunState};
use crate::{fault::Class, host::multi_worker::meanwhile, random::Stream, run::panic_as_told};

/// What actors are told.
pub(super) enum Msg {
    /// Something to do.
    Do(Action),
    /// As that, by the lane that overtakes.
    Urgent(Action),
    /// Somebody asks, and this is what to do description it.
    Asks(Asked, Manner),
    /// What an ask has come to.
    Heard,
}

/// Something to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    Work,
    Fail,
    Stop,
    /// Asks another one, or itself.
    Ask {
        to: usize,
        ticks: u64,
        how: How,
        manner: Manner,
    },
    /// Waits for some time.
    Nap {
        ticks: u64,
        how: How,
    },
    /// Answers all that it has kept.
    Pay {
        is_back: bool,
    },
}

/// What is done description a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Manner {
    Answer {
        is_back: bool,
    },
    /// It is kept for later.
    Keep,
    /// It is let go of.
    Drop,
    /// It is handed on to another one, who answers.
    HandOn {
        to: usize,
    },
    /// It is answered, and then the handler fails.
    AnswerAndFail,
    /// The handler fails with the request in its workers.
    Fail,
}

impl Action {
    pub(super) fn draw(work: &mut Stream, n_nodes: usize, failing: u64) -> Self {
        let to = work.index(n_nodes);
        let ticks = work.between(1, 250);
        let how = [How::Message, How::Beside, How::Beside, How::Exclusive, How::Lent];
        let how = how[work.index(how.len())];
        let manner = Manner::draw(work, n_nodes, failing);
        match work.below(30 + failing) {
            0..5 => Self::Work,
            5..20 => Self::Ask { to, ticks, how, manner },
            20..24 => {
                let how = if how == How::Message { How::Beside } else { how };
                Self::Nap { ticks, how }
            }
            24..29 => Self::Pay { is_back: work.chance(5_000) },
            29 if work.chance(2_000) => Self::Stop,
            29 => Self::Work,
            _ => Self::Fail,
        }
    }
}

impl Manner {
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

/// An actor as it is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodePlan {
    /// Workers in its mailbox; none for any number.
    workers: Option<usize>,
    is_evicting: bool,
    strategy: u64,
}

impl NodePlan {
    pub(super) fn draw(shape: &mut Stream) -> Self {
        Self {
            workers: shape.chance(4_000).then(|| shape.index(5) + 1),
            is_evicting: shape.chance(3_000),
            strategy: shape.below(6),
        }
    }

    fn mailbox(&self) -> Mailbox {
        let Some(workers) = self.workers else { return Mailbox::unbounded() };
        let overflow = if self.is_evicting { Overflow::DropOldest } else { Overflow::Fail };
        Mailbox::bounded(workers).overflow(overflow)
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
    kept: Vec<Asked>,
}

/// How an actor of the plan is made.
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
        self.run_state.sim.note("start", &[self.index as u64, self.value]);
        let mut oracle = self.run_state.oracle();
        oracle.alive.insert(self.value, self.index);
        oracle.refs.insert(self.index, cx.self_ref());
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: Msg) -> Result<Next, Failure> {
        let run_state = self.run_state.clone();
        let _visit = run_state.enters(self.value, !matches!(msg, Msg::Urgent(_)));
        run_state.sim.note("receive", &[self.index as u64, self.value]);
        // On a host with several workers others come in between.
        meanwhile();
        match msg {
            Msg::Do(action) | Msg::Urgent(action) => {
                suffer(&run_state)?;
                return self.carry_out(cx, action);
            }
            Msg::Asks(asked, manner) => self.answer(asked, manner)?,
            Msg::Heard => {}
        }
        suffer(&run_state)?;
        Ok(Next::Stay)
    }

    fn signal(&mut self, _: &mut Context<'_, Self>, signal: Signal) -> Result<Next, Failure> {
        let word = match signal {
            Signal::PreRestart => "restart",
            Signal::PostStop => "stop",
            _ => return Ok(Next::Unhandled),
        };
        self.run_state.sim.note(word, &[self.index as u64, self.value]);
        self.run_state.value_ends(self.value);
        Ok(Next::Stay)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // One whose start was cut short has heard no signal.
        self.run_state.oracle().alive.remove(&self.value);
    }
}

impl Node {
    fn answer(&mut self, asked: Asked, manner: Manner) -> Result<(), Failure> {
        match manner {
            Manner::Answer { is_back } => asked.answer(is_back),
            Manner::Keep => self.kept.push(asked),
            Manner::Drop => drop(asked),
            Manner::HandOn { to } => {
                let to = self.run_state.oracle().refs.get(&to).cloned();
                // Who is not there, or has no workers, gives it back: it is let go of.
                if let Some(to) = to {
                    drop(to.tell(Msg::Asks(asked, Manner::Answer { is_back: true })));
                }
            }
            Manner::AnswerAndFail => {
                asked.answer(false);
                return Err(Failure::msg("as told"));
            }
            Manner::Fail => return Err(Failure::msg("as told")),
        }
        Ok(())
    }

    fn carry_out(&mut self, cx: &mut Context<'_, Self>, action: Action) -> Result<Next, Failure> {
        match action {
            Action::Work => {}
            Action::Fail => return Err(Failure::msg("as told")),
            Action::Stop => return Ok(Next::Stop),
            Action::Pay { is_back } => {
                core::mem::take(&mut self.kept).into_iter().for_each(|one| one.answer(is_back));
            }
            Action::Ask { to, ticks, how, manner } => {
                let target = self.run_state.oracle().refs.get(&to).cloned();
                if let Some(target) = target {
                    self.ask(cx, &target, (to, ticks), how, manner);
                }
            }
            Action::Nap { ticks, how } => self.nap(cx, ticks, how),
        }
        Ok(Next::Stay)
    }

    fn ask(
        &self,
        cx: &mut Context<'_, Self>,
        target: &ActorRef<Msg>,
        (to, ticks): (usize, u64),
        how: How,
        manner: Manner,
    ) {
        let run_state = &self.run_state;
        let ticket =
            run_state.begins(Some((self.value, self.index)), how, Some((to, target)), ticks);
        let (id, after) = (ticket.id, Duration::from_millis(ticks));
        let request = |reply| Msg::Asks(run_state.request(id, reply), manner);
        let begun = if how == How::Message {
            cx.ask(target, request, after, move |_, answer| {
                ticket.ends(End::of(&answer));
                Ok(Msg::Heard)
            })
            .map_err(|refused| refused.kind())
        } else {
            let ask = target.ask(request, after);
            let future = async move {
                let answer = ask.await;
                ticket.ends(End::of(&answer));
            };
            self.begin(cx, future, how)
        };
        self.tell_begun(begun);
    }

    fn nap(&self, cx: &mut Context<'_, Self>, ticks: u64, how: How) {
        let ticket = self.run_state.begins(Some((self.value, self.index)), how, None, ticks);
        let sleep = cx.system().executor().sleep(Duration::from_millis(ticks));
        let future = async move {
            // Refused at the end of the system only: then it has not slept.
            if sleep.await.is_ok() {
                ticket.ends(End::Slept);
            }
        };
        let begun = self.begin(cx, future, how);
        self.tell_begun(begun);
    }

    fn begin(
        &self,
        cx: &mut Context<'_, Self>,
        future: impl Future<Output = ()> + Send + 'static,
        how: How,
    ) -> Result<(), FutureRefusedKind> {
        let then = |me: &mut Self, _: &mut Context<'_, Self>, ()| me.goes_on();
        match how {
            How::Exclusive => cx.wait(future, then).map_err(|refused| refused.kind()),
            How::Lent => cx
                .wait_mut(move |me: &mut Self| {
                    Box::pin(async move {
                        future.await;
                        me.goes_on()
                    })
                })
                .map_err(|refused| refused.kind()),
            How::Outside | How::Message | How::Beside => {
                cx.spawn(future, then).map_err(|refused| refused.kind())
            }
        }
    }

    fn tell_begun(&self, begun: Result<(), FutureRefusedKind>) {
        match begun {
            Ok(()) => self.run_state.is_taken(self.value),
            Err(kind) => self.run_state.is_refused(self.value, kind),
        }
    }

    /// What comes behind a future.
    fn goes_on(&mut self) -> Result<Next, Failure> {
        let run_state = self.run_state.clone();
        run_state.sim.note("then", &[self.index as u64, self.value]);
        suffer(&run_state)?;
        Ok(Next::Stay)
    }
}

/// The faults of a handler.
fn suffer(run_state: &RunState) -> Result<(), Failure> {
    let sim = &run_state.sim;
    sim.may_be_slow();
    if sim.fault(Class::HandlerError).is_some() {
        return Err(Failure::msg("as told"));
    }
    if sim.fault(Class::HandlerPanic).is_some() {
        panic_as_told();
    }
    Ok(())
}
