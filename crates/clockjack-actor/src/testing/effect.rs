//! What an actor has done by its context, written down for a test.

use alloc::string::String;
use core::time::Duration;

use clockjack_sched::{JobSpec, Repeat};

use crate::{Actor, ActorPath, Key, cell::CellState};

/// Something that an actor has done by its context, and that was not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// It has started a child.
    Spawned {
        /// The name of the child.
        name: String,
    },
    /// It has told a child to stop.
    Stopped(ActorPath),
    /// It watches an actor.
    Watched(ActorPath),
    /// It watches an actor, and wants a message of its own at the end of that.
    WatchedWith(ActorPath),
    /// It does not watch an actor any more.
    Unwatched(ActorPath),
    /// It has given the scheduler a message for somebody.
    Scheduled {
        /// After how long.
        delay: Duration,
        /// For whom.
        receiver: ActorPath,
    },
    /// It has set a timer.
    TimerScheduled {
        /// By this key.
        key: Key,
        /// For the first time after this long.
        delay: Duration,
        /// And then.
        mode: TimerMode,
        /// There was an active one of this key, in whose place it is.
        overriding: bool,
    },
    /// It has cancelled a timer that was active.
    TimerCancelled {
        /// Of this key.
        key: Key,
    },
    /// It wants to be told if no message comes for this long.
    ReceiveTimeoutSet(Duration),
    /// It does not want that any more.
    ReceiveTimeoutCancelled,
    /// It has put a message aside.
    Stashed,
    /// It wants to handle this many of those that were put aside.
    Unstashed(usize),
    /// It has started a future.
    FutureStarted,
    /// It waits for a future, and handles no messages meanwhile.
    FutureAwaited,
}

/// How often a timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// Once.
    Single,
    /// At a fixed rate, of this period.
    FixedRate(Duration),
    /// This long after each run has ended.
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
    /// Writes an effect down, if a test wants that; else it is not even made.
    #[inline]
    pub(crate) fn record(&mut self, effect: impl FnOnce() -> Effect) {
        if let Some(rare) = &mut self.rare
            && let Some(effects) = &mut rare.effects
        {
            effects.push(effect());
        }
    }
}
