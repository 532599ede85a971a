//! An actor outside any cell, moved by hand in the turns of another one.
//!
//! A context needs two things: the state beside the actor, and the turn of a cell whose messages
//! are of the same type. The first is the puppet's own; the second is lent by a *host*, an actor
//! that does nothing else. So what the actor does by its context is done in the name of the host:
//! children are the host's, and what comes back of timers, watches and futures comes to the host,
//! which knows nothing of them. That leaves to the test what the actor is told, and when.

use alloc::vec::Vec;
use core::fmt;

use super::Effect;
use crate::{
    Actor, Context, Failure, IntoProps, Key, Next, Signal,
    cell::{DEATH_PACT, STARTS_TIMEOUT, CellState, Stage, UNSTASH_REQUESTED},
};

/// See the head of the file.
pub struct TestActor<A: Actor> {
    actor: A,
    state: CellState<A>,
}

/// A timer that an actor has set. It stays that one: when it has fired for the last time, was
/// cancelled or replaced, this is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerHandle {
    slot: u32,
    generation: u32,
}

impl<A: Actor> TestActor<A> {
    /// An actor that is made by these props, and not started yet.
    pub fn new<P: IntoProps<Actor = A>>(props: P) -> Self {
        let (mut factory, settings) = props.into_props().into_parts();
        let mut state = CellState::new(settings, false);
        state.stage = Stage::Running;
        state.rare().effects = Some(Vec::new());
        Self { actor: factory(), state }
    }

    /// The actor.
    pub fn actor(&self) -> &A {
        &self.actor
    }

    /// The actor.
    pub fn actor_mut(&mut self) -> &mut A {
        &mut self.actor
    }

    /// What it has done since this was called last.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.state.rare().effects.replace(Vec::new()).unwrap_or_default()
    }

    /// Lets it start, in a turn of the host.
    ///
    /// # Errors
    ///
    /// The failure of the actor; so for all that call it.
    pub fn start<H: Actor<Msg = A::Msg>>(
        &mut self,
        host: &mut Context<'_, H>,
    ) -> Result<Next, Failure> {
        self.call(host, A::started)
    }

    /// Lets it handle a message, and then those that it wants to have back from its stash.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start).
    pub fn receive<H: Actor<Msg = A::Msg>>(
        &mut self,
        host: &mut Context<'_, H>,
        msg: A::Msg,
    ) -> Result<Next, Failure> {
        self.call(host, |actor, cx| actor.receive(cx, msg))
    }

    /// Lets it handle a signal. The end of one that it watches by a message is that message.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start); also if it leaves the end of one that it watches unhandled.
    pub fn signal<H: Actor<Msg = A::Msg>>(
        &mut self,
        host: &mut Context<'_, H>,
        signal: Signal,
    ) -> Result<Next, Failure> {
        let mut must_be_handled = false;
        if let Signal::Terminated(end) = &signal {
            must_be_handled = true;
            let message = self.state.rare().take_watch(end.pid);
            if let Some(message) = message.and_then(|message| message.downcast().ok()) {
                return self.receive(host, *message);
            }
        }
        self.call(host, |actor, cx| match actor.signal(cx, signal) {
            Ok(Next::Unhandled) if must_be_handled => Err(DEATH_PACT.failure()),
            result => result,
        })
    }

    /// The timer that is active by this key.
    pub fn timer(&self, key: Key) -> Option<TimerHandle> {
        let timers = self.state.rare.as_ref()?.timers.as_ref()?;
        let (slot, generation) = timers.table.place(key)?;
        Some(TimerHandle { slot, generation })
    }

    /// The message of a timer, as if it had fired. None if it cannot any more.
    pub fn fire(&mut self, timer: TimerHandle) -> Option<A::Msg> {
        let timers = &mut self.state.timers_mut()?.table;
        timers.is_current(timer.slot, timer.generation).then(|| timers.take_message(timer.slot))?
    }

    fn call<H: Actor<Msg = A::Msg>>(
        &mut self,
        host: &mut Context<'_, H>,
        call: impl FnOnce(&mut A, &mut Context<'_, A>) -> Result<Next, Failure>,
    ) -> Result<Next, Failure> {
        let Self { actor, state } = self;
        let mut result = call(actor, &mut Context::new(state, host.turn));
        loop {
            state.set(STARTS_TIMEOUT, false);
            if state.has(UNSTASH_REQUESTED) {
                state.unstash();
            }
            if !matches!(result, Ok(Next::Stay | Next::Unhandled)) {
                return result;
            }
            let back = state.rare().unstashed.pop_front();
            let Some(envelope) = back else { return result };
            result = actor.receive(&mut Context::new(state, host.turn), envelope.msg);
        }
    }
}

impl<A: Actor> fmt::Debug for TestActor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestActor").finish_non_exhaustive()
    }
}
