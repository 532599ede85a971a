//! An actor outside of a cell, which a test calls directly, within the polls of another actor.
//!
//! A context needs two things: the cell state that belongs to the actor, and a poll of a cell with
//! the same message type. The first is a field of [`TestActor`]; the second is provided by a
//! *host*, an actor with no other purpose. So what the tested actor does through its context is
//! done in the name of the host: children are the host's children, and the events of timers,
//! watches and futures go to the host, which ignores them. The test decides which messages and
//! signals the tested actor receives, and when.

use alloc::vec::Vec;
use core::fmt;

use super::Effect;
use crate::{
    Actor, Context, Failure, IntoProps, Key, Next, Signal,
    cell::{CellState, DEATH_PACT, STARTS_TIMEOUT, Stage, UNSTASH_REQUESTED},
};

/// An actor outside of a cell; see the head of the file.
pub struct TestActor<A: Actor> {
    actor: A,
    state: CellState<A>,
}

/// A timer that an actor has set. The handle becomes invalid when the timer has fired for the last
/// time, was cancelled or was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerHandle {
    slot: u32,
    generation: u32,
}

impl<A: Actor> TestActor<A> {
    /// Makes an actor from these props, without starting it.
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

    /// Takes the effects since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        self.state.rare().effects.replace(Vec::new()).unwrap_or_default()
    }

    /// Starts the actor, within a poll of the host.
    ///
    /// # Errors
    ///
    /// The failure of the actor.
    pub fn start<H: Actor<Msg = A::Msg>>(
        &mut self,
        host: &mut Context<'_, H>,
    ) -> Result<Next, Failure> {
        self.call(host, A::started)
    }

    /// Calls the actor with a message, and then with the messages that it unstashes.
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

    /// Calls the actor with a signal. If the signal reports the termination of an actor that is
    /// watched with a message, the actor is called with that message instead.
    ///
    /// # Errors
    ///
    /// As for [`start`](Self::start); also if the actor leaves the termination of a watched actor
    /// unhandled.
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

    /// The active timer with this key.
    pub fn timer(&self, key: Key) -> Option<TimerHandle> {
        let timers = self.state.rare.as_ref()?.timers.as_ref()?;
        let (slot, generation) = timers.table.place(key)?;
        Some(TimerHandle { slot, generation })
    }

    /// The message of a timer, as if the timer had fired. `None` if it cannot fire any more.
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
        let mut result = call(actor, &mut Context::new(state, host.poll));
        loop {
            state.set(STARTS_TIMEOUT, false);
            if state.has(UNSTASH_REQUESTED) {
                state.unstash();
            }
            if !matches!(result, Ok(Next::Stay | Next::Unhandled)) {
                return result;
            }
            if state.rare().effects.iter().flatten().any(|effect| *effect == Effect::StoppedSelf) {
                return Ok(Next::Stop);
            }
            let back = state.rare().unstashed.pop_front();
            let Some(envelope) = back else { return result };
            result = actor.receive(&mut Context::new(state, host.poll), envelope.msg);
        }
    }
}

impl<A: Actor> fmt::Debug for TestActor<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestActor").finish_non_exhaustive()
    }
}
