//! The effects of an actor: what it did through its context, recorded for a test.

use alloc::string::String;
use core::time::Duration;

use clockjack_sched::{JobSpec, Repeat};

use crate::{Actor, ActorPath, Key, cell::CellState};

/// Something that an actor did through its context and that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The actor started a child.
    Spawned {
        /// The name of the child.
        name: String,
    },
    /// The actor called `stop_self`.
    StoppedSelf,
    /// The actor stopped a child.
    Stopped(ActorPath),
    /// The actor watches another actor.
    Watched(ActorPath),
    /// The actor watches another actor with a message of its own.
    WatchedWith(ActorPath),
    /// The actor stopped watching another actor.
    Unwatched(ActorPath),
    /// The actor scheduled a message.
    Scheduled {
        /// The delay.
        delay: Duration,
        /// The receiver.
        receiver: ActorPath,
    },
    /// The actor set a timer.
    TimerScheduled {
        /// The key of the timer.
        key: Key,
        /// The delay until the timer fires first.
        delay: Duration,
        /// How often the timer fires.
        mode: TimerMode,
        /// Whether the timer replaces an active one with the same key.
        overriding: bool,
    },
    /// The actor cancelled an active timer.
    TimerCancelled {
        /// The key of the timer.
        key: Key,
    },
    /// The actor set its receive time-out.
    ReceiveTimeoutSet(Duration),
    /// The actor cancelled its receive time-out.
    ReceiveTimeoutCancelled,
    /// The actor stashed a message.
    Stashed,
    /// The actor unstashed this many messages.
    Unstashed(usize),
    /// The actor started a future.
    FutureStarted,
    /// The actor awaits a future, and handles no messages meanwhile.
    FutureAwaited,
}

/// How often a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// Once.
    Single,
    /// At a fixed rate, of this period.
    FixedRate(Duration),
    /// With a fixed delay after each run.
    FixedDelay(Duration),
}

impl TimerMode {
    pub(crate) fn of(spec: &JobSpec) -> Self {
        match spec.repeat {
            Repeat::Once => Self::Single,
            Repeat::FixedRate(period) => Self::FixedRate(period),
            Repeat::FixedDelay(delay) => Self::FixedDelay(delay),
        }
    }
}

impl<A: Actor> CellState<A> {
    /// Whether a test drives the actor and records its effects.
    pub(crate) fn is_recorded(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.effects.is_some())
    }

    /// Records an effect, if a test has asked for that; otherwise the effect is not even
    /// constructed.
    #[inline]
    pub(crate) fn record(&mut self, effect: impl FnOnce() -> Effect) {
        if let Some(rare) = &mut self.rare
            && let Some(effects) = &mut rare.effects
        {
            effects.push(effect());
        }
    }
}
